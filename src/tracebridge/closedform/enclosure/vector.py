"""Many enclosed numbers, in doubles or in rationals, and their arithmetic."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import intervals, rationals
from tracebridge.closedform.enclosure.scalar import Enclosure, Real
from tracebridge.closedform.powers import exact_power

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tracebridge.pctl.ast import Comparison

    Mask = NDArray[np.bool_]

_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, slots=True, eq=False)
class EnclosureVector:
    """n enclosures: three float64 arrays of shape (n,), or one object array of Fractions that is all three.

    An object array may hold the floats inf, -inf and NaN beside its Fractions. Arithmetic between an exact and a float
    vector is float. Float bounds are rounded outward, to the nearest double on the safe side for + - * /.
    """

    value: NDArray[Any]
    lower: NDArray[Any]
    upper: NDArray[Any]

    def __post_init__(self) -> None:
        if self.exact:
            if self.lower is not self.value or self.upper is not self.value:
                raise ValueError("an exact vector has one array for value, lower and upper")
            return
        if not (self.value.shape == self.lower.shape == self.upper.shape and self.value.ndim == 1):
            raise ValueError(f"shapes {self.value.shape}, {self.lower.shape} and {self.upper.shape} differ")
        undefined = np.isnan(self.value)
        ordered = (self.lower <= self.value) & (self.value <= self.upper)
        if not np.all(np.where(undefined, (self.lower == -np.inf) & (self.upper == np.inf), ordered)):
            raise ValueError("an enclosure needs lower <= value <= upper")
        for array in (self.value, self.lower, self.upper):
            array.flags.writeable = False

    # ------------------------------------------------------------ construction

    @classmethod
    def from_fractions(cls, values: Sequence[Real | int]) -> EnclosureVector:
        """An exact vector; inf, -inf and NaN may be among the values, other floats are taken exactly."""
        array = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):
            array[i] = value if isinstance(value, float) and not math.isfinite(value) else Fraction(value)
        array.flags.writeable = False
        return cls(array, array, array)

    @classmethod
    def from_floats(cls, values: NDArray[np.float64]) -> EnclosureVector:
        """A float vector of width zero: the doubles are the numbers."""
        return cls.from_bounds(values, values, values)

    @classmethod
    def from_bounds(
        cls, value: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> EnclosureVector:
        """A float vector; any NaN is undefined.

        A value that rounding carried out of its bounds is moved into them. So is one that overflowed: a number is shown
        as infinite only where it surely is.
        """
        undefined = np.isnan(value) | np.isnan(lower) | np.isnan(upper)
        low = np.where(undefined, -np.inf, lower)
        high = np.where(undefined, np.inf, upper)
        finite = np.clip(value, -_LARGEST, _LARGEST)
        return cls(np.where(undefined, np.nan, np.clip(finite, low, high)), low, high)

    @classmethod
    def constant(cls, n: int, value: Real | int, *, exact: bool) -> EnclosureVector:
        """The same number n times; in doubles, if it is no double, between its two neighbours."""
        if exact:
            return cls.from_fractions([value]).take(np.zeros(n, dtype=np.int64))
        return cls.from_bounds(
            np.full(n, directed.nearest(value)), np.full(n, directed.down(value)), np.full(n, directed.up(value))
        )

    @classmethod
    def from_enclosures(cls, values: Sequence[Enclosure]) -> EnclosureVector:
        """One vector of these; exact if all of them are exact or undefined."""
        if all(item.exact or item.undefined for item in values):
            return cls.from_fractions([item.value for item in values])
        return cls.from_bounds(
            np.array([directed.nearest(item.value) for item in values]),
            np.array([directed.down(item.lower) for item in values]),
            np.array([directed.up(item.upper) for item in values]),
        )

    @classmethod
    def where(cls, mask: Mask, then: EnclosureVector, otherwise: EnclosureVector) -> EnclosureVector:
        """``then`` where the mask holds, else ``otherwise``."""
        if then.exact and otherwise.exact:
            return cls.from_fractions(np.where(mask, then.value, otherwise.value).tolist())
        a, b = then.to_float(), otherwise.to_float()
        return cls(np.where(mask, a.value, b.value), np.where(mask, a.lower, b.lower), np.where(mask, a.upper, b.upper))

    # ------------------------------------------------------------ reading

    @property
    def exact(self) -> bool:
        """Whether the entries are rationals."""
        return bool(self.value.dtype == object)

    @property
    def undefined(self) -> Mask:
        """Where there is no number, shape (n,)."""
        return np.array([x != x for x in self.value.tolist()], dtype=np.bool_)  # noqa: PLR0124 - NaN alone differs

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int) -> Enclosure:
        if self.exact:
            return Enclosure.exactly(self.value[index])
        return Enclosure(float(self.value[index]), float(self.lower[index]), float(self.upper[index]))

    def take(self, indices: NDArray[np.int64] | Mask) -> EnclosureVector:
        """The entries at these positions."""
        value = self.value[indices]
        return (
            EnclosureVector(value, value, value)
            if self.exact
            else EnclosureVector(value, self.lower[indices], self.upper[indices])
        )

    def to_float(self) -> EnclosureVector:
        """The same enclosures in doubles, rounded outward; a float vector is returned as it is."""
        if not self.exact:
            return self
        bounds = np.array([directed.enclosing(x) for x in self.value.tolist()], dtype=np.float64).reshape(-1, 3)
        return EnclosureVector.from_bounds(*bounds.T.copy())

    def weighted_mean(self, weights: Sequence[Real | int]) -> Enclosure:
        """``sum w_i x_i / sum w_i``, in rationals; entries of weight zero do not count, not even infinite ones.

        Args:
            weights: n rationals or doubles (taken exactly), non-negative, not all zero.
        """
        if len(weights) != len(self):
            raise ValueError(f"{len(self)} entries need as many weights, not {len(weights)}")
        support = [(i, Fraction(w)) for i, w in enumerate(weights) if w != 0]
        total = sum((w for _, w in support), Fraction(0))
        if not support or any(w < 0 for _, w in support):
            raise ValueError("weights are non-negative and not all zero")

        def mean(column: NDArray[Any]) -> Real:
            entries = [(w, column[i]) for i, w in support]
            infinite = {float(x) for _, x in entries if isinstance(x, float) and not math.isfinite(x)}
            if infinite:
                return math.fsum(infinite) if len(infinite) == 1 else math.nan
            return sum((w * Fraction(x) for w, x in entries), Fraction(0)) / total

        value = mean(self.value)
        if self.exact or value != value:  # noqa: PLR0124 - NaN alone differs
            return Enclosure.exactly(value)
        bounds = directed.nearest(value), directed.down(mean(self.lower)), directed.up(mean(self.upper))
        return EnclosureVector.from_bounds(*(np.array([bound]) for bound in bounds))[0]

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: EnclosureVector) -> EnclosureVector:
        if self.exact and other.exact:
            return EnclosureVector.from_fractions(rationals.field_operation(operator.add, self.value, other.value))
        return EnclosureVector.from_bounds(*intervals.add(self._bounds(), other._bounds()))

    def __neg__(self) -> EnclosureVector:
        if self.exact:
            return EnclosureVector.from_fractions(rationals.field_operation(operator.neg, self.value))
        return EnclosureVector(-self.value, -self.upper, -self.lower)

    def __sub__(self, other: EnclosureVector) -> EnclosureVector:
        return self + (-other)

    def __mul__(self, other: EnclosureVector) -> EnclosureVector:
        if self.exact and other.exact:
            return EnclosureVector.from_fractions(rationals.field_operation(operator.mul, self.value, other.value))
        return EnclosureVector.from_bounds(*intervals.multiply(self._bounds(), other._bounds()))

    def __truediv__(self, other: EnclosureVector) -> EnclosureVector:
        if self.exact and other.exact:
            return EnclosureVector.from_fractions(
                rationals.field_operation(rationals.quotient, self.value, other.value)
            )
        return EnclosureVector.from_bounds(*intervals.divide(self._bounds(), other._bounds()))

    def __pow__(self, other: EnclosureVector) -> EnclosureVector:
        """Powers as real numbers; ``0^0 = 1``; undefined for a negative base with a broken exponent.

        Rationals with integer exponents stay exact; other powers are irrational in general, so the result is float.

        Raises:
            UnsupportedError: if an exact power would have millions of digits.
        """
        exponents = other.value.tolist() if other.exact else []
        if self.exact and other.exact and all(rationals.is_integer(k) or k != k for k in exponents):  # noqa: PLR0124
            powers = rationals.unless_undefined(exact_power, self.value, other.value)
            return EnclosureVector.from_fractions(powers)
        odd = [k % 2 == 1 if rationals.is_integer(k) else None for k in exponents] or [None] * len(self)
        return EnclosureVector.from_bounds(*intervals.power(self._bounds(), other._bounds(), odd))

    def log(self, base: EnclosureVector) -> EnclosureVector:
        """The logarithm to ``base``, a float vector; undefined unless self >= 0, base > 0 and base surely is not 1."""
        return self._natural_log() / base._natural_log()

    def minimum(self, other: EnclosureVector) -> EnclosureVector:
        """The smaller of two numbers, entry by entry."""
        return self._monotone(min, np.minimum, other)

    def maximum(self, other: EnclosureVector) -> EnclosureVector:
        """The larger of two numbers, entry by entry."""
        return self._monotone(max, np.maximum, other)

    def hull(self, other: EnclosureVector) -> EnclosureVector:
        """The smallest enclosure of both, a float vector; its value is that of self."""
        a, b = self.to_float(), other.to_float()
        return EnclosureVector.from_bounds(a.value, np.minimum(a.lower, b.lower), np.maximum(a.upper, b.upper))

    def floor(self) -> EnclosureVector:
        """The largest integer below or at."""
        return self._monotone(rationals.step_function(math.floor), np.floor)

    def ceil(self) -> EnclosureVector:
        """The smallest integer above or at."""
        return self._monotone(rationals.step_function(math.ceil), np.ceil)

    def round(self) -> EnclosureVector:
        """The nearest integer, halves upward, as PRISM rounds."""
        return self._monotone(rationals.step_function(rationals.round_half_up), intervals.round_half_up)

    def mod(self, divisor: EnclosureVector) -> EnclosureVector:
        """The remainder in ``[0, divisor)``; undefined unless the divisor is surely positive."""
        quotient = (self / divisor).floor()
        positive = divisor.compare(">", EnclosureVector.constant(len(self), 0, exact=divisor.exact))[0]
        result = self - divisor * quotient
        undefined = EnclosureVector.constant(len(self), math.nan, exact=result.exact)
        if not result.exact:  # where the quotient is not certain the remainder may be anything
            zero = EnclosureVector.constant(len(self), 0, exact=False)
            result = result.maximum(zero).minimum(divisor)
        return EnclosureVector.where(positive, result, undefined)

    # ------------------------------------------------------------ comparison

    def compare(self, comparison: Comparison | str, other: EnclosureVector) -> tuple[Mask, Mask]:
        """Where ``self comparison other`` surely holds and where it possibly does; comparisons ``< <= > >= = !=``.

        Surely implies possibly; where they differ, the bounds do not decide.
        """
        a, b = (self, other) if self.exact and other.exact else (self.to_float(), other.to_float())
        undefined = a.undefined | b.undefined
        surely: NDArray[Any]
        possibly: NDArray[Any]
        with np.errstate(invalid="ignore"):  # NaN among rationals; it is undefined, whatever it compares to
            match comparison:
                case "<":
                    surely, possibly = a.upper < b.lower, a.lower < b.upper
                case "<=":
                    surely, possibly = a.upper <= b.lower, a.lower <= b.upper
                case ">":
                    surely, possibly = a.lower > b.upper, a.upper > b.lower
                case ">=":
                    surely, possibly = a.lower >= b.upper, a.upper >= b.lower
                case "=":
                    surely = (a.lower == b.upper) & (a.upper == b.lower)
                    possibly = (a.lower <= b.upper) & (a.upper >= b.lower)
                case "!=":
                    surely = (a.lower > b.upper) | (a.upper < b.lower)
                    possibly = (a.lower != b.upper) | (a.upper != b.lower)
                case _:
                    raise ValueError(f"{comparison!r} is not a comparison")
        return surely.astype(np.bool_, copy=False) & ~undefined, possibly.astype(np.bool_, copy=False) | undefined

    # ------------------------------------------------------------ parts

    def _bounds(self) -> intervals.Bounds:
        floats = self.to_float()
        return intervals.Bounds(floats.value, floats.lower, floats.upper)

    def _natural_log(self) -> EnclosureVector:
        if not self.exact:
            return EnclosureVector.from_bounds(*intervals.natural_log(self._bounds()))
        bounds = np.array([rationals.natural_log(x) for x in self.value.tolist()], dtype=np.float64).reshape(-1, 3)
        return EnclosureVector.from_bounds(*bounds.T.copy())

    def _monotone(
        self, function: Callable[..., Real], ufunc: Callable[..., NDArray[np.float64]], *others: EnclosureVector
    ) -> EnclosureVector:
        vectors = (self, *others)
        if all(vector.exact for vector in vectors):
            values = rationals.unless_undefined(function, *(vector.value for vector in vectors))
            return EnclosureVector.from_fractions(values)
        floats = [vector._bounds() for vector in vectors]
        undefined = np.logical_or.reduce([vector.undefined for vector in floats])
        value, lower, upper = (ufunc(*parts) for parts in zip(*floats, strict=True))
        return EnclosureVector.from_bounds(np.where(undefined, np.nan, value), lower, upper)
