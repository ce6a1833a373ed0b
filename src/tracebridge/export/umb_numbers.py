"""The numbers of a unified Markov binary (UMB) archive, doubles or rationals, and what a model is made of."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.export.umb_archive import at_member, refuse
from tracebridge.export.umb_arrays import Quotients, over_common_denominators, to_vector
from tracebridge.export.umb_index import PROBABILITIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers = Quotients | np.ndarray[Any, np.dtype[np.float64]]


def quotients_of(values: NDArray[np.float64], exact: RationalVector | None) -> Quotients:
    """The numbers as rationals: as known, or the doubles exactly; shape (n,)."""
    if exact is None:
        ratios = [value.as_integer_ratio() for value in values.tolist()]
        common = max((bottom for _, bottom in ratios), default=1)  # denominators of doubles are powers of two
        numerators = np.empty(len(ratios), dtype=object)
        numerators[:] = [top * (common // bottom) for top, bottom in ratios]
        return Quotients(numerators, repeated(common, len(ratios)))
    return Quotients(exact.numerators, repeated(exact.denominator, len(exact)))


def repeated(value: int, n: int) -> NDArray[Any]:
    """The same integer n times: int64 where it fits."""
    if value < 2**63:
        return np.full(n, value, dtype=np.int64)
    array = np.empty(n, dtype=object)
    array[:] = value
    return array


def matrix_of(
    indptr: NDArray[np.int64], targets: NDArray[np.int64], probabilities: Numbers, n_columns: int
) -> csr_array | RationalMatrix:
    """The rows; branches of a choice to the same target are added, those of probability zero left out."""
    n = len(indptr) - 1
    if not isinstance(probabilities, Quotients):
        return csr_array((probabilities, targets, indptr), shape=(n, n_columns))
    with at_member(PROBABILITIES):
        tops, denominators = over_common_denominators(probabilities, indptr)
    source = np.repeat(np.arange(n), np.diff(indptr))
    same = source[1:] == source[:-1]
    if np.any(same & (targets[1:] <= targets[:-1])) or np.any(tops == 0):
        order = np.lexsort((targets, source))
        source, targets, tops = source[order], targets[order], tops[order].astype(object)
        first = np.flatnonzero(np.append(True, (source[1:] != source[:-1]) | (targets[1:] != targets[:-1])))
        source, targets, tops = source[first], targets[first], np.add.reduceat(tops, first)
        kept = np.flatnonzero(tops != 0)
        source, targets, tops = source[kept], targets[kept], tops[kept]
        indptr = np.searchsorted(source, np.arange(n + 1))
    return RationalMatrix(indptr, targets, tops, denominators, n_columns)


def vector_of(numbers: Numbers, member: str, *, rounded: bool) -> tuple[NDArray[np.float64], RationalVector | None]:
    """The numbers as doubles and, where they are rationals and are not to be rounded, as rationals; shape (n,)."""
    if not isinstance(numbers, Quotients):
        return numbers, None
    with at_member(member):
        vector = to_vector(numbers)
    return vector.to_float(), None if rounded else vector


def by_choice(numbers: Numbers, indptr: NDArray[np.int64], member: str) -> Numbers:
    """Rewards of branches as rewards of their choices, where all branches of a choice have the same."""
    first, lengths = indptr[:-1], np.diff(indptr)
    if isinstance(numbers, Quotients):
        with at_member(member):
            vector = to_vector(numbers)
        held: NDArray[Any] = vector.numerators
        numbers_by_choice: Numbers = Quotients(numbers.numerators[first], numbers.denominators[first])
    else:
        held = numbers
        numbers_by_choice = numbers[first]
    other = np.flatnonzero(held != np.repeat(held[first], lengths))
    if len(other):
        choice = int(np.searchsorted(indptr, int(other[0]), side="right")) - 1
        refuse(f"the branches of choice {choice} have different rewards; a choice has one here", member)
    return numbers_by_choice


def head(numbers: Numbers, count: int) -> Numbers:
    """The first numbers."""
    return part(numbers, slice(0, count))


def part(numbers: Numbers, span: slice) -> Numbers:
    """Some of the numbers."""
    if isinstance(numbers, Quotients):
        return Quotients(numbers.numerators[span], numbers.denominators[span])
    return numbers[span]


def floats_of(numbers: Numbers) -> NDArray[np.float64]:
    """The numbers as doubles, each correctly rounded."""
    if not isinstance(numbers, Quotients):
        return numbers
    pairs = zip(numbers.numerators.tolist(), numbers.denominators.tolist(), strict=True)
    return np.array([float(Fraction(top, bottom)) for top, bottom in pairs])
