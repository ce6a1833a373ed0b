"""What holds under a condition, of runs that start in several states: those that satisfy it count, and no others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.checking.test_gradient import START, chain_of, twelfths
from tests.closedform.decision.test_conditional import FORMS, undecided

from tracebridge.chain import RationalMatrix, RationalVector, TransitionCounts, fit_counts
from tracebridge.chain.decision import DecisionProcess
from tracebridge.checking import check
from tracebridge.export.properties import rewrite_for_export
from tracebridge.export.single_start import single_start
from tracebridge.inference import property_uncertainty
from tracebridge.pctl import format_properties, parse_properties

F = Fraction

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


# ---------------------------------------------------------------- decision processes


def process_of(rows, sizes, starts, labels):
    return DecisionProcess(
        states=tuple(f"s{i}" for i in range(len(sizes))),
        actions=tuple([tuple(f"x{k}" for k in range(size)) for size in sizes]),
        transitions=RationalMatrix.from_rows(rows, len(sizes)),  # type: ignore[arg-type]
        initial=RationalVector.from_fractions(starts),  # type: ignore[arg-type]
        labels={name: np.isin(np.arange(len(sizes)), states) for name, states in labels.items()},
    )


@pytest.mark.storm
def test_the_best_choice_for_all_runs_is_not_the_best_for_those_of_one_start():
    """From the second start a tenth of the runs is asked, of which half are right, or all, of which .6 are.

    All runs from the first are asked and right: (1 + 1/20) / (1 + 1/10) and (1 + 6/10) / 2 of those asked are right.
    """
    rows = [{2: 1}, {2: F(1, 20), 3: F(1, 20), 4: F(9, 10)}, {2: F(6, 10), 3: F(4, 10)}, {2: 1}, {3: 1}, {4: 1}]
    process = process_of(
        [{j: F(x) for j, x in row.items()} for row in rows],
        [1, 2, 1, 1, 1],
        [F(1, 2), F(1, 2), F(0), F(0), F(0)],
        {"right": [2], "asked": [2, 3]},
    )
    texts = ('Pmax=? [ F "right" || F "asked" ]', 'Pmin=? [ F "right" || F "asked" ]')
    greatest, least = (check(process, text, exact=True) for text in texts)
    assert [result.value.value for result in greatest] == [F(21, 22)] * 2  # both engines
    assert least[0].value.value == F(8, 10)
    by_start = dict(zip(process.states, greatest[0].operators[0].states.value, strict=True))
    assert (by_start["s0"], by_start["s1"]) == (1, F(6, 10))
    assert [float(result.value.value) for result in check(process, texts[0])] == pytest.approx([21 / 22] * 2, rel=1e-15)


@pytest.mark.parametrize("path", FORMS)
def test_with_one_state_before_all_others_a_process_has_the_same_optima(path):
    """It has no label, so that no form is decided there."""
    between = 0
    for seed in (1, 2):
        process = undecided(seed, "F", "F")
        starts = [F(1, 3), F(2, 3), F(0), F(0), F(0)]
        rows = [process.exact_transitions().row(row) for row in range(process.choice_starts[-1])]
        labels = {name: np.flatnonzero(process.label(name)) for name in ("a_", "b_")}
        sizes = np.diff(process.choice_starts).tolist()
        spread = process_of(rows, sizes, starts, labels)
        begun = process_of([*rows, {0: starts[0], 1: starts[1]}], [*sizes, 1], [*(0 * x for x in starts), F(1)], labels)
        for text in (f"P{which}=? [ {path} || {other} ]" for which in ("min", "max") for other in FORMS[:2]):
            one, other = (check(each, text, exact=True, engines=["closed-form"])[0] for each in (spread, begun))
            assert str(one.value) == str(other.value), text
            between += one.value is not None and 0 < one.value.value < 1
    assert between >= 2
