"""Objects as a notebook shows them, and as records of a data frame: escaped, short, complete."""

from __future__ import annotations

import json
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge import (
    AbsorbingChain,
    DecisionProcess,
    Enclosure,
    MarkovChain,
    Outcome,
    Step,
    Trace,
    TraceSet,
    assess,
    audit_confidence,
    certify,
    check,
    compare,
    gate,
    parse_properties,
    plot_chain,
    replay,
    sample_traces,
    write_traces,
)
from tracebridge.errors import UsageError
from tracebridge.html_table import SHOWN_ROWS, html_paragraph, html_table
from tracebridge.inference.intervals import Interval

HOSTILE = "<img onerror=x>"


class Page(HTMLParser):
    """Balanced tags without attributes, and the texts of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows, self.cells = 0, []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"table", "caption", "tr", "th", "td", "p", "ul", "li"}
        assert not attrs
        self.open.append(tag)
        self.rows += tag == "tr"
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        assert all(char.isprintable() for char in data)
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """One of every type, about runs whose steps have a hostile name."""
    steps = [Step(kind="tool", name=HOSTILE), Step(kind="tool", name="plan")]
    traces = [
        Trace(trace_id=f"{HOSTILE}{i}", task_id=f"t{i}", outcome=Outcome(outcome), steps=tuple(steps[:length]))
        for i, (outcome, length) in enumerate([("success", 1), ("failure", 2)] * 20)
    ]
    folder = tmp_path_factory.mktemp("notebook")
    write_traces(traces, folder / "runs.jsonl")
    (folder / "my.props").write_text('"often": P>=0.5 [ F "success" ];\n"said": R{"steps"}=? [ F "absorbed" ];\n')
    light = {"engines": ["closed-form"], "draws": 50, "resamples": 0, "replicates": 19, "futures": 0}
    assessment = assess([folder / "runs.jsonl"], folder / "my.props", **light)
    fit = assessment.fitted.fit
    results = check(fit.chain, folder / "my.props", engines=["closed-form"])
    return {
        "TraceSet": TraceSet(traces=tuple(traces)),
        "StateSpace": fit.abstraction.space,
        "TransitionCounts": fit.counts,
        "MarkovChain": fit.chain,
        "AbsorbingChain": AbsorbingChain(chain=fit.chain),
        "ChainFit": fit,
        "Certificate": certify(fit, traces, replicates=19),
        "PropertyFile": parse_properties('//@ requirement R<b>\n"a": P=? [ F "<b>" ];', path="<b>\x1b[31m"),
        "Enclosure": Enclosure(0.5, 0.25, 0.75),
        "Interval": Interval(lower=0.1, upper=0.2, level=0.95, method="<b>"),
        "CheckResult": results[0],
        "Agreement": compare(results)[0],
        "Assessment": assessment,
        "Evidence": assessment.evidence,
        "ObservedCurve": assessment.findings.observed,
    }


SHOWN = ("TraceSet", "StateSpace", "TransitionCounts", "MarkovChain", "AbsorbingChain", "ChainFit", "Certificate",
         "PropertyFile", "Enclosure", "Interval", "CheckResult", "Agreement", "Assessment", "Evidence")  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_it_escaped_and_short(objects, name):
    text = objects[name]._repr_html_()
    assert "\x1b" not in text
    page = Page(text)
    assert page.rows <= SHOWN_ROWS + 1
    if name in ("TraceSet", "TransitionCounts", "MarkovChain", "AbsorbingChain", "ChainFit", "PropertyFile"):
        assert "&lt;" in text


def test_a_console_shows_it_in_a_few_lines(objects):
    objects = {**objects, "Gate": gate(objects["Evidence"])}
    long = {name: len(repr(each)) for name, each in objects.items() if len(repr(each)) > 500}
    assert long == {}


def test_what_python_users_mix_up_is_told(objects):
    """A result for the list of results, a chain for a fit, evidence for its path."""
    with pytest.raises(UsageError, match="all results of check"):
        compare(objects["CheckResult"])
    with pytest.raises(UsageError, match="not a MarkovChain"):
        plot_chain(objects["MarkovChain"])
    with pytest.raises(UsageError, match="a chain, such as"):
        sample_traces(objects["ChainFit"], 3)
    with pytest.raises(UsageError, match="read_evidence"):
        gate("evidence.json")
    with pytest.raises(UsageError, match="ConfidenceTable"):
        audit_confidence("polls.csv")
    with pytest.raises(UsageError, match=r"the path of evidence\.json"):
        replay(objects["Evidence"])


def test_a_decision_process_is_shown():
    process = DecisionProcess(
        states=("<a>", "success"),
        actions=(("go", "<stay>"), ("",)),
        transitions=np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]),
        initial=[1.0, 0.0],
        labels={"success": [False, True]},
    )
    assert Page(process._repr_html_()).cells[1] == "go"


@pytest.mark.parametrize(
    "name",
    ["TraceSet", "StateSpace", "TransitionCounts", "MarkovChain", "AbsorbingChain", "Certificate", "PropertyFile",
     "Agreement", "Assessment", "Evidence", "ObservedCurve"],
)  # fmt: skip
def test_tables_are_records_of_one_shape_and_of_plain_values(objects, name):
    records = objects[name].to_records()
    assert records
    assert all(list(record) == list(records[0]) for record in records)
    assert json.loads(json.dumps(records)) == records


def test_the_records_of_counts_are_the_counts(objects):
    counts = objects["TransitionCounts"]
    records = counts.to_records()
    assert sum(each["count"] for each in records if each["source"] is None) == counts.n_runs == 40
    assert sum(each["count"] for each in records if each["source"] is not None) == counts.n_steps
    assert sum(each["count"] for each in records if each["target"] is None and each["outcome"] == "success") == 20
    assert counts.to_records(2) == records[:2]


def test_a_chain_of_many_transitions_tells_how_many_are_left_out():
    n = 200
    chain = MarkovChain(states=tuple(f"s{i}" for i in range(n)), transitions=np.eye(n), initial=np.eye(n)[0])
    assert f"and {n - SHOWN_ROWS} more transitions" in chain._repr_html_()
    assert chain.to_records(3) == chain.to_records()[:3]


@given(st.text(), st.text(st.characters(exclude_categories=[])), st.integers(0, 70))
def test_any_text_stays_in_its_cell(caption, text, rows):
    page = Page(
        html_table(["a", text], [(text, i) for i in range(rows)], caption=caption) + html_paragraph(text, [text])
    )
    assert page.rows == min(rows, SHOWN_ROWS) + 1
    if text.isprintable() and len(text) <= 200 and rows:
        assert page.cells[0] == text


def test_numbers_are_short():
    row = (0.1234567891, Fraction(1, 3), Fraction(10**40, 3), Fraction(10**5000, 3), None, True, float("nan"))
    cells = Page(html_table(list("abcdefg"), [row])).cells
    assert cells == ["0.123457", "1/3", "3.33333e+39", "a long fraction", "", "True", "nan"]
