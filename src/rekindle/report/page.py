"""The report of an audit: what its template shows. One HTML file that opens from disk and shows names as text."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

import rekindle
from rekindle.auditing.evidence import Evidence
from rekindle.auditing.results import MEASURES, AttackRisk, Audit, Exposed
from rekindle.auditing.risk import LEVELS, Estimate
from rekindle.evaluation import METRICS
from rekindle.evaluation.usefulness import UTILITIES
from rekindle.io.safety.files import new_file
from rekindle.model import Locations
from rekindle.report import charts, words
from rekindle.report.colours import colours_of
from rekindle.report.geography import Place, coordinates, fit_degrees, map_of_places
from rekindle.report.lattice import lattice_sides
from rekindle.report.render import Table, render

_REPLAY_BYTES = 3_500_000
_LISTED_PEOPLE = 20
_LISTED_PLACES = 10
_DRAWN_PLACES = 4000
_TONES = {"moderate": "mild", "cannot tell": "mild", "high": "bad", "very high": "worst", "unknown": "none"}
_LABELS = {"perfect": "in the true data", "frozen": "naive on frozen counts", "mixed": "at random along flows"}

_TITLES = {"counts": "people counts", "flows": "flows of people"}
_KNOWLEDGE = {
    "exact": "everyone else",
    "knock-knock": "traces of other people",
    "zero-knowledge": "the release alone",
}


def write_page(
    path: str | Path, audit: Audit, *, include_truth: bool = False, names: bool = False, overwrite: bool = True
) -> None:
    """Write the report of an audit to one file, whole or not at all, for its owner alone."""
    text = build_page(audit, include_truth=include_truth, names=names)
    with new_file(path, overwrite=overwrite, private=True) as temporary:
        temporary.write_text(text, encoding="utf-8")


def build_page(audit: Audit, *, include_truth: bool = False, names: bool = False) -> str:
    """Build the report of an audit.

    Parameters
    ----------
    audit
        What was found.
    include_truth
        Include the true paths. Otherwise the page contains none, and does not say whose a rebuilt path is.
    names
        Show people's real IDs instead of their ranks by exposure.
    """
    return _Page(audit, include_truth and audit.truth is not None, names).render()


class _Page:
    """What the template shows of an audit."""

    def __init__(self, audit: Audit, include_truth: bool, names: bool) -> None:
        self.audit, self.include_truth, self.names = audit, include_truth, names
        self.given, self.best = audit.given, audit.given.strongest
        self.attacks = list(self.given.attacks)
        self.colours = colours_of(name for name in self.attacks if name != "perfect") | {"perfect": "var(--truth)"}
        self.people = [one.person if names else str(rank) for rank, one in enumerate(audit.people, 1)]
        sides = lattice_sides(audit.recovered.locations.xy_km)
        self.side = sides[0] if sides is not None and abs(sides[1] / sides[0] - 1) < 0.02 else None

    def css(self, attack: str) -> str:
        """The class that gives an attack its colour; names of attacks are not trusted to be class names."""
        return f"a{self.attacks.index(attack)}"

    def render(self) -> str:
        audit, known = self.audit, self.audit.truth is not None
        shown = self._replay()
        return render(
            "audit.html.jinja",
            title=f"Privacy audit of a release of {_TITLES[audit.published]}",
            colours="".join(f".{self.css(name)}{{--c:{self.colours[name]}}}" for name in self.attacks),
            version=rekindle.__version__,
            audit=audit,
            identity=audit.identity,
            evidence=self.evidence(),
            given=self.given,
            best=self.best,
            css=self.css(self.best.attack),
            known=known,
            include_truth=self.include_truth,
            names=self.names,
            headline=words.headline(audit),
            decision=words.decision(audit),
            level=words.level(audit),
            tone=_TONES.get(audit.verdict.level, "good"),
            reasons=words.reasons(audit),
            cards=self.cards() if known else (),
            summary=words.summary(audit),
            matching=words.matching(audit),
            informed=words.informed(audit),
            advice=words.advice(audit),
            releases=self.releases(),
            release_table=self.release_table(known),
            expectation=[] if audit.expected is None else words.expectation(audit.expected),
            similar=self.similar(),
            agreement=self.agreement(),
            uniqueness=self.uniqueness(),
            replay={"people": [name for name, _ in shown], "day": self._liveliest_day()},
            data=self.replay_data([paths for _, paths in shown]),
            metrics=[one for one in METRICS if one.name in ("accuracy", "mean_error_km")],
            utilities=UTILITIES,
            **(self.with_truth() if known else {}),
        )

    def with_truth(self) -> dict[str, Any]:
        """What only the truth can show."""
        return {
            "privacy_and_use": self.privacy_and_use(),
            "attackers": self.attackers(),
            "exposed": self.exposed(),
            "people": self.people_chart(),
            "people_table": self.people_table(),
            "quartiles": np.quantile([person.accuracy for person in self.audit.people], [0.25, 0.5, 0.75]).tolist(),
            "hours": self.hours(),
            "extremes": _extremes(self.best.by_hour),
            **self.places(),
            "learnt": self.learnt(),
            "growth": self.growth(),
            "windows": self.windows(),
            "rings": any(one.published not in ("counts", "flows") for one in self.audit.windows),
            "precision": self.precision(),
            "membership": self.membership(),
            "attack_table": self.attack_table(),
        }

    def cards(self) -> list[tuple[str, str, str]]:
        """The largest numbers: the number, what it is, and what stands beside it."""
        best, chance = self.best, self.given.attacks["chance"]
        found = []
        if self.given.exposed is not None:
            half, almost = self.given.exposed.half, self.given.exposed.almost_all
            by_chance = f"{half.by_chance:.1f}".removesuffix(".0")
            text = f"of {words.plural(half.of, 'person', 'people')}, more than half of their time recovered"
            found.append((f"{half.people:,}", text, f"{almost.people:,} with more than 90%; guessing {by_chance}"))
        if best.advantage is not None:
            found.append((words.percent(best.advantage.value), "advantage over chance", _interval(best.advantage)))
        if best.accuracy is not None:
            beside = f"{_interval(best.accuracy)}; guessing {_value(chance.accuracy)}"
            found.append((words.percent(best.accuracy.value), "of the time in the right place", beside))
        if best.home is not None:
            found.append((words.percent(best.home.value), "of homes found", f"guessing {_value(chance.home)}"))
        if best.learnt and 4 in best.learnt:
            guess = _value((chance.learnt or {}).get(4))
            text = "of a person's other time, from 4 known points"
            found.append((words.percent(best.learnt[4].value), text, f"guessing {guess}"))
        return found

    def releases(self) -> list[dict[str, Any]]:
        """The releases by their numbers in the chart."""
        return [
            {"number": at, "risk": one, "advantage": one.strongest.advantage}
            for at, one in enumerate(self.audit.releases)
        ]

    def privacy_and_use(self) -> str:
        points = [
            charts.Point(at, one.label, self.audit.loss(one), advantage)
            for at, one in enumerate(self.audit.releases)
            if (advantage := one.strongest.advantage) is not None
        ]
        published = self.audit.published
        title = f"Every release as a point: error of its {published} to the right, advantage over chance upwards"
        return charts.privacy_and_use(title, points, LEVELS, published)

    def release_table(self, known: bool) -> Table:
        sample = any(one.included < 1 for one in self.audit.releases)
        risks = ["advantage over chance", "people exposed", "in the right place", "error, km", "homes"]
        head = ["Release", *(["people in it"] if sample else [])]
        head += risks if known else ["people assumed", "unique by 2 places"]
        head += [f"error of {self.audit.published}", "error by place and hour", "rank of busiest places"]
        rows = []
        for number, one in enumerate(self.audit.releases):
            best, use = one.strongest, one.utility or {}
            row: list[Any] = [f"{number}. {one.label}", *([one.included] if sample else [])]
            if best.accuracy is not None:
                guess = f"guessing {_value(one.attacks['chance'].accuracy)}"
                people = None if one.exposed is None else f"{one.exposed.half.people:,} of {one.exposed.half.of:,}"
                row += [best.advantage, people, _beside(_value(best.accuracy), guess), _km(best), _only(best.home)]
            else:
                row += [f"{one.people:.0f}", best.uniqueness[1]]
            row += [_large(use.get(name)) for name in (MEASURES[self.audit.published], "profile_error")]
            rows.append([*row, f"{use['busiest_rank_correlation']:.2f}" if use else None])
        return Table("Every release: what it gives away, and how useful it remains", head, rows)

    def attackers(self) -> Table:
        """The number of people known or guessed, and the repairs that were compared."""
        rows = []
        for number, one in enumerate(self.audit.releases):
            best, guessed, repairs = one.strongest, one.guessed, one.repairs
            beside = (
                "–" if guessed is None else f"{words.percent(guessed.advantage.value)} ({guessed.people:.0f} people)"
            )
            tried = "none needed" if repairs is None else ", ".join(
                f"{name} {words.percent(accuracy)}" for name, accuracy in repairs.accuracy.items()
            )  # fmt: skip
            gap = None if repairs is None else f"{-100 * repairs.gap:+.0f} points"
            row = [
                f"{number}. {one.label}",
                best.attack,
                _only(best.advantage),
                beside,
                best.repair or "none needed",
                tried,
                gap,
            ]
            rows.append(row)
        head = [
            "Release",
            "strongest attack",
            "number of people known",
            "guessed",
            "strongest repair",
            "repairs compared",
        ]
        return Table("The attackers: advantage over chance", [*head, "compared with the true numbers"], rows)

    def similar(self) -> Table | None:
        """What each defence does to people drawn like the rebuilt ones."""
        expected = self.audit.expected
        if expected is None or expected.similar is None:
            return None
        rows = []
        for one in expected.similar.releases:
            found = one.strongest.exposed
            people = None if found is None else f"{found.half.people:,} of {found.half.of:,}"
            rows.append(
                [one.label, one.strongest.accuracy, people, _LABELS.get(one.strongest.attack, one.strongest.attack)]
            )
        head = ["Release", "points in the right place", "people exposed", "by"]
        return Table("Synthetic people modelled on the rebuilt ones (an estimate)", head, rows)

    def exposed(self) -> Table | None:
        """Who is exposed to each attack."""
        rows = []
        for name, risk in self.given.attacks.items():
            if risk.exposed is not None and name != "perfect":
                found, guessed = risk.exposed, name == "chance"
                counted = [_count(one, guessed=guessed) for one in (found.half, found.almost_all)]
                rows.append([_LABELS.get(name, name), *counted, found.most, found.percentile_99])
        head = ["Attack", "more than half recovered", "more than 90%", "most exposed person", "99th percentile"]
        return Table("People exposed by each attack", head, rows) if rows else None

    def people_chart(self) -> str:
        accuracy = [person.accuracy for person in self.audit.people]
        chance = float(np.mean([person.chance for person in self.audit.people]))
        title = "How many people have which share of their time recovered"
        xname = "share of a person's time in the right place"
        return charts.histogram(title, accuracy, chance, xname=xname, yname="people")

    def people_table(self) -> Table:
        orders = self.audit.settings["row_orders"]
        rows = [
            [name, one.accuracy, one.chance, f"{one.orders} of {orders}", one.home, one.work]
            for name, one in zip(self.people[:_LISTED_PEOPLE], self.audit.people, strict=False)
        ]
        rest = f" (the first {len(rows)} of {len(self.people):,})" if len(self.people) > len(rows) else ""
        head = [
            "Person",
            "time in the right place",
            "by guessing",
            "exposed in row orders",
            "home found",
            "workplace found",
        ]
        return Table(f"The most exposed people{rest}", head, rows)

    def hours(self) -> str:
        beside = dict.fromkeys([self.best.attack, "naive", "chance"])
        found = [charts.Line(name, self.css(name), [*enumerate(self.given.attacks[name].by_hour)]) for name in beside]
        title, ticks = "Share of people in the right place at each hour of the day", (0, 6, 12, 18, 23)
        few = sum(value is not None for value in self.best.by_hour) < 12
        xticks = [(at, str(at)) for at in ticks]
        return charts.lines(
            title, found, xname="hour of the day", yname="people in the right place", xticks=xticks, dots=few
        )

    def places(self) -> dict[str, Any]:
        locations, shares = self.audit.recovered.locations, self.best.by_location
        cells = (self.audit.truth or self.audit.recovered).cells
        steps = np.bincount(cells[cells >= 0], minlength=len(locations))
        time, hours = steps / max(steps.sum(), 1), steps * (self.audit.recovered.calendar.step.total_seconds() / 3600)
        # Of very many places, those where the time is spent.
        drawn = np.sort(np.argsort(-time, kind="stable")[:_DRAWN_PLACES])
        names = [
            name if where is None else f"{name} ({coordinates(*where)})"
            for name, where in zip(locations.ids, _degrees(locations), strict=True)
        ]
        found = [Place(names[at], tuple(locations.xy_km[at].tolist()), float(hours[at]), shares[at]) for at in drawn]
        place_map = map_of_places("What was recovered in each place", found, self.side, fit_degrees(locations))
        often = [(-share * hours[at], at) for at, share in enumerate(shares) if share is not None]
        rows = [
            [names[at], f"{-recovered:,.1f}", shares[at], f"{time[at]:.1%}"]
            for recovered, at in sorted(often)[:_LISTED_PLACES]
        ]
        head = ["Place", "person-hours recovered", "share recovered", "of everyone's time"]
        return {
            "place_map": place_map,
            "place_table": Table("Places where most person-time is recovered", head, rows),
        }

    def learnt(self) -> dict[str, Any] | None:
        """What is learnt from known points, and how many people these points tell apart in the true data."""
        risks = self.given.attacks
        found = {name: risks[name].learnt for name in dict.fromkeys([self.best.attack, "naive", "chance"])}
        points = list(found[self.best.attack] or {})
        if not points:
            return None
        columns = {name: [(learnt or {}).get(p) for p in points] for name, learnt in found.items()}
        columns["perfect"] = [*risks["perfect"].reidentified[: len(points)]]
        label = {"perfect": "unique in the true data"}
        drawn = [
            charts.Line(label.get(name, name), self.css(name), [(at, _only(one)) for at, one in enumerate(column)])
            for name, column in columns.items()
        ]
        ticks = [(at, str(p)) for at, p in enumerate(points)]
        title = "What someone learns who knows some points of a person"
        rows = list(zip(map(str, points), *columns.values(), strict=True))
        head = ["Points known", *(label.get(name, name) for name in columns)]
        return {
            "chart": charts.lines(
                title, drawn, xname="points that someone knows", yname="share learnt, or unique", xticks=ticks
            ),
            "table": Table("Share of a person's other time that is learnt", head, rows),
        }

    def growth(self) -> dict[str, Any] | None:
        """The chart, and whether accuracy falls from some day to a later one; None where it was not measured."""
        grown, guess = self.audit.growth.get(self.best.attack, ()), self.audit.growth.get("chance", ())
        if not grown:
            return None
        apart = "k3" if self.colours[self.best.attack].lower() == "#d55e00" else "k2"  # which has that colour itself
        drawn = [
            charts.Line(
                "in the right place", self.css(self.best.attack), [(one.days, one.accuracy) for one in grown]
            ),
            charts.Line("homes found", "k1", [(one.days, one.home) for one in grown]),
            charts.Line("re-identified from 4 points", apart, [(one.days, one.reidentified) for one in grown]),
            charts.Line(
                "in the right place by guessing", self.css("chance"), [(one.days, one.accuracy) for one in guess]
            ),
        ]
        ticks = [(tick, f"{tick:g}") for tick in _apart([one.days for one in grown])]
        title, found = "How exposure grows with the published days", [one.accuracy for one in grown]
        return {
            "chart": charts.lines(
                title, drawn, xname="days published", yname="share of time or people", xticks=ticks
            ),
            "falls": any(after < before - 0.005 for before, after in pairwise(found)),
        }

    def windows(self) -> Markup | None:
        """The chart of counts against flows; None where it was not measured."""
        found = self.audit.windows
        lengths = list(dict.fromkeys(one.window for one in found))
        if not lengths:
            return None
        # By what was done, the counts first.
        labels = list(dict.fromkeys(one.label for one in found))
        series = sorted({(one.published, one.label) for one in found}, key=lambda one: (labels.index(one[1]), one[0]))
        drawn = [
            charts.Line(
                f"{kind}, {label[0].lower()}{label[1:]}",
                f"{css} dashed" if kind == "flows" else css,  # where flows add nothing, the counts are seen beneath
                [
                    (lengths.index(one.window), one.accuracy)
                    for one in found
                    if (one.published, one.label) == (kind, label)
                ],
            )
            for (kind, label), css in zip(series, ("k1", "k2", "k3", "k4", "k5", "k6"), strict=False)
        ]
        ticks = [(float(at), length) for at, length in enumerate(lengths)]
        title = "Counts against flows, by window"
        return charts.lines(title, drawn, xname="length of a window", yname="share of time", xticks=ticks)

    def precision(self) -> dict[str, Any] | None:
        """The curve of each attack that states a confidence, and what it can claim."""
        sure = {name: risk.precision for name, risk in self.given.attacks.items() if risk.precision is not None}
        if not sure:
            return None
        drawn = [
            charts.Line(name, self.css(name), [*zip(one.claimed, one.precision, strict=True)])
            for name, one in sure.items()
        ]
        rows = [[name, f"{one.people:.1f}".removesuffix(".0"), one.people_right] for name, one in sure.items()]
        xname, yname = "share of points claimed, surest first", "share of claims right"
        ticks = [(at / 4, f"{at / 4:.0%}") for at in range(5)]
        head = ["Attack", "people claimed almost completely", "of their points right"]
        return {
            "chart": charts.lines(
                "Precision by the share of points claimed", drawn, xname=xname, yname=yname, xticks=ticks
            ),
            "table": Table("What each attack can claim", head, rows),
        }

    def membership(self) -> Table | None:
        """Whether it can be told who is in each release; None where that was not tested."""
        rows: list[list[Any]] = []
        for one in self.audit.releases:
            for method, tested in one.membership.items():
                if isinstance(tested, str):
                    rows.append([one.label, _KNOWLEDGE[method], None, None, None, tested])
                    continue
                epsilon = None if tested.epsilon is None else _epsilon(tested.epsilon)
                claimed = None
                if tested.claimed_per_event is not None:
                    event, person = map(_epsilon, (tested.claimed_per_event, tested.claimed_per_person or 0.0))
                    claimed = f"{event} per event, {person} per person"
                if epsilon is not None and claimed is None:
                    epsilon = "no noise, no bound" if tested.epsilon == np.inf else epsilon
                rows.append(
                    [one.label, _KNOWLEDGE[method], f"{tested.auc:.2f}", tested.true_positives[1], claimed, epsilon]
                )
        head = [
            "Release",
            "the attacker knows",
            "AUC",
            "recognised at 1% false alarms",
            "claimed epsilon",
            "at least",
        ]
        return Table("Telling who is in the data", head, rows) if rows else None

    def attack_table(self) -> Table:
        rows = [
            [_LABELS.get(name, name), one.accuracy, one.advantage, _km(one), _only(one.home), _only(one.work),
             ", ".join(f"{value:.1%}" for value in one.by_order)]
            for name, one in self.given.attacks.items() if name != "perfect"
        ]  # fmt: skip
        head = ["Attack", "in the right place", "advantage", "error, km", "homes", "workplaces", "by row order"]
        return Table("Every attack on the release as given", head, rows)

    def agreement(self) -> Table:
        rows = [
            [f"{one.one}, between row orders" if one.one == one.other else f"{one.one} and {one.other}", one.share]
            for one in self.audit.agreements
            if one.one == one.other or one.one != "chance"
        ]
        return Table("Share of points at which two recoveries agree", ["Recoveries", "agree"], rows)

    def uniqueness(self) -> Table:
        rows = [[name, *risk.uniqueness] for name, risk in self.given.attacks.items() if name != "perfect"]
        caption = "Share of rebuilt people whose k most frequent places nobody else has"
        return Table(caption, ["Attack", *(f"k = {k}" for k in range(1, 6))], rows)

    def evidence(self) -> dict[str, list[Evidence]]:
        found: dict[str, list[Evidence]] = {}
        for one in self.audit.evidence:
            found.setdefault(one.source, []).append(one)
        return found

    def _replay(self) -> list[tuple[str, dict[str, str]]]:
        """Names and paths of the people to choose from, as many as fit."""
        found: list[tuple[str, dict[str, str]]] = []
        size = 0
        for name, row, true in self._to_show():
            paths = {"recovered": _encode(self.audit.recovered.cells[row])}
            if true is not None:
                paths["truth"] = _encode(true)
            size += sum(map(len, paths.values()))
            if found and size > _REPLAY_BYTES:
                break
            found.append((name, paths))
        return found

    def _to_show(self) -> Iterator[tuple[str, int, NDArray[np.integer] | None]]:
        audit = self.audit
        if not self.include_truth or audit.truth is None or audit.matched is None:
            yield from ((f"Rebuilt person {row + 1}", row, None) for row in range(audit.recovered.people))
            return
        rows = {name: row for row, name in enumerate(audit.truth.people_ids)}
        for shown, person in zip(self.people, audit.people, strict=True):
            row = rows[person.person]
            if audit.matched[row] >= 0:
                name = f"Person {shown} ({words.percent(person.accuracy)} in the right place)"
                yield name, int(audit.matched[row]), audit.truth.cells[row]

    def _liveliest_day(self) -> int:
        """The day on which the person who is shown first moves most."""
        _, row, true = next(self._to_show())
        cells = self.audit.recovered.cells[row] if true is None else true
        return int(np.argmax([np.count_nonzero(np.diff(cells[day])) for day in self.audit.recovered.calendar.days()]))

    def replay_data(self, people: list[dict[str, str]]) -> dict[str, Any]:
        calendar, locations = self.audit.recovered.calendar, self.audit.recovered.locations
        return {
            "people": people,
            "steps": self.audit.recovered.steps,
            "days": [[day.start, day.stop] for day in calendar.days()],
            "start": int((np.datetime64(calendar.start, "ms") - np.datetime64(0, "ms")).astype(np.int64)),
            "step": int(calendar.step.total_seconds()),
            "names": list(locations.ids),
            "degrees": None if locations.lat_lng is None else locations.lat_lng.round(5).tolist(),
            "xy": locations.xy_km.round(4).tolist(),
            "side": self.side,
            "colour": self.colours[self.best.attack],
        }


def _encode(cells: NDArray[np.integer]) -> str:
    """Runs of the same place, or of someone away (-1), as numbers of one or more bytes, seven bits each, in base64; see page.js."""
    begins = np.concatenate([[0], 1 + np.flatnonzero(np.diff(cells))])
    lengths = np.diff(np.append(begins, len(cells)))
    found = bytearray()
    for cell, length in zip(cells[begins].tolist(), lengths.tolist(), strict=True):
        for value in (2 * cell + 2,) if length == 1 else (2 * cell + 3, length - 2):
            while value > 127:
                found.append(value & 127 | 128)
                value >>= 7
            found.append(value)
    return base64.b64encode(bytes(found)).decode()


def _degrees(locations: Locations) -> Sequence[tuple[float, float] | None]:
    """Latitude and longitude of each place, where they are known."""
    return (
        [None] * len(locations)
        if locations.lat_lng is None
        else [(lat, lng) for lat, lng in locations.lat_lng.tolist()]
    )


def _epsilon(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _extremes(by_hour: Sequence[float | None]) -> str:
    known = [(share, hour) for hour, share in enumerate(by_hour) if share is not None]
    (least, quiet), (most, busy) = min(known), max(known, key=lambda one: one[0])
    return (
        f"Most is recovered from {busy}:00 ({words.percent(most)}), least from {quiet}:00 ({words.percent(least)})."
    )


def _apart(ticks: Sequence[float]) -> list[float]:
    """Ticks that do not touch, the last one among them."""
    kept: list[float] = []
    for tick in reversed(ticks):
        if not kept or kept[-1] - tick >= ticks[-1] / 12:
            kept.append(tick)
    return kept[::-1]


def _interval(value: Estimate) -> str:
    return f"95% interval {words.percent(value.low)} to {words.percent(value.high)}"


def _value(found: Estimate | None) -> str:
    return "unknown" if found is None else words.percent(found.value)


def _only(found: Estimate | None) -> float | None:
    """An estimate without its interval."""
    return None if found is None else found.value


def _km(one: AttackRisk) -> str | None:
    return None if one.error_km is None else f"{one.error_km:.2f}"


def _count(found: Exposed, *, guessed: bool = False) -> str:
    """How many people are exposed, with limits and in how many row orders; or of how many guessing recovers that much."""
    if guessed:
        return f"{found.by_chance:.1f}".removesuffix(".0") + f" of {found.of:,}"
    orders = len(found.by_order)
    limits = "" if found.share is None else f"{words.percent(found.share.low)} to {words.percent(found.share.high)}"
    always = f"{found.in_every_order} in all {orders} row orders" if orders > 1 and found.people else ""
    return _beside(f"{found.people:,} of {found.of:,}", limits, always)


def _beside(number: str, *small: str) -> Markup:
    """A number with what stands below it in small print."""
    return Markup("{}{}").format(
        number, Markup("").join(Markup("<small>{}</small>").format(one) for one in small if one)
    )


def _large(error: float | None) -> str | None:
    return None if error is None else f"{error:.0%}" if error < 10 else f"{error:.0f}x"
