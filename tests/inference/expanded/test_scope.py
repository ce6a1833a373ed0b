"""Which certificate a property needs."""

from __future__ import annotations

import pytest

from tracebridge.inference.expanded.scope import required_scope
from tracebridge.pctl import parse_properties, resolve_constants

TIMING = [
    'P=? [ F "success" ]',
    'P>=0.7 [ F<=8 "success" ]',
    'P=? [ !"failure" U[2,5] "success" ]',
    'R{"steps"}=? [ F "absorbed" ]',
    "R=? [ C<=4 ]",
    'R{"steps"}=? [ I=3 ]',
    'S=? [ "success" ]',
    'pow(P=? [ F<=8 "success" ], 4) - 1 / R{"steps"}=? [ F "absorbed" ]',
    'P=? [ X X "absorbed" ]',
    'P=? [ (F G "success") & !(X "failure") ]',
    'P=? [ F<=3 "success" || F "absorbed" ]',
    'A [ F "absorbed" ]',
    'quantile(min B, P>=0.5 [ F{"steps"}<=B "success" ])',
    "true",
    '"success"',
]
PATH = [
    'P=? [ F "search" ]',
    'P=? [ !"error" U "success" ]',
    'R{"search"}=? [ F "absorbed" ]',
    'P=? [ F{"search"}<=2 "success" ]',
    'P=? [ F P>=0.5 [ F "success" ] ]',
    'P=? [ F (R{"steps"}<=3 [ F "absorbed" ]) ]',
    'filter(max, P=? [ F "success" ], true)',
    "P=? [ F step>=2 ]",
    '"search"',
    'P=? [ F "success" || F "search" ]',
    'P=? [ F "stuck" ]',
    'quantile(min B, P>=0.5 [ F{"search"}<=B "success" ])',
    'quantile(min B, P>=0.5 [ F{"steps"}<=B (P>=0.1 [ F "success" ]) ])',
    'E [ F "plan" ]',
]


@pytest.mark.parametrize("text", TIMING)
def test_outcome_and_time_decide(text: str) -> None:
    assert _scope(text) == "timing"


@pytest.mark.parametrize("text", PATH)
def test_the_way_matters(text: str) -> None:
    assert _scope(text) == "path"


def test_depth_is_no_matter() -> None:
    assert _scope("!" * 900 + '("success")') == "timing"
    assert _scope("P=? [ F " + "!" * 900 + '("plan") ]') == "path"


def _scope(text: str) -> str:
    (found,) = resolve_constants(parse_properties(text), {}, variables=("step",)).properties
    return required_scope(found.formula)
