"""Ranges of values, against hand-made ones."""

from __future__ import annotations

import math

import pytest

from tracebridge.inference.value_range import value_range
from tracebridge.pctl import parse_properties

INF = math.inf


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ('P=? [ F "a" ]', (0, 1)),
        ('P>=0.5 [ F "a" ]', (0, 1)),
        ('S=? [ "a" ]', (0, 1)),
        ('R{"steps"}=? [ F "a" ]', (0, INF)),
        ('1 - pow(1 - P=? [ F "a" ], 3)', (0, 1)),
        ('P=? [ F "a" ] - P=? [ F "b" ]', (-1, 1)),
        ('-2 * P=? [ F "a" ] + 1', (-1, 1)),
        ('P=? [ F "a" ] * R{"steps"}=? [ F "a" ]', (0, INF)),
        ('pow(P=? [ F "a" ] - 1, 2)', (-INF, INF)),  # not known: its base may be negative
        ('R{"steps"}=? [ F "a" ] / (1 - P=? [ F "a" ])', (0, INF)),
        ('P=? [ F "a" ] / R{"steps"}=? [ F "a" ]', (0, INF)),
        ('P=? [ F "a" ] / (1 + P=? [ F "b" ])', (0, 1)),
        ('P=? [ F "a" ] / (-1 - P=? [ F "b" ])', (-1, 0)),
        ('(P=? [ F "a" ] - 1) / (2 + R{"steps"}=? [ F "a" ])', (-0.5, 0)),
        ('1 / (P=? [ F "a" ] - P=? [ F "b" ])', (-INF, INF)),  # of either sign
        ('min(P=? [ F "a" ], 0.5)', (0, 0.5)),
        ('max(R{"steps"}=? [ F "a" ], 2)', (2, INF)),
        ('pow(10 * P=? [ F "a" ], 400)', (-INF, INF)),  # beyond doubles
    ],
)
def test_range(formula, expected):
    assert value_range(parse_properties(formula + ";").properties[0].formula) == expected
