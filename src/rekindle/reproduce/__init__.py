"""The paper's tables and figures, from raw data, with our numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rekindle.io.safety.files import write_json
from rekindle.io.safety.folders import Sensitive, check_new_folder, mark_folder, new_folder
from rekindle.progress import Progress
from rekindle.reproduce.measuring import Effort, Measured, measure, units
from rekindle.reproduce.paper import PAPER, PaperResult
from rekindle.reproduce.subjects import Sources, Subject

__all__ = ["PAPER", "Effort", "Measured", "PaperResult", "Reproduction", "Sources", "Subject", "reproduce"]

TITLE = "Demystifying Trajectory Recovery From Ash, reproduced"
SENSITIVE = {
    "index.html": Sensitive("page with true paths"),
    "index.md": Sensitive("page with true paths"),
    "figures/paths-*": Sensitive("true paths of a day"),
}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What was written.

    Attributes
    ----------
    results
        One for each dataset.
    skipped
        What was left out, and why.
    page, text
        The page as HTML and as Markdown.
    """

    results: tuple[Measured, ...]
    skipped: tuple[str, ...]
    page: Path
    text: Path


def reproduce(
    out: str | Path,
    sources: Sources | None = None,
    *,
    effort: Effort | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Reproduction:
    """Compute the paper's tables and figures, and write them beside the paper's numbers: all or nothing.

    Parameters
    ----------
    out
        The folder: ``index.html``, ``index.md``, ``figures/`` (SVG, PNG and CSV of each) and ``reproduction.json``.
    sources
        The data there is; without any, a synthetic city.
    effort
        How many row orders to run, and whether Habits.
    overwrite
        Replace an earlier reproduction.
    progress
        Called with the attacks done and the attacks in all.
    tell
        Called with a line on what is being done.
    """
    from rekindle.reproduce.page import build_sections, to_html, to_markdown
    from rekindle.reproduce.pictures import draw_pictures  # matplotlib takes a second to load

    sources, effort, folder = sources or Sources(), effort or Effort(), Path(out)
    sources.check()
    check_new_folder(folder, "reproduction", overwrite=overwrite)
    say = tell or (lambda text: None)
    loaders = list(sources.loaders())
    total = sum(units("published" not in name, effort) for name, _ in loaders)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    with new_folder(folder, "reproduction", overwrite=overwrite, private=True) as temporary:
        mark_folder(temporary, "reproduction", SENSITIVE)
        results = []
        before = 0
        for name, load in loaders:
            say(f"{name}: preparing")
            subject = load()
            say(f"{name}: attacking {subject.counts!r}")
            results.append(measure(subject, effort, step))
            before += units("published" not in name, effort)
            done = before
        say("Drawing")
        figures = temporary / "figures"
        figures.mkdir()
        pictures = list(draw_pictures(results))
        for picture in pictures:
            picture.write(figures)
        sections = build_sections(results, pictures, sources.skipped, effort)
        (temporary / "index.html").write_text(to_html(TITLE, sections, figures), encoding="utf-8")
        (temporary / "index.md").write_text(to_markdown(TITLE, sections), encoding="utf-8")
        write_json(temporary / "reproduction.json", _to_json(results, sources, effort))
    return Reproduction(tuple(results), tuple(sources.skipped), folder / "index.html", folder / "index.md")


def _to_json(results: list[Measured], sources: Sources, effort: Effort) -> dict[str, object]:
    """All numbers in plain values."""

    def plain(found: dict[str, list[object]]) -> dict[str, object]:
        return {str(name): [one.to_json() for one in several] for name, several in found.items()}  # type: ignore[attr-defined]

    return {
        "effort": vars(effort),
        "skipped": sources.skipped,
        "datasets": {
            one.subject.name: {
                "people": one.subject.counts.people,
                "calendar": one.subject.counts.calendar.to_json(),
                "locations": len(one.subject.counts.locations),
                "notes": list(one.subject.notes),
                "consistency": {name: vars(found) for name, found in one.consistency.items()},
                "evaluations": plain(one.evaluations),  # type: ignore[arg-type]
                "with_scipy_ties": {name: found.to_json() for name, found in one.scipy_evaluations.items()},
                "enhancements": plain(one.enhancements),  # type: ignore[arg-type]
                "lookback": plain(one.lookback),  # type: ignore[arg-type]
            }
            for one in results
        },
    }
