import gc
import zipfile
from datetime import datetime, timedelta

import pytest
from tests.sources.raw import HEADER, plt_text, write_geolife, write_plt, zipped

from rekindle.errors import InvalidFile
from rekindle.sources import read_geolife
from rekindle.sources.engine import collect

T0 = datetime(2008, 10, 23, 2, 53, 4)


def walk(start=T0, number=3):
    return [
        (start + timedelta(seconds=5 * i), round(39.9 + i / 1000, 3), round(116.3 + i / 1000, 3))
        for i in range(number)
    ]


def test_points_of_two_people(tmp_path):
    write_plt(tmp_path, "000", walk())
    write_plt(tmp_path, "000", walk(T0 + timedelta(hours=5), 2))
    write_plt(tmp_path, "007", walk())
    points = read_geolife(tmp_path)
    table = collect(points.frame)
    assert table["person"].to_list() == ["000"] * 5 + ["007"] * 3
    assert table["trajectory"].to_list() == [0, 0, 0, 1, 1, 0, 0, 0]
    assert table.row(1)[2:] == (1224730389, 39.901, 116.301)  # 2008-10-23 02:53:09 UTC
    assert points.timezone == "Asia/Shanghai"
    assert points.info["skipped"] == {}


def test_zip_is_read_as_the_folder(tmp_path):
    write_geolife(tmp_path / "raw", people=2, days=3)
    folder = read_geolife(tmp_path / "raw")
    archive = read_geolife(zipped(tmp_path / "raw", tmp_path / "geolife.zip"))
    assert collect(archive.frame).equals(collect(folder.frame))


@pytest.mark.parametrize(
    "name", ["../Data/000/Trajectory/1.plt", "/Data/000/Trajectory/1.plt", "Data\\..\\..\\1.plt"]
)
def test_zip_that_climbs_out_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("Data/000/Trajectory/0.plt", plt_text(walk()))
        archive.writestr(zipfile.ZipInfo(name), plt_text(walk()))
    with pytest.raises(InvalidFile, match="climbs out"):
        read_geolife(tmp_path / "bad.zip", skip_bad=True)


@pytest.mark.parametrize("size", [1, 3_000, 20_000])
def test_batches_do_not_matter(tmp_path, monkeypatch, size):
    write_geolife(tmp_path, people=2, days=3)
    whole = collect(read_geolife(tmp_path).frame)
    monkeypatch.setattr("rekindle.sources.lines.BATCH_BYTES", size)
    assert collect(read_geolife(tmp_path).frame).equals(whole)


def test_the_rows_stay_as_long_as_something_is_made_of_them(tmp_path, monkeypatch):
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))
    write_plt(tmp_path, "000", walk())
    later = read_geolife(tmp_path).frame.select("lat")
    assert collect(later).height == 3
    del later
    gc.collect()
    assert not list((tmp_path / "kept").iterdir())


def test_progress_counts_files(tmp_path, monkeypatch):
    monkeypatch.setattr("rekindle.sources.lines.BATCH_BYTES", 800)
    write_plt(tmp_path, "000", walk())
    write_plt(tmp_path, "000", walk(T0 + timedelta(days=1)))
    write_plt(tmp_path, "001", walk())
    seen = []
    read_geolife(tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 3), (3, 3)]


BAD_LINES = {
    "39.9,116.3,0,492\r\n": "broken line",
    "39.9,east,0,492,39744.1,2008-10-23,02:54:00\r\n": "broken line",
    "39.9,116.3,0,492,39744.1,2008-13-23,02:54:00\r\n": "broken line",
    "99.9,116.3,0,492,39744.1,2008-10-23,02:54:00\r\n": "coordinates out of range",
    "39.9,196.3,0,492,39744.1,2008-10-23,02:54:00\r\n": "coordinates out of range",
    "39.9,116.3,0,492,39744.1,2008-10-22,02:54:00\r\n": "time out of order",
}


@pytest.mark.parametrize(("line", "problem"), BAD_LINES.items())
def test_bad_line(tmp_path, line, problem):
    write_plt(tmp_path, "000", walk(T0 - timedelta(days=2)))
    file = write_plt(tmp_path, "000", walk())
    file.write_text(plt_text(walk()) + line + plt_text(walk(T0 + timedelta(hours=1), 1))[len(HEADER) :], newline="")
    with pytest.raises(InvalidFile, match=rf"{file.name}: line 10: {problem}.*`skip_bad=True`"):
        read_geolife(tmp_path)
    points = read_geolife(tmp_path, skip_bad=True)
    assert points.info["skipped"] == {problem: 1}
    assert collect(points.frame).height == 7


@pytest.mark.parametrize(
    "line", ["nonsense\r\n", "\r\n", "39.9,116.3,0,492,39744.1,2008-10-23,02:54:00,more,\xff\xfe\r\n"]
)
def test_broken_first_line(tmp_path, line):
    file = write_plt(tmp_path, "000", walk())
    file.write_bytes((HEADER + line + plt_text(walk(T0 + timedelta(days=1)))[len(HEADER) :]).encode("latin-1"))
    if "more" in line:  # more columns than needed are no harm
        assert collect(read_geolife(tmp_path).frame).height == 4
        return
    with pytest.raises(InvalidFile, match="line 7: broken line"):
        read_geolife(tmp_path)
    assert collect(read_geolife(tmp_path, skip_bad=True).frame).height == 3


@pytest.mark.parametrize(
    ("content", "problem"),
    [(HEADER, "file without points"), ("lat,lng\n1,2\n", "file of another kind"), ("", "file of")],
)
def test_bad_file(tmp_path, content, problem):
    write_plt(tmp_path, "000", walk())
    file = write_plt(tmp_path, "001", walk())
    file.write_text(content, newline="")
    with pytest.raises(InvalidFile, match=rf"001/Trajectory/{file.name}: {problem}.*`skip_bad=True`"):
        read_geolife(tmp_path)
    points = read_geolife(tmp_path, skip_bad=True)
    assert [kind.startswith(problem) for kind in points.info["skipped"]] == [True]
    assert collect(points.frame).height == 3


def test_no_geolife_at_all(tmp_path):
    with pytest.raises(InvalidFile, match=r"no \.plt file"):
        read_geolife(tmp_path)
    with pytest.raises(InvalidFile, match="does not exist"):
        read_geolife(tmp_path / "nowhere")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(InvalidFile, match="neither a folder nor a zip"):
        read_geolife(tmp_path / "text.zip")
    (tmp_path / "stray.plt").write_text(plt_text(walk()))
    with pytest.raises(InvalidFile, match="<person>/Trajectory"):
        read_geolife(tmp_path)


def test_the_known_bad_point_is_left_out_and_counted(tmp_path):
    points = walk()
    write_plt(tmp_path, "020", [*points, (points[-1][0], "400.166666666667", 116.2)])
    found = read_geolife(tmp_path)
    assert collect(found.frame).height == 3
    assert list(found.info["skipped"].values()) == [1]
