"""Random small chains with rational rows: sticky, periodic, with several recurrent classes and unreachable parts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from tracebridge.chain.markov import MarkovChain, RewardStructure
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Globally,
    InstantaneousReward,
    Label,
    LongRunReward,
    Next,
    Number,
    Operator,
    PathFormula,
    Probability,
    ReachReward,
    Release,
    Reward,
    RewardPath,
    SteadyState,
    StepBound,
    Until,
    WeakUntil,
)

LABELS = ("a", "b")


@st.composite
def rows(draw: st.DrawFn, n: int, *, sticky: bool) -> dict[int, Fraction]:
    """One distribution over n states with few successors; sticky ones stay with probability 1 - 1e-12 or more."""
    successors = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
    weights = [draw(st.sampled_from([1, 1, 2, 3, 7, 10**6])) for _ in successors]
    total = sum(weights)
    row = {target: Fraction(weight, total) for target, weight in zip(successors, weights, strict=True)}
    if sticky and draw(st.integers(0, 4)) == 0:
        stay = 1 - Fraction(1, 10 ** draw(st.sampled_from([9, 12, 15])))
        keeper = draw(st.integers(0, n - 1))  # itself: sticky; another: a nearly closed set
        row = {target: p * (1 - stay) for target, p in row.items()}
        row[keeper] = row.get(keeper, Fraction(0)) + stay
    return row


@st.composite
def chains(
    draw: st.DrawFn, max_states: int = 6, *, min_states: int = 1, sticky: bool = True, exact: bool = True
) -> MarkovChain:
    """A chain with labels ``a`` and ``b`` and a reward structure ``cost``; without ``exact`` its rows are doubles."""
    n = draw(st.integers(min_states, max_states))
    matrix = RationalMatrix.from_rows([draw(rows(n, sticky=sticky)) for _ in range(n)])
    start = draw(st.integers(0, n - 1))
    initial = RationalVector.from_fractions([Fraction(int(i == start)) for i in range(n)])
    labels = {name: np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))) for name in LABELS}
    amounts = st.sampled_from([Fraction(0), Fraction(0), Fraction(1), Fraction(1, 3), Fraction(5, 2)])
    state, action = (draw(st.lists(amounts, min_size=n, max_size=n)) for _ in range(2))
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=matrix if exact else matrix.to_float(),
        initial=initial if exact else initial.to_float(),
        labels=labels,
        rewards={"cost": RewardStructure.from_fractions(state, action)},
    )


def number(value: int) -> Number:
    """A step count as a literal."""
    return Number(Fraction(value), True)


@st.composite
def bounds(draw: st.DrawFn, max_steps: int = 4) -> StepBound:
    """A step bound with an end, in any of the forms."""
    low, high = (number(draw(st.integers(0, max_steps))) for _ in range(2))
    form = draw(st.sampled_from(["upper", "exact", "interval"]))
    if form == "upper":
        return StepBound(upper=high, upper_strict=draw(st.booleans()))
    if form == "exact":
        return StepBound(lower=low, upper=low, exact=True)
    return StepBound(lower=low, upper=high)


@st.composite
def paths(draw: st.DrawFn, bound: st.SearchStrategy[StepBound | None]) -> PathFormula:
    """A path formula over the labels ``a`` and ``b``."""
    a, b = Label("a"), Label("b")
    kind = draw(st.sampled_from([Eventually, Globally, Until, WeakUntil, Release]))
    if kind in {Eventually, Globally}:
        return kind(a, draw(bound))
    return kind(a, b, draw(bound))


def bounded_probabilities() -> st.SearchStrategy[Probability]:
    """P operators that a finite prefix decides."""
    return st.one_of(paths(bounds()), st.just(Next(Label("a")))).map(Probability)


def unbounded_probabilities() -> st.SearchStrategy[Probability]:
    """P operators without an upper step bound, with or without a lower one."""
    lower = st.builds(StepBound, lower=st.integers(0, 3).map(number), lower_strict=st.booleans())
    return paths(st.one_of(st.none(), lower)).map(Probability)


def rewards() -> st.SearchStrategy[Reward]:
    """R operators of every kind."""
    steps = st.integers(0, 5).map(number)
    path: st.SearchStrategy[RewardPath] = st.one_of(
        st.just(ReachReward(Label("a"))),
        st.just(CumulativeReward()),
        st.just(LongRunReward()),
        steps.map(CumulativeReward),
        steps.map(InstantaneousReward),
        st.integers(1, 5).map(lambda k: CumulativeReward(number(k), strict=True)),
    )
    return path.map(lambda p: Reward(p, "cost"))


def operators() -> st.SearchStrategy[Operator]:
    """Any operator."""
    return st.one_of(bounded_probabilities(), unbounded_probabilities(), rewards(), st.just(SteadyState(Label("a"))))
