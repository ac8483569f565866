import sys

import numpy as np
import pytest

import rekindle as rk
from rekindle.cli import main
from rekindle.io import read_release


@pytest.fixture
def dataset(tmp_path):
    truth = rk.SyntheticCity(people=80, days=2, step="2h", width_km=5, height_km=5).trajectories()
    rk.write_dataset(tmp_path / "city", counts=truth.counts(), truth=truth)
    return tmp_path / "city"


def run(*arguments):
    """Run the command; 0, or the code that it ends with."""
    try:
        main(["defend", *map(str, arguments)])
    except SystemExit as end:
        return end.code or 0
    return 0


def test_suppress_and_round(dataset, tmp_path, capsys):
    out = tmp_path / "release.csv"
    assert run(dataset, "--out", out, "--suppress-below", 8, "--round-to", 5) == 0
    counts = rk.read_dataset(dataset).counts
    release = read_release(out, tmp_path / "release.locations.csv")
    expected = np.where(counts.values < 8, np.nan, np.floor(counts.values / 5 + 0.5) * 5)
    assert np.array_equal(release.values, expected, equal_nan=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert "Suppress(below=8.0, zeros=True) -> Round(to=5.0)" in shown
    assert "no proof of privacy" in shown
    assert "order of the busiest" in shown


def test_a_preset_shows_its_source(dataset, tmp_path, capsys):
    assert run(dataset, "--out", tmp_path / "r.parquet", "--preset", "opensafely") == 0
    assert "Source: OpenSAFELY. Applying statistical disclosure control" in capsys.readouterr().out


def test_noise_is_drawn_with_opendp_and_its_budget_shown(dataset, tmp_path, capsys):
    pytest.importorskip("opendp", reason="OpenDP is not installed (extra dp)")
    options = ("--sample", 0.5, "--merge-km", 2, "--every", "6h", "--noise", "geometric", "--epsilon", 2)
    for name in ("one", "two"):
        assert run(dataset, "--out", tmp_path / f"{name}.csv", *options, "--form", "wide") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "epsilon per person-day: 0.5 x 4 steps = 2" in shown
    assert "epsilon per person: 0.5 x 8 steps = 4" in shown
    assert "without a seed" in shown
    one, two = (read_release(tmp_path / f"{n}.csv", tmp_path / f"{n}.locations.csv") for n in ("one", "two"))
    assert one.values.shape == (8, len(one.locations)) == two.values.shape
    assert not np.array_equal(one.values, two.values)


def test_noise_needs_public_locations(dataset, tmp_path, capsys):
    pytest.importorskip("opendp", reason="OpenDP is not installed (extra dp)")
    data = rk.read_dataset(dataset)
    unknown = tmp_path / "unknown"
    cells, visited = data.truth.cells, np.unique(data.truth.cells)
    few = rk.Locations(data.locations.xy_km[visited], [data.locations.ids[at] for at in visited], public=False)
    truth = rk.Trajectories(np.searchsorted(visited, cells), few, data.calendar)
    rk.write_dataset(unknown, counts=truth.counts(), truth=truth)
    options = ("--noise", "geometric", "--epsilon", 2, "--per", "event")
    assert run(unknown, "--out", tmp_path / "r.csv", *options) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "--public-locations" in shown
    assert "says by itself where somebody was" in shown
    assert not (tmp_path / "r.csv").exists()
    assert run(unknown, "--out", tmp_path / "r.csv", *options, "--public-locations") == 0
    assert read_release(tmp_path / "r.csv", tmp_path / "r.locations.csv").locations.public
    rk.write_locations(tmp_path / "all.csv", data.locations)
    listed = ("--public-locations", "--locations", tmp_path / "all.csv")
    assert run(unknown, "--out", tmp_path / "s.csv", *options, *listed) == 0
    assert len(read_release(tmp_path / "s.csv", tmp_path / "s.locations.csv").locations) == len(data.locations)


def test_own_order(dataset, tmp_path):
    out = tmp_path / "r.csv"
    assert run(dataset, "--out", out, "--defence", "coarser-time:step=6h + cap:at=3") == 0
    release = read_release(out, tmp_path / "r.locations.csv")
    assert release.steps == 8
    assert release.values.max() == 3


def test_without_opendp_nothing_is_written(dataset, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    assert run(dataset, "--out", tmp_path / "r.csv", "--preset", "spectus") == 2
    assert "pip install 'rekindle-mobility[dp]'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "Give either --preset, or --defence"),
        (("--preset", "opensafely", "--round-to", 5), "Give either --preset"),
        (("--preset", "nobody"), "no preset 'nobody'; choose"),
        (("--defence", "blur"), "no defence 'blur'"),
        (("--defence", "round:base=5"), "no setting 'base'"),
        (("--noise", "laplace"), "--noise and --epsilon belong together"),
        (("--noise", "white", "--epsilon", 1), "'--noise'"),
        (("--noise", "laplace", "--epsilon", 1, "--per", "week"), "'--per'"),
        (("--suppress-below", 1000), "would withhold all"),
        (("--round-to", 5, "--form", "tall"), "'--form'"),
        (("--sample", 1e-12), "none of the 80 people"),
    ],
)
def test_refuses(dataset, tmp_path, capsys, options, problem):
    assert run(dataset, "--out", tmp_path / "r.csv", *options) == 2
    assert problem in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "r.csv").exists()


def test_a_sample_needs_the_people(tmp_path, capsys):
    counts = rk.SyntheticCity(people=8, days=1, step="6h").trajectories().counts()
    rk.write_dataset(tmp_path / "city", counts=counts)
    assert run(tmp_path / "city", "--out", tmp_path / "r.csv", "--sample", 0.5) == 2
    assert "has no ground truth" in " ".join(capsys.readouterr().err.split())


def test_keeps_a_file_that_is_there(dataset, tmp_path, capsys):
    out = tmp_path / "r.csv"
    out.write_text("mine")
    assert run(dataset, "--out", out, "--round-to", 5) == 2
    assert out.read_text() == "mine"
    assert "exists already" in capsys.readouterr().err
    assert run(dataset, "--out", out, "--round-to", 5, "--overwrite") == 0
    assert out.read_text() != "mine"


def test_a_table_of_the_paper(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text('datetime,"(0, 0)","(0, 1)","(0, 2)"\n2024-03-01 00:00,3,1,0\n')
    options = ("--step", "1h", "--cell-km", 0.5, "--merge-km", 1)
    assert run(path, "--out", tmp_path / "r.csv", *options) == 0
    release = read_release(tmp_path / "r.csv", tmp_path / "r.locations.csv", step="1h")
    assert release.values.tolist() == [[4, 0]]
    assert release.locations.xy_km.tolist() == [[0.5, 0.5], [1.5, 0.5]]


def test_the_audit_finds_the_locations_of_a_release(dataset, tmp_path, capsys):
    """Towers, whose names say nothing of where they are: `rekindle audit release.csv` needs no more than that."""
    truth = rk.read_dataset(dataset).truth
    towers = rk.Locations(truth.locations.xy_km, [f"T{number}" for number in range(len(truth.locations))])
    rk.write_counts(tmp_path / "counts.csv", rk.Trajectories(truth.cells, towers, truth.calendar).counts())
    rk.write_locations(tmp_path / "towers.csv", towers)
    options = (tmp_path / "counts.csv", "--locations", tmp_path / "towers.csv", "--suppress-below", 3)
    assert run(*options, "--out", tmp_path / "release.csv") == 0
    quick = ("--attack", "baseline", "--defence", "none", "--seeds", 1, "--workers", 1)
    arguments = ["audit", tmp_path / "release.csv", "--out", tmp_path / "audit", *quick]
    with pytest.raises(SystemExit) as end:
        main([str(one) for one in arguments])
    assert not end.value.code
    assert (tmp_path / "audit/report.html").exists()
