"""What the commands share: reading what they are given, and writing numbers."""

from __future__ import annotations

import importlib
import inspect
import os
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from rekindle.assignment import kernels  # as a whole: this module has no kernel, so a change here compiles none again
from rekindle.attacks import ATTACKS, PRIORS, Attack, Prior
from rekindle.cli.console import note
from rekindle.errors import InvalidFile, InvalidSetting, OutputExists
from rekindle.evaluation import Metric, Spread
from rekindle.io import read_dataset
from rekindle.io.tables.counts import Layout, counts_of
from rekindle.io.tables.flows import flows_in
from rekindle.model import Counts, Dataset, Flows, Trajectories
from rekindle.progress import duration

LONG_SECONDS = 20
"""Work that takes longer than that is announced."""


def read_input(
    path: Path,
    locations: Path | None = None,
    step: str | None = None,
    cell_km: float = 1.0,
    *,
    truth: bool = True,
) -> Dataset:
    """Read a dataset folder, with its truth or without, or a table of counts or of flows with stayers."""
    if path.is_dir():
        return read_dataset(path, truth=truth)
    layout = Layout.read(path, locations, cell_km)
    if not layout.flows:
        return Dataset(counts_of(layout, step))
    flows = flows_in(layout, step)
    return Dataset(flows.counts(), flows=(flows,))


def choose_release(data: Dataset, release: str | None, window: str | None) -> tuple[Counts | None, Flows | None]:
    """What of a dataset is published: counts, flows or both, of which window; by default all that it holds."""
    if release == "counts" or (release is None and window is None and not data.flows):
        if window is not None:
            raise InvalidSetting("`window` is for flows, but `release` is 'counts'.")
        return data.counts, None
    flows = data.flows_over(window)
    if release == "flows":
        return None, flows
    at = flows.moments(data.calendar)
    return Counts(data.counts.values[at], data.locations, flows.calendar, data.people), flows


def read_truth(path: Path) -> Trajectories:
    """Read the ground truth of a dataset folder, which must have it."""
    truth = read_dataset(path).truth
    if truth is None:
        raise InvalidFile(path, "there is no truth.parquet in it, so there is nothing to compare with.")
    return truth


def parse_time(text: str | datetime) -> datetime:
    """Read the value of an option such as --from; a default is a time already."""
    if isinstance(text, datetime):
        return text
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time; write a date such as 2014-05-03, or with a time 2014-05-03T00:00."
        ) from None


def check_output(path: Path | None, endings: tuple[str, ...], *, overwrite: bool) -> None:
    """Refuse a file that cannot be written at the end, before the work begins."""
    if path is None:
        return
    if path.suffix not in endings:
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; use {' or '.join(endings)}.")
    if not path.parent.is_dir():
        raise InvalidFile(path, "its folder does not exist.")
    if path.exists() and not overwrite:
        raise OutputExists(f"{path} exists already; it was left as it is. Choose another name.")


def command_line(typed: Sequence[str] | None) -> str | None:
    """The command that was typed, for the identity of its output: without what says only that output is there already."""
    return shlex.join(word for word in typed or () if word not in ("--resume", "--overwrite")) or None


def make_attack(name: str, settings: dict[str, Any]) -> Attack:
    """Build an attack by its name, or by package:Class for one's own."""
    kind: Any
    if name in ATTACKS:
        kind = ATTACKS[name]
    elif ":" in name:
        module, _, attribute = name.partition(":")
        sys.path.insert(0, os.getcwd())
        try:
            kind = getattr(importlib.import_module(module), attribute)
        except Exception as error:  # the module is someone's own: it may raise anything
            raise InvalidSetting(f"The attack {name!r} cannot be loaded ({type(error).__name__}: {error}).") from None
        finally:
            sys.path.remove(os.getcwd())
        if not (isinstance(kind, type) and issubclass(kind, Attack)) or kind is Attack:
            raise InvalidSetting(f"{name!r} is not an attack: it must be a subclass of rekindle.Attack.")
    else:
        raise InvalidSetting(
            f"There is no attack {name!r}; choose {', '.join(ATTACKS)}, or package:Class for your own."
        )
    for setting in settings:
        if not takes(kind, setting):
            raise no_setting(setting, f"the attack {name!r} does not have")
    needed = [one.name for one in inspect.signature(kind).parameters.values() if _must_be_set(one)]
    if missing := [setting for setting in needed if setting not in settings]:
        raise InvalidSetting(f"The attack {name!r} needs {missing[0]!r}, which no option sets; give it a default.")
    try:
        attack: Attack = kind(**settings)
    except TypeError as error:
        raise InvalidSetting(f"The attack {name!r} does not take these settings: {error}.") from None
    return attack


def announce(what: str, work: float, cores: int = 1) -> None:
    """Say how long work of so many seconds of an ordinary core takes, where that is long.

    It costs about half a second: this machine is only timed for work that is long, and never before its kernels are
    compiled.
    """
    if work < LONG_SECONDS / 2:
        return
    from rekindle.auditing.work import measure_slowness

    mark = kernels.completion_mark()
    seconds = work / cores * (measure_slowness(0.05) if mark is not None and mark.exists() else 1.0)
    if seconds > LONG_SECONDS:
        note(f"{what} takes about {duration(seconds)} on {'one core' if cores == 1 else f'{cores} cores'}.")


def takes(kind: type[Attack], setting: str) -> bool:
    """Whether an attack has a setting."""
    known = inspect.signature(kind).parameters
    return setting in known or any(one.kind is one.VAR_KEYWORD for one in known.values())


def no_setting(setting: str, who_not: str) -> InvalidSetting:
    """The error where a setting is only for other attacks than those that were chosen."""
    having = " and ".join(name for name, kind in ATTACKS.items() if takes(kind, setting))
    return InvalidSetting(f"`{setting}` is a setting of {having}, which {who_not}.")


def _must_be_set(parameter: inspect.Parameter) -> bool:
    variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variable


def read_prior(text: str) -> Prior:
    """Read what an attacker knows besides the release, from KIND:DATASET."""
    kind, _, path = text.partition(":")
    settings: dict[str, Any] = {}
    if kind == "other-traces-neural":
        kind, settings = "other-traces", {"model": "neural"}
    if kind not in PRIORS or not path:
        kinds = ", ".join((*PRIORS, "other-traces-neural"))
        raise InvalidSetting(f"`prior` is {text!r}; write KIND:DATASET, where KIND is one of {kinds}.")
    return PRIORS[kind](read_truth(Path(path)), **settings)


def label(metric: Metric[Any]) -> str:
    """The name of a metric, with its unit."""
    return f"{metric.name.removesuffix('_' + metric.unit).replace('_', ' ')} ({metric.unit})"


def short(value: float | Spread) -> str:
    """A number in as many digits as one can use."""
    if isinstance(value, Spread):
        return f"{short(value.mean)} ± {short(value.sd)}"
    return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
