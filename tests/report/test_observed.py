"""The empirical curve and the extremes of censoring, against counts done by hand."""

from __future__ import annotations

import pytest

from tracebridge import Step, Trace, fit_chain
from tracebridge.chain import LengthCounts
from tracebridge.report import observed_curve


def runs(*cases: tuple[str, int, int]) -> list[Trace]:
    """So many runs of each outcome and length."""
    return [
        Trace(trace_id=f"{outcome}{length}-{i}", outcome=outcome, steps=tuple(Step(name="a") for _ in range(length)))
        for outcome, length, number in cases
        for i in range(number)
    ]


def test_without_censoring_the_curve_is_the_plain_share() -> None:
    traces = runs(("success", 1, 3), ("success", 2, 1), ("failure", 2, 4))
    found = observed_curve(fit_chain(traces), LengthCounts.from_traces(traces), [1, 2])
    assert [point.value for point in found.points] == pytest.approx([3 / 8, 4 / 8])
    assert found.points[0].lower < 3 / 8 < found.points[0].upper
    assert found.bounds == {}
    assert found.n_censored == 0


def test_the_extremes_are_the_pass_rates_of_both_assignments() -> None:
    traces = runs(("success", 1, 3), ("failure", 1, 4), ("censored", 1, 2))
    fit = fit_chain(traces, prior="none")
    found = observed_curve(fit, LengthCounts.from_traces(traces), [1])
    assert found.bounds["R_inf"].all_fail == pytest.approx(3 / 9)
    assert found.bounds["R_inf"].all_succeed == pytest.approx(5 / 9)
    assert found.bounds["R(1)"] == found.bounds["R_inf"]
    assert found.bounds["MTTA"].all_fail == found.bounds["MTTA"].all_succeed == pytest.approx(1)
    assert found.points[0].value == pytest.approx(3 / 9)  # the cut runs are known not to have ended with their step
    assert found.to_dict()["if_all_censored"]["R_inf"]["fail"] == pytest.approx(3 / 9)


def test_beyond_the_last_step_seen_there_is_no_value() -> None:
    traces = runs(("success", 1, 3), ("failure", 1, 4), ("censored", 3, 2))
    found = observed_curve(fit_chain(traces), LengthCounts.from_traces(traces), [1, 3, 4])
    assert [point.value is None for point in found.points] == [False, False, True]
    assert found.to_dict()["R"]["4"] == {"value": None, "lower": None, "upper": None}


def test_a_given_start_has_no_observed_curve_beside_it() -> None:
    traces = runs(("success", 1, 3), ("failure", 1, 4), ("censored", 1, 2))
    found = observed_curve(fit_chain(traces, start={"a": 1}), LengthCounts.from_traces(traces), [1])
    assert found.points == ()
    assert found.to_dict()["R"] == {}
    assert found.bounds  # those are of the chain
