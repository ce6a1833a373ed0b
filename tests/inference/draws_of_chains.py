"""Small fitted chains, stacks of draws, and the closed-form engine's answer for each draw."""

from __future__ import annotations

import numpy as np

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.inference.posterior import ChainPosterior

PATHS = [
    (("plan", "search", "answer"), "success"),
    (("plan", "search", "search", "answer"), "success"),
    (("plan", "answer"), "failure"),
    (("plan", "search", "retry", "search", "answer"), "success"),
    (("plan", "retry", "retry"), "failure"),
    (("search", "answer"), "success"),
]


def small_fit(**options):
    return fit_counts(TransitionCounts.from_paths(PATHS), **options)


def first_draws(fit, number: int, seed: int = 0):
    """One stack of so many draws."""
    (stack,) = ChainPosterior.of_fit(fit).draws(number, seed)
    return stack


def checked_alone(stack, draw: int, property_):
    """The closed-form engine's result for one chain of the stack."""
    chain = stack.chain_at(draw)
    return PropertyChecker(chain, ClosedFormSession(chain)).check(property_)


def random_entries(chain, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Entries of as many matrices with the chain's edges."""
    P = chain.transitions
    entries = rng.gamma(0.7, size=(P.nnz, draws)) + 1e-6
    starts = P.indptr[:-1]
    return entries / np.repeat(np.add.reduceat(entries, starts, axis=0), np.diff(P.indptr), axis=0)
