# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Preparing Porto Taxi
#
# A year of taxi trips in Porto, published for a challenge (ECML/PKDD 2015, CC BY 4.0). The file has 1.7 million trips; this
# notebook writes a small one of the same form, with invented taxis, and prepares it as in the paper's section "Dataset 2".
#
# ## One row per trip
#
# The columns that matter: `TAXI_ID`, `TIMESTAMP` (when the trip begins, in seconds since 1970), `MISSING_DATA`, and `POLYLINE`, a list
# of longitude and latitude every 15 seconds. Between trips there is nothing: a taxi without a fare is invisible.

# %%
import json

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import rekindle as rk
from rekindle.prepare import Grid, prepare_porto
from rekindle.sources import read_porto

random = np.random.default_rng(1)
PORTO = (41.155, -8.62)
MIDNIGHT = 1372633200  # 2013-07-01 00:00 in Porto, which is an hour ahead of UTC in summer


def trip(taxi, begins, start, goal):
    """A drive in a straight line at 25 km/h, as a row of train.csv."""
    pieces = max(1, int(np.hypot(*(goal - start)) / 25 * 240))
    path = start + (goal - start) * np.linspace(0, 1, pieces + 1)[:, None]
    line = [[round(PORTO[1] + x / 83.7, 6), round(PORTO[0] + y / 111.2, 6)] for x, y in path]
    return {
        "TRIP_ID": f"{begins}{taxi}",
        "CALL_TYPE": "B",
        "ORIGIN_CALL": None,
        "ORIGIN_STAND": None,
        "TAXI_ID": 20000000 + taxi,
        "TIMESTAMP": begins,
        "DAY_TYPE": "A",
        "MISSING_DATA": "True" if random.random() < 0.01 else "False",
        "POLYLINE": json.dumps(line if random.random() < 0.99 else []),
    }


trips = []
for taxi in range(30):
    shift, here = random.integers(0, 24), random.normal(0, 2, 2)
    fares = random.choice([4, 10, 14])  # some taxis work little
    for day in range(14):
        if day in (0, 1, 12, 13) and random.random() < 0.7:
            continue  # the middle of the fortnight is busier
        for hour in np.sort(random.uniform(0, 9, fares)):
            goal = random.normal(0, 2.5, 2)
            trips.append(
                trip(taxi, MIDNIGHT + day * 86400 + int((shift + hour) * 3600), here, goal)
            )
            here = goal
pl.DataFrame(trips).sort("TIMESTAMP").write_csv("train.csv")
pl.Config.set_fmt_str_lengths(60)
pl.read_csv("train.csv").select("TAXI_ID", "TIMESTAMP", "MISSING_DATA", "POLYLINE").head(3)

# %% [markdown]
# ## Reading
#
# Trips that are marked as having missing points are dropped, and so are trips without points. What was dropped is counted, and ends
# up in the dataset.

# %%
points = read_porto("train.csv")
print(points.info["trips"], "trips; dropped:", points.info["dropped"])
points.frame.head(3).collect().to_native()

# %% [markdown]
# ## The densest period, and the busy taxis
#
# The paper takes the period in which most trips begin, and the taxis that begin more trips in it than the average one. Here, a week:

# %%
prepared = prepare_porto(points, days=7, step="10min", places=Grid(cell_km=2.0))
print(prepared.truth)
print(
    "from",
    prepared.truth.calendar.start,
    "to",
    prepared.truth.calendar.time(prepared.truth.steps - 1),
)

# %% tags=["check"]
assert 5 < prepared.truth.people < 30
assert prepared.truth.calendar.start.hour == 0
assert prepared.truth.steps == 7 * 144 + 1

# %% alt="Trips that begin on each day, and the chosen week"
begins = pl.read_csv("train.csv").select(day=(pl.col("TIMESTAMP") - MIDNIGHT) // 86400)["day"]
first = prepared.truth.calendar.start.day - 1
figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
axes.bar(range(15), np.bincount(begins, minlength=15), color="#999999")
axes.axvspan(
    first - 0.5, first + 6.5, color="#0072B2", alpha=0.2, lw=0, label="the densest week"
)
axes.set(xlabel="day", ylabel="trips that begin")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.close(figure)
figure

# %% [markdown]
# The last step is the midnight that ends the period: 30 days of 10 minutes are 4,321 steps, as in the paper.
#
# ## Cells, and what lies between the trips

# %% alt="The cells of 2 km over the recorded positions in Porto"
rk.figures.draw_grid(prepared.truth.locations, positions=prepared.positions).figure

# %%
filled = 1 - prepared.observed.mean()
print(
    f"{filled:.0%} of all steps are filled: no trip was under way, and the taxi is taken to be where the last one ended."
)

# %% [markdown]
# ## What an attack finds
#
# Less than for people. The paper suspects that rules made for people do not fit vehicles, and that few locations tell taxis apart.

# %%
counts = prepared.truth.counts()
recovery = rk.Enhanced().recover(counts)
result = rk.evaluate(recovery.trajectories, prepared.truth)
chance = rk.reference_scores(prepared.truth).chance["accuracy"]
print(f"{result.accuracy:.0%} of all points recovered, {chance.mean:.0%} by chance")
print(f"top-2 uniqueness of the true taxis: {result.truth_uniqueness[2]:.0%}")
prepared.write("porto")

# %% tags=["check"]
assert result.accuracy > chance.mean

# %% [markdown]
# The same from the command line, for the real file:
#
# ```sh
# rekindle prepare porto train.csv porto --days 30 --step 10min --cell-km 2
# ```
#
# The published notebook does some things differently from the paper's text: [preparing](../guides/preparing.md). Whether rules made
# for vehicles find more: [writing your own heuristic](vehicles.md).
