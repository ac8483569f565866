"""The values that were kept are found again, on whatever Python this is."""

import json

from tests.determinism.values import KEPT, differences, values


def test_values_are_those_of_every_other_python():
    kept = json.loads(KEPT.read_text())
    assert len(kept) > 25
    assert differences(kept, values()) == []


def test_a_difference_is_found():
    kept = {"cells": "a1", "costs": [1.0, 2.0]}
    assert differences(kept, kept) == []
    assert differences(kept, {"cells": "a1", "costs": [1.0, 2.0 + 1e-8]}) == ["costs"]
    assert differences(kept, {"cells": "a2", "costs": [1.0, 2.0]}) == ["cells"]
    assert differences(kept, {"cells": "a1"}) == ["costs"]
