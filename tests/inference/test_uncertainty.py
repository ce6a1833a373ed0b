import math

import pytest
from scipy.stats import beta
from tests.inference.draws_of_chains import small_fit

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.checking.result import Verdict
from tracebridge.errors import PropertyError, UsageError
from tracebridge.inference.identification import NO_VARIATION_REASON
from tracebridge.inference.uncertainty import decided, property_uncertainty


def coin(successes: int, failures: int):
    """One state with two successors: the posterior of success is Beta(successes + 1/2, failures + 1/2)."""
    paths = [(("a",), "success")] * successes + [(("a",), "failure")] * failures
    return fit_counts(TransitionCounts.from_paths(paths), support="observed")


def test_interval_and_shares_are_those_of_the_beta_distribution():
    # on observed support the state has two successors, so that its posterior is Beta(13.5, 7.5)
    (found,) = property_uncertainty(coin(13, 7), 'P>=0.6 [ F "success" ]', draws=8_000)
    law = beta(13.5, 7.5)
    for end, error, q in zip(
        (found.interval.lower, found.interval.upper), found.quantile_errors, (0.025, 0.975), strict=True
    ):
        density = law.pdf(law.ppf(q))
        assert error == pytest.approx(math.sqrt(q * (1 - q) / 8_000) / density, rel=0.5)
        assert abs(end - law.ppf(q)) < 4.5 * math.sqrt(q * (1 - q) / 8_000) / density
    assert abs(found.satisfied - law.sf(0.6)) < 4.5 * found.share_error
    assert found.satisfied + found.violated == 1
    assert abs(found.mean - 13.5 / 21) < 4.5 * law.std() / math.sqrt(8_000)
    assert found.point == pytest.approx(13.5 / 21)
    assert found.interval.method == "posterior of the mass-one prior, equal-tailed"


@pytest.mark.parametrize(("successes", "failures"), [(0, 3), (3, 0), (0, 1)])
def test_draws_that_do_not_vary_for_want_of_a_prior_decide_nothing(successes, failures):
    """Three failures of three do not show that the agent never succeeds: without a prior every draw says so."""
    paths = [(("a",), "success")] * successes + [(("a",), "failure")] * failures
    text = '//@ credible 0.95\nP>=0.5 [ F "success" ];\nP=? [ F<=2 "success" ];'
    decided_, asked = property_uncertainty(fit_counts(TransitionCounts.from_paths(paths), prior="none"), text, draws=50)
    assert decided_.verdict is Verdict.UNDECIDED
    assert (decided_.interval, decided_.satisfied, decided_.violated, decided_.mean) == (None, None, None, None)
    assert decided_.reason == NO_VARIATION_REASON
    assert asked.interval is None
    assert asked.notes == (NO_VARIATION_REASON,)
    assert asked.point == float(successes > 0)
    mixed = [*paths, (("a",), "success"), (("a",), "failure")]
    for prior, runs in (("none", mixed), ("mass-one", paths)):
        found = property_uncertainty(fit_counts(TransitionCounts.from_paths(runs), prior=prior), text, draws=50)
        assert all(each.interval is not None and each.interval.width > 0 for each in found)


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [
        (">=0.4", Verdict.SATISFIED),
        (">=0.9", Verdict.VIOLATED),
        (">=0.6", Verdict.UNDECIDED),
        ("<0.9", Verdict.SATISFIED),
    ],
)
def test_the_rule_decides_by_the_share_of_draws(bound, verdict):
    (found,) = property_uncertainty(coin(13, 7), f'//@ credible 0.95\nP{bound} [ F "success" ]', draws=1_000)
    assert found.verdict is verdict
    assert found.credible
    assert (found.reason is None) == (verdict is not Verdict.UNDECIDED)


def test_the_level_of_the_property_is_asked_for():
    # P(p >= 0.5) of Beta(13.5, 7.5) is 0.911
    strict, lenient = property_uncertainty(
        coin(13, 7),
        '//@ credible 0.95\nP>=0.5 [ F "success" ];\n//@ credible 0.9\nP>=0.5 [ F "success" ];',
        draws=4_000,
    )
    assert (strict.verdict, lenient.verdict) == (Verdict.UNDECIDED, Verdict.SATISFIED)
    assert (strict.level, lenient.level) == (0.95, 0.9)
    assert strict.satisfied == lenient.satisfied  # the same draws


def test_a_property_must_hold_at_the_point_estimate_too():
    assert decided(0.96, 0.04, False, 0.95)[0] is Verdict.UNDECIDED
    assert decided(0.96, 0.04, None, 0.95)[0] is Verdict.UNDECIDED
    assert decided(0.96, 0.04, True, 0.95)[0] is Verdict.SATISFIED
    assert decided(0.04, 0.96, False, 0.95)[0] is Verdict.VIOLATED


def test_qualitative_properties_are_decided_for_good():
    sure, never = property_uncertainty(small_fit(), 'P>=1 [ F "absorbed" ]; P<=0 [ F "retry" ]', draws=200)
    assert (sure.satisfied, sure.verdict) == (1.0, Verdict.SATISFIED)
    assert (never.violated, never.verdict) == (1.0, Verdict.VIOLATED)


def test_nothing_is_sure_but_what_the_edges_make_so():
    # never seen to fail: the posterior of failing is Beta(1/2, 1000.5), often far below the rounding of doubles
    texts = 'P<1 [ F "success" ]; P>0 [ F "failure" ]; P<1 [ F<=3 "success" ]; P>0 [ F<=3 "failure" ]'
    assert [each.satisfied for each in property_uncertainty(coin(1_000, 0), texts, draws=500)] == [1.0] * 4


def test_undefined_draws_are_counted_and_left_out():
    (found,) = property_uncertainty(small_fit(), 'P=? [ F "success" ] / (P>=0.7 [ F "success" ] ? 1 : 0)', draws=400)
    assert 0 < found.undefined < 400
    assert found.notes == (f"undefined in {found.undefined} of the draws",)
    assert found.interval.lower >= 0.7


def test_operators_that_take_one_chain_at_a_time_see_the_first_draws(monkeypatch):
    monkeypatch.setattr("tracebridge.inference.uncertainty.SLOW_DRAWS", 20)
    slow, fast = property_uncertainty(
        small_fit(), 'P=? [ F{"steps"}<=4 "success" ]; P=? [ F "retry" ]', draws=80, seed=4
    )
    assert (slow.draws, fast.draws) == (20, 80)
    assert slow.notes[0].startswith("evaluated on the first 20 draws only, one chain at a time, because of")


def test_what_cannot_be_evaluated_says_so():
    (found,) = property_uncertainty(small_fit(), 'filter(range, P=? [ F "success" ])', draws=10)
    assert found.verdict is Verdict.UNSUPPORTED
    assert "two numbers" in found.reason


def test_the_same_seed_gives_the_same_numbers_and_documents():
    text = 'P>=0.6 [ F<=4 "success" ]; R{"steps"}=? [ F "absorbed" ]'
    once, twice = (property_uncertainty(small_fit(), text, draws=150, seed=7) for _ in range(2))
    assert [each.to_dict() for each in once] == [each.to_dict() for each in twice]
    assert "interval" in once[0]._repr_html_()
    assert "P(satisfied)" in repr(once[0])


def test_a_share_below_one_half_decides_nothing():
    with pytest.raises(PropertyError, match=r"credible .* is no level") as refused:
        property_uncertainty(small_fit(), '//@ credible 0.3\nP>=0.5 [ F "success" ]')
    assert refused.value.problems[0].location.line == 1


def test_options_are_checked():
    with pytest.raises(UsageError, match="level"):
        property_uncertainty(small_fit(), 'P>=0.5 [ F "success" ]', level=0.2)
    with pytest.raises(PropertyError, match="no state has the label"):
        property_uncertainty(small_fit(), 'P>=0.5 [ F "nowhere" ]')
