"""Families of absorbing chains of any size: m transient states, then ``goal``, then a failure."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def absorbing(m: int, rows: Indices, columns: Indices, weights: Floats) -> MarkovChain:
    """m transient states with these weights, divided by the sums of their rows."""
    n = m + 2
    ends = np.array([m, m + 1])
    entries = np.concatenate([weights, [1.0, 1.0]])
    P = csr_array((entries, (np.concatenate([rows, ends]), np.concatenate([columns, ends]))), shape=(n, n))
    P.sum_duplicates()
    P.data /= np.repeat(np.asarray(P.sum(axis=1)).ravel(), np.diff(P.indptr))
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=P,
        initial=(np.arange(n) == 0).astype(np.float64),
        labels={"goal": np.arange(n) == m},
    )


def random_sparse(n: int) -> MarkovChain:
    """Five random successors a state; one state in five may end."""
    rng = np.random.default_rng(0)
    m = n - 2
    ending = np.flatnonzero(rng.random(m) < 0.2)
    return absorbing(
        m,
        np.concatenate([np.repeat(np.arange(m), 5), ending]),
        np.concatenate([rng.integers(0, m, 5 * m), m + rng.integers(0, 2, len(ending))]),
        np.concatenate([rng.random(5 * m) + 0.05, 0.1 * rng.random(len(ending))]),
    )


def grid(n: int) -> MarkovChain:
    """A symmetric walk on a square; behind two sides lies the goal, behind the others the failure."""
    k = math.isqrt(n - 2)
    m = k * k
    row, column = np.divmod(np.arange(m), k)
    targets = []
    for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        r, c = row + down, column + right
        goal, failure = (r >= k) | (c >= k), (r < 0) | (c < 0)
        targets.append(np.where(goal, m, np.where(failure, m + 1, r * k + c)))
    return absorbing(m, np.tile(np.arange(m), 4), np.concatenate(targets), np.full(4 * m, 0.25))


def birth_death(n: int) -> MarkovChain:
    """A walk with drift towards the goal."""
    m = n - 2
    i = np.arange(m)
    below = np.where(i == 0, m + 1, i - 1)
    weights = np.concatenate([np.full(m, 0.6), np.full(m, 0.4)])
    return absorbing(m, np.concatenate([i, i]), np.concatenate([i + 1, below]), weights)


def dense(n: int) -> MarkovChain:
    """Every state leads to every other; a run ends after 500 steps or so."""
    rng = np.random.default_rng(0)
    m = n - 2
    weights = rng.random((m, n))
    weights[:, m:] *= m / 1_000
    rows, columns = np.nonzero(weights)
    return absorbing(m, rows, columns, weights[rows, columns])


FAMILIES: dict[str, Callable[[int], MarkovChain]] = {
    "random": random_sparse,
    "grid": grid,
    "birth-death": birth_death,
    "dense": dense,
}
