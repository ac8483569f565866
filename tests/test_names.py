"""The public names: few, complete, none that hides a module, loaded on demand, each with a short text."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import rekindle as rk
from rekindle.attacks import ATTACKS

TRUTH = rk.SyntheticCity(people=6, days=3, step="4h", width_km=3, height_km=3).trajectories()
COUNTS = TRUTH.counts()


def packages():
    yield rk
    for found in pkgutil.walk_packages(rk.__path__, "rekindle."):
        if found.ispkg:
            yield importlib.import_module(found.name)


def test_names_at_the_root_are_few_and_there():
    assert 40 <= len(rk.__all__) <= 60
    for name in rk.__all__:
        assert getattr(rk, name) is not None
        assert name in dir(rk)
    assert {name.replace("write_", "read_") for name in rk.__all__ if name.startswith("write_")} <= set(rk.__all__)
    assert {kind.__name__ for kind in ATTACKS.values()} <= set(rk.__all__)
    assert set(rk.errors.__all__) & set(rk.__all__) == set()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rk.nothing


@pytest.mark.parametrize("package", list(packages()), ids=lambda package: package.__name__)
def test_no_public_name_hides_a_module(package):
    modules = {found.name for found in pkgutil.iter_modules(package.__path__)}
    assert modules & set(getattr(package, "__all__", ())) == set()
    for name in modules - {"__main__"}:
        module = importlib.import_module(f"{package.__name__}.{name}")
        assert getattr(package, name) is module


def test_importing_loads_nothing_heavy():
    heavy = ("numba", "scipy", "polars", "matplotlib", "joblib", "narwhals")
    code = f"import sys, rekindle; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("room", sorted(rk._ROOMS))
def test_rooms_are_loaded_on_demand(room):
    code = f"import rekindle as rk; print(rk.{room}.__name__, {room!r} in dir(rk))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"rekindle.{room} True"


EXAMPLES = {
    "Audit": lambda: rk.audit(TRUTH, attacks=[rk.Naive()], defences=[], seeds=2, workers=1),
    "Calendar": lambda: TRUTH.calendar,
    "Cap": lambda: rk.Cap(at=3),
    "Chain": lambda: rk.Chain([rk.Round(to=5), rk.Suppress(below=3)]),
    "CoarserSpace": lambda: rk.CoarserSpace(km=2.0),
    "CoarserTime": lambda: rk.CoarserTime(step="8h"),
    "Counts": lambda: COUNTS,
    "Dataset": lambda: rk.Dataset(COUNTS, TRUTH),
    "Flows": lambda: TRUTH.flows(),
    "GeometricNoise": lambda: rk.GeometricNoise(epsilon=1.0, per="event"),
    "KnownPast": lambda: rk.KnownPast(TRUTH),
    "KnownPeople": lambda: rk.KnownPeople(TRUTH),
    "LaplaceNoise": lambda: rk.LaplaceNoise(epsilon=1.0, per="event"),
    "Locations": lambda: TRUTH.locations,
    "OtherTraces": lambda: rk.OtherTraces(TRUTH),
    "Recovery": lambda: rk.Baseline().recover(COUNTS),
    "Release": lambda: rk.Chain([rk.Round(to=5), rk.Suppress(below=3)])(COUNTS),
    "Round": lambda: rk.Round(to=5),
    "Run": lambda: rk.Enhanced().start(COUNTS.locations, COUNTS.calendar, people=COUNTS.people),
    "Sample": lambda: rk.Sample(share=0.5),
    "Suppress": lambda: rk.Suppress(below=3),
    "Trajectories": lambda: TRUTH,
    "evaluate": lambda: rk.evaluate(TRUTH, TRUTH),
    "evaluate.mapping": lambda: rk.evaluate(TRUTH, TRUTH).mapping,
    "evaluate.per_person": lambda: rk.evaluate(TRUTH, TRUTH).per_person,
    "reference_scores": lambda: rk.reference_scores(TRUTH, seeds=2),
    "check": lambda: rk.check(rk.Round(to=5)(COUNTS)),
    "details": lambda: rk.Baseline().recover(COUNTS).details,
    "AppliedDefence": lambda: rk.Round(to=5)(COUNTS).defences[0],
}


def test_every_class_at_the_root_has_an_example():
    classes = {name for name in rk.__all__ if inspect.isclass(getattr(rk, name))}
    ready = {name for name in classes if not inspect.isabstract(getattr(rk, name)) and name not in EXAMPLES}
    for name in ready:
        assert len(repr(getattr(rk, name)())) < 200, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_are_short(name):
    text = repr(EXAMPLES[name]())
    assert len(text) < 200, text
    assert "\n" not in text
    assert " object at 0x" not in text
