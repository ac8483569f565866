"""The page of the reproduction: our numbers beside the paper's, as HTML in one file and as Markdown."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from rekindle import __version__
from rekindle.evaluation import Evaluation, Spread
from rekindle.evaluation.unique import count_sets
from rekindle.model.calendar import format_step
from rekindle.report.render import Table, render
from rekindle.report.words import plural
from rekindle.reproduce.measuring import FIRST_DAY, Effort, Measured
from rekindle.reproduce.pictures import Picture


@dataclass(frozen=True)
class Section:
    """A part of the page: paragraphs, a list of points, tables and pictures."""

    title: str
    text: str = ""
    _: KW_ONLY
    points: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


def _mean(found: Sequence[Evaluation] | None, metric: str) -> str:
    return _spread([getattr(one, metric) for one in found]) if found else "–"


def _spread(values: list[float]) -> str:
    return str(Spread.of(values)) if len(values) > 1 else f"{values[0]:.3f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _metric_table(title: str, metric: str, known: Sequence[Measured]) -> Table:
    """Our numbers beside the paper's, a row for each dataset."""
    columns = {"chance": "chance", "naive": "naive", "baseline": "baseline", "enhanced": "enhanced"}
    columns |= {FIRST_DAY: "enhanced, first-day seeding"}
    columns |= {"habits": "habits"} if any("habits" in one.evaluations for one in known) else {}
    compared = ("baseline", "enhanced") if any(one.subject.paper is not None for one in known) else ()
    head, rows = [""], [[one.subject.name] for one in known]
    for name, column in columns.items():
        head += [column, *(["the paper"] if name in compared else [])]
        for row, one in zip(rows, known, strict=True):
            row.append(_mean(one.evaluations.get(name), metric))
            if name in compared:
                paper = one.subject.paper
                row.append("–" if paper is None else _number(getattr(paper, metric)[name]))
    return Table(title, head, rows)


def _subdatasets(results: Sequence[Measured]) -> Table:
    rows = []
    for one in results:
        counts, paper = one.subject.counts, one.subject.paper
        used = int((counts.values.sum(axis=0) > 0).sum())
        ours = [f"{counts.people}", f"{used} of {len(counts.locations)}", f"{counts.steps:,}"]
        theirs = ["–"] * 3 if paper is None else map(_number, (paper.people, paper.locations, paper.steps))
        both = [text for pair in zip(ours, theirs, strict=True) for text in pair]
        known = "yes" if one.subject.truth is not None else "no"
        rows.append([one.subject.name, *both, format_step(counts.calendar.step), known])
    head = [text for ours in ("people", "locations in use", "steps") for text in (ours, "the paper")]
    return Table("Sub-datasets", ["", *head, "interval", "truth known"], rows)


def _uniqueness_tables(results: Sequence[Measured]) -> Iterable[Table]:
    ks = range(1, 6)
    head = ["", "", *(f"k = {k}" for k in ks)]
    by_text: list[list[str]] = []
    by_code: list[list[str]] = []
    for one in results:
        for name, counted in one.sets.items():
            for measure, rows in enumerate((by_text, by_code)):
                rows.append([one.subject.name, name, *(_spread([each[measure][k] for each in counted]) for k in ks)])
            if name in one.with_scipy:
                sets = count_sets(one.with_scipy[name])[1]
                by_code.append(["", f"{name}, SciPy's ties", *(f"{sets[k]:.3f}" for k in ks)])
            if one.subject.paper is not None and name in one.subject.paper.distinct_sets:
                theirs = one.subject.paper.distinct_sets[name]
                by_code.append(["", f"{name}, the paper", *(f"{value:.3f}" for value in theirs)])
    yield Table("Top-k uniqueness by the paper's definition", head, by_text)
    yield Table("What the published code computes: distinct sets per person", head, by_code)


def _enhancements(known: Sequence[Measured]) -> Table:
    names = list(known[0].enhancements)
    rows = []
    for one in known:
        start = Spread.of([each.accuracy for each in one.enhancements["baseline"]]).mean
        row = [one.subject.name]
        for name in names:
            found = one.enhancements[name]
            gain = Spread.of([each.accuracy for each in found]).mean - start
            row.append(_mean(found, "accuracy") + ("" if name == "baseline" else f" ({100 * gain:+.1f})"))
        rows.append(row)
    return Table("Accuracy; in brackets, percentage points above the baseline", ["", *names], rows)


def _lookback(known: Sequence[Measured]) -> Table | None:
    linked = [one for one in known if one.lookback]
    if not linked:
        return None
    days = list(linked[0].lookback)
    rows = [
        [one.subject.name, *(f"{Spread.of([e.accuracy for e in one.lookback[k]]).mean:.3f}" for k in days)]
        for one in linked
    ]
    return Table("Accuracy by k, mean over the row orders", ["", *(f"k = {k}" for k in days)], rows)


def _ties(known: Sequence[Measured]) -> Table:
    """The spread over row orders, the listed order, and SciPy's own choice, a row for each dataset and attack."""
    rows = []
    for one in known:
        for name in ("baseline", "enhanced", FIRST_DAY):
            values = [each.accuracy for each in one.evaluations[name]]
            paper = None if one.subject.paper is None else one.subject.paper.accuracy.get(name.split(",")[0])
            others = [one.listed_evaluations[name].accuracy, one.scipy_evaluations[name].accuracy, paper]
            rows.append([one.subject.name, name, f"{min(values):.3f} to {max(values):.3f}", *map(_number, others)])
    head = ["", "", "rows shuffled", "rows as listed", "SciPy's choice", "the paper"]
    return Table("Accuracy by the choice among equally cheap assignments", head, rows)


def _seeding(results: Sequence[Measured]) -> Table:
    rows = []
    for one in results:
        accuracies = [_mean(one.evaluations.get(name), "accuracy") for name in ("enhanced", FIRST_DAY)]
        missed = [_number(one.consistency[name].missed) for name in ("enhanced", FIRST_DAY)]
        rows.append([one.subject.name, *accuracies, *missed])
    head = ["", "accuracy, each day", "accuracy, first day", "steps that miss the counts, each day", "first day"]
    return Table("Each day from its own counts (the text) and from the first day's (the published code)", head, rows)


def _consistency(results: Sequence[Measured]) -> Table:
    rows = []
    for one in results:
        for name, found in one.consistency.items():
            met = f"{'all' if not found.missed else f'all but {found.missed}'} of {one.subject.counts.steps:,}"
            rows.append([one.subject.name, name, met, f"{found.gap:g}", f"{found.optimal} of {found.checked}"])
    head = ["", "attack", "steps that meet the counts", "gap", "steps checked against SciPy and optimal"]
    return Table("Whether a recovery fits the release (first row order)", head, rows)


def _comparison(known: Sequence[Measured]) -> list[str]:
    """Our accuracies against the paper's, in sentences."""
    said = []
    for one in known:
        if one.subject.paper is None:
            continue
        for name in ("baseline", "enhanced"):
            values = [each.accuracy for each in one.evaluations[name]]
            theirs, low, high = one.subject.paper.accuracy[name], min(values), max(values)
            where = "within" if low <= theirs <= high else "above" if theirs > high else "below"
            mean = sum(values) / len(values)
            said.append(
                f"{one.subject.name}, {name}: {mean:.3f} here (from {low:.3f} to {high:.3f} over {len(values)} row orders), "
                f"{theirs:.3f} in the paper, which is {where} our range."
            )
    return said


_INTRODUCTION = (
    "The tables and figures of D'Silva et al., Demystifying Trajectory Recovery From Ash (2024), computed again with "
    "Rekindle {version}, and beside them what the paper reports.\n"
    "The paper's attacks were run with {orders} each: mean ± standard deviation over them. Habits, which is Rekindle's own "
    "attack, was {habits}. Chance assigns people to the counted locations at random at every step; naive lets people stay "
    "where they are as far as the counts allow. An accuracy means something only above these two."
)
_ACCURACY = (
    "The share of points (person and step) in the right location, under the mapping of people with the least error."
)
_TIES = (
    "People in one location are interchangeable, and most steps have many optimal assignments. Which one is taken is not part of "
    "the attack, but it moves the numbers. Shuffled: the order of people with equal costs is drawn at random each day, as for "
    "the means above. As listed: people stay in the order of the location they begin the day in. SciPy's choice: the assignment "
    "that SciPy returns, as in the published code; 'enhanced, first day' with it is what the published code runs."
)
_ERRORS = "The distance between recovered and true points, km per point. The sums over all points are in the data."
_LEVENSHTEIN = "One minus the edit distance, as a share of the steps."
_ALONE = (
    "The paper adds three things to the baseline and shows them together. Alone they are: stage reduction (the velocity "
    "heuristic also at night, except at the first step), popular transitions by day, and links that look back three days."
)
_LOOKBACK = "The paper says that k > 7 is of little or no benefit, and uses 3."
_SEEDING = (
    "With first-day seeding, the first step of every later day shows as many people in each location as the very first step of "
    "the data, whatever the release says. Where everyone is in the same locations at each midnight, as in the synthetic city, "
    "the two agree."
)
_CONSISTENCY = (
    "Every recovery is checked against the release: are the counts met, and are the steps as cheap as SciPy's?"
)
_WITHOUT_TRUTH = (
    "The published counts come without the people behind them. So no accuracy can be given for them here, only uniqueness "
    "(above, where distinct sets can be compared with the paper's for the very same counts) and consistency."
)
_DIFFERENCES = (
    "People: the parameters behind the 37-, 38- and 43-user files are recorded only in part (their names give months, grid "
    "and step), and about sixty settings of the rest did not give these numbers. With the notebook's parameters GeoLife has "
    "36, 41 and 45 people. So these are other people than the paper's, and the numbers can differ for that reason alone. "
    "Nothing was tuned until they agreed.",
    "Ties: people in one cell are interchangeable, and most steps have many optimal assignments. The paper has one number, for "
    "the one that SciPy returned; another choice moves accuracy by some points, and SciPy's is not a random one (see Ties). "
    "Hence a mean and a spread here.",
    "Seeding: the published enhanced attack begins every day with the counts of the very first step. Rekindle follows the "
    "text, and runs the published way beside it, as 'enhanced, first day'.",
    "Uniqueness: the text counts people whose set of locations nobody else has; the published code divides the number of "
    "distinct sets by the people, which is higher. Both are here.",
    "Levenshtein: the stored numbers are distances; the accuracies are one minus them.",
    "Recovery errors: GeoLife's stored sums are in metres, Porto's in km. Here they are per point.",
    "Porto's cells: the published notebook's projection shortens the north-south axis by a third, so that a cell of '4 km2' "
    "covers about 2 km x 3 km. The published grid is used as it is, with its distances.",
)


def build_sections(
    results: Sequence[Measured], pictures: Sequence[Picture], skipped: Sequence[str], effort: Effort
) -> list[Section]:
    """Arrange everything that was found."""
    known = [one for one in results if one.subject.truth is not None]

    def of(name: str) -> list[Picture]:
        return [picture for picture in pictures if picture.name.split("-")[0] == name]

    notes = [f"{one.subject.name}. {note}" for one in results for note in one.subject.notes]
    sections = [
        Section(
            "What this is",
            _INTRODUCTION.format(
                version=__version__,
                orders=plural(effort.orders, "row order", "row orders"),
                habits="left out"
                if effort.habits == "none"
                else f"run with {plural(effort.habits_seeds, 'seed', 'seeds')}, effort {effort.habits}",
            ),
            points=[*(f"Skipped. {text}" for text in skipped), *notes],
            tables=[_subdatasets(results)],
        )
    ]
    if known:
        sections += _measures(known, of)
    sections.append(Section("Top-k uniqueness", tables=list(_uniqueness_tables(results)), pictures=of("uniqueness")))
    if known:
        sections += _enhanced(known, of)
    sections.append(Section("What the published code's seeding does", _SEEDING, tables=[_seeding(results)]))
    if known:
        sections.append(Section("Predicted and true paths of a day", pictures=of("paths")))
    if of("confidence"):
        sections.append(Section("Habits: does it know when it is right?", pictures=of("confidence")))
    text = _CONSISTENCY if len(known) == len(results) else f"{_CONSISTENCY}\n{_WITHOUT_TRUTH}"
    sections.append(Section("Consistency", text, tables=[_consistency(results)]))
    return [*sections, Section("The locations", pictures=of("grid"))]


def _measures(known: Sequence[Measured], of: Callable[[str], list[Picture]]) -> Iterator[Section]:
    """How much was recovered, and why that differs from the paper."""
    compared = [one for one in known if one.subject.paper is not None]
    accuracy = _metric_table("Accuracy", "accuracy", known)
    yield Section("Accuracies", _ACCURACY, points=_comparison(compared), tables=[accuracy], pictures=of("accuracies"))
    yield Section("Ties", _TIES, tables=[_ties(known)])
    if compared:
        yield Section("Why numbers differ from the paper's", points=_DIFFERENCES)
    errors = _metric_table("Error, km per point", "mean_error_km", known)
    yield Section("Recovery errors", _ERRORS, tables=[errors], pictures=of("errors"))
    levenshtein = _metric_table("Levenshtein accuracy", "levenshtein_accuracy", known)
    yield Section("Levenshtein accuracies", _LEVENSHTEIN, tables=[levenshtein], pictures=of("levenshtein"))


def _enhanced(known: Sequence[Measured], of: Callable[[str], list[Picture]]) -> Iterator[Section]:
    """What the parts of the enhanced attack add."""
    table = _enhancements(known)
    yield Section("Each enhancement alone", _ALONE, tables=[table], pictures=of("enhancements"))
    lookback = _lookback(known)
    text = _LOOKBACK if lookback else "There are too few days here to look back over."
    yield Section("How far to look back", text, tables=[lookback] if lookback else [], pictures=of("lookback"))


def to_html(title: str, sections: Sequence[Section], folder: Path) -> str:
    """Build one file that opens from disk and makes no request; pictures are read from a folder and included."""
    pictures = [picture.name for section in sections for picture in section.pictures]
    images = {name: base64.b64encode((folder / f"{name}.png").read_bytes()).decode() for name in pictures}
    return render("reproduction.html.jinja", images=images, title=title, sections=sections)


def to_markdown(title: str, sections: Sequence[Section]) -> str:
    """Build the same page as Markdown, with links to the pictures."""

    def plain(text: str) -> str:
        return text.replace("|", "\\|").replace("<", "&lt;")

    parts = [f"# {title}"]
    for section in sections:
        parts += [f"## {section.title}", *map(plain, section.text.splitlines())]
        if section.points:
            parts.append("\n".join(f"- {plain(text)}" for text in section.points))
        for table in section.tables:
            lines = [table.head, ["---", *["---:"] * (len(table.head) - 1)], *table.rows]
            parts += [
                f"**{plain(table.caption)}**",
                "\n".join(f"| {' | '.join(map(plain, line))} |" for line in lines),
            ]
        for picture in section.pictures:
            parts.append(f"![{plain(picture.caption)}](figures/{picture.name}.png)\n\n*{plain(picture.caption)}*")
    return "\n\n".join(parts) + "\n"
