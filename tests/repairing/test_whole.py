import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rekindle.repairing.whole import nearest_counts


@settings(max_examples=100, deadline=None)
@given(data=st.data(), places=st.integers(1, 4), people=st.integers(1, 6))
def test_the_table_is_the_nearest_of_all(data, places, people):
    numbers = st.one_of(st.floats(-8, 8), st.integers(-16, 16).map(lambda half: half / 2))
    guess = data.draw(hnp.arrays(np.float64, (1, places), elements=numbers))
    low = data.draw(hnp.arrays(np.float64, (1, places), elements=st.integers(0, 2)))
    high = low + data.draw(
        hnp.arrays(np.float64, (1, places), elements=st.one_of(st.integers(0, 3), st.just(np.inf)))
    )
    fitting = [
        table
        for table in itertools.product(range(people + 1), repeat=places)
        if sum(table) == people and (low[0] <= table).all() and (table <= high[0]).all()
    ]
    found = nearest_counts(guess, np.array([people]), low, high, np.zeros(guess.shape, bool))
    assert found.sum() == people
    assert (found >= 0).all()
    if fitting:
        assert (low <= found).all()
        assert (found <= high).all()
        best = min(((np.array(table) - guess[0]) ** 2).sum() for table in fitting)
        assert ((found - guess) ** 2).sum() == pytest.approx(best, abs=1e-6)


def test_people_beyond_the_limits_go_where_a_cap_may_hide_them():
    limits = np.array([[3.0, 1.0, 0.0]])
    found = nearest_counts(limits, np.array([9]), limits, limits, limits == 3)
    assert found.tolist() == [[8, 1, 0]]
