"""Rows of probabilities from rows of counts: posterior means under a symmetric Dirichlet prior, in exact rationals."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.counts import RowCounts
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.errors import FitError, Location, Problem, UsageError

PriorName = Literal["mass-one", "jeffreys", "laplace", "none"]
#: Which successors a row may have: all states, or those that were seen; both absorbers always, unless alpha is 0.
Support = Literal["full", "observed"]

_CONCENTRATIONS = {"jeffreys": Fraction(1, 2), "laplace": Fraction(1), "none": Fraction(0)}
_MAX_DENSE = 5_000_000  # entries of a chain in which every state may follow every other
_SMALL = 2**62
_FRACTION = re.compile(r"[0-9]{1,40}(/[0-9]{1,40}|\.[0-9]{1,40})?", re.ASCII)


def parse_prior(value: object) -> PriorName | Fraction:
    """A prior by name, or a concentration as a number or its text; 0.1 is 1/10, what its text says.

    Raises:
        UsageError: for anything else, and for a number below 0.
    """
    for name in get_args(PriorName):
        if name == value:
            return name  # type: ignore[no-any-return]
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | Fraction | str):
            raise ValueError
        if isinstance(value, str) and not _FRACTION.fullmatch(value):
            raise ValueError
        number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        number = Fraction(-1)
    if number < 0:
        names = ", ".join(get_args(PriorName))
        raise UsageError(f"the prior {value!r} is neither one of {names} nor a number of zero or more")
    return number


def estimate_rows(
    rows: RowCounts, prior: PriorName | Fraction, support: Support
) -> tuple[RationalMatrix, tuple[Fraction, ...], NDArray[np.bool_]]:
    """Fit each row to its counts; the m states are followed by success, failure and, only if needed, stuck.

    Returns:
        The transition matrix in lowest terms, absorbing rows included; the concentration alpha of each state's row; and
        the states that lead to stuck, shape (m,): those without a count when alpha is 0.

    Raises:
        FitError: if on full support there are too many possible transitions.
    """
    m = len(rows.states)
    concentration = prior if isinstance(prior, Fraction) else _CONCENTRATIONS.get(prior)
    left = np.asarray(rows.counts.sum(axis=1)).ravel() > 0
    stuck = np.zeros(m, dtype=np.bool_)
    n = m + 2
    if concentration == 0:
        stuck = ~left
        n += int(stuck.any())
        allowed = _with_entries(rows.counts, np.flatnonzero(stuck), np.full(int(stuck.sum()), m + 2), 1, n)
    elif support == "observed":
        both = np.tile([m, m + 1], m)
        allowed = _with_entries(rows.counts, np.repeat(np.arange(m), 2), both, 0, n)
    elif m * n > _MAX_DENSE:
        raise FitError(
            Problem(
                location=Location(),
                message=f"on full support {m} states have {m * n} possible transitions",
                hint="use support 'observed'",
            )
        )
    else:
        indptr = np.arange(m + 1, dtype=np.int64) * n
        allowed = csr_array((rows.counts.toarray().ravel(), np.tile(np.arange(n), m), indptr), shape=(m, n))

    sizes = np.diff(allowed.indptr)
    if concentration is None:
        tops, bottoms = np.ones(m, dtype=np.int64), sizes.astype(np.int64)
        alpha = tuple(Fraction(1, size) for size in sizes.tolist())
    else:
        tops, bottoms = (np.full(m, part, dtype=object) for part in concentration.as_integer_ratio())
        alpha = (concentration,) * m
    numerators, denominators = _in_lowest_terms(allowed, tops, bottoms)
    ones = np.ones(n - m, dtype=np.int64)
    matrix = RationalMatrix(
        np.concatenate([allowed.indptr, allowed.nnz + np.arange(1, n - m + 1)]),
        np.concatenate([allowed.indices, np.arange(m, n)]),
        np.concatenate([numerators, ones]),
        np.concatenate([denominators, ones]),
        n,
    )
    return matrix, alpha, stuck


def _with_entries(
    counts: csr_array, rows: NDArray[np.int64], columns: NDArray[np.int64], value: int, width: int
) -> csr_array:
    """``counts`` with ``value`` added at the given places; zeros added are stored."""
    own_rows, own_columns = counts.tocoo().coords
    coordinates = (np.concatenate([own_rows, rows]), np.concatenate([own_columns, columns]))
    data = np.concatenate([counts.data, np.full(len(rows), value, dtype=np.int64)])
    result = csr_array((data, coordinates), shape=(counts.shape[0], width))
    result.sum_duplicates()
    return result


def _in_lowest_terms(
    allowed: csr_array, tops: NDArray[Any], bottoms: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numerators ``bottom c + top`` of every allowed entry and their row sums, divided by what they have in common.

    No row is empty. Python integers take over where int64 could overflow.
    """
    m = len(tops)
    if not m:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    row_of_entry = np.repeat(np.arange(m), np.diff(allowed.indptr))
    largest = int(allowed.data.max()) * max(bottoms.tolist()) + max(tops.tolist())
    kind = np.int64 if largest * int(np.diff(allowed.indptr).max()) < _SMALL else object
    numerators = allowed.data.astype(kind) * bottoms.astype(kind)[row_of_entry] + tops.astype(kind)[row_of_entry]
    first = allowed.indptr[:-1]
    common = np.gcd.reduceat(numerators, first)
    numerators //= common[row_of_entry]
    return numerators, np.add.reduceat(numerators, first)


def start_distribution(rows: RowCounts, n: int) -> RationalVector:
    """The observed distribution of starts over the n states of the chain, in lowest terms; some run starts."""
    starts = np.concatenate([rows.starts, np.zeros(n - len(rows.starts), dtype=np.int64)])
    common = int(np.gcd.reduce(starts))
    return RationalVector(starts // common, int(starts.sum()) // common)
