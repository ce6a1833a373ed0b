"""What holds under a condition, of runs that start in several states: those that satisfy it count, and no others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.checking.test_gradient import START, chain_of, twelfths

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.checking import check
from tracebridge.export.properties import rewrite_for_export
from tracebridge.export.single_start import single_start
from tracebridge.inference import property_uncertainty
from tracebridge.pctl import format_properties, parse_properties

#: "plan" cannot lead to "ask", from which most runs fail.
CHAIN = chain_of(twelfths([1, 5, 0, 4, 2], [3, 5, 0, 3, 1], [2, 1, 1, 1, 7], [0, 0, 0, 12, 0], [0, 0, 0, 0, 12]), START)

#: Conditions, and the same as a quotient of what two operators say of all runs.
PAIRS = [
    ('P=? [ F "done" || F "act" ]', 'P=? [ (F "done") & (F "act") ] / P=? [ F "act" ]'),
    ('P=? [ F "act" || F "done" ]', 'P=? [ (F "done") & (F "act") ] / P=? [ F "done" ]'),
    ('P=? [ F<=2 "done" || F "ask" ]', 'P=? [ (F<=2 "done") & (F "ask") ] / P=? [ F "ask" ]'),
    ('P=? [ X "act" || G !"lost" ]', 'P=? [ (X "act") & (G !"lost") ] / P=? [ G !"lost" ]'),
]


@pytest.mark.storm
@pytest.mark.parametrize(("given", "quotient"), PAIRS)
def test_a_probability_under_a_condition_is_that_of_both_over_that_of_the_condition(given, quotient):
    for exact in (True, False):
        for found, expected in zip(*(check(CHAIN, text, exact=exact) for text in (given, quotient)), strict=True):
            assert found.value.lower <= float(expected.value.value) <= found.value.upper or exact
            assert float(found.value.value) == pytest.approx(float(expected.value.value), rel=1e-9)
            if exact:
                assert found.value.value == expected.value.value


@pytest.mark.storm
@pytest.mark.parametrize("text", [*(given for given, _ in PAIRS), 'R{"cost"}=? [ F "end" || F "done" ]'])
def test_with_one_state_before_all_others_it_is_the_same(text):
    """A chain with an added first state has no mean to take."""
    file = parse_properties(text)
    (asked,) = check(CHAIN, file, exact=True, engines=["closed-form"])
    first = single_start(CHAIN)
    (exported,) = check(first, format_properties(rewrite_for_export(file, CHAIN)), exact=True, engines=["closed-form"])
    assert asked.value.value == exported.value.value


@pytest.mark.parametrize(
    ("given", "quotient"), [(g.replace("done", "success"), q.replace("done", "success")) for g, q in PAIRS[:3]]
)
def test_draws_have_it_too(given, quotient):
    paths = [
        (["plan", "act"], "success"),
        (["act", "plan"], "failure"),
        (["ask", "act"], "success"),
        (["ask"], "failure"),
        (["plan"], "success"),
    ]
    fit = fit_counts(TransitionCounts.from_paths(paths * 3), prior="none")
    found, expected = (property_uncertainty(fit, text, draws=50)[0].interval for text in (given, quotient))
    np.testing.assert_allclose([found.lower, found.upper], [expected.lower, expected.upper], rtol=1e-12)


def test_by_hand():
    """Half of the runs succeed with probability 1/2, never by way of "ask", half with 1/4, always by way of it."""
    chain = chain_of(
        twelfths([0, 0, 0, 6, 6], [0, 0, 3, 0, 9], [0, 0, 0, 12, 0], [0, 0, 0, 12, 0], [0, 0, 0, 0, 12]),
        [Fraction(1, 2), Fraction(1, 2), Fraction(0), Fraction(0), Fraction(0)],
    )
    (found,) = check(chain, 'P=? [ F "ask" || F "done" ]', exact=True, engines=["closed-form"])
    assert found.value.value == Fraction(1, 8) / (Fraction(1, 4) + Fraction(1, 8))
