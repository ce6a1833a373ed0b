"""Pieces of a page: Markdown as HTML, drawings, numbers of the record."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from tests.report.html.pages import Page

from tracebridge.checking.result import enclosure_to_dict, number_to_json
from tracebridge.closedform.enclosure import Enclosure
from tracebridge.report import markdown
from tracebridge.report.html.markdown_fragment import markdown_html
from tracebridge.report.html.recorded_numbers import enclosure_of, interval_of, sortable
from tracebridge.report.html.svg import decimal, element, fitted, ticks
from tracebridge.report.table import enclosure_text

ONE_LINE = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
CELLS = ONE_LINE.map(str.strip).filter(lambda text: text and text != "---")


@given(st.lists(ONE_LINE.filter(str.strip), min_size=1, max_size=4))
def test_escaped_text_comes_through_literally(lines):
    page = Page(str(markdown_html(markdown.bullets(map(markdown.escape, lines)))))
    assert [tag for tag, _ in page.elements] == ["ul", *["li"] * len(lines)]
    assert page.text.replace("\n", "") == "".join(map(markdown.printable, lines))


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=4))
def test_tables_keep_their_cells(rows):
    page = Page(str(markdown_html(markdown.table(["a", "b"], rows), caption="c")))
    shown = [[cell.strip() for cell in row] for row in page.tables[0][1:]]
    assert shown == [[markdown.printable(cell).strip() for cell in row] for row in rows]


def test_marks_within_a_line_and_blocks():
    text = "# Head\n\nA **bold \\*one\\***, `a<b` and *so*.\n\n- first\n- second"
    expected = (
        "<h3>Head</h3>\n<p>A <strong>bold *one*</strong>, <code>a&lt;b</code> and <em>so</em>.</p>\n"
        "<ul><li>first</li><li>second</li></ul>"
    )
    assert str(markdown_html(text)) == expected


@given(st.floats(-1e6, 1e6))
def test_coordinates_are_short_and_near(value):
    text = decimal(value)
    assert abs(float(text) - value) <= 0.05 + 1e-9
    assert not text.endswith(".0")
    assert text != "-0"


@given(st.text(max_size=200), st.integers(3, 30))
def test_cut_text_fits(text, columns):
    shown = fitted(text, columns)
    assert shown.isprintable()
    assert len(shown) <= columns
    if text.isascii() and text.isprintable():
        assert shown == text or (len(text) > columns and shown.count("…") == 1)
        head, _, tail = shown.partition("…")
        assert text.startswith(head)
        assert text.endswith(tail)
    assert fitted("漢字" * 20, 9) == "漢字…漢字"


@given(st.floats(0.001, 1e6), st.integers(2, 12))
def test_ticks_are_round_and_few(upper, most):
    found = ticks(upper, most)
    assert len(found) <= most + 1
    assert found[0] == 0
    assert found[-1] <= upper * (1 + 1e-6)
    if len(found) > 1:
        assert found[-1] + found[1] > upper * (1 - 1e-6)
        mantissa = found[1] / 10 ** math.floor(math.log10(found[1]) + 1e-9)
        assert any(abs(mantissa - one) < 1e-6 for one in (1, 2, 5))


def test_elements_escape_text_and_attributes():
    assert (
        str(element("text", "<&\u202e", x=1.25, class_='"')) == '<text x="1.2" class="&#34;">&lt;&amp;\\u{202e}</text>'
    )


@given(st.fractions() | st.floats(allow_nan=False))
def test_numbers_of_the_record(value):
    shown = enclosure_text(enclosure_of(enclosure_to_dict(Enclosure.exactly(value))), 17)
    if isinstance(value, float) and math.isfinite(value):
        assert float(shown) == value


def test_numbers_that_are_large_open_or_none():
    huge = Fraction(10**5000 + 1, 3)
    assert sortable(number_to_json(huge)) == math.inf
    assert sortable(None) is None
    assert sortable("NaN") is None
    assert enclosure_text(enclosure_of({"value": 0.5, "lower": 0.25, "upper": 0.75}), 3) == "0.25..0.75"
    assert enclosure_text(enclosure_of({"value": 3.0, "lower": 2.0, "upper": "Infinity"}), 3) == "at least 2"
    assert interval_of(None) == "-"
