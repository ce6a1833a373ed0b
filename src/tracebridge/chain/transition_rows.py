"""Rows of transition probabilities, of states or of choices: their form in memory, what is wrong, and as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from tracebridge.chain.model_problems import problem
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.errors import Problem

#: A row of doubles may differ from one by this much, no more; rationals not at all.
ROW_SUM_TOLERANCE = 1e-12


def rows_and_rationals(given: csr_array | ArrayLike | RationalMatrix) -> tuple[csr_array, RationalMatrix | None]:
    """The rows as a private CSR matrix, sorted, without zeros, and the rationals that they are the roundings of."""
    if isinstance(given, RationalMatrix):
        return given.to_float(), given
    matrix = given if issparse(given) else np.asarray(given, dtype=np.float64)
    rows = csr_array(matrix, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    indices, indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return csr_array((rows.data, indices, indptr), shape=rows.shape), None


def row_problems(
    rows: csr_array, rationals: RationalMatrix | None, targets: Sequence[str], row_name: Callable[[int], str]
) -> Iterator[Problem]:
    """Entries that are no probabilities; else rows that do not sum to one.

    Args:
        targets: the names of the columns. row_name: what a row is called, from its number.
    """
    row_of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    bad = np.flatnonzero(~(rows.data > 0) | ~np.isfinite(rows.data)).tolist()
    for k in bad:
        target, number = targets[rows.indices[k]], float(rows.data[k])
        yield problem(f"{row_name(int(row_of_entry[k]))}: the probability of going to {target!r} is {number!r}")
    if bad:
        return
    hint = "rows must sum to one; nothing is normalised"
    if rationals is not None:
        sums, bottoms = rationals.row_sums(), rationals.denominators
        for i in np.flatnonzero(sums != bottoms).tolist():
            yield problem(f"{row_name(i)}: its row sums to {Fraction(int(sums[i]), int(bottoms[i]))}", hint)
        return
    row_sums = np.asarray(rows.sum(axis=1)).ravel()
    for i in np.flatnonzero(np.abs(row_sums - 1) > ROW_SUM_TOLERANCE).tolist():
        yield problem(f"{row_name(i)}: its row sums to {float(row_sums[i])!r}", hint)


def initial_problems(
    initial: NDArray[np.float64], rationals: RationalVector | None, states: Sequence[str]
) -> list[Problem]:
    """Entries that are no probabilities; else a sum that is not one."""
    bad = np.flatnonzero(~(initial >= 0) | ~np.isfinite(initial)).tolist()
    if bad:
        return [problem(f"state {states[i]!r}: its initial probability is {float(initial[i])!r}") for i in bad]
    if rationals is not None:
        total = sum(rationals.numerators.tolist())
        if total != rationals.denominator:
            return [problem(f"the initial distribution sums to {Fraction(total, rationals.denominator)}")]
    elif abs(initial.sum() - 1) > ROW_SUM_TOLERANCE:
        return [problem(f"the initial distribution sums to {float(initial.sum())!r}")]
    return []


def transition_records(
    rows: csr_array,
    rationals: RationalMatrix | None,
    targets: Sequence[str],
    source: Callable[[int], dict[str, Any]],
    first: int | None,
) -> list[dict[str, Any]]:
    """One record an entry: what ``source`` says of its row, ``target``, ``probability`` and, where known, ``exact``.

    Args:
        first: only so many of them; all by default.
    """
    row_numbers, columns = (part[:first].tolist() for part in rows.tocoo().coords)
    records: list[dict[str, Any]] = [
        {**source(i), "target": targets[j], "probability": value}
        for i, j, value in zip(row_numbers, columns, rows.data[:first].tolist(), strict=True)
    ]
    if rationals is not None:
        bottoms = rationals.denominators[rationals.row_of_entry[:first]].tolist()
        for record, top, bottom in zip(records, rationals.numerators[:first].tolist(), bottoms, strict=True):
            record["exact"] = f"{top}/{bottom}"
    return records
