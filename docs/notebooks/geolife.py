# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Preparing GeoLife
#
# GeoLife is the recorded life of 182 people in and around Beijing. It may not be passed on, so this notebook makes a small one: the
# same folders, the same PLT files, invented people. Then it walks through the preparation of the paper's section "Dataset 1", one
# rule at a time. With the real data only the first line changes.
#
# ## Files as they come
#
# Each person has a folder `Data/<person>/Trajectory` with one file for each recording. A file has six lines of header; each other line
# is a point: latitude, longitude, a zero, altitude in feet, the date as a number of days, date, and time in UTC. People record when
# they feel like it: some every day, some with a pause of months, some once.

# %%
from datetime import datetime, timedelta
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl

import rekindle as rk
from rekindle.prepare import BEIJING, Grid, prepare_geolife, select
from rekindle.sources import read_geolife

random = np.random.default_rng(0)
city = rk.SyntheticCity(people=10, days=12, step="5min", width_km=8, height_km=8).trajectories()
HEADER = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"


def write_plt(person, start, cells, centre=(BEIJING.lat, BEIJING.lng)):
    """One recording: a point every five minutes, with the noise of a receiver."""
    lines = []
    for at, (x, y) in enumerate(
        city.locations.xy_km[cells] + random.normal(0, 0.05, (len(cells), 2))
    ):
        time = start + timedelta(minutes=5 * at)
        lat, lng = centre[0] + (y - 4) / 111.2, centre[1] + (x - 4) / 85.3
        days = (time - datetime(1899, 12, 30)) / timedelta(days=1)
        lines.append(f"{lat:.6f},{lng:.6f},0,150,{days:.10f},{time:%Y-%m-%d},{time:%H:%M:%S}")
    folder = Path("Data", person, "Trajectory")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{start:%Y%m%d%H%M%S}.plt").write_text(HEADER + "\n".join(lines) + "\n")


for person in range(8):  # eight people in eight different months of different years
    for day in range(12):
        begin, end = np.sort(
            random.integers(60, 280, 2)
        )  # a recording somewhere within the day
        pause = (
            timedelta(days=20) if person == 3 and day > 5 else timedelta()
        )  # one of them goes away in between
        first = datetime(2007 + person % 4, 4 + person, 1) - timedelta(
            hours=8
        )  # local midnight, in UTC
        begins = first + timedelta(days=day, minutes=5 * int(begin)) + pause
        write_plt(
            f"{person:03}", begins, city.cells[person, day * 288 + begin : day * 288 + end + 2]
        )
write_plt("008", datetime(2008, 5, 1), city.cells[8, :200])  # once, and never again
for day in range(12):
    write_plt(
        "009",
        datetime(2009, 7, 1 + day),
        city.cells[9, day * 288 : day * 288 + 150],
        centre=(31.2, 121.5),
    )  # Shanghai

example = sorted(Path("Data/000").rglob("*.plt"))[0]
print(example)
print("\n".join(example.read_text().splitlines()[:9]))

# %% [markdown]
# ## Reading
#
# [`read_geolife`][rekindle.sources.read_geolife] takes the folder, or the zip as it is downloaded. It gives **points**: a lazy table
# of person, trajectory, time and position. A broken line is an error that names file and line, unless you say `skip_bad=True`.

# %%
points = read_geolife(
    "Data"
)  # with the real data: read_geolife("Geolife Trajectories 1.3.zip")
points.frame.head(3).collect().to_native()

# %% [markdown]
# ## Who is left after each rule
#
# The rules of the paper are small functions on lazy tables, which is why they run on Polars and Spark alike. Here we call them one by
# one and count; [`prepare_geolife`][rekindle.prepare.prepare_geolife] does the same in one go.

# %%
DAY = 24 * 12  # steps of five minutes
frame = points.frame.with_columns(time=nw.col("time") + 8 * 3600)  # the clock of Beijing
funnel = {"as it comes": frame}
frame = funnel["inside Beijing"] = select.inside_circle(
    frame, (BEIJING.lat, BEIJING.lng), BEIJING.radius_degrees
)
frame = funnel["at least two trajectories"] = select.several_trajectories(frame, at_least=2)
frame = funnel["the two most active months"] = select.active_months(frame, number=2)
frame = frame.with_columns(step=nw.col("time") // 300)
frame = select.move_closer(frame, day=DAY, gap=DAY, published=False)
frame = select.merge_pieces(
    frame, gap=DAY * 3 // 2, distance_km=7.0, centre_lat=BEIJING.lat, published=False
)
frame = funnel["the longest piece, 7 days or more"] = select.longest_pieces(
    frame, at_least=7 * DAY
)
pl.Config.set_fmt_str_lengths(60)
rows = []
for rule, kept in funnel.items():
    counted = kept.select(nw.col("person").n_unique(), points=nw.len()).collect().row(0)
    rows.append({"rule": rule, "people": counted[0], "points": counted[1]})
pl.DataFrame(rows)

# %% [markdown]
# Shanghai goes, and so do people who recorded once. Person 003, who was away for three weeks, stays: a long gap between two recordings
# is closed **by whole days**, so that the clock stays right, and what is then near in time (36 hours) and space (7 km) is one
# trajectory.

# %% tags=["check"]
assert [row["people"] for row in rows] == [10, 9, 8, 8, rows[-1]["people"]]
assert 5 <= rows[-1]["people"] <= 8

# %% [markdown]
# ## All at once
#
# What is left: everyone is aligned to one start and cut at the earliest end; the first record of each step is the position at that
# step; steps without a record are filled; and a box at two percentiles is divided into cells.

# %% alt="The grid of cells over the recorded positions, on a map in degrees"
prepared = prepare_geolife(
    points, step="5min", fill="last", places=Grid(cell_km=1.0), align="day"
)
print(prepared.truth)
rk.figures.draw_grid(prepared.truth.locations, positions=prepared.positions).figure

# %% [markdown]
# Two choices deserve a thought. **The clock**: the published preparation makes everyone's first record midnight (`align="first-record"`), so
# that nights are not nights. We used `align="day"`, which moves people by whole days only. **The filling**: how much of what an
# attack will "find" was never recorded?

# %% alt="Which steps of each person were recorded: most of every day is filled"
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
axes.imshow(
    prepared.observed,
    aspect="auto",
    cmap="Blues",
    interpolation="nearest",
    extent=(0, prepared.truth.steps / DAY, prepared.truth.people, 0),
)
axes.set(
    xlabel="days",
    ylabel="people",
    title=f"recorded (blue) and filled steps: {1 - prepared.observed.mean():.0%} are filled",
)
plt.close(figure)
figure

# %% [markdown]
# In the real GeoLife, prepared as published, 88.5% of all steps are filled. Keep that in mind whenever you read an accuracy on it.
#
# ## The dataset
#
# `write` makes a folder that every command understands. It holds the truth, the counts, and what was done.

# %%
prepared.write("beijing")
data = rk.read_dataset("beijing")
print(sorted(path.name for path in Path("beijing").iterdir()))
recovery = rk.Enhanced().recover(data.counts)
print(
    f"{rk.evaluate(recovery.trajectories, data.truth).accuracy:.0%} of all points recovered from the counts,",
    end=" ",
)
print(f"{rk.reference_scores(data.truth).chance['accuracy'].mean:.0%} by chance")

# %% [markdown]
# The same from the command line, with every rule as an option:
#
# ```sh
# rekindle prepare geolife "Geolife Trajectories 1.3.zip" beijing --step 2min --months 2 --align day
# ```
#
# Where the paper's text and its notebook differ, and what comes out of the real data: [preparing](../guides/preparing.md).
