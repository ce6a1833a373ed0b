"""Vectors that remember what they were computed from, so that a number made of them can be differentiated backwards.

Reverse accumulation (Griewank and Walther, Evaluating Derivatives, SIAM 2008, chapter 3): to each vector x belongs its
*adjoint*, the derivative of the number with respect to x. Of the three things that operators do with a chain, the
adjoints are linear again, with the transposed matrix:

* ``x = g + f P y`` on active rows: ``dP = f x' y^T``, ``dg = x'``, ``dy = f P^T x'``.
* the same many times: one sweep forward, which keeps a few of the vectors, and one backward.
* ``(I - f Q) x = g + f R y``: one solve with the transposed matrix gives the visits ``v = (I - f Q)^-T x'``, and then
  ``dP = f v (x, y)^T``, ``dg = v``, ``dy = f R^T v``.

Probabilities are doubles; see `gradient_system` for how systems are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform.gradient_system import SignedSystem
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

#: Steps of a bounded operator times transitions, and some for each step itself; more is refused: about a minute.
MAX_STEP_WORK = 2 * 10**9
_WORK_OF_A_STEP = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edges:
    """Where the transition probabilities of a chain stand in a matrix over nodes, which may be copies of its states.

    Attributes:
        sources, targets: nodes, shape (edges,). entries: which stored entry of P the edge has, shape (edges,).
        nodes: how many nodes there are.
    """

    sources: Indices
    targets: Indices
    entries: Indices
    nodes: int

    def among(self, chosen: Mask) -> Edges:
        """The edges that leave chosen nodes, a mask of shape (nodes,)."""
        kept = chosen[self.sources]
        return Edges(
            sources=self.sources[kept], targets=self.targets[kept], entries=self.entries[kept], nodes=self.nodes
        )


#: Adjoint of a vector and the sum of derivatives by entry, which is added to; gives the adjoints of what it came from.
Pullback = Callable[["Floats", "Floats"], Iterable[tuple["Traced", "Floats"]]]


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A vector of a tape. Attributes: value: its numbers. pullback: how its adjoint is passed on."""

    value: Floats
    pullback: Pullback


class GradientTape:
    """Vectors in the order in which they were made.

    Args:
        probabilities: the stored entries of P, shape (entries,).
    """

    def __init__(self, probabilities: Floats) -> None:
        self.probabilities = probabilities
        self._made: list[Traced] = []

    def gradient(self, vector: Traced, weights: Floats) -> Floats:
        """The derivative of ``weights @ vector`` with respect to each stored entry of P, shape (entries,).

        Each entry is varied alone, in the equations as they are: rows need not sum to one any more.
        """
        total = np.zeros_like(self.probabilities)
        adjoints = {id(vector): np.asarray(weights, dtype=np.float64)}
        for made in reversed(self._made):
            adjoint = adjoints.pop(id(made), None)
            if adjoint is None or not adjoint.any():
                continue
            for source, part in made.pullback(adjoint, total):
                known = adjoints.get(id(source))
                adjoints[id(source)] = part if known is None else known + part
        return total

    # ------------------------------------------------------------ entry by entry

    def constant(self, value: Floats | Mask) -> Traced:
        """Numbers that do not depend on P."""
        return self._add(np.asarray(value, dtype=np.float64), lambda adjoint, total: ())

    def where(self, mask: Mask, then: Traced, otherwise: Traced) -> Traced:
        """Entries of the one in the places of the mask, and of the other elsewhere."""

        def pullback(adjoint: Floats, total: Floats) -> list[tuple[Traced, Floats]]:  # noqa: ARG001
            return [(then, np.where(mask, adjoint, 0.0)), (otherwise, np.where(mask, 0.0, adjoint))]

        return self._add(np.where(mask, then.value, otherwise.value), pullback)

    def take(self, vector: Traced, places: Indices) -> Traced:
        """Entries in some places, which may repeat."""

        def pullback(adjoint: Floats, total: Floats) -> list[tuple[Traced, Floats]]:  # noqa: ARG001
            gathered = np.zeros_like(vector.value)
            np.add.at(gathered, places, adjoint)
            return [(vector, gathered)]

        return self._add(vector.value[places], pullback)

    def product(self, left: Traced, right: Traced) -> Traced:
        """Entrywise."""

        def pullback(adjoint: Floats, total: Floats) -> list[tuple[Traced, Floats]]:  # noqa: ARG001
            return [(left, adjoint * right.value), (right, adjoint * left.value)]

        return self._add(left.value * right.value, pullback)

    def quotient(self, top: Traced, bottom: Traced) -> Traced:
        """Entrywise, and NaN where the bottom is zero: an adjoint there is a mistake of the caller."""
        defined = bottom.value != 0
        divisor = np.where(defined, bottom.value, 1.0)
        value = np.where(defined, top.value / divisor, np.nan)

        def pullback(adjoint: Floats, total: Floats) -> list[tuple[Traced, Floats]]:  # noqa: ARG001
            part = np.where(adjoint == 0, 0.0, adjoint / divisor)
            return [(top, part), (bottom, -part * np.where(defined, value, 0.0))]

        return self._add(value, pullback)

    def sum(self, left: Traced, right: Traced) -> Traced:
        """Entrywise."""
        return self._add(left.value + right.value, lambda adjoint, total: [(left, adjoint), (right, adjoint)])

    # ------------------------------------------------------------ along transitions

    def iterate(
        self, edges: Edges, start: Traced, steps: int, active: Mask, gain: Traced | None = None, factor: float = 1.0
    ) -> Traced:
        """``x <- gain + factor P x`` on the active nodes, ``steps`` times; the other entries stay as they are.

        Raises:
            UnsupportedError: above `MAX_STEP_WORK`.
        """
        own = edges.among(active)
        if steps == 0 or not active.any():
            return start
        if steps * (len(own.entries) + _WORK_OF_A_STEP) > MAX_STEP_WORK:
            raise UnsupportedError(
                f"{steps:,} steps of {len(own.entries)} transitions are too many to differentiate; ask for fewer, "
                "or without a bound"
            )
        matrix = csr_array(
            (factor * self.probabilities[own.entries], (own.sources, own.targets)), shape=(own.nodes, own.nodes)
        )
        gained = np.zeros(own.nodes) if gain is None else np.where(active, gain.value, 0.0)

        def forward(x: Floats) -> Floats:
            return np.where(active, matrix @ x + gained, x)

        stride = isqrt(steps - 1) + 1
        x, kept = start.value, []
        for step in range(steps):
            if step % stride == 0:
                kept.append(x)
            x = forward(x)
        transposed = csr_array(matrix.T.tocsr())

        def pullback(adjoint: Floats, total: Floats) -> list[tuple[Traced, Floats]]:
            gains, summed = np.zeros(own.nodes), np.zeros(len(own.entries))
            for segment in reversed(range(len(kept))):
                before = [kept[segment]]
                for _ in range(min(stride, steps - segment * stride) - 1):
                    before.append(forward(before[-1]))
                for y in reversed(before):
                    going = np.where(active, adjoint, 0.0)
                    summed += going[own.sources] * y[own.targets]
                    gains += going
                    adjoint = np.where(active, 0.0, adjoint) + transposed @ going
            _add_by_entry(total, own.entries, factor * summed)
            return [(start, adjoint)] if gain is None else [(start, adjoint), (gain, gains)]

        return self._add(x, pullback)

    def solve(
        self, edges: Edges, boundary: Traced, active: Mask, gain: Traced | None = None, factor: float = 1.0
    ) -> Traced:
        """The x with ``x = gain + factor P x`` on the active nodes, which are left almost surely; else x = boundary.

        Raises:
            EngineError: the system has no solution in doubles, or is too large.
        """
        nodes = np.flatnonzero(active)
        if not len(nodes):
            return boundary
        own = edges.among(active)
        number = np.full(own.nodes, -1, dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        sources, targets = number[own.sources], number[own.targets]
        masses = factor * self.probabilities[own.entries]
        inside = targets >= 0
        m = len(nodes)
        Q = csr_array((masses[inside], (sources[inside], targets[inside])), shape=(m, m))
        leading_out = (masses[~inside], (sources[~inside], own.targets[~inside]))
        R = csr_array(leading_out, shape=(m, own.nodes))
        system = SignedSystem(Q, np.asarray(R.sum(axis=1)).ravel() + (1 - factor))
        inflow = R @ boundary.value
        if gain is not None:
            inflow = inflow + gain.value[nodes]
        x = boundary.value.copy()
        x[nodes] = system.solve(inflow)

        def pullback(adjoint: Floats, total: Floats) -> list[tuple[Traced, Floats]]:
            visits = system.solve(adjoint[nodes], transposed=True)
            _add_by_entry(total, own.entries, factor * visits[sources] * x[own.targets])
            passed = [(boundary, np.where(active, 0.0, adjoint) + R.T @ visits)]
            if gain is not None:
                gains = np.zeros(own.nodes)
                gains[nodes] = visits
                passed.append((gain, gains))
            return passed

        return self._add(x, pullback)

    def _add(self, value: Floats, pullback: Pullback) -> Traced:
        made = Traced(value, pullback)
        self._made.append(made)
        return made


def _add_by_entry(total: Floats, entries: Indices, parts: Floats) -> None:
    total += np.bincount(entries, weights=parts, minlength=len(total))
