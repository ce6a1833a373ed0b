"""The rule of ``//@ credible`` on verdicts of the engines, against Beta tail probabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy.stats import beta

from tracebridge import Step, Trace, check, compare, fit_chain
from tracebridge.agreement import Agreement
from tracebridge.chain import ChainFit
from tracebridge.checking import Verdict
from tracebridge.inference import property_uncertainty
from tracebridge.inference.judgement import _plan_factors, judge, judged, plans_of_undecided
from tracebridge.pctl import parse_properties

ONE = ("closed-form",)


def coin(successes: int, failures: int) -> ChainFit:
    """Runs of one step: with prior mass one a row, R_inf is Beta(successes + 1/3, failures + 1/3)."""
    ends = ["success"] * successes + ["failure"] * failures
    return fit_chain(Trace(trace_id=str(i), outcome=end, steps=(Step(name="go"),)) for i, end in enumerate(ends))


def one(fit: ChainFit, text: str, **options) -> Agreement:
    (agreement,) = judge(fit, text, engines=ONE, **options)
    return agreement


@pytest.mark.parametrize("bound", [0.5, 0.6])
def test_the_verdict_is_decided_by_the_share_of_the_posterior(bound: float) -> None:
    fit = coin(16, 4)
    share = float(beta(16 + 1 / 3, 4 + 1 / 3).sf(bound))
    formula = f'P>={bound} [ F "success" ];'
    agreement = one(fit, formula)
    assert agreement.verdict is agreement.at_estimate is Verdict.SATISFIED
    assert agreement.uncertainty is not None
    assert agreement.uncertainty.satisfied == pytest.approx(share, abs=4 * (share * (1 - share) / 4000) ** 0.5)
    assert one(fit, f"//@ credible {share - 0.03:.4f}\n{formula}").verdict is Verdict.SATISFIED
    undecided = one(fit, f"//@ credible {min(share + 0.03, 0.9999):.4f}\n{formula}")
    assert undecided.verdict is Verdict.UNDECIDED
    assert undecided.at_estimate is Verdict.SATISFIED
    assert undecided.exit_code == 4
    assert "of the posterior" in (undecided.reason or "")


def test_what_fails_in_enough_of_the_posterior_is_violated() -> None:
    agreement = one(coin(4, 16), '//@ credible 0.95\nP>=0.5 [ F "success" ];')
    assert agreement.verdict is Verdict.VIOLATED
    assert agreement.exit_code == 1
    assert "P(satisfied)" in repr(agreement)
    assert "P(satisfied | data)" in agreement._repr_html_()
    assert agreement.to_dict()["uncertainty"]["violated"] > 0.95


def test_a_query_keeps_its_answer_and_gets_an_interval() -> None:
    agreement = one(coin(16, 4), '//@ credible 0.9\nP=? [ F "success" ];')
    assert agreement.verdict is None
    assert agreement.exit_code == 0
    assert agreement.uncertainty is not None
    ends = agreement.uncertainty.interval
    assert ends is not None
    assert (ends.lower, ends.upper) == pytest.approx(beta(16 + 1 / 3, 4 + 1 / 3).ppf([0.05, 0.95]), abs=0.01)


def test_without_data_the_property_stays_undecided_and_engines_that_disagree_stay_so() -> None:
    fit, text = coin(16, 4), '//@ credible 0.9\nP>=0.5 [ F "success" ];'
    (bare,) = compare(check(fit.chain, text, engines=ONE))
    assert bare.verdict is Verdict.UNDECIDED
    assert bare.at_estimate is Verdict.SATISFIED
    assert "credible 0.9" in (bare.reason or "")
    found = property_uncertainty(fit, text)
    for at_estimate in (Verdict.ERROR, Verdict.UNDECIDED, Verdict.UNSUPPORTED):
        broken = replace(bare, verdict=at_estimate, at_estimate=at_estimate, reason="the engines disagree")
        (kept,) = judged([broken], found)
        assert kept.verdict is at_estimate
        assert kept.reason == "the engines disagree"
    with pytest.raises(ValueError, match="is not that of"):
        judged([bare], property_uncertainty(fit, 'P>=0.6 [ F "success" ];'))


def test_only_what_the_data_leave_open_is_planned() -> None:
    fit = coin(12, 8)
    file = parse_properties(
        '//@ credible 0.95\n"open": P>=0.5 [ F "success" ];\n//@ credible 0.95\n"clear": P>=0.1 [ F "success" ];\n'
        '"plain": P>=0.5 [ F "success" ];\n"query": P=? [ F "success" ];'
    )
    agreements = judge(fit, file, engines=ONE)
    plans = plans_of_undecided(fit, file, agreements, futures=10, seed=1)
    assert [plan is not None for plan in plans] == [True, False, False, False]
    assert plans[0] is not None
    assert plans[0].property.name == "open"
    chances = [each.decided for each in plans[0].outlooks]
    assert chances[-1] > chances[0]
    assert plans_of_undecided(fit, file, agreements, futures=0) == [None] * 4


def test_a_small_corpus_is_planned_up_to_a_thousand_runs():
    assert _plan_factors(1) == [1, 4, 16, 64, 256, 1024]
    assert _plan_factors(100) == [1, 4, 16]
    assert _plan_factors(40) == [1, 4, 16, 64]
