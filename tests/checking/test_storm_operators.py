"""Storm on the operators beyond PCTL, against values by hand and on chains that Storm itself stumbles over."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf, isnan

import numpy as np
import pytest
from tests.checking.storm_chains import F, operator_of, sticky, truth_on

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.checking.storm_refined import RefinedStormSession
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import fold_steps, parse_formula
from tracebridge.pctl.ast import Quantile

pytestmark = pytest.mark.storm


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as shared:
        yield shared


def chain() -> MarkovChain:
    """A loop over s0 and s1 with the exits s2 and s3: from s0, s2 is reached with 3/10 / (1 - 9/20) = 6/11."""
    rows = [
        {1: F(1, 2), 2: F(3, 10), 3: F(1, 5)},
        {0: F(9, 10), 3: F(1, 10)},
        {2: F(1)},
        {3: F(1)},
    ]
    return labelled(rows, {"steps": [1, 1, 0, 0], "cost": [2, 1, 0, 0], "thirds": [F(2, 3), F(1, 3), 0, 0]})


def labelled(rows: list[dict[int, Fraction]], rewards: dict[str, list[Fraction | int]]) -> MarkovChain:
    n = len(rows)
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([1, *[0] * (n - 1)]),
        labels={"end": np.arange(n) >= 2},
        rewards={name: RewardStructure.from_fractions(values) for name, values in rewards.items()},
    )


def value(worker: StormWorker, text: str, *, exact: bool = True, of: MarkovChain | None = None) -> EnclosureVector:
    model = of or chain()
    return StormSession(model, exact=exact, worker=worker).evaluate(fold_steps(operator_of(text)), truth_on(model))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('P=? [ F (G "s2") ]', [F(6, 11), F(27, 55), 1, 0]),
        ('P=? [ G (F "s0") ]', [0, 0, 0, 0]),
        ('P=? [ (F "s1") & (F "s2") ]', [F(27, 110), F(27, 55), 0, 0]),  # 1/2 times 9/10 times 6/11
        ('P=? [ (X "s1") => (X (X "s0")) ]', [F(19, 20), 1, 1, 1]),
        ('P=? [ X ("s1" W "end") ]', [F(11, 20), F(1, 10), 1, 1]),
        ('P=? [ X (G<=1 "s1") ]', [0, 0, 0, 0]),
        ('P=? [ F<=3 ("s0" & (X "s1")) ]', [F(1, 2), F(9, 20), 0, 0]),
        ('P=? [ "s0" U ("s1" U "s2") ]', [F(3, 10), 0, 1, 0]),
        ('P=? [ X ("s0" U>=1 "s2") ]', [0, F(27, 100), 0, 0]),
        ('P=? [ F "s2" || F "s1" ]', [F(27, 55), F(27, 55), None, None]),
        ('P=? [ F<=1 "s2" || F "s2" ]', [F(11, 20), 0, 1, None]),  # 3/10 over 6/11
        ('P=? [ X "s1" || G true ]', [F(1, 2), 0, 0, 0]),
        ('R{"steps"}=? [ F "end" || F "s1" ]', [F(49, 11), F(38, 11), None, None]),  # 1 + 38/11, and 1 + 9/10 * 30/11
        ('R{"steps"}=? [ F "s2" || F "s1" ]', [inf, inf, None, None]),
        ('R{"steps"}=? [ F "s1" || F "s1" ]', [1, 0, None, None]),
        ('R{"steps"}=? [ "s0" U "s0" ]', [0, inf, inf, inf]),
        ('R{"steps"}=? [ true U "end" ]', [F(30, 11), F(38, 11), 0, 0]),
        ('P=? [ F{"steps"}<=3 "s2" ]', [F(435, 1000), F(27, 100), 1, 0]),
        ('P=? [ F{"steps"}<4 "s2" ]', [F(435, 1000), F(27, 100), 1, 0]),
        ('P=? [ F{"thirds"}<=5/3 "s2" ]', [F(435, 1000), F(27, 100), 1, 0]),  # 2/3 + 1/3 + 2/3
        ('P=? [ F{"thirds"}<5/3 "s2" ]', [F(3, 10), F(27, 100), 1, 0]),
        ('P=? [ F{"cost"}>=3 "s2" ]', [F(27, 110), F(27, 55), 0, 0]),
        ('P=? [ F{"cost"}[3,5] "s2" ]', [F(27, 200), F(27, 100), 0, 0]),
        ('P=? [ F^{rew{"cost"}<=5,steps<=2} "s2" ]', [F(3, 10), F(27, 100), 1, 0]),
        ('P=? [ "s0" U{"steps"}<=5 "s2" ]', [F(3, 10), 0, 1, 0]),  # Storm's own says 1 in s1 and s3
        ('P=? [ G{"steps"}<=0 "s0" ]', [1, 0, 0, 0]),
        ('P=? [ F{"steps"}<0 "s0" ]', [0, 0, 0, 0]),
        ('P=? [ F{"steps"}>=0 "s2" ]', [F(6, 11), F(27, 55), 1, 0]),
        ('R{"steps"}=? [ C{"cost"}<=3 ]', [F(3, 2), F(19, 10), 0, 0]),
        ('R{"cost"}=? [ C{"steps"}<=2 ]', [F(5, 2), F(28, 10), 0, 0]),
        ('R{"steps"}=? [ C<=2 discount=0.5 ]', [F(5, 4), F(29, 20), 0, 0]),
        ('T=? [ F "end" ]', [F(30, 11), F(38, 11), 0, 0]),
        ('E [ F "s2" ]', [1, 1, 1, 0]),
        ('E [ X "s1" ]', [1, 0, 0, 0]),
        ('A [ X "end" ]', [0, 0, 1, 1]),
        ('A [ G "end" ]', [0, 0, 1, 1]),
        ('A [ "s1" R "end" ]', [0, 0, 1, 1]),
        ('E [ "s1" U>=2 "s2" ]', [0, 0, 0, 0]),
        ('E [ F=2 "s2" ]', [1, 1, 1, 0]),
        ('E [ G<=2 "end" ]', [0, 0, 1, 1]),
        ('A [ F<=1 "end" ]', [0, 0, 1, 1]),
        ('A [ F<=1 "s1" ]', [0, 1, 0, 0]),
        ("A [ F<=0 true ]", [1, 1, 1, 1]),
    ],
)
def test_values_by_hand(worker: StormWorker, text: str, expected: list[Fraction | float | None]) -> None:
    exact, floating = value(worker, text), value(worker, text, exact=False)
    for i, number in enumerate(expected):
        if number is None:
            assert isnan(exact.value[i])
            assert isnan(floating.value[i])
        else:
            assert exact.value[i] == number
            assert number in floating[i]
            assert number == inf or floating[i].width < 1e-9


def test_a_total_discounted_reward_is_one_for_doubles(worker: StormWorker) -> None:
    text = 'R{"cost"}=? [ Cdiscount=0.9 ]'
    first = (2 + F(9, 20)) / (1 - F(9, 20) * F(81, 100))  # v0 = 2 + 9/10 v1 / 2, v1 = 1 + 9/10 * 9/10 v0
    floating = value(worker, text, exact=False)
    assert first in floating[0]
    assert 1 + F(81, 100) * first in floating[1]
    assert floating[0].width < 1e-11
    with pytest.raises(UnsupportedError, match="in rationals"):
        value(worker, text)


@pytest.mark.parametrize("exact", [True, False])
def test_chains_on_which_storm_itself_crashes_or_errs(worker: StormWorker, *, exact: bool) -> None:
    """Nothing leads to the last state; no state is without reward; a run may earn for ever at no cost."""
    entered_never = labelled([{0: F(1)}, {0: F(1)}], {"r": [1, 1]})
    for text, expected in (
        ('P=? [ F "s0" || F "s0" ]', [1, 1]),
        ('R{"r"}=? [ F "s0" || F "s0" ]', [0, 1]),
        ('P=? [ G (F (X "s0")) ]', [1, 1]),
    ):
        found = value(worker, text, exact=exact, of=entered_never)
        assert all(expected[i] in found[i] for i in range(2)), text
    never_free = labelled([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], {"r": [1, 2], "q": [3, 1]})
    for text, first in (
        ('P=? [ F{"r"}<=2 "s1" ]', F(3, 4)),
        ('P=? [ F{"r"}>=3 "s1" ]', F(1)),
        ('P=? [ F^{rew{"r"}<=3,rew{"q"}>=6} "s1" ]', F(3, 8)),  # s1 after two or three steps in s0
    ):
        assert first in value(worker, text, exact=exact, of=never_free)[0], text
    free_at_last = labelled([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], {"r": [1, 1], "q": [1, 0]})
    with pytest.raises(UnsupportedError, match="earned for ever"):
        value(worker, 'R{"r"}=? [ C{"q"}<=2 ]', exact=exact, of=free_at_last)


def test_an_unfolding_beyond_the_limit_is_refused(worker: StormWorker) -> None:
    with pytest.raises(UnsupportedError, match="pairs of a state and an amount"):
        value(worker, 'P=? [ F{"steps"}<=10000000 "s2" ]')


def test_a_structure_without_rewards_bounds_nothing(worker: StormWorker) -> None:
    free = labelled([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], {"none": [0, 0]})
    for bound, expected in (("<=0", 1), ("<0", 0), (">=0", 1), (">0", 0), (">=1", 0), ("<3", 1)):
        assert value(worker, f'P=? [ F{{"none"}}{bound} "s1" ]', of=free).value.tolist() == [expected] * 2, bound


def test_doubles_that_do_not_know_whether_a_condition_is_possible(worker: StormWorker) -> None:
    text = 'P=? [ X "s0" || G<=3 "s0" ]'
    with pytest.raises(UnsupportedError, match="whether the condition is possible"):
        value(worker, text, exact=False)
    assert isnan(value(worker, text).value[0])


# ---------------------------------------------------------------- quantiles


def quantile_of(
    worker: StormWorker, text: str, weights: list[Fraction | int], *, exact: bool = True, refined: bool = False
) -> tuple[EnclosureVector, Enclosure]:
    model = chain()
    parsed = fold_steps(parse_formula(text))
    assert isinstance(parsed, Quantile)
    if refined:
        session: StormSession = RefinedStormSession(model, worker=worker)
    else:
        session = StormSession(model, exact=exact, worker=worker)
    return session.evaluate_quantile(parsed, truth_on(model), [F(weight) for weight in weights])


@pytest.mark.parametrize(
    ("text", "states", "start"),
    [
        # From s0, F<=d has .3, .3, .435, .435, .49575 for d = 1, ..., 5; from s1, 9/10 of that at d - 1.
        ('quantile(min B, P>0.3 [ F<=B "s2" ])', [3, 4, 0, inf], 3),
        ('quantile(min B, P>=0.3 [ F<=B "s2" ])', [1, 4, 0, inf], 3),
        ('quantile(min B, P>=6/11 [ F<=B "s2" ])', [inf, inf, 0, inf], inf),  # a limit that is not reached
        ('quantile(max B, P<=0.3 [ F<=B "s2" ])', [2, 3, None, inf], 2),
        ('quantile(max B, P<0.3 [ F<=B "s2" ])', [0, 3, None, inf], 2),
        ('quantile(max B, P>0.2 [ F{"cost"}>=B "s2" ])', [5, 6, 0, None], 5),
        ('quantile(min B, P>0.4 [ F{"thirds"}<=B "s2" ])', [F(5, 3), 3, 0, inf], 2),
        ('quantile(min B, R{"steps"}>1.5 [ C<=B ])', [3, 2, inf, inf], 2),
    ],
)
def test_quantiles_by_hand(
    worker: StormWorker, text: str, states: list[Fraction | float | None], start: Fraction | float
) -> None:
    found, mean = quantile_of(worker, text, [F(1, 2), F(1, 2), 0, 0])
    assert [None if isnan(number) else number for number in found.value.tolist()] == states
    assert mean.value == start


def test_doubles_leave_a_tie_open_and_rationals_decide_it(worker: StormWorker) -> None:
    text = 'quantile(min B, P>0.3 [ F<=B "s2" ])'
    found, _ = quantile_of(worker, text, [1, 0, 0, 0], exact=False)
    assert (found.lower[0], found.upper[0]) == (1, 3)
    found, start = quantile_of(worker, text, [1, 0, 0, 0], refined=True)
    assert (found.lower[0], found.upper[0], start.value) == (3, 3, 3)


@pytest.mark.parametrize("exact", [True, False])
def test_a_quantile_beyond_a_long_search_is_refused(worker: StormWorker, *, exact: bool) -> None:
    model = sticky(1 - F(1, 10**9))
    session = StormSession(model, exact=exact, worker=worker)
    asked = fold_steps(parse_formula('quantile(max B, P>=0.4 [ G<=B "s" ])'))
    assert isinstance(asked, Quantile)
    with pytest.raises(UnsupportedError, match="without an end"):
        session.evaluate_quantile(asked, truth_on(model), [F(1), F(0), F(0)])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('quantile(min A, min B, P>0.3 [ F^{rew{"steps"}<=A,rew{"cost"}<=B} "s2" ])', "several variables"),
        ('quantile(min B, P>0.3 [ F^{rew{"steps"}<=B,steps<=3} "s2" ])', "the only bound"),
        ('quantile(min B, P>0.3 [ F{"steps"}<B "s2" ])', "with <= or >="),
        ('quantile(min B, P>0.3 [ F<=B (X "s2") ])', "bounded path operators"),
    ],
)
def test_quantiles_that_storm_is_not_asked_for(worker: StormWorker, text: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        quantile_of(worker, text, [1, 0, 0, 0])


def test_sticky_chains_stay_within_the_assumed_accuracy_of_automata(worker: StormWorker) -> None:
    model = sticky(1 - F(1, 10**8))
    for text in ('P=? [ (F (G "success")) | (X "failure") ]', 'P=? [ G (F "success") || F "success" ]'):
        exact, floating = value(worker, text, of=model), value(worker, text, exact=False, of=model)
        for i, number in enumerate(exact.value.tolist()):
            assert isnan(number) == isnan(floating.value[i])
            assert isnan(number) or number in floating[i]
