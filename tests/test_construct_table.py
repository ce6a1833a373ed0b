"""The manual's table of constructs is the one that the engines and the tools' syntax give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracebridge.checking.constructs import EngineSupport, engine_support
from tracebridge.report.constructs import construct_markdown

pytestmark = pytest.mark.storm

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- constructs: begin -->\n", "<!-- constructs: end -->"


@pytest.fixture(scope="module")
def table() -> dict[str, EngineSupport]:
    return {support.tools.construct.name: support for support in engine_support()}


def test_the_table_of_the_manual_is_generated() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.count(BEGIN) == 1
    assert text.partition(BEGIN)[2].partition(END)[0] == construct_markdown()


def test_the_closed_form_evaluates_everything_about_chains(table: dict[str, EngineSupport]) -> None:
    refused = {name for name, support in table.items() if support.closed_form == "no"}
    of_processes = {name for name, support in table.items() if support.tools.construct.decision_process}
    assert refused == of_processes | {"automaton"}


def test_what_storm_cannot_evaluate_in_any_form(table: dict[str, EngineSupport]) -> None:
    refused = {name for name, support in table.items() if support.storm == "no" and support.closed_form != "no"}
    assert refused == {
        "CTL, E [ G ]",
        "CTL, A [ F ]",
        "reward until a co-safe formula",
    }


def test_what_is_about_choices_is_asked_of_a_process(table: dict[str, EngineSupport]) -> None:
    assert {name for name, each in table.items() if each.tools.construct.decision_process and each.storm == "yes"} == {
        "several objectives"
    }


def test_storm_is_asked_in_its_own_words_where_it_has_them(table: dict[str, EngineSupport]) -> None:
    for name in ("probability, unbounded until", "LTL", "condition", "expected time", "steady state", "reward bound"):
        assert table[name].storm == "yes", name
    for name in ("weak until", "release", "lower step bound", "condition, other paths", "CTL, E [ F ]", "quantile"):
        assert table[name].storm == "rewritten", name
