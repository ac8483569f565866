# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Why counts leak, step by step
#
# Six people, six locations, three days. We publish only how many people are where. Then we forget everything else and recover the
# six paths, by hand, in the same steps that [`rk.Baseline`][rekindle.Baseline] and [`rk.Enhanced`][rekindle.Enhanced] take.

# %%
import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

import rekindle as rk

PLACES = ["Hill", "Mill", "Bay", "Office", "School", "Market"]
XY_KM = [(0, 4), (0, 0), (5, 0), (3, 3), (1.2, 1.2), (4.2, 1.6)]
places = rk.Locations(XY_KM, PLACES)

# %% [markdown]
# ## What really happened
#
# One row per person and day, one letter every two hours, from midnight. This is what the owner knows and nobody else.

# %%
DAYS = [
    "HHHHOOOOOHHH HHHHOOOOMHHH HHHHOOOOOHHH",  # Ada: lives on the Hill, works at the Office
    "HHHSSSSHHHHH HHHSSSSHHHHH HHHSSSSMHHHH",  # Ben: same home, goes to School
    "LLLLOOOOOOLL LLLLOOOOOOLL LLLLOOOOOOLL",  # Cleo: lives at the Mill, Office until late
    "LLLSSSSSLLLL LLLSSSSSLLLL LLLSSSSSLLLL",  # Dan: Mill, School
    "BBBBMMMMMMBB BBBBMMMMMMBB BBBBMMMMMMBB",  # Eve: Bay, keeps a stall at the Market
    "BBBBBBMMBBBB BBBBBBBBBBBB BBBBBBMMBBBB",  # Fay: Bay, at home, shops at the Market
]
letters = "HLBOSM"
cells = [[letters.index(letter) for letter in row.replace(" ", "")] for row in DAYS]
truth = rk.Trajectories(cells, places, rk.Calendar("2024-03-04", "2h", 36))
truth

# %% [markdown]
# ## What is published

# %%
counts = truth.counts()
clock = [time.strftime("%H:%M") for time in counts.calendar.times()[:12].tolist()]
pl.Config.set_tbl_rows(12)
pl.DataFrame(
    {"Monday": clock} | {name: counts.values[:12, at] for at, name in enumerate(PLACES)}
)

# %% [markdown]
# No names, no paths. At two in the morning: two people on the Hill, two at the Mill, two by the Bay. From here on we use this
# table, the map and the clock, and nothing else.
#
# ## Night: people stay
#
# At every step the attack knows where its people are (at first, as many as were counted in each location), and how many people the
# next row has in each location. Each counted person is a seat. Who takes which seat? At night the cost of a seat is how far away it is
# ([`rk.attacks.Stay`][rekindle.attacks.Stay]), and the cheapest way to seat everyone wins: an assignment problem.


# %% alt="A matrix of six people and six seats between 00:00 and 02:00: staying costs nothing and is chosen by all"
def seats(step):
    """One column for each person counted at a step."""
    return np.repeat(np.arange(len(places)), counts.values[step])


def show(cost, previous, current, step):
    """Price every seat of the next step, fill the seats at the least total cost, and draw it."""
    now = rk.attacks.MoveContext(places, counts.calendar.time(step), transitions)
    matrix = cost(previous, current, now)[:, seats(step + 1)]
    _, chosen = linear_sum_assignment(matrix)
    people = [f"#{row} in {PLACES[place]}" for row, place in enumerate(current)]
    axes = rk.figures.draw_costs(
        matrix, people=people, places=[PLACES[at] for at in seats(step + 1)], chosen=chosen
    )
    return seats(step + 1)[chosen].astype(np.int32), axes.figure


transitions = (
    rk.Baseline().start(places, counts.calendar, people=6).transitions
)  # still empty: nothing was seen yet
at_0 = seats(0).astype(np.int32)
at_2, figure = show(rk.attacks.Stay(), at_0, at_0, 0)
figure

# %% [markdown]
# Nobody moves, at a cost of 0 km. That was easy, and it is the point: most people do not move at night, so a table of counts at
# night is a list of homes.
#
# Look at the rows of #0 and #1: they are the same. **People in one location are interchangeable.** Which of the two is Ada and which
# is Ben is not in the counts, and no attack can know. Such ties are everywhere. They are broken by the order in which people
# happen to be listed, which moves an accuracy by several points. So Rekindle lists people in several orders (`seed`) and gives the
# spread.
#
# ## Morning: the first to leave
#
# At six, one person is missing on the Hill and one at the Mill, and two have appeared at School.

# %% alt="The matrix of the step from 04:00 to 06:00: one person of the Hill and one of the Mill go to School"
at_4, _ = show(rk.attacks.Stay(), at_0, at_2, 1)
at_6, figure = show(rk.attacks.Velocity(), at_2, at_4, 2)
figure

# %% [markdown]
# From the Hill to School it is 3.0 km, from the Mill 1.7 km, from the Bay 4.0 km. Sending one from the Hill and one from the Mill is
# the only way to fill the seats at this price. The counts did not say who went to School. The **sum** did.
#
# By day the baseline expects people to go on as they went: from $p_{i-1}$ and $p_i$ to $q = p_i + (p_i - p_{i-1})$, equation (1) of
# the paper, and a seat costs its distance from $q$, equation (2): [`rk.attacks.Velocity`][rekindle.attacks.Velocity]. For those who have not moved,
# $q$ is where they are. So at eight, the two students are expected to fly on past School, at the same speed:

# %% alt="The matrix of the step from 06:00 to 08:00: the velocity rule sends the student from the Mill on to the Office"
at_8, figure = show(rk.attacks.Velocity(), at_4, at_6, 3)
figure

# %% [markdown]
# The seats are filled exactly as counted, and yet this is **wrong**. The rule has the student from the Mill (#3) fly on to the
# Office, someone else from the Mill takes the seat at School, and Eve, on her way to her stall, is not told from Fay. The attack has
# exchanged people who were near each other. From now on it follows the one for the other.
#
# That is what all its mistakes look like: the counts are right at every step, whole stretches of life are right, and here and there
# two people have been exchanged.

# %% tags=["check"]
at_school = {row for row in range(6) if PLACES[at_6[row]] == "School"}
assert sorted(at_8.tolist()) == sorted(truth.cells[:, 4].tolist())
assert {PLACES[at_4[row]] for row in at_school} == {"Hill", "Mill"}
assert [PLACES[at_8[row]] for row in at_school if PLACES[at_4[row]] == "Mill"] == ["Office"]

# %% [markdown]
# ## A whole day, and the next
#
# The attack does this for every step of a day. Each day is recovered from its own counts, so the days come out as six rows each, in no
# common order.

# %%
run = rk.Baseline().start(places, counts.calendar, people=6)
days = list(counts.days())
run.feed(days[0])
monday = run.trajectories().cells


def spell(rows):
    """Letters, as in the diary above."""
    return ["".join(letters[place] for place in row) for row in rows]


alone = rk.Baseline().recover(
    rk.Counts(days[1].values, places, rk.Calendar("2024-03-05", "2h", 12))
)
tuesday = alone.trajectories.cells
pl.DataFrame(
    {"row": range(6), "Monday": spell(monday), "Tuesday, not linked yet": spell(tuesday)}
)

# %% [markdown]
# ## Linking the days
#
# Whose Tuesday belongs to whose Monday? People return to the same locations for about as long. The price of a link is the
# **information gain**: the entropy of the two days together, less their own. It is 0 bits for two days alike, and 1 for two days
# that share no location ([`rk.attacks.InformationGain`][rekindle.attacks.InformationGain]).

# %% alt="The matrix of information gains between six Mondays and six Tuesdays, with the cheapest links framed"
gain = rk.attacks.InformationGain()(monday, tuesday, len(places))
_, linked = linear_sum_assignment(gain)
rk.figures.draw_costs(
    gain.round(3),
    people=[f"Monday #{row}" for row in range(6)],
    places=[f"Tue #{row}" for row in range(6)],
    chosen=linked,
    unit="bits",
).figure

# %% [markdown]
# Most rows have a partner that is far cheaper than the rest: a day is a fingerprint, even a day with two people exchanged in it.
#
# ## What the second day teaches
#
# The enhanced attack of D'Silva et al. remembers. It counts how often each location was predicted to follow another (the paper's $B$),
# and adds the most frequent followers to the locations that cost nothing ([`rk.attacks.Popular`][rekindle.attacks.Popular]). It also links with
# the best of the last three days, so that one odd Tuesday does not break a trajectory.

# %%
run = rk.Enhanced().start(places, counts.calendar, people=6)
run.feed(days[0])
pl.DataFrame(
    {"from / to": PLACES}
    | {name: run.transitions.toarray()[:, at] for at, name in enumerate(PLACES)}
)

# %% [markdown]
# ## How much was true?
#
# Recovered people have no names. To score them they are matched with the true ones, one to one, with the least total error.

# %%
found = {
    "baseline": rk.Baseline(),
    "enhanced": rk.Enhanced(),
    "habits": rk.Habits(effort="low"),
}
recovered = {name: attack.recover(counts).trajectories for name, attack in found.items()}
results = {name: rk.evaluate(people, truth) for name, people in recovered.items()}
beside = rk.reference_scores(truth, seeds=20)
for name, result in results.items():
    print(
        f"{name:9} {result.accuracy:.0%} of all points right, {result.mean_error_km:.2f} km off on average"
    )
print(f"chance    {beside.chance['accuracy'].mean:.0%}")

# %%
best = max(results, key=lambda name: results[name].accuracy)
order = results[best].per_person.matched
pl.Config.set_fmt_str_lengths(40)
names = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Fay"]
pl.DataFrame(
    {
        "": names,
        "true": spell(truth.cells),
        f"recovered ({best})": spell(recovered[best].cells[order]),
    }
)

# %% tags=["check"]
assert (
    results["baseline"].accuracy
    < results["enhanced"].accuracy
    < results["habits"].accuracy
    == 1
)
assert beside.chance["accuracy"].mean < 0.5
for people in recovered.values():
    assert np.array_equal(people.counts().values, counts.values)

# %% [markdown]
# The paper's attacks decide step by step and never look back, so an exchange in the morning stays. [Habits](../concepts/habits.md)
# asks which split of these counts makes six people who repeat themselves, and gets **everyone right, at every moment, from counts
# alone**. Only the names are missing. Anyone who knows that Ada lives on the Hill and works at the Office has the rest of her week.
#
# Six people are a toy. The same on a city of 60 people and a week, over three row orders:

# %% alt="Accuracy of chance, the baseline, the enhanced attack and Habits on a synthetic city of 60 people, a dot for each row order"
city = rk.SyntheticCity(people=60, days=7).trajectories()
release = city.counts()
attacks = {
    "baseline": rk.Baseline,
    "enhanced": rk.Enhanced,
    "habits": lambda seed: rk.Habits(seed=seed, effort="low"),
}
scores = {
    "chance": [rk.evaluate(rk.Chance(seed=seed).recover(release).trajectories, city) for seed in range(3)]
}
for name, attack in attacks.items():
    scores[name] = [
        rk.evaluate(attack(seed=seed).recover(release).trajectories, city) for seed in range(3)
    ]
rk.figures.draw_accuracies(scores).figure

# %% tags=["check"]
mean = {
    name: np.mean([result.accuracy for result in several]) for name, several in scores.items()
}
assert mean["chance"] < 0.15 < mean["baseline"] < mean["enhanced"] < mean["habits"]

# %% [markdown]
# ## Why counts leak
#
# 1. **The same people are in every row.** Anyone who leaves one location must appear in another. Each row is a clue about all others.
# 2. **People move little and in expected ways.** Few explanations of a row are cheap.
# 3. **People repeat themselves.** Days fit together like torn paper.
#
# None of the three is changed by leaving out names. What does change something: [defences](../concepts/defences.md). What this means
# for your release: [auditing your own release](release.md). The equations beside the code: [how counts become
# paths](../concepts/attacks.md).
