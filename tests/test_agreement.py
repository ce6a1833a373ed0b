"""The joint verdict of two and of three engines."""

from __future__ import annotations

import numpy as np
import pytest

from tracebridge.agreement import compare_property
from tracebridge.checking.result import CheckResult, OperatorValue, Verdict
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.pctl import parse_formula
from tracebridge.pctl.ast import Property

PROPERTY = Property(formula=parse_formula('P>=0.5 [ F "a" ]'), text='P>=0.5 [ F "a" ]')

S, V, U = Verdict.SATISFIED, Verdict.VIOLATED, Verdict.UNDECIDED


def result(engine: str, verdict: Verdict, value: float = 0.5, radius: float = 1e-9) -> CheckResult:
    """One operator in two states, with bounds this far from its value."""
    answered = verdict not in {Verdict.UNSUPPORTED, Verdict.ERROR}
    values = np.array([value, 1.0])
    states = EnclosureVector.from_bounds(values, values - radius, np.minimum(values + radius, 1.0))
    start = Enclosure(value, value - radius, value + radius)
    operator = OperatorValue(text=PROPERTY.text, nested=False, states=states, start=start)
    return CheckResult(
        property=PROPERTY,
        engine=engine,
        exact=False,
        verdict=verdict,
        truth={S: True, V: False}.get(verdict),
        operators=(operator,) if answered else (),
        reason=None if verdict in {S, V} else f"{engine} has a reason",
    )


def test_the_gap_is_that_of_the_most_distant_two():
    three = [result("A", S, 0.7), result("B", S, 0.7 + 1e-9), result("C", S, 0.7 - 1e-9, radius=2e-9)]
    agreement = compare_property(three)
    assert agreement.agree
    assert agreement.gap == pytest.approx(2e-9)
    assert agreement.allowed == pytest.approx(3e-9)
    assert (agreement.verdict, agreement.reason, agreement.exit_code) == (S, None, 0)


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_one_that_differs_from_the_other_two_is_a_disagreement_wherever_it_stands(odd):
    values = [0.7, 0.7, 0.7]
    values[odd] = 0.8
    agreement = compare_property([result(name, S, value) for name, value in zip("ABC", values, strict=True)])
    assert agreement.agree is False
    assert agreement.gap == pytest.approx(0.1)
    assert (agreement.verdict, agreement.exit_code) == (Verdict.ERROR, 6)


def test_bounds_that_meet_pairwise_are_needed_and_not_a_chain_of_them():
    wide = [result("A", S, 0.7), result("B", S, 0.71, radius=0.02), result("C", S, 0.72)]
    assert compare_property(wide[:2]).agree
    assert compare_property(wide[1:]).agree
    assert compare_property(wide).agree is False


@pytest.mark.parametrize(
    ("verdicts", "joint", "reason", "code"),
    [
        ([S, S, S], S, None, 0),
        ([S, S, Verdict.UNSUPPORTED], S, "without C: C has a reason", 0),
        ([S, S, Verdict.ERROR], S, "without C: C has a reason", 4),
        ([V, V, Verdict.ERROR], V, "without C: C has a reason", 1),
        ([S, Verdict.UNSUPPORTED, Verdict.UNSUPPORTED], S, "single engine: B: B has a reason; C: C has a reason", 0),
        ([S, U, S], S, "B alone could not decide: B has a reason", 0),
        ([S, U, U], S, "B and C could not decide: B has a reason", 0),
        ([S, U, Verdict.UNSUPPORTED], S, "B alone could not decide: B has a reason; without C: C has a reason", 0),
        ([U, U, U], U, "A has a reason", 4),
        ([U, U, Verdict.UNSUPPORTED], U, "A has a reason; without C: C has a reason", 4),
        ([U, Verdict.UNSUPPORTED], U, "single engine: B: B has a reason", 4),
        ([Verdict.UNSUPPORTED] * 2, Verdict.UNSUPPORTED, "A: A has a reason; B: B has a reason", 4),
        ([Verdict.UNSUPPORTED, Verdict.ERROR], Verdict.ERROR, "A: A has a reason; B: B has a reason", 4),
    ],
)
def test_the_joint_verdict_and_why(verdicts, joint, reason, code):
    agreement = compare_property([result(name, verdict) for name, verdict in zip("ABC", verdicts, strict=False)])
    assert (agreement.verdict, agreement.reason, agreement.exit_code) == (joint, reason, code)
