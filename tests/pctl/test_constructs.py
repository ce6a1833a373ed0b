"""The table of constructs is what the parser, the printer and the rules of the tools really say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pctl.test_portability import storm

from tracebridge.pctl import ast, construct_table, explain, format_formula, parse_formula
from tracebridge.pctl.constructs import CONSTRUCTS


def test_every_example_is_in_canonical_form_and_has_its_own_name() -> None:
    assert len({construct.name for construct in CONSTRUCTS}) == len(CONSTRUCTS)
    for construct in CONSTRUCTS:
        formula = parse_formula(construct.example)
        assert format_formula(formula) == construct.example
        assert explain(formula)


def test_every_kind_of_node_has_an_example() -> None:
    kinds = {type(node) for construct in CONSTRUCTS for node in ast.walk(parse_formula(construct.example))}
    every = {*ast.Formula.__args__, *ast.PathFormula.__args__, *ast.RewardPath.__args__}
    assert every - kinds == set()


def test_what_the_tools_take() -> None:
    """PRISM and Storm as measured: 161 texts run through both."""
    table = {row.construct.name: (row.prism.syntax, row.storm.syntax) for row in construct_table()}
    assert table["probability, unbounded until"] == ("yes", "yes")
    assert table["globally"] == ("yes", "yes")
    assert table["weak until"] == table["release"] == table["upper step bound of G"] == ("yes", "rewritten")
    assert table["lower step bound"] == ("yes", "rewritten")
    assert table["LTL"] == ("yes", "yes")
    assert table["LTL with step bounds"] == ("no", "yes")
    assert table["arithmetic over operators"] == table["comparison of an operator"] == ("yes", "no")
    assert table["condition"] == ("rewritten", "yes")
    assert table["reward bound"] == table["expected time"] == table["discounted reward"] == ("no", "yes")
    assert table["reward until a path formula"] == table["reward structure by number"] == ("yes", "no")
    assert table["filter, forall"] == ("yes", "yes")
    assert table["filter over all states"] == ("yes", "rewritten")
    assert table["filter, one state"] == table["filter, range"] == table["filter inside a formula"] == ("yes", "no")
    assert table["CTL, E [ F ]"] == ("yes", "rewritten")
    assert table["CTL, E [ G ]"] == ("yes", "no")
    assert table["quantile"] == ("no", "yes")
    assert table["several objectives, by rank"] == ("no", "yes")


def test_no_without_a_reason_and_no_text_without_a_yes() -> None:
    for row in construct_table():
        for support in (row.prism, row.storm):
            assert (support.syntax == "no") == bool(support.obstacles) == (support.text is None)


@pytest.mark.storm
def test_storm_reads_what_it_is_said_to_take(tmp_path: Path) -> None:
    texts = [row.storm.text for row in construct_table() if row.storm.text is not None]
    assert all(isinstance(answer, list) for answer in storm(texts, tmp_path))
