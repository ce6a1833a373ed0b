"""The same systems without rounding: exactly in rationals, or in doubles with rigorous bounds.

A set of transient states of a chain with rational rows, each row multiplied by its denominator, is a system of integers
``(D - A) x = b`` with ``A >= 0`` and D diagonal: what leaves a state, in the set and out of it. `solve_exact` solves it
in rationals. `solve_enclosed` takes the solution of the doubles, refines it with residuals evaluated *exactly* in
integers and then proves its error: the inverse of ``D - A`` is non-negative, so ``(D - A) w >= |r|`` implies
``|x - x~| <= w`` componentwise (the M-matrix bound; Rump, Acta Numerica 19, 2010, section 10). That inequality, too, is
checked in integers, so neither the condition of the system nor the quality of the solver can make a bound wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.graph import reachable, reaching
from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.factorization import Factorization, factorize, require_leaving
from tracebridge.errors import EngineError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix

    Integers = NDArray[Any]  # Python integers, dtype object

__all__ = [
    "Factorization",
    "TransientSystem",
    "factorize",
    "solve_enclosed",
    "solve_enclosed_transposed",
    "solve_exact",
    "solve_exact_transposed",
]

#: Systems with more states than this are not solved in rationals.
EXACT_LIMIT = 1_000

_GUARD_BITS = 64  # relative accuracy that refinement aims at, componentwise
_MAX_REFINEMENTS = 30
_MAX_PROOFS = 5
_COLUMNS_AT_A_TIME = 16
_FLOAT_BITS = 900  # integers up to this length become doubles with room to spare


def solve_exact(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    """``(I - P[transient, transient]) x = rhs`` in rationals; ``rhs`` is a list of columns, the result too.

    Raises:
        ModelError: if some state of the set can never leave it.
        UnsupportedError: for more than `EXACT_LIMIT` states.
    """
    return TransientSystem.of(P, transient).solve_exact(rhs)


def solve_exact_transposed(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    """``x (I - P[transient, transient]) = rhs`` in rationals: expected visits from a start. Else as `solve_exact`."""
    return TransientSystem.of(P, transient).solve_exact(rhs, transposed=True)


def solve_enclosed(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction | float]]
) -> list[EnclosureVector]:
    """``(I - P[transient, transient]) x = rhs`` in doubles with rigorous bounds, one vector a column of ``rhs``.

    Bounds are neighbouring doubles in general and equal where the solution is a double that refinement hits.

    Args:
        P: the exact chain (`MarkovChain.exact_transitions`).
        transient: m states. rhs: columns of m non-negative numbers, doubles taken exactly.

    Raises:
        ModelError: if some state of the set can never leave it.
        EngineError: if a run changes its state more than about 1e13 times in a set of more than `EXACT_LIMIT` states;
            up to that size such a system is solved in rationals.
        UnsupportedError: if the solution is beyond the range of doubles.
    """
    return TransientSystem.of(P, transient).solve_enclosed(rhs)


def solve_enclosed_transposed(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction | float]]
) -> list[EnclosureVector]:
    """``x (I - P[transient, transient]) = rhs`` in doubles with rigorous bounds; else as `solve_enclosed`."""
    return TransientSystem.of(P, transient).solve_enclosed(rhs, transposed=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransientSystem:
    """``(I - P[set, set])`` in integers: row i times ``denominators[i]`` is ``diagonal[i] x_i - sum_j a_ij x_j``.

    Attributes:
        rows, columns, entries: the m x m matrix A by coordinates, row by row: positive integers off the diagonal.
        diagonal: the mass that leaves each state, to the set or out of it, shape (m,), positive.
        exits: the mass that leaves the set, shape (m,). denominators: of the rows, shape (m,).
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    entries: Integers
    diagonal: Integers
    exits: Integers
    denominators: Integers

    @classmethod
    def of(cls, P: RationalMatrix, transient: NDArray[np.int64]) -> TransientSystem:
        """The system of a set of states of P, whose rows sum to one.

        Raises:
            ModelError: if some state of the set can never leave it; the message gives its position in the set.
        """
        m = len(transient)
        position = np.full(P.n_columns, -1, dtype=np.int64)
        position[transient] = np.arange(m)
        row = np.full(P.shape[0], -1, dtype=np.int64)
        row[transient] = np.arange(m)
        sources = row[P.row_of_entry]
        targets = position[P.indices]
        leaving = (sources >= 0) & (sources != targets)
        outward = leaving & (targets < 0)
        inside = np.flatnonzero(leaving & (targets >= 0))
        inside = inside[np.argsort(sources[inside], kind="stable")]
        numerators = P.numerators.astype(object)
        diagonal, exits = np.zeros(m, dtype=object), np.zeros(m, dtype=object)
        np.add.at(diagonal, sources[leaving], numerators[leaving])
        np.add.at(exits, sources[outward], numerators[outward])
        system = cls(
            rows=sources[inside],
            columns=targets[inside],
            entries=numerators[inside],
            diagonal=diagonal,
            exits=exits,
            denominators=P.denominators[transient].astype(object),
        )
        require_leaving(system.pattern(np.ones(len(inside))), exits > 0)
        return system

    @property
    def size(self) -> int:
        """The number m of states."""
        return len(self.diagonal)

    def factorize(self) -> Factorization:
        """The jump chain (every row divided by its diagonal) in doubles, each entry correctly rounded."""
        bottoms = self.diagonal[self.rows]
        entries = np.array([a / b for a, b in zip(self.entries.tolist(), bottoms.tolist(), strict=True)])
        exits = np.array([a / b for a, b in zip(self.exits.tolist(), self.diagonal.tolist(), strict=True)])
        return factorize(self.pattern(entries), exits)

    # ------------------------------------------------------------ rationals

    def solve_exact(self, rhs: Sequence[Sequence[Fraction]], *, transposed: bool = False) -> list[list[Fraction]]:
        """As the functions of this module."""
        _check_columns(rhs, self.size)
        if self.size > EXACT_LIMIT:
            raise UnsupportedError(
                f"{self.size} transient states are too many for exact arithmetic (at most {EXACT_LIMIT}); use doubles"
            )
        if self.size == 0 or not rhs:
            return [[] for _ in rhs]
        from flint import fmpz_mat

        m, k = self.size, len(rhs)
        matrix = [[0] * m for _ in range(m)]
        for i, j, entry in zip(self.rows.tolist(), self.columns.tolist(), self.entries.tolist(), strict=True):
            matrix[j if transposed else i][i if transposed else j] = -entry
        for i, entry in enumerate(self.diagonal.tolist()):
            matrix[i][i] = entry
        denominators = self.denominators.tolist()
        columns = [[Fraction(b) if transposed else b * denominators[i] for i, b in enumerate(column)] for column in rhs]
        scales = [lcm(*(b.denominator for b in column)) for column in columns]
        integers = [[int(column[i] * scale) for column, scale in zip(columns, scales, strict=True)] for i in range(m)]
        solution = fmpz_mat(matrix).solve(fmpz_mat(integers)).tolist()
        return [
            [
                Fraction(int(solution[i][c].p), int(solution[i][c].q) * scales[c])
                * (denominators[i] if transposed else 1)
                for i in range(m)
            ]
            for c in range(k)
        ]

    # ------------------------------------------------------------ doubles with bounds

    def solve_enclosed(
        self,
        rhs: Sequence[Sequence[Fraction | float]],
        *,
        transposed: bool = False,
        factorization: Factorization | None = None,
    ) -> list[EnclosureVector]:
        """As the functions of this module; ``factorization`` is this system's own, if it is at hand."""
        _check_columns(rhs, self.size)
        if any(not b >= 0 or b == math.inf for column in rhs for b in column):
            raise ValueError("a right-hand side must be finite and not negative")
        if self.size == 0 or not rhs:
            return [EnclosureVector.from_floats(np.zeros(0)) for _ in rhs]
        factors = factorization or self.factorize()
        found: list[EnclosureVector] = []
        for start in range(0, len(rhs), _COLUMNS_AT_A_TIME):
            some = rhs[start : start + _COLUMNS_AT_A_TIME]
            found += _Refinement(self, factors, some, transposed=transposed).run() or self._round_exact(
                some, transposed=transposed
            )
        return found

    def _round_exact(self, rhs: Sequence[Sequence[Fraction | float]], *, transposed: bool) -> list[EnclosureVector]:
        if self.size > EXACT_LIMIT:
            raise EngineError(
                f"the linear system of {self.size} states is too ill-conditioned for doubles: a run moves among them "
                "for more than 1e13 changes of state on average"
            )
        columns = self.solve_exact([[Fraction(b) for b in column] for column in rhs], transposed=transposed)
        return [EnclosureVector.from_fractions(column).to_float() for column in columns]

    def apply(self, x: Integers, *, transposed: bool = False) -> Integers:
        """``(D - A) x``, or ``(D - A)^T x``, for integers x of shape (m, k)."""
        result = self.diagonal[:, None] * x
        if len(self.entries):
            targets, sources = (self.columns, self.rows) if transposed else (self.rows, self.columns)
            order = np.argsort(targets, kind="stable")
            products = self.entries[order, None] * x[sources[order]]
            filled, starts = np.unique(targets[order], return_index=True)
            result[filled] -= np.add.reduceat(products, starts, axis=0)
        return result

    def pattern(self, entries: NDArray[np.float64]) -> csr_array:
        """A sparse matrix of shape (m, m) with these entries in the places of A."""
        return csr_array((entries, (self.rows, self.columns)), shape=(self.size, self.size))


class _Refinement:
    """Refinement of a few columns at once; unknowns and residuals are integers in units of ``2**-bits``.

    A transposed system is solved for ``z_i = x_i / denominators[i]``, so that both are systems of ``D - A``.
    """

    def __init__(
        self,
        system: TransientSystem,
        factors: Factorization,
        rhs: Sequence[Sequence[Fraction | float]],
        *,
        transposed: bool,
    ) -> None:
        self.system, self.factors, self.transposed = system, factors, transposed
        self.diagonal: list[int] = system.diagonal.tolist()
        denominators = [1] * system.size if transposed else system.denominators.tolist()
        ratios = [
            [(top * scale, bottom) for (top, bottom), scale in zip(map(_ratio, column), denominators, strict=True)]
            for column in rhs
        ]
        # One unit of rounding in every unknown moves a solution by at most about this many units.
        self.spread = self._spread()
        self.bits = self._enough_bits(ratios)
        fixed = [[divmod(top << self.bits, bottom) for top, bottom in column] for column in ratios]
        self.rhs = _columns([[whole for whole, _ in column] for column in fixed])
        self.truncated = _columns([[int(rest > 0) for _, rest in column] for column in fixed])
        self.zero = np.stack([self._certainly_zero([top > 0 for top, _ in column]) for column in ratios], axis=1)

    def run(self) -> list[EnclosureVector] | None:
        """The enclosures, or None if the system is too ill-conditioned for corrections computed in doubles."""
        x: Integers = np.zeros_like(self.rhs)
        residual, previous = self.rhs, math.inf
        for _ in range(_MAX_REFINEMENTS):
            correction = self._solve(residual)
            x = np.maximum(x + correction, 0)
            residual = self._residual(x)
            size = _largest_ratio(np.abs(correction), (x >> _GUARD_BITS) + 4 * self.spread)
            if size <= 1 and (w := self._prove(np.abs(residual) + self.truncated)) is not None:
                return self._enclose(x, w)
            if size > previous / 2:
                return None
            previous = size
        return None

    def _residual(self, x: Integers) -> Integers:
        return self.rhs - self.system.apply(x, transposed=self.transposed)

    def _solve(self, rhs: Integers) -> Integers:
        """About the solution for a right-hand side, rounded down to units."""
        excess = max(0, max(value.bit_length() for value in rhs.ravel().tolist()) - _FLOAT_BITS)
        if self.transposed:
            columns = [[value / (1 << excess) for value in row] for row in rhs.tolist()]
            divisors = self.diagonal
        else:
            columns = [
                [value / (d << excess) for value in row] for row, d in zip(rhs.tolist(), self.diagonal, strict=True)
            ]
            divisors = [1] * self.system.size
        scaled = np.array(columns)
        mantissas, exponents = np.frexp(self.factors.approximate(scaled, transposed=self.transposed))
        whole = np.ldexp(mantissas, 53).astype(np.int64)
        shifts = exponents.astype(np.int64) - 53 + excess
        return _columns(
            [
                [_shifted(a, s) // d for a, s, d in zip(column, shift, divisors, strict=True)]
                for column, shift in zip(whole.T.tolist(), shifts.T.tolist(), strict=True)
            ]
        )

    def _prove(self, bound: Integers) -> Integers | None:
        """Integers w with ``(D - A) w >= bound``, column by column; zero where the bound is. None if none was found."""
        # Rounding w down to units costs less than two diagonals a row, where there is anything to bound at all.
        unit = 2 * self.system.diagonal[:, None] * np.any(bound, axis=0).astype(object)
        w: Integers = np.zeros_like(bound)
        shortfall = bound
        for _ in range(_MAX_PROOFS):
            step = np.maximum(self._solve(np.maximum(shortfall, 0) + unit), 0)
            w = w + step + (step >> 10)  # a little more, for the doubles behind the step are rounded
            shortfall = bound - self.system.apply(w, transposed=self.transposed)
            if all(value <= 0 for value in shortfall.ravel().tolist()):
                return w
        return None

    def _enclose(self, x: Integers, w: Integers) -> list[EnclosureVector]:
        x, w = np.where(self.zero, 0, x), np.where(self.zero, 0, w)
        if self.transposed:
            x, w = x * self.system.denominators[:, None], w * self.system.denominators[:, None]
        nearest = np.frompyfunc(lambda number: _quotient(number, 1 << self.bits), 1, 1)
        down = np.frompyfunc(lambda number: directed.scaled_down(number, self.bits), 1, 1)
        up = np.frompyfunc(lambda number: directed.scaled_up(number, self.bits), 1, 1)
        bounds = (nearest(x), down(np.maximum(x - w, 0)), up(x + w))
        value, lower, upper = (bound.astype(np.float64) for bound in bounds)
        return [EnclosureVector.from_bounds(value[:, c], lower[:, c], upper[:, c]) for c in range(x.shape[1])]

    # ------------------------------------------------------------ the grid

    def _spread(self) -> int:
        ones = np.ones(self.system.size)
        if not self.transposed:
            return _finite_ceil(self.factors.solve(ones).max())
        largest = max(self.diagonal)
        relative = np.array([d / largest for d in self.diagonal])
        with np.errstate(divide="ignore", over="ignore"):
            return _finite_ceil((self.factors.solve_transposed(relative) / relative).max())

    def _enough_bits(self, ratios: list[list[tuple[int, int]]]) -> int:
        """So many that `spread` units are below ``2**-_GUARD_BITS`` of the smallest positive component."""
        divisors = [1] * self.system.size if self.transposed else self.diagonal
        rhs = np.array(
            [[_quotient(top, bottom * d) for (top, bottom), d in zip(c, divisors, strict=True)] for c in ratios]
        ).T
        solution = self.factors.solve_transposed(rhs) if self.transposed else self.factors.solve(rhs)
        if not np.all(np.isfinite(solution)):
            raise UnsupportedError("the solution is beyond the range of doubles; use exact arithmetic")
        exponents = np.frexp(solution)[1].astype(np.int64)
        if self.transposed:
            exponents = exponents - np.array([d.bit_length() for d in self.diagonal])[:, None]
        positive = exponents[solution > 0]
        smallest = int(positive.min()) if positive.size else 0
        return max(0, _GUARD_BITS + 8 + self.spread.bit_length() - smallest)

    def _certainly_zero(self, rhs_positive: list[bool]) -> NDArray[np.bool_]:
        """Components that no positive right-hand side reaches: by structure they are exactly zero."""
        sources = np.array(rhs_positive, dtype=np.bool_)
        pattern = self.system.pattern(np.ones(len(self.system.entries)))
        return ~(reachable(pattern, sources) if self.transposed else reaching(pattern, sources))


def _ratio(number: Fraction | float) -> tuple[int, int]:
    return number.as_integer_ratio()


def _quotient(top: int, bottom: int) -> float:
    try:
        return top / bottom
    except OverflowError:
        return math.inf


def _shifted(mantissa: int, bits: int) -> int:
    return mantissa << bits if bits >= 0 else mantissa >> -bits


def _columns(columns: list[list[int]]) -> Integers:
    array = np.empty((len(columns[0]), len(columns)), dtype=object)
    for c, column in enumerate(columns):
        array[:, c] = column
    return array


def _finite_ceil(number: float) -> int:
    if not math.isfinite(number):
        raise UnsupportedError("the solution is beyond the range of doubles; use exact arithmetic")
    return max(1, math.ceil(number))


def _largest_ratio(tops: Integers, bottoms: Integers) -> float:
    """The largest quotient of integers, the denominators positive."""
    return max(_quotient(a, b) for a, b in zip(tops.ravel().tolist(), bottoms.ravel().tolist(), strict=True))


def _check_columns(rhs: Sequence[Sequence[Fraction | float]], size: int) -> None:
    for column in rhs:
        if len(column) != size:
            raise ValueError(f"{size} states need columns of that length, not of {len(column)}")
