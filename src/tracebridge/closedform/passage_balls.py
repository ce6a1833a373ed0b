"""Passage in ball arithmetic: budgets beyond recursion, and comparisons that doubles leave open.

``R_inf - R(d) = v Q^d h`` for any d by doubling, in balls of rising precision; a tie is settled in rationals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from tracebridge.closedform.passage import BALL_LIMIT, Passage, dot
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from flint import arb, arb_mat

    from tracebridge.closedform.absorbing_system import Scalar

_BITS = (128, 1024)


class UndecidedError(Exception):
    """A comparison that lies within the bounds of the arithmetic in use."""


def search_in_balls(passage: Passage, slope: Fraction, offset: Fraction) -> float:
    """By doubling in ball arithmetic of rising precision, and ties in rationals (for a passage in Fractions)."""
    from flint import ctx

    for bits in _BITS:
        with ctx.workprec(bits):
            try:
                tail = _Tail(passage)
                threshold = _ball(slope) * (_ball(passage.mass) + tail.gap(tail.v)) + _ball(offset)
                if threshold < 0:
                    return math.inf
                if threshold > 0:
                    return tail.first(threshold)
            except UndecidedError:
                continue
    h = passage.exact_hitting()
    exact = slope * (Fraction(passage.mass) + dot(passage.v, h)) + offset
    if exact < 0:
        return math.inf
    if exact == 0:
        return passage.longest()

    def settle(d: int) -> bool:
        v, bottom = next(islice(passage.integer_steps(d), d, None))
        return dot(v, h) <= exact * bottom

    with ctx.workprec(_BITS[-1]):
        return _Tail(passage).first(_ball(exact), settle)


def split_in_balls(passage: Passage, d: int) -> tuple[float, float]:
    """``(R(d), 1 - R(d))`` for budgets beyond recursion, both to the last bit of a double."""
    from flint import ctx

    for bits in _BITS if passage.size <= BALL_LIMIT else ():
        with ctx.workprec(bits):
            try:
                tail = _Tail(passage)
            except UndecidedError:
                continue
            hit = _ball(passage.mass) + tail.gap(tail.v) - tail.gap(tail.after(d))
            missed = 1 - hit
            if min(hit.rel_accuracy_bits(), missed.rel_accuracy_bits()) > 60:
                return float(hit.mid()), float(missed.mid())
    raise UnsupportedError(f"a budget of {d} steps is too long for a chain with {passage.size} states: leave it out")


class _Tail:
    """``v Q^d h = R_inf - R(d)`` in ball arithmetic at the precision in force, for any d by doubling."""

    def __init__(self, passage: Passage) -> None:
        from flint import arb_mat

        size = passage.size
        Q = arb_mat(size, size)
        system = arb_mat(size, size)
        for i in range(size):
            system[i, i] = 1
        for i, j, value in zip(passage.Q.rows.tolist(), passage.Q.columns.tolist(), passage.Q.values, strict=True):
            Q[i, j] = _ball(value)
            system[i, j] = _ball((i == j) - value)
        self.v = arb_mat(1, size, [_ball(value) for value in passage.v])
        self._powers = [Q]
        if passage.certain:
            self._h = arb_mat(size, 1, [1] * size)
            return
        try:
            self._h = system.solve(arb_mat(size, 1, [_ball(value) for value in passage.exits]))
        except ZeroDivisionError:  # the system is singular within the precision
            raise UndecidedError from None

    def gap(self, vector: arb_mat) -> arb:
        """The probability of getting to the target from the masses in ``vector`` (1, r)."""
        return sum((vector * self._h).entries(), _ball(Fraction(0)))

    def doubled(self, k: int) -> arb_mat:
        """``Q^(2^k)``."""
        while len(self._powers) <= k:
            self._powers.append(self._powers[-1] * self._powers[-1])
        return self._powers[k]

    def after(self, d: int) -> arb_mat:
        """``v Q^d``, shape (1, r)."""
        vector = self.v
        for k in range(d.bit_length()):
            if d >> k & 1:
                vector = vector * self.doubled(k)
        return vector

    def first(self, threshold: arb, settle: Callable[[int], bool] | None = None) -> int:
        """The smallest d with ``v Q^d h <= threshold``; ``settle(d)`` answers where the balls overlap."""

        def within(d: int, vector: arb_mat) -> bool:
            gap = self.gap(vector)
            if gap <= threshold:
                return True
            if gap > threshold:
                return False
            if settle is None:
                raise UndecidedError
            return settle(d)

        if within(0, self.v):
            return 0
        k, d, vector = 0, 0, self.v
        while not within(1 << k, ahead := self.v * self.doubled(k)):
            k, d, vector = k + 1, 1 << k, ahead
        for j in reversed(range(k - 1)):
            ahead = vector * self.doubled(j)
            if not within(d + (1 << j), ahead):
                d, vector = d + (1 << j), ahead
        return d + 1


def _ball(value: Scalar | int) -> arb:
    from flint import arb, fmpq

    fraction = Fraction(value)
    return arb(fmpq(fraction.numerator, fraction.denominator))
