"""Absorbing chains with one success and one failure."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector

F = Fraction


def make_chain(rows: list[list[Fraction]], initial: list[Fraction] | None = None) -> MarkovChain:
    """Transient rows over the transient states, then success, then failure; the start is the first by default."""
    m = len(rows)
    table = [dict(enumerate(row)) for row in rows] + [{m: F(1)}, {m + 1: F(1)}]
    start = initial or [F(1)] + [F(0)] * (m + 1)
    return MarkovChain(
        states=(*(f"s{i}" for i in range(m)), "+", "-"),
        transitions=RationalMatrix.from_rows(table),
        initial=RationalVector.from_fractions(start),
        labels={"success": np.arange(m + 2) == m, "failure": np.arange(m + 2) == m + 1},
    )


def in_doubles(chain: MarkovChain) -> MarkovChain:
    return MarkovChain(states=chain.states, transitions=chain.transitions, initial=chain.initial, labels=chain.labels)


def pipeline(length: int, loop: Fraction, fail: Fraction) -> MarkovChain:
    """Stages with equal self-loops; each goes on to the next one, the last to success: Q is defective."""
    rows = []
    for i in range(length):
        row = [F(0)] * (length + 2)
        row[i], row[i + 1], row[length + 1] = loop, 1 - loop - fail, fail
        rows.append(row)
    return make_chain(rows)


def distribution(weights: list[int]) -> list[Fraction]:
    return [F(weight, sum(weights)) for weight in weights]


@st.composite
def small_chains(draw: st.DrawFn, max_transient: int = 4, acyclic: bool = False) -> MarkovChain:
    """Exact chains with small denominators, so that ties in comparisons are common."""
    m = draw(st.integers(1, max_transient))
    rows = []
    for i in range(m):
        weights = draw(st.lists(st.integers(0, 3), min_size=m + 2, max_size=m + 2))
        if acyclic:
            weights[: i + 1] = [0] * (i + 1)
        weights[draw(st.sampled_from([i + 1, m, m + 1]))] += 1
        rows.append(distribution(weights))
    start = draw(st.lists(st.integers(0, 2), min_size=m + 2, max_size=m + 2).filter(any))
    return make_chain(rows, distribution(start))
