"""Defences by name, for command lines and files."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from rekindle.defences.base import Chain, Defence
from rekindle.defences.presets import PRESETS, Preset
from rekindle.errors import InvalidSetting
from rekindle.model.calendar import format_step

_ONE = re.compile(r"([a-z0-9-]+)(?::(.*))?", re.ASCII)


def find_defences() -> dict[str, type[Defence]]:
    """Find every defence in the modules of this room: a class `CoarserSpace` is called "coarser-space"."""
    found: dict[str, type[Defence]] = {}
    room = importlib.import_module(__package__)
    for module in sorted(one.name for one in pkgutil.iter_modules(room.__path__)):
        for name, kind in inspect.getmembers(importlib.import_module(f"{__package__}.{module}"), inspect.isclass):
            if issubclass(kind, Defence) and not issubclass(kind, Chain) and not inspect.isabstract(kind):
                found[re.sub(r"(?<!^)(?=[A-Z])", "-", name.removesuffix("Noise")).lower()] = kind
    return dict(sorted(found.items()))


DEFENCES = find_defences()
"""The defences by name. To add one, write its module."""


def make_defence(name: str, settings: Mapping[str, Any]) -> Defence:
    """Build a defence by its name.

    Parameters
    ----------
    name
        One of `DEFENCES`.
    settings
        Its settings by name.
    """
    if name not in DEFENCES:
        raise InvalidSetting(
            f"There is no defence {name!r:.80}; choose {', '.join(DEFENCES)}, or a preset: {', '.join(PRESETS)}."
        )
    kind = DEFENCES[name]
    known = [one.name for one in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for setting in settings:
        if setting not in known:
            raise InvalidSetting(f"The defence {name!r} has no setting {setting!r:.80}; it has {', '.join(known)}.")
    try:
        return kind(**settings)
    except TypeError as error:
        raise InvalidSetting(f"The defence {name!r} does not take these settings: {error}.") from None


def parse_defence(text: str) -> Defence:
    """Read ``"suppress:below=10 + round:to=5"``, the name of a preset, or ``"none"``.

    Parameters
    ----------
    text
        One or more defences with ``+`` between them, in order. Each is a name, or a name, a colon and its settings.
    """
    found: list[Defence] = []
    for part in text.split("+"):
        match = _ONE.fullmatch(part.strip())
        if match is None:
            raise InvalidSetting(
                f"{part.strip()!r:.80} is not a defence; write for example 'suppress:below=10 + round:to=5'."
            )
        name, rest = match[1], match[2]
        if rest is None and name == "none":
            continue
        if rest is None and name in PRESETS:
            found.append(PRESETS[name])
            continue
        settings = {}
        for one in rest.split(",") if rest else ():
            key, equals, value = one.partition("=")
            if not equals:
                raise InvalidSetting(
                    f"{one.strip()!r:.80} of the defence {name!r} is not a setting; write name=value."
                )
            settings[key.strip()] = _value(value.strip())
        found.append(make_defence(name, settings))
    return found[0] if len(found) == 1 else Chain(found)


def format_defence(defence: Defence) -> str:
    """Write a defence in the form that `parse_defence` reads."""
    if isinstance(defence, Preset):
        return defence.name
    if isinstance(defence, Chain):
        return " + ".join(map(format_defence, defence.defences)) or "none"
    name = next(name for name, kind in DEFENCES.items() if kind is type(defence))
    usual = {one.name: one.default for one in dataclasses.fields(defence)}  # type: ignore[arg-type]
    settings = {key: value for key, value in defence.settings().items() if value != usual[key]}
    return name + ":" * bool(settings) + ",".join(f"{key}={_text(value)}" for key, value in settings.items())


def _text(value: Any) -> str:
    if isinstance(value, timedelta):
        return format_step(value)
    return value if isinstance(value, str) else json.dumps(value)


def _value(text: str) -> Any:
    """A number, true or false, or else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float, bool)) else text
