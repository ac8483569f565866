"""Every block of code of README and the site is run, in the order of its page, and every public name is described."""

import ast
import importlib.util
import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from benchmarks.recipes import RECIPES

import rekindle as rk
from rekindle.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?P<mark><!-- not run:[^\n]*-->\n\n?)?^```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```", re.S | re.M
)
"""A block, and the comment before one that needs private data, a cluster or too long, with the reason."""

PYTHON, SHELL = {"python"}, {"sh", "bash"}

LONG = ("guides/auditing", "guides/flows", "guides/recommending", "guides/towers", "guides/your-release", "tutorial")
"""Pages whose code takes more than a second or two."""


def blocks(page):
    for match in BLOCK.finditer(page.read_text()):
        if match["language"] in PYTHON | SHELL and not match["mark"]:
            yield match["language"], match["code"]


def pages_with_code():
    for page in PAGES:
        if any(blocks(page)):
            slow = page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/") in LONG
            yield pytest.param(page, marks=[pytest.mark.slow] if slow else [], id=page.stem)


def commands(code):
    """Lines of a shell block that call Rekindle, as arguments; a line may go on after a backslash."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "rekindle":
            yield words[1 : next((at for at, word in enumerate(words) if word in ("||", ">")), None)]


def shortened(arguments):
    """A whole audit tries all attacks on eight defences in several processes; one of each is enough to see it run."""
    if arguments[0] == "recommend":
        return [*arguments, "--attack", "enhanced", "--family", "coarser-time", "--seeds", "1", "--workers", "1"]
    if arguments[0] != "audit":
        return arguments
    chosen = [] if "--attack" in arguments else ["--attack", "enhanced"]
    chosen += [] if "--defence" in arguments else ["--defence", "round:to=5"]
    return [*arguments, *chosen, "--workers", "1", *([] if "--seeds" in arguments else ["--seeds", "1"])]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """What the reader of a page is taken to have: points, counts with their locations, and datasets; little of each."""
    folder = tmp_path_factory.mktemp("reader")
    truth = rk.SyntheticCity(people=40, days=1, step="1h", width_km=4, height_km=4).trajectories()
    for name in ("beijing", "demo/dataset"):
        rk.write_dataset(folder / name, counts=truth.counts(), truth=truth)
    rk.write_counts(folder / "counts.csv", truth.counts())
    rk.write_locations(folder / "locations.csv", truth.locations)
    points = [
        {"uid": f"p{person}", "datetime": time, "lat": 48.0 + y / 111.2, "lng": 2.0 + x / 74.4}
        for person, way in enumerate(truth.xy_km())
        for time, (x, y) in zip(truth.calendar.times().tolist(), way, strict=True)
    ]
    pl.DataFrame(points).write_csv(folder / "gps.csv")
    return folder


@pytest.mark.parametrize("page", list(pages_with_code()))
def test_code_on_this_page_runs(page, reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = list(blocks(page))
    asked = {
        word.split("/")[0] for language, text in code if language in SHELL for line in commands(text) for word in line
    }
    for path in reader.iterdir():
        if path.name in asked:
            (tmp_path / path.name).symlink_to(path)
    names = {"__name__": "page"}
    ran = 0
    for language, text in code:
        if language in PYTHON:
            exec(compile(text, str(page), "exec"), names)
            ran += 1
            continue
        for arguments in commands(text):
            status = app(shortened(arguments), standalone_mode=False)
            # A gate that stays shut is a result: these people are exposed.
            shut = arguments[0] in ("check", "recommend") or "--fail-above" in arguments
            assert status in (None, 0) or (status == 3 and shut), arguments
            ran += 1
    assert ran or not any(language in PYTHON or list(commands(text)) for language, text in code)


def test_make_knows_its_targets():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    wanted = {target for page in PAGES for target in re.findall(r"^make ([\w-]+)", page.read_text(), re.M)}
    assert {"demo", "test"} <= wanted <= targets


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_of_the_benchmark_are_as_their_page_says(name):
    recipe, page = RECIPES[name], (ROOT / "docs" / "comparing.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    _, use, variable, made = (cell.strip() for cell in row.strip("| ").split("|"))
    assert (use, variable.strip("`")) == (recipe.use, recipe.variable)
    code, _, seeds = made.partition("`, seeds from ")
    if not recipe.city:
        assert code.strip("`") == recipe.command
        return
    settings = recipe.city | {"seed": int(seeds.replace(",", ""))}
    assert eval(code.strip("`"), {"rk": rk}) == rk.SyntheticCity(**settings | {"seed": 0})
    assert settings["seed"] == recipe.city.get("seed", 0)


def test_links_between_pages_lead_somewhere():
    found = 0
    for page in [*PAGES, *(ROOT / "docs" / "notebooks").glob("*.py")]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
            path = page.parent / target
            notebook = path.with_suffix(".py") if path.parent.name == "notebooks" else path
            assert path.exists() or notebook.exists(), f"{page.name} links to {target}, which is not there"
            found += 1
    assert found > 60


def test_links_lead_to_headings():
    headings = {page: set(map(slug, re.findall(r"^#+ (.+)", page.read_text(), re.M))) for page in PAGES}
    found = 0
    for page in PAGES:
        for target, heading in re.findall(r"\]\(([\w./-]*\.md|)#([\w-]+)\)", page.read_text()):
            other = (page.parent / target).resolve() if target else page
            if other in headings:  # the page of a notebook is made of its script
                assert heading in headings[other], f"{page.name} links to {target}#{heading}, which is not there"
                found += 1
    assert found > 40


def slug(heading):
    """How the site calls a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


@pytest.mark.parametrize("folder", ["docs", "benchmarks"])
def test_scripts_import_names_that_exist(folder):
    """Most of them are run by hand, years apart."""
    found = 0
    for script in (ROOT / folder).rglob("*.py"):
        for line in ast.walk(ast.parse(script.read_text())):
            if isinstance(line, ast.ImportFrom) and (line.module or "").split(".")[0] in ("rekindle", "benchmarks"):
                exec(ast.unparse(line), {})
                found += 1
    assert found > 10


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("site_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_described(site):
    assert site.undocumented() == []


def test_an_undescribed_name_is_noticed(site):
    def without_words(one, two): ...

    def half(one, two):
        """Do something.

        Parameters
        ----------
        one
            The first.
        """

    assert site._faults(without_words) == ["has no docstring"]
    assert site._faults(half) == ["does not describe two"]


def test_every_page_and_notebook_is_in_the_menu():
    menu = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]]
    notebooks = [f"notebooks/{path.stem}.md" for path in (ROOT / "docs" / "notebooks").glob("*.py")]
    assert len(notebooks) == 5
    assert sorted(menu) == sorted(pages + notebooks)
