"""One way to HTML: templates that escape whatever they show, one style, and a policy that forbids everything else."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rekindle.auditing.risk import Estimate
from rekindle.report.words import named, percent


@dataclass(frozen=True)
class Table:
    """A table with a caption. A cell is text, a share, an estimate of a share, or None for what is not known."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


def render(
    template: str,
    *,
    images: Mapping[str, str] | None = None,
    colours: str = "",
    script: str | None = None,
    **context: Any,
) -> str:
    """Render a page that opens from disk and makes no request.

    Parameters
    ----------
    template
        Its name in ``templates/``.
    images
        Pictures that the page contains, by name: PNG in base64.
    colours
        Rules of style that come on top of ``page.css``.
    script
        The script, if it is not ``page.js``.
    context
        What the template shows.
    """
    environment = _environment()
    style = _text(environment, "page.css") + colours
    script = _text(environment, "page.js") if script is None else script
    # The page may run its own script and style, and nothing else: no request, no frame, no form.
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
    policy += ("img-src data:; " if images is not None else "") + "base-uri 'none'; form-action 'none'"
    own = {"images": images, "style": Markup(style), "script": Markup(script), "policy": policy}
    return environment.get_template(template).render(**own, **context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rekindle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cell": cell, "named": named, "percent": percent}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def cell(value: Any) -> str:
    """Show one value of a table."""
    number = value.value if isinstance(value, Estimate) else value
    if number is None or (isinstance(number, float) and math.isnan(number)):
        return "–"
    if isinstance(value, Estimate):
        limits = f"{percent(value.low)} to {percent(value.high)}"
        return Markup("{}<small>{}</small>").format(percent(value.value), limits)
    return percent(value) if isinstance(value, float) else value if isinstance(value, Markup) else str(value)


def _text(environment: Environment, name: str) -> str:
    return environment.loader.get_source(environment, name)[0] if environment.loader is not None else ""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
