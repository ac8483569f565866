"""Mutation testing of `attacks` and `evaluation`: change one thing in the source, and see whether a test notices.

``NUMBA_DISABLE_JIT=1 python -m tests.proof.mutation --sample 400`` takes a seeded sample of the mutants that cosmic-ray makes,
spread over all modules, and runs the tests of the module against each. No file is changed: a mutant lives in a process of
its own, forked from one that has numpy and pytest loaded, and is handed to it by an import hook.

Left out, since no test can tell them from the original: changes in annotations, which are never evaluated, and in the
decorators that compile, which do nothing here.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import math
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

import numpy as np

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

DAYS = "tests/attacks/test_day_by_day.py tests/attacks/test_base.py tests/attacks/test_saving.py tests/attacks/test_contract.py"
STEPS = "tests/assignment/test_step_kernel.py tests/assignment/test_steps.py tests/attacks/test_oracle.py"
SPARSE = "tests/assignment/test_sparse.py tests/assignment/test_step_kernel.py tests/attacks/test_linking.py"
HABITS = " ".join(
    f"tests/attacks/habits/test_{part}.py"
    for part in ("schedule", "problem", "rng", "track", "relink", "search", "consensus", "polish")
)
SCORES = "tests/evaluation/test_scores.py tests/evaluation/test_exposure.py"

TESTS = {
    "attacks/__init__.py": DAYS,
    "attacks/base.py": DAYS,
    "attacks/baseline.py": DAYS,
    "attacks/enhanced.py": DAYS,
    "attacks/costs.py": DAYS,
    "attacks/day_by_day.py": DAYS,
    "attacks/chance.py": "tests/attacks/test_chance.py tests/attacks/test_contract.py",
    "attacks/naive.py": "tests/attacks/test_chance.py tests/attacks/test_contract.py",
    "attacks/linking.py": SPARSE,
    "attacks/saving.py": DAYS,
    "assignment/sparse.py": SPARSE,
    "assignment/step_kernel.py": STEPS,
    "assignment/steps.py": STEPS,
    "assignment/transport.py": STEPS,
    "attacks/confidence.py": "tests/attacks/test_confidence.py",
    "attacks/alignment.py": "tests/attacks/test_alignment.py tests/attacks/test_confidence.py",
    "attacks/habits/attack.py": HABITS,
    "attacks/habits/rng.py": HABITS,
    "attacks/habits/consensus.py": HABITS,
    "attacks/habits/schedule.py": HABITS,
    "attacks/habits/polish.py": HABITS,
    "attacks/habits/problem.py": HABITS,
    "attacks/habits/relink.py": HABITS,
    "attacks/habits/search.py": HABITS,
    "attacks/habits/track.py": HABITS,
    "attacks/habits/wishes.py": "tests/attacks/habits/test_flows.py",
    "evaluation/confidence.py": "tests/evaluation/test_confidence.py",
    "evaluation/scores.py": SCORES,
    "evaluation/exposure.py": SCORES,
    "evaluation/lookup.py": "tests/evaluation/test_lookup.py",
    "evaluation/mapping.py": "tests/evaluation/test_mapping.py",
    "evaluation/mapping_kernel.py": "tests/evaluation/test_mapping.py",
    "evaluation/unique.py": "tests/evaluation/test_unique.py",
    "evaluation/usefulness.py": "tests/evaluation/test_usefulness.py",
}
"""The tests that should notice a change of a module, those that fail soonest first."""

KERNEL_DECORATORS = ("compiled", "step_kernel")


VERDICTS = {0: "survived", 1: "killed", 2: "killed", None: "hung"}
"""What the exit codes of pytest say of a mutant: all passed, some failed, some could not be loaded, no end."""


@dataclass(frozen=True)
class Mutant:
    """One change: the `occurrence`-th place in a module where an operator of cosmic-ray can act."""

    module: str
    operator: str
    occurrence: int
    line: int


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: "killed", "hung" (killed by the time limit) or "survived"."""

    mutant: Mutant
    outcome: str
    seconds: float
    before: str
    after: str


def mutants_of(module: str) -> list[Mutant]:
    """All mutants of a module that a test could tell from the original."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.commands.init import _operators

    path = SOURCE / "rekindle" / module
    silent = list(_silent(ast.parse(path.read_text())))
    nodes = list(ast_nodes(get_ast_from_path(path)))
    found = []
    for name, _, operator in _operators({}):
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(places):
            if not any(begin <= start < end for begin, end in silent):
                found.append(Mutant(module, name, occurrence, start[0]))
    return found


def _silent(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the source is never evaluated, or decides only how it is compiled."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            parts = [node.returns]
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(called, ast.Name) and called.id in KERNEL_DECORATORS:
                    parts.append(decorator)
            if node.name in KERNEL_DECORATORS:
                yield (node.lineno, 0), (node.end_lineno or node.lineno, 10_000)
        for part in parts:
            if part is not None:
                # The sign of a decorator stands before its expression.
                yield (part.lineno, part.col_offset - 1), (part.end_lineno or 0, part.end_col_offset or 0)


def mutate(mutant: Mutant) -> str:
    """The source of a module with one change in it."""
    import cosmic_ray.plugins
    from cosmic_ray.mutating import mutate_code

    operator = cosmic_ray.plugins.get_operator(mutant.operator)()
    source = (SOURCE / "rekindle" / mutant.module).read_text()
    changed = mutate_code(source, operator, mutant.occurrence)
    if changed is None:
        raise LookupError(f"{mutant} changes nothing.")
    return str(changed)


def sample(size: int, seed: int, only: str) -> list[Mutant]:
    """Draw mutants from every module, by the share that it has of all, and at least 4 of each."""
    everything = {module: mutants_of(module) for module in TESTS if only in module}
    total = sum(map(len, everything.values()))
    rng = np.random.default_rng(seed)
    drawn = []
    for module in everything:
        mutants = everything[module]
        number = min(len(mutants), max(4, round(size * len(mutants) / total)))
        drawn += [mutants[at] for at in sorted(rng.choice(len(mutants), number, replace=False))]
    print(f"{total} mutants in {len(everything)} modules, {len(drawn)} drawn with the seed {seed}", flush=True)
    # In any order, so that a run that is ended early says something of all modules.
    return [drawn[at] for at in rng.permutation(len(drawn))]


class Changed(SourceFileLoader):
    """Loads one module from a changed source."""

    changed = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.changed, self.path, "exec", dont_inherit=True)


class Hook:
    """Finds the changed module before the file is looked for."""

    def __init__(self, module: str, changed: str) -> None:
        path = SOURCE / "rekindle" / module
        self.name = "rekindle." + module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        loader = Changed(self.name, str(path))
        loader.changed = changed
        package = [str(path.parent)] if path.name == "__init__.py" else None
        self.spec = importlib.util.spec_from_file_location(
            self.name, path, loader=loader, submodule_search_locations=package
        )

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return self.spec if name == self.name else None


def run_tests(module: str, changed: str | None, limit: float) -> tuple[str, float]:
    """Run the tests of a module in a process of their own; what is no verdict of the tests is tried once more."""
    begin = time.monotonic()
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            code = _wait(_fork(module, changed, Path(folder) / "base"), limit)
        if code in VERDICTS:
            break
    return VERDICTS.get(code, "killed"), time.monotonic() - begin


def _fork(module: str, changed: str | None, folder: Path) -> int:
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setsid()
        quiet = os.open(os.environ.get("REKINDLE_MUTANT_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        if changed is not None:
            sys.meta_path.insert(0, Hook(module, changed))  # type: ignore[arg-type]
        import pytest

        options = f"-x -q -p tests.proof.quick -p no:cacheprovider --tb=line --basetemp={folder}".split()
        code = int(pytest.main([*options, "-W", "ignore::pytest.PytestAssertRewriteWarning", *TESTS[module].split()]))
    finally:
        os._exit(code)


def _wait(child: int, limit: float) -> int | None:
    """The exit code of a process, or None where it had to be ended."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def interval(part: int, whole: int) -> tuple[float, float]:
    """Wilson's interval of 95% for a share."""
    if not whole:
        return 0.0, 1.0
    z, share = 1.96, part / whole
    middle = share + z * z / (2 * whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    return (middle - half) / (1 + z * z / whole), (middle + half) / (1 + z * z / whole)


def report(outcomes: list[Outcome]) -> str:
    """Survivors by module, and in all."""
    drawn = Counter(each.mutant.module for each in outcomes)
    left = Counter(each.mutant.module for each in outcomes if each.outcome == "survived")
    lines = [f"{'module':40} tried survived"]
    lines += [f"{module:40} {drawn[module]:5} {left[module]:8}" for module in sorted(drawn)]
    low, high = interval(left.total(), drawn.total())
    share = left.total() / max(1, drawn.total())
    lines.append(f"{'all':40} {drawn.total():5} {left.total():8}  {share:.1%} ({low:.1%} to {high:.1%})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=400, help="how many mutants, about")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", default="", help="only modules whose path has this in it")
    parser.add_argument("--again", type=Path, help="only the survivors of an earlier run, by its --out")
    parser.add_argument("--out", type=Path, help="a file for the outcomes, one JSON object a line")
    parser.add_argument("--most-survivors", type=float, default=1.0, help="the share above which this fails")
    chosen = parser.parse_args()
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        parser.error("set NUMBA_DISABLE_JIT=1: mutants of compiled code would have to be compiled first.")
    sys.path[:0] = [str(SOURCE), str(ROOT)]
    os.chdir(ROOT)
    # Everything slow to load that is not ours, before the first fork.
    for name in (
        "hypothesis",
        "joblib",
        "numba",
        "pytest",
        "rapidfuzz",
        "scipy.optimize",
        "scipy.sparse",
        "scipy.stats",
    ):
        importlib.import_module(name)
    if chosen.again:
        old = [json.loads(line) for line in chosen.again.read_text().splitlines()]
        drawn = [Mutant(**each["mutant"]) for each in old if each["outcome"] == "survived"]
    else:
        drawn = sample(chosen.sample, chosen.seed, chosen.only)
    limits: dict[str, float] = {}
    outcomes = []
    for mutant in drawn:
        if TESTS[mutant.module] not in limits:
            outcome, seconds = run_tests(mutant.module, None, 300.0)
            print(f"{TESTS[mutant.module]}: {outcome} without a change, in {seconds:.1f} s", flush=True)
            if outcome != "survived":
                raise SystemExit("The tests fail without any change.")
            limits[TESTS[mutant.module]] = 10 + 3 * seconds
        changed = mutate(mutant)
        outcome, seconds = run_tests(mutant.module, changed, limits[TESTS[mutant.module]])
        before = (SOURCE / "rekindle" / mutant.module).read_text().splitlines()[mutant.line - 1].strip()
        after = changed.splitlines()[mutant.line - 1].strip()
        outcomes.append(Outcome(mutant, outcome, round(seconds, 2), before, after))
        if outcome == "survived":
            print(f"survived: {mutant.module}:{mutant.line} {mutant.operator}\n  - {before}\n  + {after}", flush=True)
        if chosen.out:
            with open(chosen.out, "a") as file:
                file.write(json.dumps(asdict(outcomes[-1])) + "\n")
    print(report(outcomes))
    survived = sum(each.outcome == "survived" for each in outcomes)
    if survived > chosen.most_survivors * len(outcomes):
        raise SystemExit(f"{survived} of {len(outcomes)} mutants survived, more than {chosen.most_survivors:.0%}.")


if __name__ == "__main__":
    main()
