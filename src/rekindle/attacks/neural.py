"""The neural model of moves: a small recurrent network over the stays of a day. Needs the extra ``learned`` (JAX) to train.

A gated recurrent unit reads the stays that a person has ended today (where, when, how long). From its state, the location
now, the time and how long the stay has lasted, two heads say how likely the person is to leave within a step, and where
to. JAX trains it; what was learnt is plain arrays, and NumPy reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rekindle.attacks.moves import LEAST, CountedMoves, Today, _ring, days_of, seconds_of_day
from rekindle.frames import optional
from rekindle.model import AWAY, Locations, Trajectories

WIDTH = 32
PLACE_WIDTH = 16
STAYS = 24
"""How many stays of a day are read, the last ones."""
NODES = 6
"""Moments of a stay at which it is asked whether it goes on, each for the steps around it."""
BATCH = 64
MOST_UPDATES = 2_000
BETWEEN = 20
PATIENCE = 15
"""How many updates lie between two looks at the people who are held out, and after how many without a better score it ends."""
HELD_OUT = 0.15
RATE = 3e-3
DECAY = 1e-2

Weights = dict[str, Any]


class Days(NamedTuple):
    """Stays of days, each the last `STAYS` of a person's: the arrays are (days, STAYS), filled from the front.

    Attributes
    ----------
    place, before, goal
        int64: where, where before and where next; -1 where that is not known, and the number of locations for away.
    arrived
        float64: second of the day.
    length
        int64: steps, as far as seen.
    left
        bool: whether it ended with a move to a location.
    there
        bool: whether there is such a stay.
    person
        int64: whose.
    """

    place: NDArray[np.int64]
    before: NDArray[np.int64]
    goal: NDArray[np.int64]
    arrived: NDArray[np.float64]
    length: NDArray[np.int64]
    left: NDArray[np.bool_]
    there: NDArray[np.bool_]
    person: NDArray[np.int64]

    @classmethod
    def of(cls, cells: NDArray[np.integer], begin: float, step: float, places: int, *, whole: bool = False) -> Days:
        """Split rows of a day that begins at a second of the day into stays; a long one into several, if it is `whole`."""
        rows, steps = cells.shape
        begins = np.ones(cells.shape, bool)
        begins[:, 1:] = cells[:, 1:] != cells[:, :-1]
        row, first = np.nonzero(begins)
        number = np.arange(len(row)) - np.searchsorted(row, np.arange(rows))[row]
        stays = np.bincount(row, minlength=rows)
        place = np.where(cells[row, first] == AWAY, places, cells[row, first]).astype(np.int64)
        after = np.append(row[1:] == row[:-1], False)
        end = np.where(after, np.append(first[1:], steps), steps)
        goal = np.where(after, np.append(place[1:], -1), -1)
        before = np.where(number > 0, np.append(-1, place[:-1]), -1)
        if whole:  # into parts of STAYS, one after the other
            part = number // STAYS
            parts = -(-stays // STAYS)
            line, at = (np.cumsum(parts) - parts)[row] + part, number % STAYS
            lines = int(parts.sum())
        else:
            skipped = np.maximum(stays - STAYS, 0)[row]
            line, at, lines = row, number - skipped, rows
        kept = at >= 0

        def table(values: NDArray[Any], empty: Any) -> NDArray[Any]:
            filled = np.full((lines, STAYS), empty, values.dtype)
            filled[line[kept], at[kept]] = values[kept]
            return filled

        left = after & (goal != places) & (place != places)
        return cls(
            table(place, places),
            table(before, -1),
            table(goal, -1),
            table(begin + step * first.astype(np.float64), 0.0),
            table((end - first).astype(np.int64), 1),
            table(left, False),
            table(np.ones(len(row), bool), False),
            table(row.astype(np.int64), -1),
        )

    @classmethod
    def joined(cls, parts: list[Days]) -> Days:
        """Join the days of several."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def rows(self, chosen: NDArray[np.integer]) -> Days:
        """Some of the days."""
        return Days(*(array[chosen] for array in self))


@dataclass(frozen=True, eq=False)
class NeuralMoves:
    """Moves and stays by a small recurrent network.

    Attributes
    ----------
    locations
        The locations.
    step
        Seconds.
    weights
        float64 arrays by name.
    counted
        The same traces, counted: for people who are away, and for the lengths of stays.
    traces
        The stays that it was trained on.
    """

    locations: Locations
    step: float
    weights: Weights
    counted: CountedMoves
    traces: Days

    @classmethod
    def learn(cls, traces: Trajectories, *, seed: int = 0) -> Self:
        """Train the network on traces; the same seed gives the same on one machine."""
        step, places = traces.calendar.step.total_seconds(), len(traces.locations)
        days = Days.joined([Days.of(cells, begin, step, places, whole=True) for begin, cells in days_of(traces)])
        counted = CountedMoves.learn(traces)
        return cls(traces.locations, step, train(days, counted, step, seed), counted, days)

    @property
    def away(self) -> float:
        """What it costs to leave for away or to return."""
        return self.counted.away

    def next_location(self, today: Today, departs: datetime) -> NDArray[np.float64]:
        """Log chance of each next location: (rows, locations) float64."""
        places = len(self.locations)
        clock = seconds_of_day(departs)
        begin = clock - self.step * (today.cells.shape[1] - 1)
        days = Days.of(today.cells, begin, self.step, places)
        here = days.there.sum(axis=1) - 1
        states = read(np, self.weights, self._places(), days)
        rows = np.arange(len(here))
        lasted = days.length[rows, here].astype(np.float64)
        asked = ask(
            np, self.weights, self._places(), states[rows, here], today.current, np.full(len(rows), clock), lasted
        )
        ring = _ring(self.locations.distances_from(self.locations.xy_km[today.current]), self.counted.unit_km)
        logits = aim(np, self.weights, self._places(), asked, ring)
        before = days.before[rows, here]
        known = (before >= 0) & (before < places)
        logits[rows[known], before[known]] += self.weights["back"]
        logits[rows, today.current] = -np.inf
        chance = logits - _log_sum(logits)
        stays_on = -np.logaddexp(0.0, leave(self.weights, asked))
        chance += (stays_on + leave(self.weights, asked))[:, None]
        chance[rows, today.current] = stays_on
        return np.asarray(np.maximum(chance, np.log(LEAST)))

    def _places(self) -> NDArray[np.float64]:
        return np.asarray(describe(np, self.weights, _plane(self.locations)))

    def moves(self) -> sparse.csr_array:
        """As many moves as in the traces, by where the network would have them lead: (locations, locations) float64."""
        places = len(self.locations)
        states = read(np, self.weights, self._places(), self.traces)
        day, stay = np.nonzero(self.traces.left)
        origin = self.traces.place[day, stay]
        length = self.traces.length[day, stay].astype(np.float64)
        clock = self.traces.arrived[day, stay] + self.step * (length - 1)
        found = np.zeros((places, places))
        for begin in range(0, len(day), 4096):
            some = slice(begin, begin + 4096)
            asked = ask(
                np,
                self.weights,
                self._places(),
                states[day[some], stay[some]],
                origin[some],
                clock[some],
                length[some],
            )
            ring = _ring(self.locations.distances_from(self.locations.xy_km[origin[some]]), self.counted.unit_km)
            logits = aim(np, self.weights, self._places(), asked, ring)
            logits[np.arange(len(logits)), origin[some]] = -np.inf
            np.add.at(found, origin[some], np.exp(logits - _log_sum(logits)))
        return sparse.csr_array(found)

    def stays(self) -> NDArray[np.float64]:
        """How many stays have each length: (STAY_CLASSES,) float64."""
        return self.counted.stays()


# The network, for NumPy and for JAX (`xp`)


def _plane(locations: Locations) -> NDArray[np.float64]:
    """Centres around 0, at most about 1: (locations, 2)."""
    xy = locations.xy_km - locations.xy_km.mean(axis=0)
    return np.asarray(xy / max(float(np.abs(xy).max()), 1e-9))


def describe(xp: Any, weights: Weights, plane: Any) -> Any:
    """A vector for each location, and a last one for away: (locations + 1, PLACE_WIDTH)."""
    return weights["place"] + xp.concatenate([plane, xp.zeros((1, 2))]) @ weights["plane"]


def _clock(xp: Any, seconds: Any) -> Any:
    angle = seconds * (2 * np.pi / 86400)
    return xp.stack([xp.sin(angle), xp.cos(angle), xp.sin(2 * angle), xp.cos(2 * angle)], axis=-1)


def read(xp: Any, weights: Weights, places: Any, days: Days) -> Any:
    """State before each stay, of those that ended: (days, STAYS, WIDTH)."""
    length = xp.log(1.0 * days.length)[..., None] / 5
    seen = xp.concatenate([places[days.place], _clock(xp, days.arrived), length], axis=-1)
    state = xp.zeros((len(days.place), WIDTH))
    states = []
    for at in range(STAYS):
        states.append(state)
        gates = seen[:, at] @ weights["in"] + weights["bias"]
        kept = state @ weights["state"]
        update = _sigmoid(xp, gates[:, :WIDTH] + kept[:, :WIDTH])
        reset = _sigmoid(xp, gates[:, WIDTH : 2 * WIDTH] + kept[:, WIDTH : 2 * WIDTH])
        new = xp.tanh(gates[:, 2 * WIDTH :] + reset * kept[:, 2 * WIDTH :])
        state = update * state + (1 - update) * new
    return xp.stack(states, axis=1)


def ask(xp: Any, weights: Weights, places: Any, state: Any, place: Any, seconds: Any, lasted: Any) -> Any:
    """What both heads look at: (..., WIDTH)."""
    seen = [state, places[place], _clock(xp, seconds), xp.log(lasted)[..., None] / 5]
    return xp.tanh(xp.concatenate(seen, axis=-1) @ weights["ask"] + weights["ask_bias"])


def leave(weights: Weights, asked: Any) -> Any:
    """Log odds to leave within a step: (...,)."""
    return asked @ weights["leave"] + weights["leave_bias"]


def aim(xp: Any, weights: Weights, places: Any, asked: Any, ring: Any) -> Any:
    """Log weights of the destinations: (..., locations)."""
    return asked @ weights["aim"] @ places[:-1].T + weights["liked"] + weights["ring"][ring]


def _sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def _log_sum(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    most = logits.max(axis=-1, keepdims=True)
    return np.asarray(most + np.log(np.exp(logits - most).sum(axis=-1, keepdims=True)))


# Training


def train(days: Days, counted: CountedMoves, step: float, seed: int) -> Weights:
    """Fit the weights by gradient descent, until people who are held out are explained no better.

    Distances and the chance to leave begin with what was counted.
    """
    jax = optional("jax", extra="learned", what="The neural `model`")
    jnp = jax.numpy
    random = np.random.default_rng(seed)
    locations = counted.locations
    places = len(locations)
    plane = jnp.asarray(_plane(locations))
    rings = _ring(locations.distances, counted.unit_km).astype(np.uint8)
    weights = first_weights(random, days, counted)

    def loss(weights: Weights, batch: Days, ring: Any) -> Any:
        vectors = describe(jnp, weights, plane)
        states = read(jnp, weights, vectors, batch)
        counted = batch.there & (batch.place < places)
        length = 1.0 * batch.length
        goes_on = length - 1  # so many steps at whose end the person was still there
        total = 0.0
        for node in range(NODES):  # the steps of a stay, in classes that grow with its length
            low = jnp.floor(goes_on ** (node / NODES) + 1e-4) * bool(node)
            high = jnp.floor(goes_on ** ((node + 1) / NODES) + 1e-4)
            lasted = (low + high + 1) / 2
            asked = ask(jnp, weights, vectors, states, batch.place, batch.arrived + step * (lasted - 1), lasted)
            total += (jax.nn.softplus(leave(weights, asked)) * (high - low) * counted).sum()
        asked = ask(jnp, weights, vectors, states, batch.place, batch.arrived + step * (length - 1), length)
        logits = aim(jnp, weights, vectors, asked, ring)
        logits += weights["back"] * (jnp.arange(places) == batch.before[..., None])
        logits = jnp.where(jnp.arange(places) == batch.place[..., None], -jnp.inf, logits)
        chosen = jnp.take_along_axis(logits, jnp.clip(batch.goal, 0, places - 1)[..., None], axis=-1)[..., 0]
        going = jax.nn.softplus(-leave(weights, asked)) + jax.scipy.special.logsumexp(logits, axis=-1) - chosen
        total += jnp.where(batch.left, going, 0.0).sum()
        return total / jnp.maximum(batch.left.sum(), 1)

    def update(weights: Weights, mean: Weights, square: Weights, turn: Any, batch: Days, ring: Any) -> Any:
        gradient = jax.grad(loss)(weights, batch, ring)
        mean = {name: 0.9 * mean[name] + 0.1 * gradient[name] for name in weights}
        square = {name: 0.999 * square[name] + 0.001 * gradient[name] ** 2 for name in weights}
        rate = RATE * jnp.sqrt(1 - 0.999**turn) / (1 - 0.9**turn)
        new = {
            name: weights[name] * (1 - RATE * DECAY) - rate * mean[name] / (jnp.sqrt(square[name]) + 1e-8)
            for name in weights
        }
        return new, mean, square

    measure, step_down = jax.jit(loss), jax.jit(update)
    person = days.person[:, 0]
    if len(np.unique(person)) == 1:
        person = np.arange(len(person))
    aside = random.permutation(np.unique(person))[: int(np.ceil(HELD_OUT * len(np.unique(person))))]
    held, kept = (np.flatnonzero(np.isin(person, aside) == each) for each in (True, False))
    none = {name: jnp.zeros_like(value) for name, value in weights.items()}
    weights = {name: jnp.asarray(value) for name, value in weights.items()}
    mean, square, best, waited, turn = none, none, (np.inf, weights), 0, 0
    while turn < MOST_UPDATES and waited < PATIENCE:
        for batch, ring in _batches(days, random.permutation(kept), rings):
            turn += 1
            weights, mean, square = step_down(weights, mean, square, turn, batch, ring)
            if turn % BETWEEN == 0:
                score = float(np.mean([measure(weights, batch, ring) for batch, ring in _batches(days, held, rings)]))
                waited = 0 if score < best[0] else waited + 1
                best = min(best, (score, weights), key=lambda each: each[0])
    return {name: np.asarray(value, np.float64) for name, value in best[1].items()}


def first_weights(random: np.random.Generator, days: Days, counted: CountedMoves) -> Weights:
    """Small random weights; distances and the chance to leave as they were counted."""
    places = len(counted.locations)
    seen, inner = PLACE_WIDTH + 5, WIDTH + PLACE_WIDTH + 5

    def drawn(rows: int, columns: int) -> NDArray[np.float64]:
        return random.normal(0, 1 / np.sqrt(rows), (rows, columns))

    steps = (days.length * days.there).sum()
    return {
        "place": 0.01 * random.normal(0, 1, (places + 1, PLACE_WIDTH)),
        "plane": drawn(2, PLACE_WIDTH),
        "in": drawn(seen, 3 * WIDTH),
        "state": drawn(WIDTH, 3 * WIDTH),
        "bias": np.zeros(3 * WIDTH),
        "ask": drawn(inner, WIDTH),
        "ask_bias": np.zeros(WIDTH),
        "leave": 0.1 * random.normal(0, 1, WIDTH),
        "leave_bias": np.array(np.log((days.left.sum() + 1) / steps)),
        "aim": drawn(WIDTH, PLACE_WIDTH),
        "liked": np.zeros(places),
        "ring": np.log(counted.by_ring),
        "back": np.array(np.log(counted.back * places)),
    }


def _batches(days: Days, order: NDArray[np.integer], rings: NDArray[np.uint8]) -> Any:
    """Days in batches of the same size, the last filled with nobody's; with the distances from each of their stays."""
    for begin in range(0, len(order), BATCH):
        some = days.rows(order[begin : begin + BATCH])
        missing = BATCH - len(some.place)
        if missing:
            nobody = days.rows(np.zeros(missing, np.int64))
            empty = np.zeros(nobody.there.shape, bool)
            some = Days.joined([some, nobody._replace(there=empty, left=empty)])
        yield some, rings[np.minimum(some.place, len(rings) - 1)]
