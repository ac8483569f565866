"""`rekindle reproduce`, as a user types it."""

import pytest
from typer.testing import CliRunner

from rekindle.cli import app, main


@pytest.mark.slow
def test_without_data_it_shows_the_synthetic_city(tmp_path):
    out = tmp_path / "out"
    found = CliRunner().invoke(app, ["reproduce", "--quick", "--out", str(out)])
    assert found.exit_code == 0, found.output
    names = ["figures", "index.html", "index.md", "rekindle.json", "reproduction.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert "Synthetic city" in found.output
    assert "GeoLife 37, 38 and 43" in found.output
    assert "index.html" in found.output


def test_help_says_what_is_needed():
    text = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"}).output
    for words in ("--geolife", "--porto", "--published", "--orders", "synthetic city", "real people's paths"):
        assert words in text


@pytest.mark.parametrize("option", ["--geolife", "--porto", "--published"])
def test_data_that_is_not_there_is_an_error_before_the_work(option, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main(["reproduce", option, str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")])
    assert left.value.code == 2
    assert "does not exist" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
