"""The options that several commands share, each defined once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rekindle.cli.console import be_quiet


def described(*parts: Callable[..., Any]) -> dict[str, str]:
    """What the docstrings of functions and classes say of each parameter, for the help; the first that says it holds."""
    found: dict[str, str] = {}
    for part in parts:
        _, _, text = (inspect.getdoc(part) or "").partition("Parameters\n----------\n")
        for names, words in re.findall(r"^(\w[\w, ]*)\n((?: {4}.*\n?)+)", text, re.M):
            # In a terminal there is nothing to refer to.
            plain = re.sub(r" See `[^.]*\.", "", " ".join(words.split()))
            plain = re.sub(r"(?<!`)`(\w+)`", lambda name: f"--{name[1].replace('_', '-')}", plain)
            plain = re.sub(r"``\"?(.*?)\"?``", r"\1", plain)
            if not plain.startswith("As in"):
                found = dict.fromkeys(names.split(", "), plain) | found
    return found


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print only errors, and what --format json, junit or github prints where a command has it.",
        callback=be_quiet,
    ),
]
_FORMAT = "Print the answer as text for people, or in a format for programs and then nothing else."
Format = Annotated[Literal["text", "json"], typer.Option("--format", help=_FORMAT)]
GateFormat = Annotated[Literal["text", "json", "junit", "github"], typer.Option("--format", help=_FORMAT)]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Refuse to start if more memory would be needed, e.g. 4GB. Default: the free memory.",
    ),
]

# A table of counts in place of a dataset folder

LocationsFile = Annotated[
    Path | None,
    typer.Option(
        "--locations",
        help="File of locations, where DATASET is a table and not a folder. Default: NAME.locations.csv beside NAME.csv, "
        "as rekindle defend leaves it.",
    ),
]
TableStep = Annotated[
    str | None, typer.Option("--step", help="Interval of a table that has a single time, e.g. 10min.")
]
CellSide = Annotated[
    float,
    typer.Option(
        "--cell-km", min=0.001, help="Side of a grid cell, where a table names its locations '(row, column)'."
    ),
]
Absent = Annotated[
    Literal["withheld", "zero"],
    typer.Option("--absent", help="What a missing row of a published table means."),
]

# Flows

WithFlows = Annotated[
    bool, typer.Option("--flows", help="Also write how many people went from where to where between two steps.")
]
Published = Annotated[
    Literal["counts", "flows", "both"] | None,
    typer.Option("--release", help="What is published. Default: what DATASET holds.", show_default=False),
]
ReleaseOf = Annotated[
    Literal["counts", "flows"] | None,
    typer.Option(
        "--release",
        help="What is published. Default: counts; flows with --window, or where DATASET is a table of them.",
        show_default=False,
    ),
]
Window = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="TIME",
        help="Length of the windows of flows, e.g. 2h. Default: that of the flows in DATASET, or else one step.",
    ),
]

PublicLocations = Annotated[
    bool,
    typer.Option(
        "--public-locations",
        help="Declare that the list of locations was fixed without looking at the data; noise requires this. With "
        "--locations FILE, that list is published in full.",
    ),
]

# How work is done

Effort = Annotated[
    Literal["low", "normal", "high"] | None,
    typer.Option(
        "--effort",
        help="Effort of the Habits attack; low gives a first look. Default: normal; low in an audit of many people.",
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, help="Seed of the first row order and draw; the others follow it."),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        help="Row orders, each with its own draw of random defences. Default: 3, fewer for many people.",
        show_default=False,
    ),
]
KnownPeople = Annotated[
    int | None,
    typer.Option(
        "--people",
        min=1,
        help="Number of people that the attacker assumes. Default: the true number, which is normally "
        "public; without ground truth, a guess from the release.",
    ),
]
TimeBudget = Annotated[
    str | None,
    typer.Option(
        "--time-budget",
        metavar="TIME",
        help="Time limit, e.g. 20min or 2h: what you do not specify is chosen to fit, and when the time is up, the "
        "result is made from the finished tasks. Default: about 15 minutes on two ordinary cores, by the size of the data alone.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume", help="Use the finished tasks of an earlier run in OUT, or run all tasks again."
    ),
]
Mapping = Annotated[
    Literal["optimal", "greedy", "names"] | None,
    typer.Option(
        "--mapping",
        help="How recovered people are matched with true ones: least total error, as in Xu et al., or by the names that an "
        "attacker who knows people's past gives them. Default: names where the recovery has them, otherwise optimal.",
    ),
]
Priors = Annotated[
    list[str] | None,
    typer.Option(
        "--prior",
        metavar="KIND:DATASET",
        help="What an attacker knows besides the release: other-traces (or other-traces-neural), known-past or known-people, and "
        "a dataset folder with their true paths; may be repeated. Default: nothing.",
    ),
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Number of processes. Default: one for each core.")
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="Address of a Dask scheduler to use instead, e.g. tcp://10.0.0.1:8786."),
]
