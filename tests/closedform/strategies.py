"""Random small chains with rational rows: sticky, periodic, with several recurrent classes and unreachable parts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
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
    Quantified,
    ReachReward,
    Release,
    Reward,
    RewardBound,
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
    """A chain with labels ``a`` and ``b`` and two reward structures; without ``exact`` its rows are doubles."""
    n = draw(st.integers(min_states, max_states))
    matrix = RationalMatrix.from_rows([draw(rows(n, sticky=sticky)) for _ in range(n)])
    start = draw(st.integers(0, n - 1))
    initial = RationalVector.from_fractions([Fraction(int(i == start)) for i in range(n)])
    labels = {name: np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))) for name in LABELS}
    amounts = st.sampled_from([Fraction(0), Fraction(0), Fraction(1), Fraction(1, 3), Fraction(5, 2)])
    state, action = (draw(st.lists(amounts, min_size=n, max_size=n)) for _ in range(2))
    tokens = draw(st.lists(st.sampled_from([0, 1, 3]), min_size=n, max_size=n))
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=matrix if exact else matrix.to_float(),
        initial=initial if exact else initial.to_float(),
        labels=labels,
        rewards={
            "cost": RewardStructure.from_fractions(state, action),
            "tokens": RewardStructure.from_fractions(tokens),
        },
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


@st.composite
def reward_bounds(draw: st.DrawFn, *, lower: bool = True) -> RewardBound:
    """A bound on one of the two reward structures, in any of the forms."""
    structure = draw(st.sampled_from(["cost", "tokens"]))
    ends = [Number(value, value.denominator == 1) for value in sorted(draw(st.tuples(*[amounts()] * 2)))]
    form = draw(st.sampled_from(["upper", "lower", "exact", "interval"] if lower else ["upper"]))
    strict = draw(st.booleans())
    bound = {
        "upper": StepBound(upper=ends[0], upper_strict=strict),
        "lower": StepBound(lower=ends[0], lower_strict=strict),
        "exact": StepBound(lower=ends[0], upper=ends[0], exact=True),
        "interval": StepBound(lower=ends[0], upper=ends[1]),
    }[form]
    return RewardBound(structure, bound)


def amounts() -> st.SearchStrategy[Fraction]:
    """What may be spent."""
    return st.sampled_from([Fraction(n, d) for n in range(8) for d in (1, 2, 3)])


@st.composite
def budgeted_probabilities(draw: st.DrawFn) -> Probability:
    """P operators with one or two reward bounds, or one beside a step bound."""
    path = draw(paths(st.none()))
    steps = draw(st.one_of(st.none(), bounds(3)))
    most = 2 if steps is None else 1
    rewards = tuple(draw(st.lists(reward_bounds(), min_size=1, max_size=most)))
    return Probability(replace(path, bound=steps, reward_bounds=rewards))  # type: ignore[arg-type]


@st.composite
def budgeted_rewards(draw: st.DrawFn) -> Reward:
    """R of C with one or two reward bounds, or one beside a step bound."""
    steps = draw(st.one_of(st.none(), st.integers(0, 3).map(number)))
    most = 2 if steps is None else 1
    budget = tuple(draw(st.lists(reward_bounds(lower=False), min_size=1, max_size=most)))
    return Reward(CumulativeReward(steps, reward_bounds=budget), draw(st.sampled_from(["cost", "tokens"])))


def discounted_rewards() -> st.SearchStrategy[Reward]:
    """R of C with a discount."""
    factor = st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000)]).map(lambda x: Number(x, False))
    steps = st.one_of(st.none(), st.integers(0, 6).map(number))
    return st.builds(lambda k, x: Reward(CumulativeReward(k, discount=x), "cost"), steps, factor)


def branching_operators() -> st.SearchStrategy[Quantified]:
    """A and E of any path operator of CTL, bounded or not."""
    lower = st.builds(StepBound, lower=st.integers(0, 3).map(number), lower_strict=st.booleans())
    path = st.one_of(paths(st.one_of(st.none(), lower, bounds())), st.just(Next(Label("a"))))
    return st.builds(Quantified, st.sampled_from(["A", "E"]), path)


def operators() -> st.SearchStrategy[Operator]:
    """Any operator."""
    return st.one_of(bounded_probabilities(), unbounded_probabilities(), rewards(), st.just(SteadyState(Label("a"))))
