"""Rationals: every number is the number itself."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.inflow import inflow
from tracebridge.closedform.integer_system import rows_of
from tracebridge.closedform.rational_solution import EXACT_LIMIT, solve_exact
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Indices, Limit, Mask

#: Exact stepping is refused above so many operations on machine words.
MAX_EXACT_WORK = 2e10


class ExactArithmetic:
    """Rationals; refused with UnsupportedError beyond ``max_states`` states and `MAX_EXACT_WORK`."""

    exact = True

    def __init__(self, chain: MarkovChain, max_states: int = EXACT_LIMIT) -> None:
        if chain.n_states > max_states:
            raise UnsupportedError(
                f"{chain.n_states} states are too many for exact arithmetic (at most {max_states}); use doubles"
            )
        self.chain = chain
        self._rationals = chain.exact_transitions()

    def on(self, chain: MarkovChain) -> ExactArithmetic:
        """Rationals for another chain, however large; systems of equations are still limited in size."""
        return ExactArithmetic(chain, max_states=chain.n_states)

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """The numbers themselves."""
        return EnclosureVector.from_fractions([Fraction(int(x)) if isinstance(x, bool) else x for x in _list(values)])

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        gain: EnclosureVector | None = None,
        limit: Limit | None = None,  # noqa: ARG002 - all steps are taken
    ) -> EnclosureVector:
        """In integers over one denominator that grows by the common denominator of the active rows in each step.

        Raises:
            UnsupportedError: if that is too much work.
        """
        rows = np.flatnonzero(active)
        if steps == 0 or not len(rows):
            return start
        P = self._rationals
        row_of_entry = P.row_of_entry
        kept = active[row_of_entry]
        sources, targets = row_of_entry[kept], P.indices[kept]
        denominators = [int(bottom) for bottom in P.denominators[rows].tolist()]
        common = lcm(*denominators)
        self._require_feasible(steps, len(sources), common)
        factor = np.zeros(len(start), dtype=object)
        factor[rows] = [common // bottom for bottom in denominators]
        entries = P.numerators[kept].astype(object) * factor[sources]
        first = np.flatnonzero(np.r_[True, sources[1:] != sources[:-1]])
        gains = [Fraction(0)] * len(rows) if gain is None else gain.value[rows].tolist()
        scale = lcm(*(x.denominator for x in [*start.value.tolist(), *gains]))
        x = np.array([int(value * scale) for value in start.value.tolist()], dtype=object)
        gained = np.array([int(value * scale) for value in gains], dtype=object)
        for _ in range(steps):
            gained = gained * common
            scale *= common
            new = x * common
            new[rows] = np.add.reduceat(entries * x[targets], first) + gained
            if np.array_equal(new, x * common):
                scale //= common
                break
            x = new
        return EnclosureVector.from_fractions([Fraction(top, scale) for top in x.tolist()])

    def advance(
        self, sources: Sequence[EnclosureVector], source: Indices, gain: EnclosureVector | None = None
    ) -> EnclosureVector:
        """Row by row, in rationals."""
        result = [Fraction(0)] * len(source)
        P = self._rationals
        for i in np.flatnonzero(source >= 0).tolist():
            x = sources[source[i]].value
            span = slice(int(P.indptr[i]), int(P.indptr[i + 1]))
            pairs = zip(P.numerators[span].tolist(), P.indices[span].tolist(), strict=True)
            total = sum((top * x[j] for top, j in pairs), Fraction(0)) / int(P.denominators[i])
            result[i] = total if gain is None else total + gain.value[i]
        return EnclosureVector.from_fractions(result)

    def solve(self, active: Mask, boundary: EnclosureVector, gain: EnclosureVector | None = None) -> EnclosureVector:
        """By integer elimination (`solve_exact`)."""
        rows = np.flatnonzero(active)
        if not len(rows):
            return boundary
        gains = None if gain is None else gain.value[rows]
        rhs = inflow(rows_of(self._rationals, rows), active, boundary.value, gains)
        solution = solve_exact(self._rationals, rows, [rhs])[0]
        merged = boundary.value.tolist()
        for i, x in zip(rows.tolist(), solution, strict=True):
            merged[i] = x
        return EnclosureVector.from_fractions(merged)

    def _require_feasible(self, steps: int, entries: int, common: int) -> None:
        words = 1 + steps * common.bit_length() / 128  # on average over the steps
        if steps * entries * words > MAX_EXACT_WORK:
            raise UnsupportedError(
                f"{steps} exact steps of {entries} transitions are too much work: their common denominator has "
                f"{common.bit_length()} bits and is raised to the power {steps}; use doubles"
            )


def _list(values: list[Fraction] | Mask) -> list[Any]:
    entries: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return entries
