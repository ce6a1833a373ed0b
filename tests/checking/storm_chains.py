"""Chains with known answers, and one way to ask Storm about them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking.engine import Holds
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.pctl import parse_formula
from tracebridge.pctl.ast import Formula, Label, Operator, Truth

F = Fraction


def operator_of(text: str) -> Operator:
    parsed = parse_formula(text)
    assert isinstance(parsed, Operator)
    return parsed


def truth_on(chain: MarkovChain) -> Holds:
    """The states where a label or a constant holds."""

    def holds(formula: Formula) -> np.ndarray:
        if isinstance(formula, Truth):
            return np.full(chain.n_states, formula.value)
        assert isinstance(formula, Label)
        return chain.label(formula.name)

    return holds


def evaluate(
    chain: MarkovChain, operator: Operator | str, worker: StormWorker, *, exact: bool, time_limit: float = 60
) -> EnclosureVector:
    parsed = operator_of(operator) if isinstance(operator, str) else operator
    return StormSession(chain, exact=exact, worker=worker, time_limit=time_limit).evaluate(parsed, truth_on(chain))


def three_transient_states() -> MarkovChain:
    """Three transient states; h = (24, 36, 9)/79 and expected steps (1000, 710, 770)/237 by hand."""
    return MarkovChain(
        states=("s0", "s1", "s2", "success", "failure"),
        transitions=RationalMatrix.from_rows(
            [
                {0: F(1, 10), 1: F(5, 10), 2: F(4, 10)},
                {0: F(1, 10), 1: F(2, 10), 2: F(3, 10), 3: F(3, 10), 4: F(1, 10)},
                {1: F(1, 10), 2: F(6, 10), 4: F(3, 10)},
                {3: F(1)},
                {4: F(1)},
            ]
        ),
        initial=RationalVector.from_fractions([1, 0, 0, 0, 0]),
        labels={"end": np.array([False, False, False, True, True])},
        rewards={"steps": RewardStructure.from_fractions([1, 1, 1, 0, 0])},
    )


def sticky(stay: Fraction) -> MarkovChain:
    """One state that stays, or leaves to either side with the same probability."""
    leave = (1 - stay) / 2
    return MarkovChain(
        states=("s", "success", "failure"),
        transitions=RationalMatrix.from_rows([{0: stay, 1: leave, 2: leave}, {1: F(1)}, {2: F(1)}]),
        initial=RationalVector.from_fractions([1, 0, 0]),
    )


def walk_of(n: int, up: Fraction) -> MarkovChain:
    """Gambler's ruin on 0..n: states 0 and n absorb."""
    rows: list[dict[int, Fraction]] = [{0: F(1)}]
    rows += [{i - 1: 1 - up, i + 1: up} for i in range(1, n)]
    rows.append({n: F(1)})
    top = np.arange(n + 1) == n
    return MarkovChain(
        states=tuple(str(i) for i in range(n + 1)),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([F(int(i == n // 2)) for i in range(n + 1)]),
        labels={"top": top},
        rewards={"steps": RewardStructure.from_fractions([F(int(0 < i < n)) for i in range(n + 1)])},
    )
