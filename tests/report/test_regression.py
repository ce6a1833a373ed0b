"""The statistics of the gate: directions, Holm's procedure, false alarms, power, how many more runs would decide."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from tracebridge.errors import UsageError
from tracebridge.inference.intervals import Interval
from tracebridge.pctl import parse_properties
from tracebridge.report.direction import direction
from tracebridge.report.evidence_diff import PropertyChange
from tracebridge.report.regression import holm, judge_changes, runs_to_decide

SUCCESS = 'P=? [ F "success" ]'


def asked(text: str):
    return parse_properties(f"{text};").properties[0]


@pytest.mark.parametrize(
    ("text", "worse"),
    [
        ('P>=0.5 [ F "failure" ]', "lower"),  # the threshold has the last word
        ('P<0.1 [ F "tool" ]', "higher"),
        ('R{"steps"}<=9 [ F "absorbed" ]', "higher"),
        (SUCCESS, "lower"),
        ('P=? [ F<=8 "failure" ]', "higher"),
        ('P=? [ !"error" U "success" ]', "lower"),
        ('P=? [ G<=3 !"failure" ]', "lower"),
        (f"1 - pow(1 - {SUCCESS}, 5)", "lower"),
        (f"pow({SUCCESS}, 5) / 2", "lower"),
        (f'2 * {SUCCESS} - 3 * P=? [ F "failure" ]', "lower"),
        (f"-{SUCCESS}", "higher"),
        (f"pow({SUCCESS}, 0)", None),
        (f'{SUCCESS} + P=? [ F "failure" ]', None),
        ('P=? [ F>=3 "success" ]', None),
        ('P=? [ F "tool" ]', None),
        ('R{"steps"}=? [ F "absorbed" ]', None),
        (f"1e400 * {SUCCESS}", None),
        ("+".join([SUCCESS] * 600), None),
    ],
)
def test_which_way_is_worse(text, worse):
    assert direction(asked(text).formula).worse == worse


LEAVES = ['P=? [ F "success" ]', 'P=? [ F "failure" ]', "0.5", "2"]
NUMBERS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner)
        | st.builds("pow({}, {})".format, inner, st.sampled_from("0123"))
    ),
    max_leaves=6,
)


@given(NUMBERS, st.integers(0, 8), st.integers(0, 8))
def test_a_direction_is_that_of_the_number_and_its_bounds_hold(text, one, other):
    """Against the number itself, with the two probabilities in place, which sum to one."""
    found = direction(asked(text).formula)
    low, high = sorted((Fraction(one, 8), Fraction(other, 8)))
    values = []
    for rate in (low, high):
        shown = (
            text.replace(LEAVES[0], f"F('{rate}')").replace(LEAVES[1], f"F('{1 - rate}')").replace("0.5", "F('1/2')")
        )
        values.append(eval(shown, {"F": Fraction, "pow": pow}))  # noqa: S307 - an expression of the strategy above
    assert all(found.lower <= value <= found.upper for value in values)
    if found.worse is not None:
        assert (values[1] >= values[0]) if found.worse == "lower" else (values[1] <= values[0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_holm_rejects_what_its_step_down_procedure_does(p_values):
    adjusted = holm(p_values)
    for alpha in (0.01, 0.05, 0.3):
        rejected = set()
        for i in sorted(
            range(len(p_values)), key=p_values.__getitem__
        ):  # Holm's own words: stop at the first that fails
            if p_values[i] > alpha / (len(p_values) - len(rejected)):
                break
            rejected.add(i)
        near = any(math.isclose(p * k, alpha) for p in p_values for k in range(1, len(p_values) + 1))
        assert near or rejected == {i for i, p in enumerate(adjusted) if p <= alpha}
    for order in permutations(range(len(p_values))):
        assert sorted(holm([p_values[i] for i in order])) == sorted(adjusted)
        break


def change(name: str, old, new, level: float = 0.9, text: str = 'P>=0.7 [ F "success" ]') -> PropertyChange:
    """What `compare_evidence` makes of posterior draws of a number."""
    gap = np.sort(new - old)
    ends = [gap[round(q * (len(gap) - 1))] for q in ((1 - level) / 2, (1 + level) / 2)]
    entries = []
    for draws in (old, new):
        lower, upper = np.sort(draws)[[round(0.025 * len(draws)), round(0.975 * len(draws))]]
        entries.append(
            {
                "name": name,
                "verdict": "satisfied",
                "annotations": {},
                "uncertainty": {"interval": {"lower": float(lower), "upper": float(upper), "level": 0.95}},
            }
        )
    return PropertyChange(
        key=name,
        matched_by="name",
        old=entries[0],
        new=entries[1],
        asked=asked(text),
        same_formula=True,
        old_value=float(old.mean()),
        new_value=float(new.mean()),
        difference=Interval(lower=float(ends[0]), upper=float(ends[1]), level=level, method="test"),
        probability_greater=float((gap > 0).mean()),
        draws=len(gap),
    )


PAIRS, PROPERTIES, RUNS, DRAWS = 400, 3, 200, 600
TRUE = (0.85, 0.6, 0.95)


def statuses(worsening: float, seed: int, pairs: int = PAIRS) -> list[list[str]]:
    """Pairs of corpora of independent runs, judged by the posteriors of their rates under the mass-one prior."""
    rng = np.random.default_rng(seed)
    old, new = (rng.binomial(RUNS, np.array(TRUE) - drop, size=(pairs, PROPERTIES)) for drop in (0.0, worsening))
    found = []
    size = (pairs, PROPERTIES, DRAWS)
    drawn = [rng.beta(s[..., None] + 1 / 3, RUNS - s[..., None] + 1 / 3, size=size) for s in (old, new)]
    for k in range(pairs):
        changes = [change(f"p{i}", drawn[0][k, i], drawn[1][k, i]) for i in range(PROPERTIES)]
        found.append([each.status for each in judge_changes(changes, (RUNS, RUNS))])
    return found


def test_noise_raises_no_more_alarms_than_the_level_says():
    """Any alarm over three properties in at most 5 % of 400 pairs, and three standard errors of that."""
    share = np.mean(["regression" in found for found in statuses(0.0, 1)])
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / PAIRS)


def test_a_real_regression_is_seen():
    found = statuses(0.15, 2, pairs=100)
    assert np.mean(["regression" in each for each in found]) > 0.99
    assert np.mean(["passed" in each for each in found]) < 0.06  # of a worsening by more than the margin


def test_passed_means_that_a_worsening_by_the_margin_is_excluded():
    """At a true worsening of just the margin no property passes more often than one minus the level."""
    pairs = 200
    found = np.array(statuses(0.05, 3, pairs))
    shares = (found == "passed").mean(axis=0)
    assert np.all(shares <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / pairs))


def test_so_many_more_runs_decide():
    """With the promised number of runs and the same worsening the property is decided, and with 3 % fewer it is not."""
    rng = np.random.default_rng(4)
    normal = ndtri((rng.permutation(20_000) + 0.5) / 20_000), ndtri((rng.permutation(20_000) + 0.5) / 20_000)

    def status(n_old: int, n_new: int, worsening: float) -> tuple[str, int | None, int | None]:
        old, new = 0.8 + normal[0] * 0.4 / math.sqrt(n_old), 0.8 - worsening + normal[1] * 0.4 / math.sqrt(n_new)
        (found,) = judge_changes([change("p", old, new)], (n_old, n_new))
        return found.status, found.more_runs, found.more_of_both

    for worsening, then in ((0.0, "passed"), (0.03, "regression"), (0.01, "passed")):
        before, more, both = status(2_000, 100, worsening)
        assert (before, both) == ("inconclusive", None)
        assert status(2_000, 100 + round(1.03 * more), worsening)[0] == then
        assert status(2_000, 100 + round(0.97 * more), worsening)[0] == "inconclusive"
        before, more, both = status(100, 100, worsening)
        assert (before, more) == ("inconclusive", None)
        total = 100 + round(1.03 * both)
        assert status(total, total, worsening)[0] == then
        assert status(100, 10**6, worsening)[0] == "inconclusive"  # of the new agent alone no number would do


def test_no_number_of_runs_decides_between_equal_and_equal():
    assert runs_to_decide(0.0, 0.0, (0.1, 0.1), (50, 50), level=0.95, gated=1) == (None, None)


def test_what_is_not_gated_says_so():
    draws = np.linspace(0.4, 0.6, 100)
    steps = change("steps", 10 * draws, 20 * draws, text='R{"steps"}=? [ F "absorbed" ]')
    (found,) = judge_changes([steps], (50, 50))
    assert (found.status, found.p_adjusted) == ("not gated", None)
    (found,) = judge_changes([steps], (50, 50), worse={"steps": "higher"})
    assert found.status == "regression"
    assert found.margin == pytest.approx(0.05 * 5)  # relative to the old number, which is no share
    with pytest.raises(UsageError, match="'other'"):
        judge_changes([steps], (50, 50), worse={"other": "higher"})
    with pytest.raises(UsageError, match="level"):
        judge_changes([steps], (50, 50), level=0.4)
