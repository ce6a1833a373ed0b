"""The equations of transient states solved in doubles, with rigorous bounds.

The solution of the doubles is refined with residuals evaluated *exactly* in integers, and then its error is proven: the
inverse of ``D - A`` is non-negative, so ``(D - A) w >= |r|`` implies ``|x - x~| <= w`` componentwise (the M-matrix
bound; Rump, Acta Numerica 19, 2010, section 10). That inequality, too, is checked in integers, so neither the condition
of the system nor the quality of the solver can make a bound wrong.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.graph import reachable, reaching
from tracebridge.closedform import directed, rational_solution
from tracebridge.closedform.ball_elimination import solve_in_balls
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.integer_system import IntegerSystem
from tracebridge.errors import EngineError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix
    from tracebridge.closedform.linear_solver import Factorization

    Integers = NDArray[Any]  # Python integers, dtype object
    Ratio = tuple[int, int]

_GUARD_BITS = 64  # relative accuracy that refinement aims at, componentwise
_MAX_REFINEMENTS = 30
_MAX_PROOFS = 5
_COLUMNS_AT_A_TIME = 16
_SMALLEST_EXPONENT = -1074
_FLOAT_BITS = 900  # integers up to this length become doubles with room to spare


def solve_enclosed(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction | float]]
) -> list[EnclosureVector]:
    """``(I - P[transient, transient]) x = rhs`` in doubles with rigorous bounds, one vector a column of ``rhs``.

    Bounds are neighbouring doubles in general and equal where the solution is a double that refinement hits. A system
    that is too much for doubles is solved in rationals if it is small enough for that, else in balls.

    Args:
        P: the exact chain (`MarkovChain.exact_transitions`).
        transient: m states. rhs: columns of m non-negative numbers, doubles taken exactly.

    Raises:
        ModelError: if some state of the set can never leave it.
        EngineError: for a set of more than `rational_solution.EXACT_LIMIT` states, if it is too entangled: a run
            changes its state more than about 1e13 times in it, and elimination fills up.
    """
    return EnclosedSolver(IntegerSystem.of(P, transient)).solve(rhs)


def solve_enclosed_transposed(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction | float]]
) -> list[EnclosureVector]:
    """``x (I - P[transient, transient]) = rhs`` in doubles with rigorous bounds; else as `solve_enclosed`."""
    return EnclosedSolver(IntegerSystem.of(P, transient)).solve(rhs, transposed=True)


class EnclosedSolver:
    """A system with its factorization, which is made at the first use and kept."""

    def __init__(self, system: IntegerSystem, factorization: Factorization | None = None) -> None:
        """Without ``factorization`` the system makes its own."""
        self.system = system
        self._given = factorization

    @cached_property
    def _factors(self) -> Factorization:
        return self._given or self.system.factorize()

    def solve(self, rhs: Sequence[Sequence[Fraction | float]], *, transposed: bool = False) -> list[EnclosureVector]:
        """As `solve_enclosed` and `solve_enclosed_transposed`."""
        rational_solution.check_columns(rhs, self.system.size)
        ratios = [[_ratio(b) for b in column] for column in rhs]
        if self.system.size == 0 or not rhs:
            return [EnclosureVector.from_floats(np.zeros(0)) for _ in rhs]
        try:
            found: list[EnclosureVector] = []
            for start in range(0, len(rhs), _COLUMNS_AT_A_TIME):
                some = ratios[start : start + _COLUMNS_AT_A_TIME]
                found += _Refinement(self.system, self._factors, some, transposed=transposed).run()
        except EngineError:
            if self.system.size > rational_solution.EXACT_LIMIT:
                return solve_in_balls(self.system, ratios, transposed=transposed)
            columns = [[Fraction(*ratio) for ratio in column] for column in ratios]
            exact = rational_solution.solve_system_exact(self.system, columns, transposed=transposed)
            return [EnclosureVector.from_fractions(column).to_float() for column in exact]
        return found


class _Refinement:
    """Refinement of a few columns at once; unknowns and residuals are integers in units of ``2**-bits``.

    A transposed system is solved for ``z_i = x_i / denominators[i]``, so that both are systems of ``D - A``.
    """

    def __init__(
        self, system: IntegerSystem, factors: Factorization, rhs: list[list[Ratio]], *, transposed: bool
    ) -> None:
        """Raises UnsupportedError if the solution is beyond the range of doubles."""
        self.system, self.factors, self.transposed = system, factors, transposed
        self.diagonal: list[int] = system.diagonal.tolist()
        denominators = [1] * system.size if transposed else system.denominators.tolist()
        ratios = [
            [(top * scale, bottom) for (top, bottom), scale in zip(column, denominators, strict=True)] for column in rhs
        ]
        self.zero = np.stack([self._certainly_zero([top > 0 for top, _ in column]) for column in ratios], axis=1)
        # One unit of rounding in every unknown moves a solution by at most about this many units.
        self.spread = self._spread()
        start = self._start(ratios)
        self.bits = self._enough_bits(start)
        fixed = [[divmod(top << self.bits, bottom) for top, bottom in column] for column in ratios]
        self.rhs = _columns([[whole for whole, _ in column] for column in fixed])
        self.truncated = _columns([[int(rest > 0) for _, rest in column] for column in fixed])
        self.x = self._in_units(start, self.bits)

    def run(self) -> list[EnclosureVector]:
        """The enclosures. Raises EngineError if the system is too ill-conditioned for corrections in doubles."""
        x, previous = self.x, math.inf
        residual = self._residual(x)
        for _ in range(_MAX_REFINEMENTS):
            correction = self._solve(residual)
            x = np.maximum(x + correction, 0)
            residual = self._residual(x)
            size = _largest_ratio(np.abs(correction), (x >> _GUARD_BITS) + 4 * self.spread)
            if size <= 1 and (w := self._prove(np.abs(residual) + self.truncated)) is not None:
                return self._enclose(x, w)
            if size > previous / 2:
                break
            previous = size
        raise EngineError(
            f"the linear system of {self.system.size} states is too ill-conditioned for doubles: a run moves among "
            "them for more than 1e13 changes of state on average"
        )

    def _residual(self, x: Integers) -> Integers:
        return self.rhs - self.system.apply(x, transposed=self.transposed)

    def _solve(self, rhs: Integers) -> Integers:
        """About the solution for a right-hand side, rounded down to units."""
        excess = max(0, max(value.bit_length() for value in rhs.ravel().tolist()) - _FLOAT_BITS)
        if self.transposed:
            columns = [[value / (1 << excess) for value in row] for row in rhs.tolist()]
        else:
            columns = [
                [value / (d << excess) for value in row] for row, d in zip(rhs.tolist(), self.diagonal, strict=True)
            ]
        return self._in_units(self.factors.approximate(np.array(columns), transposed=self.transposed), excess)

    def _in_units(self, solution: NDArray[np.float64], bits: int) -> Integers:
        """Doubles times ``2**bits`` as integers, rounded down; from jumps to the unknowns of a transposed system."""
        if not np.all(np.isfinite(solution)):
            raise _beyond_doubles()
        mantissas, exponents = np.frexp(solution)
        whole = np.ldexp(mantissas, 53).astype(np.int64)
        shifts = exponents.astype(np.int64) - 53 + bits
        divisors = self.diagonal if self.transposed else [1] * self.system.size
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
            return _finite_ceil(self.factors.approximate(ones, transposed=False).max())
        largest = max(self.diagonal)
        relative = np.array([d / largest for d in self.diagonal])
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return _finite_ceil((self.factors.approximate(relative, transposed=True) / relative).max())

    def _start(self, ratios: list[list[Ratio]]) -> NDArray[np.float64]:
        """The solution in doubles, of a transposed system in jumps, shape (m, k)."""
        divisors = [1] * self.system.size if self.transposed else self.diagonal
        rhs = np.array(
            [[_quotient(top, bottom * d) for (top, bottom), d in zip(c, divisors, strict=True)] for c in ratios]
        ).T
        return self.factors.solve_transposed(rhs) if self.transposed else self.factors.solve(rhs)

    def _enough_bits(self, solution: NDArray[np.float64]) -> int:
        """So many that `spread` units are below ``2**-_GUARD_BITS`` of the smallest positive component."""
        exponents = np.frexp(np.where(np.isfinite(solution), solution, 1.0))[1].astype(np.int64)
        if self.transposed:
            exponents = exponents - np.array([d.bit_length() for d in self.diagonal])[:, None]
        exponents = np.where(solution > 0, exponents, _SMALLEST_EXPONENT)  # what underflowed is positive all the same
        smallest = int(exponents[~self.zero].min(initial=0))
        return max(0, _GUARD_BITS + 8 + self.spread.bit_length() - smallest)

    def _certainly_zero(self, rhs_positive: list[bool]) -> NDArray[np.bool_]:
        """Components that no positive right-hand side reaches: by structure they are exactly zero."""
        sources = np.array(rhs_positive, dtype=np.bool_)
        pattern = self.system.pattern()
        return ~(reachable(pattern, sources) if self.transposed else reaching(pattern, sources))


def _ratio(number: Fraction | float) -> Ratio:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError("a right-hand side must be finite and not negative")
    top, bottom = number.as_integer_ratio()
    if top < 0:
        raise ValueError("a right-hand side must be finite and not negative")
    return top, bottom


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
        raise _beyond_doubles()
    return max(1, math.ceil(number))


def _beyond_doubles() -> UnsupportedError:
    return UnsupportedError("the solution is beyond the range of doubles; use exact arithmetic")


def _largest_ratio(tops: Integers, bottoms: Integers) -> float:
    """The largest quotient of integers, the denominators positive."""
    return max(_quotient(a, b) for a, b in zip(tops.ravel().tolist(), bottoms.ravel().tolist(), strict=True))
