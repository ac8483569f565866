"""A pytest plugin for interpreted kernels: fewer examples, always the same ones, and without the tests that take longest.

Coverage and mutation cannot see into compiled code, so both are measured with ``NUMBA_DISABLE_JIT=1``, where the kernels
are some hundred times slower. ``python -m pytest -p tests.proof.quick``.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import Phase
from tests.examples import limit_examples

EXAMPLES = int(os.environ.get("REKINDLE_EXAMPLES", "10"))
PHASES = (Phase.explicit, Phase.generate)

TOO_SLOW = (
    "test_contract.py::*-habits]",
    "habits/test_attack.py::*",
    "habits/test_doubt.py::test_confidence_is_calibrated*",
    "test_linking.py::test_hundreds_of_people_are_linked_the_same_way_with_and_without_a_matrix[3]",
    "test_mapping.py::test_hundreds_of_people_with_and_without_a_matrix",
    "test_kernels.py::test_ctrl_c_while_kernels_are_compiled*",
    "test_kernels.py::test_a_change_in_a_callee_in_another_file_is_noticed",
    "test_steps.py::test_larger_steps_are_optimal",
    "test_steps.py::test_transport_of_larger_problems",
    "test_steps.py::test_works_without_the_compiler",
    "test_saving.py::test_resume_in_a_new_process",
    "test_bounds.py::test_bombs_are_refused_in_little_time_and_memory",
)
"""Tests of large problems, and of other processes; smaller ones of the same kernels are kept."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dropped = [item for item in items if any(_matches(item.nodeid, name) for name in TOO_SLOW)]
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=dropped)
    fixed = {"derandomize": True, "database": None, "deadline": None, "phases": PHASES}
    limit_examples(items, lambda examples: min(examples, EXAMPLES), **fixed)


def _matches(nodeid: str, name: str) -> bool:
    parts = name.split("*")
    return parts[0] in nodeid and nodeid.endswith(parts[-1]) and all(part in nodeid for part in parts)
