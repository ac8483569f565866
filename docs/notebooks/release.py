# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Auditing your own release
#
# You have counts that you would like to publish. This notebook takes you to a decision. It plays the owner of a small city of 40
# people; with your own data, replace the first cell with `data = rk.read_dataset("folder")`
# ([how to get one](../guides/preparing.md)).

# %%
import polars as pl

import rekindle as rk

truth = rk.SyntheticCity(people=40, days=5).trajectories()
rk.write_dataset("city", counts=truth.counts(), truth=truth)

data = rk.read_dataset("city")
print(data.counts)
print(data.truth)

# %% [markdown]
# ## 1. What would be published?
#
# Look at it as a reader would. Here is a Tuesday noon, and how many of the numbers are small: a count of 1 is a person.

# %% alt="People in each cell of the city on Tuesday at noon"
noon = 48 + 24
rk.figures.draw_grid(data.locations, counts=data.counts, step=noon).figure

# %%
values = data.counts.values
print(
    f"{(values > 0).mean():.0%} of the numbers are above 0; of these {(values[values > 0] == 1).mean():.0%} are a single person."
)

# %% [markdown]
# ## 2. How much would be found?
#
# `rk.audit` tries attacks on the release as it is, and after each defence that you name. It does what an attacker would: repair
# what was withheld or made noisy, then attack. Several row orders show how much is luck.

# %%
audit = rk.audit(
    data,
    attacks=[rk.Enhanced(), rk.Habits(effort="low")],
    defences=[
        rk.Suppress(below=3),
        rk.Round(to=5),
        rk.GeometricNoise(epsilon=0.1, per="event"),
        rk.CoarserSpace(km=3),
        rk.CoarserTime(step="6h"),
    ],
    seeds=2,
    workers=1,
)
print("Exposure:", audit.verdict.level)
print(audit.verdict.rule)

# %%
given = audit.given
for name in ("chance", "naive", "enhanced", "habits"):
    risk = given.attacks[name]
    print(
        f"{name:9} {risk.accuracy.value:4.0%} of all points  ({risk.accuracy.low:.0%} to {risk.accuracy.high:.0%})"
    )

# %% [markdown]
# A number without a reference means nothing. Chance places people at random; the naive attack lets as many as possible stay. Their distance
# to the attacks is what the attacks have learnt.
#
# ## 3. Who is exposed?
#
# A mean hides the worst off. Those are the people you have to answer to.

# %% alt="Share of each person's steps that were found, from the most to the least exposed person"
import matplotlib.pyplot as plt

found = [person.accuracy for person in audit.people]
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.bar(
    range(1, len(found) + 1),
    found,
    color=rk.figures.COLOURS["habits"],
    label="found by the strongest attack",
)
axes.plot(
    range(1, len(found) + 1),
    [person.chance for person in audit.people],
    color="#555555",
    label="found by chance",
)
axes.set(xlabel="people, the most exposed first", ylabel="share of their time", ylim=(0, 1))
axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
plt.close(figure)
figure

# %%
strongest = given.strongest
print(
    f"{sum(share > 0.9 for share in found)} of {len(found)} people are found more than 90% of the time."
)
print(
    f"Home is found for {strongest.home.value:.0%}, work for {strongest.work.value:.0%} of the people."
)
print(
    f"Someone who knows 4 points of a person finds the right path in {strongest.reidentified[2].value:.0%} of the cases."
)

# %% [markdown]
# ## 4. What would help, and at what price?

# %%
pl.Config.set_fmt_str_lengths(60)
rows = []
for release in audit.releases:
    best = release.strongest
    rows.append(
        {
            "release": release.label,
            "found": f"{best.accuracy.value:.0%}",
            "km off": f"{best.error_km:.1f}",
            "home found": f"{best.home.value:.0%}" if best.home else "not published",
            "error of the counts": f"{release.utility['count_error']:.2f}",
        }
    )
pl.DataFrame(rows)

# %% [markdown]
# Read it in rows. *Found* is at the resolution of the release, so larger cells can raise it: being right about 3 km is easier than
# about 1 km. *km off* is measured against where people really were, and does not have that weakness. *Error of the counts* is what
# a reader loses: 1.00 means that the numbers are as wrong as if nothing had been published.
#
# In a city this small nothing comes for free: what protects people makes the numbers useless first. That is a finding too. With 40
# people, do not publish counts by cell and hour.

# %% tags=["check"]
assert audit.verdict.level in ("high", "very high")
assert given.strongest.attack == "habits"
assert given.attacks["chance"].accuracy.value < given.attacks["enhanced"].accuracy.value
by_label = {release.label: release for release in audit.releases}
assert len(by_label) == 6
less = [
    r for r in audit.releases[1:] if r.strongest.advantage.value < 0.5 * given.strongest.advantage.value
]
assert all(r.utility["count_error"] > 0.3 for r in less)

# %% [markdown]
# ## 5. Write it down
#
# The report is one file that opens anywhere and asks no other computer for anything. The person who has to sign off can read it.

# %%
audit.to_html("report.html")
print("advantage over chance above 30%:", audit.exceeds(0.3))

# %% [markdown]
# In a pipeline, the same question stops a publication: `rekindle audit city --out audit --fail-above 0.3` ends with exit code 3.
#
# What the numbers mean and how far to trust them: [auditing a release](../guides/auditing.md). What no audit can promise:
# [limits](../concepts/limits.md).
