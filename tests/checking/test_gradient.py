"""Gradients of whole properties: the chain rule against exact differences of values, through the same evaluation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking import check
from tracebridge.checking.gradient import property_gradient
from tracebridge.checking.run import resolve_for
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import parse_properties

STEP = Fraction(1, 10**12)


def twelfths(*rows: list[int]) -> list[dict[int, Fraction]]:
    return [{j: Fraction(w, 12) for j, w in enumerate(row) if w} for row in rows]


ROWS = twelfths([1, 5, 4, 1, 1], [3, 0, 2, 4, 3], [2, 6, 0, 0, 4], [0, 0, 0, 12, 0], [0, 0, 0, 0, 12])
START = [Fraction(1, 3), Fraction(1, 2), Fraction(1, 6), Fraction(0), Fraction(0)]


def chain_of(rows: list[dict[int, Fraction]], start: list[Fraction]) -> MarkovChain:
    return MarkovChain(
        states=("plan", "act", "ask", "done", "lost"),
        transitions=RationalMatrix.from_rows(rows),  # type: ignore[arg-type]
        initial=RationalVector.from_fractions(start),  # type: ignore[arg-type]
        labels={"end": np.arange(5) >= 3},
        rewards={"cost": RewardStructure.from_fractions([2, 1, 5, 0, 0])},
    )


CHAIN = chain_of(ROWS, START)

QUERIES = (
    'P>=0.5 [ F<=4 "done" ]',
    '1 - pow(1 - P=? [ F "done" ], 3)',
    'R{"cost"}=? [ F "end" ] / P=? [ F "done" ]',
    'P=? [ F "done" ] * R{"cost"}=? [ C<=3 ] - 2 * P=? [ X "act" ]',
    'min(P=? [ F "done" ], P=? [ F "lost" ]) + max(P=? [ F<=2 "done" ], 0.9)',
    'filter(max, P=? [ F "done" ], !"end") - filter(avg, P=? [ F<=3 "lost" ], !"end")',
    'filter(sum, R{"cost"}=? [ F "end" ]) - filter(state, P=? [ F "done" ], "ask")',
    'P=? [ F P>=0.25 [ X "done" ] ]',
    'P=? [ F "done" ] > 0.3 ? P=? [ F "lost" ] : P=? [ F<=2 "done" ]',
    'log(R{"cost"}=? [ F "end" ], 2) + mod(ceil(7 * P=? [ F "done" ]), 3) + floor(3 * P=? [ F "done" ])',
    '-P=? [ (F "act") & (F "done") ]',
    'P=? [ F "act" || F "done" ]',
    'R{"cost"}=? [ F "end" || F "ask" ]',
    'S=? [ "done" ]',
    'P=? [ F "done" ] > 0.25',
)


def gradient(chain: MarkovChain, text: str):
    (property_,) = resolve_for(chain, parse_properties(text), {}).properties
    return property_gradient(chain, property_)


def exact_value(chain: MarkovChain, text: str) -> Fraction | float:
    (result,) = check(chain, text, engines=["closed-form"], exact=True)
    assert result.value is not None
    return result.value.value


@pytest.mark.parametrize("text", QUERIES)
def test_properties_move_as_their_exact_values_do(text):
    found = gradient(CHAIN, text)
    assert found.value == pytest.approx(float(exact_value(CHAIN, text)), rel=1e-12)
    # a logarithm is a double, so that its difference takes a coarse step
    step, tolerance = (Fraction(1, 10**5), 1e-6) if "log" in text else (STEP, 1e-9)
    place = 0
    for i, row in enumerate(ROWS):
        for j, p in sorted(row.items()):
            slope = found.along_simplex[place]
            place += 1
            if len(row) == 1:
                assert np.isnan(slope)
                continue
            ends = []
            for by in (step, -step):
                moved = {k: q + by if k == j else q - by * q / (1 - p) for k, q in row.items()}
                rows = [moved if k == i else old for k, old in enumerate(ROWS)]
                ends.append(exact_value(chain_of(rows, START), text))
            slope_of_values = float((Fraction(ends[0]) - Fraction(ends[1])) / (2 * step))
            assert slope == pytest.approx(slope_of_values, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("text", [QUERIES[1], QUERIES[3], QUERIES[5]])
def test_the_start_moves_properties_too(text):
    found = gradient(CHAIN, text)
    for i, j in ((0, 1), (1, 2), (2, 4)):
        start = START.copy()
        start[i] -= STEP
        start[j] += STEP
        moved = Fraction(exact_value(chain_of(ROWS, start), text)) - Fraction(exact_value(CHAIN, text))
        assert found.initial[j] - found.initial[i] == pytest.approx(float(moved / STEP), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('P>=0.5 [ F "done" ] & P>=0.5 [ F "lost" ]', "Boolean"),
        ('R{"cost"}=? [ F "done" ]', "no derivative"),
        ('min(P=? [ F "done" ], P=? [ F "done" ])', "two branches meet"),
        ('filter(max, P=? [ F "end" ])', "two branches meet"),
        ('floor(P=? [ F "end" ])', "two branches meet"),
        ('quantile(min B, P>0.3 [ F<=B "done" ])', "quantile"),
        ('pow(P=? [ F<=0 "lost" ], 0.5)', "slope"),
    ],
)
def test_what_has_no_gradient_says_why(text, reason):
    with pytest.raises(UnsupportedError, match=reason):
        gradient(CHAIN, text)


def test_doubles_and_rationals_have_the_same_gradient():
    doubles = replace(
        CHAIN, transitions=CHAIN.transitions, rationals=None, initial=CHAIN.initial, initial_rationals=None
    )
    for text in QUERIES[:3]:
        np.testing.assert_allclose(gradient(doubles, text).free, gradient(CHAIN, text).free, rtol=1e-12, atol=1e-15)
