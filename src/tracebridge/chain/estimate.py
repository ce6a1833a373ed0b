"""Rows of probabilities from rows of counts: posterior means under a symmetric Dirichlet prior, in exact rationals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.counts import RowCounts
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.errors import FitError, Location, Problem, UsageError

PriorName = Literal["mass-one", "jeffreys", "laplace", "none"]
#: Which successors a row may have: all states, those that were seen, or those of a declared graph; both absorbers
#: always. With alpha 0 it has those that were seen, whatever the support.
Support = Literal["full", "observed", "declared"]

#: Where runs start: as they were seen to, or its posterior mean.
StartName = Literal["observed", "smoothed"]

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
        return parse_fraction(value)
    except ValueError:
        names = ", ".join(get_args(PriorName))
        raise UsageError(f"the prior {value!r} is neither one of {names} nor a number of zero or more") from None


def parse_fraction(value: object) -> Fraction:
    """A number of zero or more, given exactly, as a double (what its shortest text says) or as text.

    Raises:
        ValueError: for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | str):
        raise ValueError(f"{value!r} is no number")
    if isinstance(value, str) and not _FRACTION.fullmatch(value):
        raise ValueError(f"{value[:80]!r} is no number of zero or more")
    try:
        number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except ZeroDivisionError:
        raise ValueError(f"{value!r} divides by zero") from None
    if number < 0:
        raise ValueError(f"{value!r} is below zero")
    return number


def concentration_of(prior: PriorName | Fraction, n_allowed: int) -> Fraction:
    """The concentration alpha of each of ``n_allowed`` outcomes."""
    if isinstance(prior, Fraction):
        return prior
    return _CONCENTRATIONS[prior] if prior in _CONCENTRATIONS else Fraction(1, n_allowed)


def estimate_rows(
    rows: RowCounts, prior: PriorName | Fraction, support: Support, declared: csr_array | None = None
) -> tuple[RationalMatrix, tuple[Fraction, ...], NDArray[np.bool_]]:
    """Fit each row to its counts; the m states are followed by success, failure and, only if needed, stuck.

    Args:
        rows: the counts. prior: the concentration, by name or as a number. support: which successors a row may have.
        declared: with support ``declared``, CSR of shape (m, m + 2) whose stored entries are the successors.

    Returns:
        The transition matrix in lowest terms, absorbing rows included; the concentration alpha of each state's row; and
        the states that lead to stuck, shape (m,): those without a count when alpha is 0.

    Raises:
        FitError: if on full support there are too many possible transitions.
    """
    m = len(rows.states)
    unsmoothed = concentration_of(prior, 1) == 0
    left = np.asarray(rows.counts.sum(axis=1)).ravel() > 0
    stuck = np.zeros(m, dtype=np.bool_)
    n = m + 2
    if unsmoothed:
        stuck = ~left
        n += int(stuck.any())
        allowed = _with_entries(rows.counts, np.flatnonzero(stuck), np.full(int(stuck.sum()), m + 2), 1, n)
    elif support == "observed":
        both = np.tile([m, m + 1], m)
        allowed = _with_entries(rows.counts, np.repeat(np.arange(m), 2), both, 0, n)
    elif support == "declared" and declared is not None:
        own, following = declared.tocoo().coords
        allowed = _with_entries(rows.counts, own, following, 0, n)
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

    alpha_of = {size: concentration_of(prior, size) for size in np.unique(np.diff(allowed.indptr)).tolist()}
    alpha = tuple(alpha_of[size] for size in np.diff(allowed.indptr).tolist())
    # count x unit + top / bottom, over a common denominator
    tops = np.array([a.numerator * rows.unit.denominator for a in alpha], dtype=object)
    bottoms = np.array([a.denominator * rows.unit.numerator for a in alpha], dtype=object)
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


def observed_start(rows: RowCounts, n: int) -> RationalVector:
    """The observed distribution of starts over the n states of the chain, in lowest terms; some run starts."""
    starts = np.concatenate([rows.starts, np.zeros(n - len(rows.starts), dtype=np.int64)])
    common = int(np.gcd.reduce(starts))
    return RationalVector(starts // common, int(starts.sum()) // common)


def smoothed_start(rows: RowCounts, n: int, prior: PriorName | Fraction) -> RationalVector:
    """The posterior mean of the start: every state may be the first, and an end without a step if one was seen."""
    m = len(rows.states)
    allowed = [*range(m), *(i for i in (m, m + 1) if rows.starts[i])]
    alpha = concentration_of(prior, len(allowed))
    values = [Fraction(0)] * n
    for i in allowed:
        values[i] = int(rows.starts[i]) * rows.unit + alpha
    total = sum(values, Fraction(0))
    return RationalVector.from_fractions([value / total for value in values])


def given_start(shares: Mapping[str, Fraction], states: Sequence[str], n: int) -> RationalVector:
    """A distribution by names of ``states``, the first of n. Raises FitError for another name."""
    position = {name: i for i, name in enumerate(states)}
    if strange := [name for name in shares if name not in position]:
        raise FitError(f"the start names {strange[0]!r}, which is no state of the chain")
    values = [Fraction(0)] * n
    for name, share in shares.items():
        values[position[name]] = share
    return RationalVector.from_fractions(values)
