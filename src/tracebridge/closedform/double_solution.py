"""The equations of many transient states solved in doubles, with rigorous bounds, without a number outside of arrays.

Refinement and proof are those of `enclosed_solution`, in double-doubles: residuals are known to about 2^-100 of what
they are made of, and ``(D - A) t >= s > 0`` for some t shows that every x is off by at most ``max(|r| / s) t``.
Where elimination gives a w with ``(D - A) w >= |r|``, x is off by at most w: small unknowns then keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching
from tracebridge.closedform import directed
from tracebridge.closedform.double_system import LARGEST, Residuals
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.error_free import SUBNORMAL, UNIT, DoubleDouble
from tracebridge.closedform.factorization import factorizations
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.double_system import DoubleSystem, RightHandSide
    from tracebridge.closedform.linear_solver import Factorization

    Floats = NDArray[np.float64]

#: Relative errors that refinement aims at: far below the rounding of the result.
AIM = 2.0**-57

#: Relative errors that are taken from a quick solver, where a slower one might do better.
ACCEPTED = 2.0**-46

#: Or errors relative to the largest unknown.
ACCEPTED_OF_LARGEST = 2.0**-80

_ROUGH = 0.05  # tolerance for t, of which little is asked
_MOST_REFINEMENTS = 25
_ROUNDED_UP = 1 + 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Proof:
    """``(D - A) t >= s > 0``, shape (m,) each: the inverse of ``D - A`` is not negative."""

    t: Floats
    s: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Solution:
    """x, off by at most ``error``; shape (m,).

    Attributes:
        accuracy: the largest relative error. acceptable: whether a slower solver need not be asked.
    """

    x: DoubleDouble
    error: Floats
    accuracy: float
    acceptable: bool

    @classmethod
    def of(cls, x: DoubleDouble, error: Floats) -> _Solution:
        """Measured."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # beside a tiny x it may be infinite
            ratios = np.where(error == 0, 0.0, error / x.high)
        accuracy = float(ratios.max(initial=0.0))
        of_largest = float(error.max(initial=0.0)) <= ACCEPTED_OF_LARGEST * float(x.high.max(initial=0.0))
        return cls(x=x, error=error, accuracy=accuracy, acceptable=accuracy <= ACCEPTED or of_largest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Approximation:
    """x on the way to a solution, shape (m,).

    Attributes:
        residual: ``b - (D - A) (x + d)`` for some d with ``|d| <= drift``; off by at most ``uncertain``.
    """

    x: DoubleDouble
    residual: Floats
    uncertain: Floats
    drift: Floats

    @classmethod
    def nothing(cls, rhs: RightHandSide) -> _Approximation:
        """The approximation zero."""
        zero = np.zeros_like(rhs.error)
        uncertain = (rhs.error + np.abs(rhs.value.low)) * _ROUNDED_UP
        return cls(x=DoubleDouble(zero, zero), residual=rhs.value.high, uncertain=uncertain, drift=zero)

    def moved(self, step: Floats, residuals: Residuals) -> _Approximation:
        """One step further, or less where that would be below zero; the residual is followed in doubles.

        Raises:
            EngineError: beyond the range of doubles.
        """
        step = np.maximum(step, -self.x.high)
        x = self.x.plus(step)
        if not x.high.max(initial=0.0) < LARGEST:  # NaN neither
            raise EngineError("a solution is beyond the range of doubles")
        residual, uncertain = residuals.moved(self.residual, self.uncertain, step)
        # What is lost by keeping two doubles of the sum, and by keeping it at zero at least.
        lost = 4 * UNIT**2 * (self.x.high + np.abs(x.high)) + np.maximum(-x.high, 0.0)
        drift = (self.drift + lost) * _ROUNDED_UP
        return _Approximation(x=x.clipped(), residual=residual, uncertain=uncertain, drift=drift)

    def anew(self, residuals: Residuals, rhs: RightHandSide) -> _Approximation:
        """The same x with its residual in twice the precision."""
        residual, uncertain = residuals(self.x, rhs)
        return _Approximation(x=self.x, residual=residual, uncertain=uncertain, drift=np.zeros_like(residual))


class DoubleSolver:
    """A system with the first factorization that proves good enough, which is kept.

    Attributes:
        satisfied: whether the last solution was good enough; if not, all factorizations were tried, the best was taken,
            and there is none left for another.
    """

    def __init__(self, system: DoubleSystem, ways: Iterator[Callable[[], Factorization]] | None = None) -> None:
        """Without ``ways`` those of `factorizations` are tried."""
        self.system = system
        self._ways = factorizations(system.entries, system.exits) if ways is None else ways
        self._residuals = Residuals(system)
        self._factors: Factorization | None = None
        self._proof: _Proof | None = None
        self._failures: list[str] = []
        self.satisfied = False

    def solve(self, rhs: Sequence[RightHandSide]) -> list[EnclosureVector]:
        """``(D - A) x = b`` for each right-hand side.

        Raises:
            EngineError: if no factorization leads to bounds.
        """
        best: list[_Solution] | None = None
        self.satisfied = False
        while True:
            if self._factors is None and not self._next_way():
                break
            found = self._attempt(rhs)
            if found is not None and (best is None or _worst(found) < _worst(best)):
                best = found
            if found is not None and all(solution.acceptable for solution in found):
                best, self.satisfied = found, True
                break
            self._factors = None
        if best is None:
            raise self._refusal()
        return [self._enclosure(solution, b) for solution, b in zip(best, rhs, strict=True)]

    def positive_image(self) -> tuple[Floats, Floats]:
        """Some t > 0, about the expected number of jumps, and a positive s with ``(D - A) t >= s``; shape (m,) each.

        Raises:
            EngineError: if no factorization leads to one.
        """
        if self._factors is None and not self._next_way():
            raise self._refusal()
        assert self._proof is not None  # noqa: S101 - comes with the factors
        return self._proof.t, self._proof.s

    def _refusal(self) -> EngineError:
        return EngineError(
            f"the equations of {self.system.size} states were not solved in doubles: " + "; ".join(self._failures)
        )

    def _next_way(self) -> bool:
        """Make the next factorization and find its t; False if there is none left."""
        for make in self._ways:
            try:
                factors = make()
                proof = self._prove(factors)
            except EngineError as failure:
                self._failures.append(str(failure))
                continue
            if proof is not None:
                self._factors, self._proof = factors, proof
                return True
            self._failures.append("a solution does not come near enough")
        return False

    def _prove(self, factors: Factorization) -> _Proof | None:
        """t about the expected number of jumps."""
        leaving = self.system.diagonal.high
        with np.errstate(all="ignore"):  # what is beyond doubles is found out
            t = factors.approximate(leaving, transposed=False, tolerance=_ROUGH)
            for _ in range(2):
                if not np.all(np.isfinite(t)) or t.max(initial=0.0) > LARGEST:
                    return None
                t = np.maximum(t, SUBNORMAL)
                s = self._residuals.lower_bound(t, 0.2 * leaving)
                if np.all(s > 0.1 * leaving):
                    return _Proof(t=t, s=s)
                t = t + factors.approximate(leaving - s, transposed=False)
        return None

    def _attempt(self, rhs: Sequence[RightHandSide]) -> list[_Solution] | None:
        try:
            return [self._refine(b) for b in rhs]
        except EngineError as failure:
            self._failures.append(str(failure))
            return None

    def _refine(self, rhs: RightHandSide) -> _Solution:
        factors, proof = self._factors, self._proof
        assert factors is not None  # noqa: S101 - `solve` sets both
        assert proof is not None  # noqa: S101
        current = _Approximation.nothing(rhs)
        best: _Solution | None = None
        previous, tolerance = np.inf, factors.finest
        for _ in range(_MOST_REFINEMENTS):
            step = factors.approximate(current.residual, transposed=False, tolerance=tolerance)
            current = current.moved(step, self._residuals)
            solution, bound, size = self._measured(current)
            if not solution.accuracy <= AIM and (size > previous / 2 or not _certain(current, proof.s, tolerance)):
                current = current.anew(self._residuals, rhs)
                solution, bound, size = self._measured(current)
            if best is None or solution.accuracy <= best.accuracy:
                best, best_bound, drift = solution, bound, current.drift
            if best.accuracy <= AIM:
                return best
            if size > previous / 2:
                break
            previous = size
            if solution.accuracy < 1:  # what is left to do
                tolerance = min(max(factors.finest, AIM / (8 * solution.accuracy)), _ROUGH)
        assert best is not None  # noqa: S101 - the first round sets it
        return self._sharpened(best, best_bound, drift) if factors.componentwise else best

    def _measured(self, current: _Approximation) -> tuple[_Solution, Floats, float]:
        """The solution with the bounds of the proof, bounds of its residual, and these relative to what passes."""
        proof = self._proof
        assert proof is not None  # noqa: S101 - `solve` sets it
        bound = np.abs(current.residual) + current.uncertain
        error = (_times(float((bound / proof.s).max()), proof.t) + current.drift) * _ROUNDED_UP
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            size = float(np.nanmax(bound / (self.system.diagonal.high * current.x.high), initial=0.0))
        return _Solution.of(current.x, error), bound, size

    def _sharpened(self, solution: _Solution, bound: Floats, drift: Floats) -> _Solution:
        """With a bound for each unknown of its own, where one is found."""
        factors, proof = self._factors, self._proof
        assert factors is not None  # noqa: S101 - `solve` sets both
        assert proof is not None  # noqa: S101
        w = np.maximum(factors.approximate(bound, transposed=False) * (1 + 2.0**-10), 0.0)
        for _ in range(3):
            with np.errstate(invalid="ignore"):
                missing = bound - self._residuals.lower_bound(w, bound)
            if np.all(missing <= 0):
                return _Solution.of(solution.x, np.minimum(solution.error, (w + drift) * _ROUNDED_UP))
            # Where numbers underflow, rounding is not small beside them: a little of t makes up for it.
            w = w + _times(2 * float((missing / proof.s).max()), proof.t)
        return solution

    def _enclosure(self, solution: _Solution, rhs: RightHandSide) -> EnclosureVector:
        x, error = solution.x, solution.error
        lower = np.maximum(_add_down(x, -error), 0.0)
        upper = -_add_down(DoubleDouble(-x.high, -x.low), -error)
        value = x.high
        if not np.all(lower > 0):  # what no positive right-hand side reaches is zero by structure
            zero = ~reaching(self.system.entries, rhs.value.high > 0)
            lower, upper, value = (np.where(zero, 0.0, part) for part in (lower, upper, value))
        return EnclosureVector.from_bounds(value, lower, upper)


def _certain(current: _Approximation, s: Floats, tolerance: float) -> bool:
    """Whether the residual is known well enough for a step as good as the tolerance to follow from it."""
    return bool((current.uncertain / s).max() <= tolerance * (np.abs(current.residual) / s).max())


def _worst(solutions: list[_Solution]) -> float:
    return max((solution.accuracy for solution in solutions), default=0.0)


def _times(factor: float, t: Floats) -> Floats:
    """The product rounded up."""
    return factor * t * _ROUNDED_UP + SUBNORMAL


def _add_down(x: DoubleDouble, addend: Floats) -> Floats:
    """A lower bound of ``x + addend``, the nearest double below in general."""
    rest = x.low + addend
    return directed.add_down(x.high, rest - (2 * UNIT * np.abs(rest) + SUBNORMAL))
