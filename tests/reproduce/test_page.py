"""The page: our numbers beside the paper's."""

import numpy as np

import rekindle as rk
from rekindle.reproduce import PAPER, Effort, Subject, measure
from rekindle.reproduce.page import build_sections, to_html, to_markdown

CITY = rk.SyntheticCity(people=8, days=4, step="2h", width_km=4, height_km=4)
QUICK = Effort(orders=2, habits="low", habits_seeds=1)


def test_without_a_truth_there_is_no_accuracy(counts):
    done = []
    found = measure(Subject("Town, published counts", counts), QUICK, lambda: done.append(1))
    assert not found.evaluations
    assert len(done) == 9  # three attacks, two row orders and SciPy's
    sections = build_sections([found], [], [], QUICK)
    text = to_markdown("Title", sections)
    assert "come without the people behind them" in text
    assert "## Accuracies" not in text
    assert "## Consistency" in text


def test_our_numbers_stand_beside_the_papers():
    truth = CITY.trajectories()
    found = measure(
        Subject("GeoLife 37", truth.counts(), truth, PAPER["GeoLife 37"]), Effort(orders=2, habits="none")
    )
    sections = {
        section.title: section for section in build_sections([found], [], ["<b>Nothing</b> | at all."], QUICK)
    }
    table = sections["Accuracies"].tables[0]
    row = dict(zip(table.head[:4], table.rows[0][:4], strict=True))
    assert row["baseline"].startswith(f"{np.mean([one.accuracy for one in found.evaluations['baseline']]):.3f} ± ")
    assert table.rows[0][table.head.index("baseline") + 1] == "0.381"
    assert table.rows[0][table.head.index("enhanced") + 1] == "0.542"
    assert "0.381 in the paper, which is below our range." in sections["Accuracies"].points[0]
    assert any("36, 41 and 45" in text for text in sections["Why numbers differ from the paper's"].points)
    page = to_html("Title", list(sections.values()), None)
    assert "&lt;b&gt;Nothing&lt;/b&gt;" in page
    assert "\\| at all" in to_markdown("Title", list(sections.values()))
