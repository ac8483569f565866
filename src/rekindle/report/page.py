"""The report: one HTML file that opens from disk, asks nobody for anything, and shows names as text."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import rekindle
from rekindle.auditing.results import AttackRisk, Audit, ReleaseRisk
from rekindle.auditing.risk import Estimate
from rekindle.auditing.verdict import LEVELS
from rekindle.evaluation import KNOWN_POINTS, METRICS
from rekindle.evaluation.usefulness import UTILITIES
from rekindle.io.safety.files import new_file
from rekindle.model import Locations
from rekindle.report import charts, words
from rekindle.report.colours import COLOURS

__all__ = ["write_page"]

_REPLAY_BYTES = 3_500_000
_LISTED_PEOPLE = 20
_LISTED_PLACES = 10
_DRAWN_PLACES = 4000
_SPARE_COLOURS = ("#56B4E9", "#D55E00", "#F0E442")
_TONES = {
    "cannot tell": "mild",
    "no better than guessing": "good",
    "low": "good",
    "moderate": "mild",
    "high": "bad",
    "very high": "worst",
    "unknown": "none",
}


def write_page(path: str | Path, audit: Audit, *, include_truth: bool = False, overwrite: bool = True) -> None:
    """Write the report of an audit to one file, whole or not at all."""
    text = build_page(audit, include_truth=include_truth)
    with new_file(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")


def build_page(audit: Audit, *, include_truth: bool = False) -> str:
    """Build the report of an audit.

    Parameters
    ----------
    audit
        What was found.
    include_truth
        Whether the page may carry the true paths. Without, it carries none, and does not say whose a rebuilt path is.
    """
    page = _Page(audit, include_truth and audit.truth is not None)
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8") + page.colours()
    script = files(__package__).joinpath("page.js").read_text(encoding="utf-8")
    # The page may run its own script and style, and nothing else: no request, no frame, no form.
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="robots" content="noindex">\n'
        "<title>Audit of a release of people counts</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n{page.body()}\n"
        f'<script type="application/json" id="data">{_safe_json(page.replay_data())}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _safe_json(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


class _Page:
    """The parts of the page."""

    def __init__(self, audit: Audit, include_truth: bool) -> None:
        self.audit, self.include_truth = audit, include_truth
        self.given, self.best = audit.given, audit.given.strongest
        self.names = list(audit.given.attacks)
        self.side = _lattice_side(audit.recovered.locations)
        self.replay = self._replay()

    def colour(self, attack: str) -> str:
        """One colour for each attack; the truth has the page's own ink."""
        others = [name for name in self.names if name not in COLOURS and name != "perfect"]
        return COLOURS.get(attack) or _SPARE_COLOURS[others.index(attack) % len(_SPARE_COLOURS)]

    def css(self, attack: str) -> str:
        """The class that gives an attack its colour; names of attacks are not trusted to be class names."""
        return f"a{self.names.index(attack)}"

    def colours(self) -> str:
        """Rules for these classes."""
        return "".join(
            f".{self.css(name)}{{--c:{'var(--truth)' if name == 'perfect' else self.colour(name)}}}"
            for name in self.names
        )

    def body(self) -> str:
        known = self.audit.truth is not None
        sections = [("summary", "The answer", self.summary())]
        if known:
            sections.append(("defences", "What would protect people", self.defences()))
            sections.append(("people", "Who is exposed", self.people()))
            sections.append(("where", "When and where", self.when_and_where()))
            sections.append(("found", "Could someone find a person in it?", self.reidentification()))
        else:
            sections.append(("agreement", "How far the attacks agree", self.agreement()))
            sections.append(("defences", "What defences would cost", self.defence_table()))
        sections.append(("replay", "Watch a rebuilt day", self.replay_section()))
        sections.append(("method", "How this was found", self.method()))
        links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title, _ in sections)
        content = "\n".join(
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(title)}</h2>{text}</section>'
            for name, title, text in sections
        )
        return (
            '<a class="skip" href="#summary">To the answer</a>'
            f"<header><h1>Audit of a release of people counts</h1>{self.facts()}{self.notice()}"
            f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>\n<main>\n{content}\n</main>\n'
            f"<footer>Made by Rekindle {escape(rekindle.__version__)}. This page holds everything it shows and asks no "
            "other computer for anything.</footer>"
        )

    def facts(self) -> str:
        settings = self.audit.settings
        calendar = self.audit.recovered.calendar
        people = settings["people"] or f"About {settings['people_in_release']}"
        return (
            f"<p>{people} people, {settings['locations']} places, {settings['steps']} steps of "
            f"{escape(str(settings['calendar']['step']))} from {calendar.start:%d %B %Y} on "
            f"({calendar.number_of_days} days).</p>"
        )

    def notice(self) -> str:
        if self.include_truth:
            return (
                '<p class="notice sensitive"><strong>This report carries the truth.</strong> It holds the true paths of '
                "people and says which rebuilt path is whose. Whoever has this file has them: keep it as safe as the data "
                "it was made from.</p>"
            )
        if self.audit.truth is not None:
            return (
                '<p class="notice">This report does not carry the true paths, nor does it say whose a rebuilt path is. It '
                "does name people with how exposed they are: show it to those who may know that.</p>"
            )
        return (
            '<p class="notice"><strong>Audited without the truth.</strong> '
            + escape(" ".join(self.audit.unknown))
            + "</p>"
        )

    def summary(self) -> str:
        audit, best = self.audit, self.best
        tone = _TONES[audit.verdict.level]
        level = (
            "risk unknown"
            if tone == "none"
            else audit.verdict.level
            if "guessing" in audit.verdict.level or "tell" in audit.verdict.level
            else f"{audit.verdict.level} risk"
        )
        parts = [
            f'<p class="verdict">{escape(words.headline(audit))}</p>',
            f'<p><span class="level {tone}">{escape(level.capitalize())}</span></p>',
        ]
        if best.advantage is not None and best.accuracy is not None:
            chance = self.given.attacks["chance"]
            cards = [
                (
                    words.percent(best.advantage.value),
                    "of the way from guessing to knowing everything",
                    _range(best.advantage),
                ),
                (
                    words.percent(best.accuracy.value),
                    "of the time in the right place",
                    f"{_range(best.accuracy)}; guessing {_plain(chance.accuracy)}",
                ),
            ]
            if best.home is not None:
                cards.append((words.percent(best.home.value), "of homes found", f"guessing {_plain(chance.home)}"))
            if len(best.reidentified) >= 3:
                cards.append(
                    (
                        words.percent(best.reidentified[2].value),
                        "found again from 4 known moments",
                        f"guessing {_plain(chance.reidentified[2])}",
                    )
                )
            items = "".join(
                f"<li><b>{escape(a)}</b><span>{escape(b)}</span><small>{escape(c)}</small></li>" for a, b, c in cards
            )
            parts.append(f'<ul class="cards">{items}</ul>')
        parts.append(_list(words.summary(audit)))
        parts.append(f"<h3>What can be done</h3>{_list(words.advice(audit))}")
        parts.append(
            f"<details><summary>The rule of the verdict</summary><p>{escape(audit.verdict.rule)}</p></details>"
        )
        return "".join(parts)

    def defences(self) -> str:
        points = [
            charts.Point(
                number, one.label, (one.utility or {}).get("count_error", 0.0), share.value, share.low, share.high
            )
            for number, one in enumerate(self.audit.releases)
            if (share := one.strongest.advantage) is not None
        ]
        chart = charts.privacy_and_use(
            "Every release as a point: error of its counts to the right, exposure upwards; numbers are in the table",
            points,
            LEVELS,
        )
        names = "".join(
            f"<li>{_number(point.number)}<span>{escape(point.name)}</span><b>{words.percent(point.share)}</b></li>"
            for point in points
        )
        return (
            "<p>Each point is a release. Lower is safer, further left is more useful: the best place is the lower left "
            f'corner.</p><div class="picture"><figure>{chart}<figcaption>Upwards: the share of the way from guessing to '
            "knowing everything, for whichever attack is strongest there, with its 95% interval. To the right: how far the "
            "published counts are off. An attacker first repairs a release (guesses what is withheld, evens out noise), "
            f'then attacks it.</figcaption></figure><ol class="releases" aria-label="The releases">{names}</ol></div>'
            f"<details open><summary>All numbers</summary>{self.defence_table()}</details>"
        )

    def defence_table(self) -> str:
        known = self.audit.truth is not None
        head = ["Release"]
        if known:
            head += ["of the way", "in the right place", "guessing", "error, km", "homes", "found by 4 moments"]
        else:
            head += ["people guessed", "rebuilt paths unique by 2 places"]
        head += ["error of counts", "error by place and hour", "order of busiest places"]
        rows = [self._defence_row(number, one, known) for number, one in enumerate(self.audit.releases)]
        text = _table("Every release: what it gives away, and what use is left", head, rows)
        if self.audit.left_out:
            items = [f"{name}. {reason}" for name, reason in self.audit.left_out.items()]
            text += f"<p>Not tried, because they do not suit this dataset:</p>{_list(items)}"
        return text

    def _defence_row(self, number: int, one: ReleaseRisk, known: bool) -> list[str]:
        best = one.strongest
        css = "number given" if number == 0 else "number"
        row = [
            f'<span class="{css}">{number}</span>{escape(one.label)}<small>strongest: {escape(best.attack)}</small>'
        ]
        if known:
            points = best.reidentified[2:3]
            row += [
                _cell(best.advantage),
                _cell(best.accuracy),
                _plain(one.attacks["chance"].accuracy),
                "–" if best.error_km is None else f"{best.error_km:.2f}",
                _plain(best.home),
                _plain(points[0]) if points else "–",
            ]
        else:
            row += [f"{one.people:.0f}", words.percent(best.uniqueness[1])]
        use = one.utility
        if use is None:
            return [*row, "–", "–", "–"]
        correlation = f"{use['busiest_rank_correlation']:.2f}"
        return [*row, _large(use["count_error"]), _large(use["profile_error"]), correlation]

    def people(self) -> str:
        people = self.audit.people
        accuracy = [person.accuracy for person in people]
        chance = float(np.mean([person.chance for person in people]))
        chart = charts.histogram(
            "How many people have which share of their time rebuilt", accuracy, chance, self.css(self.best.attack),
            xname="share of a person's time in the right place",
        )  # fmt: skip
        rows = [
            [
                escape(person.person),
                _bare(person.accuracy),
                _bare(person.chance),
                _bare(person.home),
                _bare(person.work),
            ]
            for person in people[:_LISTED_PEOPLE]
        ]
        rest = "" if len(people) <= _LISTED_PEOPLE else f" (the first {len(rows)} of {len(people)})"
        table = _table(
            f"The most exposed people{rest}",
            ["Person", "time in the right place", "by guessing", "home found", "work place found"],
            rows,
        )
        quarter = [words.percent(float(value)) for value in np.quantile(accuracy, [0.25, 0.5, 0.75])]
        return (
            f"<p>A mean hides people. Half of them lie between {quarter[0]} and {quarter[2]}, the one in the middle has "
            f"{quarter[1]}.</p><figure>{chart}<figcaption>People by the share of their time that the "
            f"{escape(self.best.attack)} attack rebuilt, as a mean over {self.audit.settings['row_orders']} row orders."
            f"</figcaption></figure><details><summary>The most exposed people</summary>{table}<p>Home and work: in how many "
            "of the row orders they were found.</p></details>"
        )

    def when_and_where(self) -> str:
        beside = _once([self.best.attack, "naive", "chance"])
        hours = [
            charts.Line(
                name, self.css(name), [(hour, value) for hour, value in enumerate(self.given.attacks[name].by_hour)]
            )
            for name in beside
        ]
        chart = charts.lines(
            "Share of people in the right place at each hour of the day", hours, xname="hour of the day",
            xticks=[(hour, f"{hour}") for hour in (0, 6, 12, 18, 23)], dots=sum(v is not None for v in self.best.by_hour) < 12,
        )  # fmt: skip
        locations = self.audit.recovered.locations
        place_map = charts.map_of_places(
            "Share found of the time spent in each place",
            locations.xy_km,
            self.best.by_location,
            locations.ids,
            self.side,
        )
        time = (
            np.bincount(self.audit.recovered.cells.ravel(), minlength=len(locations))
            / self.audit.recovered.cells.size
        )
        # Of very many places, those where the time is spent.
        drawn = np.sort(np.argsort(-time, kind="stable")[:_DRAWN_PLACES])
        place_map = charts.map_of_places(
            "Share found of the time spent in each place",
            locations.xy_km[drawn],
            [self.best.by_location[at] for at in drawn],
            [locations.ids[at] for at in drawn],
            self.side,
        )
        ranked = sorted(
            (
                (share, at)
                for at, share in enumerate(self.best.by_location)
                if share is not None and time[at] >= 0.001
            ),
            key=lambda one: (-one[0], one[1]),
        )
        rows = [[escape(locations.ids[at]), _bare(share), f"{time[at]:.1%}"] for share, at in ranked[:_LISTED_PLACES]]
        table = _table(
            "Places where people are found most, of those with at least 0.1% of everyone's time",
            ["Place", "found", "of everyone's time"],
            rows,
        )
        return (
            f'<div class="two"><figure><h3>By hour</h3>{chart}<figcaption>Share of people in the right place. '
            f"{escape(_extremes(self.best.by_hour))}</figcaption></figure><figure><h3>By place</h3>{place_map}<figcaption>Of the time that people really spent in a place, the "
            f"share that was found. North is up.</figcaption></figure></div><details><summary>The places by name</summary>"
            f"{table}</details>"
        )

    def reidentification(self) -> str:
        names = _once(["perfect", self.best.attack, "naive", "chance"])
        label = {"perfect": "in the true data"}
        points = [
            charts.Line(
                label.get(name, name),
                self.css(name),
                [(KNOWN_POINTS[at], one.value) for at, one in enumerate(self.given.attacks[name].reidentified)],
            )
            for name in names
        ]
        chart = charts.lines(
            "How often someone who knows some moments finds the right person", points,
            xname="moments that someone knows", xticks=[(at, str(at)) for at in KNOWN_POINTS], dots=True,
        )  # fmt: skip
        grown = self.audit.growth.get(self.best.attack, ())
        guess = self.audit.growth.get("chance", ())
        kinds = [
            charts.Line(
                "in the right place", self.css(self.best.attack), [(one.days, one.accuracy) for one in grown]
            ),
            charts.Line("homes found", "k1", [(one.days, one.home) for one in grown]),
            charts.Line("found by 4 moments", "k2", [(one.days, one.reidentified) for one in grown]),
            charts.Line(
                "in the right place by guessing", self.css("chance"), [(one.days, one.accuracy) for one in guess]
            ),
        ]
        ticks = _apart([one.days for one in grown])
        growth = charts.lines(
            "How exposure grows with the number of published days", kinds,
            xname="days published", xticks=[(tick, f"{tick:g}") for tick in ticks], dots=True,
        )  # fmt: skip
        table = _table(
            "How often the best match is the right person and nobody else",
            ["Moments known", *(label.get(name, name) for name in names)],
            [
                [str(KNOWN_POINTS[at]), *(_cell(self.given.attacks[name].reidentified[at]) for name in names)]
                for at in range(len(self.best.reidentified))
            ],
        )
        return (
            "<p>Rebuilt paths have no names. But an acquaintance, an employer or a public post may know where someone was at "
            "a few moments, and look for the path that fits best (de Montjoye et al. 2013).</p>"
            f'<div class="two"><figure><h3>With a few known moments</h3>{chart}<figcaption>How often the path that fits best '
            f"is the right person’s, and no other fits as well.</figcaption></figure><figure><h3>With more published days</h3>"
            f"{growth}<figcaption>The {escape(self.best.attack)} attack on the first days of the release alone."
            f"</figcaption></figure></div><details><summary>The numbers</summary>{table}</details>"
        )

    def agreement(self) -> str:
        rows = [
            (
                f"{one.one}, row orders among each other" if one.one == one.other else f"{one.one} and {one.other}",
                one.share,
                self.css(one.other),
            )
            for one in self.audit.agreements
            if one.one == one.other or one.one != "chance"
        ]
        chart = charts.bars("Share of points in which two recoveries agree", rows)
        return (
            "<p>In which share of the points two recoveries put a person into the same place, after their people were "
            "matched with each other. How far two random guesses (chance) agree shows where agreement begins to mean "
            "something.</p>"
            f"{chart}{self._uniqueness()}"
        )

    def _uniqueness(self) -> str:
        names = [name for name in self.names if name != "perfect"]
        rows = [
            [escape(name), *(words.percent(value) for value in self.given.attacks[name].uniqueness)] for name in names
        ]
        return _table(
            "Share of rebuilt people whose most frequent places nobody else has, by how many of these places are compared",
            ["Attack", *(str(k) for k in range(1, 6))],
            rows,
        )

    def replay_section(self) -> str:
        people, shown = self.audit.recovered.people, len(self.replay)
        calendar = self.audit.recovered.calendar
        options = "".join(f"<option>{escape(name)}</option>" for name, _ in self.replay)
        lively = self._liveliest_day()
        days = "".join(
            f"<option{' selected' if number == lively else ''}>Day {number + 1}: {calendar.time(day.start):%A %d %B}</option>"
            for number, day in enumerate(calendar.days())
        )
        screens = self._screen("recovered", f"Rebuilt by the {self.best.attack} attack")
        if self.include_truth:
            screens = self._screen("truth", "The true path") + screens
        left = "" if shown == people else f" To keep the file small, the first {shown} of {people} are here."
        about = (
            "People are listed with the most exposed first."
            if self.include_truth
            else "Rebuilt people have no names, and this report does not say which of them are right."
        )
        return (
            f"<p>Choose a person and a day, and press play. {about}{left}</p>"
            '<div class="controls"><label class="wide">Person<select id="person">' + options + "</select></label>"
            '<label class="wide">Day<select id="day">' + days + "</select></label>"
            '<label>Speed<select id="speed"><option value="0.5">slow</option><option value="1" selected>normal</option>'
            '<option value="4">fast</option></select></label><button id="play" type="button">Play</button>'
            '<label class="wide">Time of day<input id="time" type="range" min="0" max="1" value="0"></label></div>'
            '<p class="clock" id="clock"></p><p id="status" role="status"></p>'
            f'<div class="screens">{screens}</div>'
        )

    def _liveliest_day(self) -> int:
        """The day on which the person who is shown first moves most."""
        _, row, true = next(iter(self._to_show()))
        cells = self.audit.recovered.cells[row] if true is None else true
        return int(np.argmax([np.count_nonzero(np.diff(cells[day])) for day in self.audit.recovered.calendar.days()]))

    @staticmethod
    def _screen(kind: str, name: str) -> str:
        return (
            f'<figure><canvas data-path="{kind}" data-name="{escape(name)}" role="img" aria-label="{escape(name)}"></canvas>'
            f"<figcaption>{escape(name)}</figcaption></figure>"
        )

    def method(self) -> str:
        settings = self.audit.settings
        attacks = [
            f"{name}: " + (", ".join(f"{key}={value}" for key, value in values.items()) or "no settings")
            for name, values in settings["attacks"].items()
        ]
        rows = [self._attack_row(risk) for name, risk in self.given.attacks.items() if name != "perfect"]
        head = ["Attack", "in the right place", "of the way", "error, km", "homes", "work places", "by row order"]
        known = self.audit.truth is not None
        numbers = _table("Every attack on the release as given", head, rows) if known else ""
        use = ", ".join(f"{one.name.replace('_', ' ')}: {one.meaning}" for one in UTILITIES)
        what = ", ".join(f"{one.name.replace('_', ' ')}: {one.meaning} ({one.unit})" for one in METRICS[:2])
        text = [
            "An attack is given the published numbers, the places and the times, never the truth. Beside the attacks stand "
            "chance (people are dealt out at random at every step) and the naive attack (as many as possible stay where "
            "they are). Both fit the numbers exactly.",
            "Rebuilt people have no names, so they are matched with true people in the way that has the least total "
            "distance. People who are left over, where an attacker guessed another number of people or where only a "
            "sample was published, score 0.",
            "For a release with larger cells or longer steps, the truth is coarsened alike before places are compared; the "
            "error in km is against the original places and times.",
            f"Measures: {what}. Measures of use: {use}. Relative errors are sums of absolute errors over sums of counts.",
            "Intervals hold 95%: people and row orders are drawn again with replacement 2000 times. Who is matched with "
            "whom is not solved again, and other people or another city are not drawn.",
            "Home is the most frequent place between 00:00 and 06:00, work the most frequent one between 09:00 and 17:00 "
            "from Monday to Friday.",
            f"Every attack was repeated with {settings['row_orders']} orders of rows, since equally good rebuilds are "
            "chosen by their order; random defences were drawn anew each time.",
        ]
        text += [] if known else list(self.audit.unknown)
        agreement = self.agreement() if known else ""
        return (
            f"{_list(text)}<h3>The verdict</h3><p>{escape(self.audit.verdict.rule)}</p>{numbers}"
            f"<h3>Settings</h3>{_list(attacks)}"
            + (
                f"<details><summary>How far the attacks agree with each other</summary>{agreement}</details>"
                if known
                else ""
            )
        )

    @staticmethod
    def _attack_row(risk: AttackRisk) -> list[str]:
        return [
            escape(risk.attack),
            _cell(risk.accuracy),
            _cell(risk.advantage),
            "–" if risk.error_km is None else f"{risk.error_km:.2f}",
            _plain(risk.home),
            _plain(risk.work),
            ", ".join(f"{value:.1%}" for value in risk.by_order),
        ]

    def _replay(self) -> list[tuple[str, dict[str, str]]]:
        """Names and paths of the people to choose from, as many as fit."""
        audit = self.audit
        recovered = audit.recovered.cells
        found: list[tuple[str, dict[str, str]]] = []
        size = 0
        for name, row, true in self._to_show():
            paths = {"recovered": _encode(recovered[row])}
            if true is not None:
                paths["truth"] = _encode(true)
            size += sum(map(len, paths.values()))
            if found and size > _REPLAY_BYTES:
                break
            found.append((name, paths))
        return found

    def _to_show(self) -> Iterable[tuple[str, int, NDArray[np.integer] | None]]:
        audit = self.audit
        if not self.include_truth or audit.truth is None or audit.matched is None:
            yield from ((f"Rebuilt person {row + 1}", row, None) for row in range(audit.recovered.people))
            return
        place = {name: row for row, name in enumerate(audit.truth.people_ids)}
        for person in audit.people:
            row = place[person.person]
            if audit.matched[row] >= 0:
                name = f"Person {person.person} ({words.percent(person.accuracy)} in the right place)"
                yield name, int(audit.matched[row]), audit.truth.cells[row]

    def replay_data(self) -> dict[str, Any]:
        calendar, locations = self.audit.recovered.calendar, self.audit.recovered.locations
        return {
            "people": [paths for _, paths in self.replay],
            "steps": self.audit.recovered.steps,
            "days": [[day.start, day.stop] for day in calendar.days()],
            "start": int((np.datetime64(calendar.start, "ms") - np.datetime64(0, "ms")).astype(np.int64)),
            "step": int(calendar.step.total_seconds()),
            "names": list(locations.ids),
            "xy": locations.xy_km.round(4).tolist(),
            "side": self.side,
            "colour": self.colour(self.best.attack),
        }


def _encode(cells: NDArray[np.integer]) -> str:
    """Runs of the same place as numbers of one or more bytes, seven bits each, in base64; see page.js."""
    begins = np.concatenate([[0], 1 + np.flatnonzero(np.diff(cells))])
    lengths = np.diff(np.append(begins, len(cells)))
    found = bytearray()
    for cell, length in zip(cells[begins].tolist(), lengths.tolist(), strict=True):
        for value in (2 * cell,) if length == 1 else (2 * cell + 1, length - 2):
            while value > 127:
                found.append(value & 127 | 128)
                value >>= 7
            found.append(value)
    return base64.b64encode(bytes(found)).decode()


def _lattice_side(locations: Locations) -> float | None:
    """The side of the cells where the centres lie on a square lattice, km; None where they do not."""
    xy = locations.xy_km
    if len(xy) < 2:
        return None
    side = float(cKDTree(xy).query(xy, k=2)[0][:, 1].min())
    offset = (xy - xy[0]) / side if side > 0 else np.array([0.5])
    return side if bool((np.abs(offset - offset.round()) < 0.02).all()) else None


def _extremes(by_hour: Sequence[float | None]) -> str:
    known = [(share, hour) for hour, share in enumerate(by_hour) if share is not None]
    (least, quiet), (most, busy) = min(known), max(known, key=lambda one: one[0])
    return (
        f"Most is found from {busy}:00 on ({words.percent(most)}), least from {quiet}:00 on ({words.percent(least)})."
    )


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _apart(ticks: Sequence[float]) -> list[float]:
    """Ticks that do not touch, the last one among them."""
    kept: list[float] = []
    for tick in reversed(ticks):
        if not kept or kept[-1] - tick >= ticks[-1] / 12:
            kept.append(tick)
    return kept[::-1]


def _number(number: int) -> str:
    return f'<span class="number{"" if number else " given"}">{number}</span>'


def _range(value: Estimate) -> str:
    return f"95% interval {words.percent(value.low)} to {words.percent(value.high)}"


def _plain(value: Estimate | None) -> str:
    return "–" if value is None else words.percent(value.value)


def _bare(share: float | None) -> str:
    return "–" if share is None else words.percent(share)


def _large(error: float) -> str:
    return f"{error:.0%}" if error < 10 else f"{error:.0f}x"


def _cell(value: Estimate | None) -> str:
    if value is None:
        return "–"
    return f"{words.percent(value.value)}<small>{value.low:.0%} to {value.high:.0%}</small>"


def _list(sentences: Iterable[str]) -> str:
    return '<ul class="plain">' + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls on its own; cells are HTML already, the head is text."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table><caption>{escape(caption)}'
        f"</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
