"""Values of tables, and the policy of the page."""

import pytest
from tests.report.made import around

from rekindle.auditing.risk import Estimate
from rekindle.report.render import Table, cell, render


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (Estimate(float("nan"), 0, 0), "–"),
        (0.314, "31%"),
        (7, "7"),
        ("7 of 9", "7 of 9"),
        (around(0.3), "30%<small>28% to 32%</small>"),
        (Estimate(0.0, -0.001, 0.001), "0%<small>0% to under 1%</small>"),
    ],
)
def test_cells(value, text):
    assert cell(value) == text


def section(table):
    return {"title": "<b>", "text": "<i>", "points": [], "tables": [table], "pictures": []}


def test_everything_is_escaped_and_only_own_pictures_are_allowed():
    page = render("reproduction.html.jinja", title="<u>", sections=[section(Table("<s>", ["<th>"], [["<td>", "&"]]))])
    for text in ("<u>", "<b>", "<i>", "<s>"):
        assert text not in page
    assert "&lt;td&gt;" in page
    assert "img-src" not in page
    assert "img-src data:;" in render("reproduction.html.jinja", images={}, title="", sections=[])
