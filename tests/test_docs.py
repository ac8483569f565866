"""Every Python block of README and the site is run, in the order of its page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
NEEDS_MORE = "<!-- not run:"
"""A comment before a block that needs private data or a cluster, with the reason."""


def blocks(page):
    text = page.read_text()
    for match in BLOCK.finditer(text):
        if NEEDS_MORE not in text[: match.start()].rstrip().rsplit("\n", 1)[-1]:
            yield match[1]


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=lambda page: page.name)
def test_code_on_this_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    ran = 0
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)
        ran += 1
    assert ran == len(list(blocks(page)))


def test_links_between_pages_lead_somewhere():
    found = 0
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
            found += 1
    assert found > 5
