"""Doubles: every number is enclosed between rigorous bounds."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.far_steps import INVISIBLE, approach
from tracebridge.closedform.float_equations import FloatEquations
from tracebridge.closedform.step_power import power_of_steps
from tracebridge.closedform.stochastic_step import StochasticStep, distributions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Indices, Limit, Mask

    Floats = NDArray[np.float64]

#: Up to so many active states are raised to a power in ball arithmetic where that is less work than the steps are, or
#: the steps are too many to be taken; 40 squarings of so many states take some 20 seconds.
POWER_STATES = 400
_STEP_OVERHEAD = 2_000  # one step costs about as much as so many multiplications of balls

#: A large chain takes so many steps at most, and fewer of those that cost more; the rest is bounded.
MAX_STEPS = 100_000
_MAX_WORK = 2e10

#: Steps that cost more than this in all are left out if the limit is as good: about a second.
_FAR_WORK = 1e8


class FloatArithmetic:
    """Doubles; every vector encloses the numbers of the exact chain (`MarkovChain.exact_transitions`)."""

    exact = False

    def __init__(self, chain: MarkovChain) -> None:
        self.chain = chain
        self._equations = FloatEquations(chain)
        self._last_advance: tuple[bytes, int, EnclosureVector | None, StochasticStep] | None = None

    @cached_property
    def _matrix(self) -> csr_array:
        """P in doubles; an entry is off by two roundings at most."""
        return distributions(self.chain.transitions, rounded=self.chain.rationals is not None)

    def on(self, chain: MarkovChain) -> FloatArithmetic:
        """Doubles for another chain."""
        return FloatArithmetic(chain)

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """Every number between its neighbouring doubles; doubles are kept."""
        return enclosing(values)

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        gain: EnclosureVector | None = None,
        limit: Limit | None = None,
    ) -> EnclosureVector:
        """By steps of rigorous products; see `StochasticStep`.

        A fixed point ends the loop. After so many steps that nothing is left of the way to the limit, that is the
        answer. Else many steps on some hundred active states are raised to a power in ball arithmetic; on more states
        they are cut off, and the rest is bounded by the extremes of what can still be averaged and gained, and by the
        limit: wider, but true.
        """
        rows = np.flatnonzero(active)
        if steps == 0 or not len(rows):
            return start
        product = StochasticStep(self._matrix, rows, gain)
        affordable = int(min(MAX_STEPS, _MAX_WORK / product.work))
        far = steps > affordable or steps * product.work > _FAR_WORK
        end = limit() if limit is not None and far else None
        if end is not None:
            there = approach(start, end, steps, active, self._equations.double_solver)
            if there.ahead <= INVISIBLE:
                value = np.where(active, end.value, start.value)
                return EnclosureVector.from_bounds(value, there.lower, there.upper)
        power_pays = steps > len(rows) ** 3 * steps.bit_length() / _STEP_OVERHEAD + len(rows)
        if len(rows) <= POWER_STATES and (power_pays or steps > affordable):
            return power_of_steps(start, steps, rows, gain, self._equations.exact_rows(rows), product)
        x = np.stack([start.value, start.lower, start.upper], axis=1)
        for _ in range(min(steps, affordable)):
            new = product.apply(x)
            if np.array_equal(new, x[rows]):
                break
            x[rows] = new
        else:
            if steps > affordable:
                self._bound_rest(x, rows, steps - affordable, active, gain, end)
        return EnclosureVector.from_bounds(x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy())

    def advance(
        self, sources: Sequence[EnclosureVector], source: Indices, gain: EnclosureVector | None = None
    ) -> EnclosureVector:
        """One rigorous product with the sources one below the other; see `StochasticStep`."""
        n = self.chain.n_states
        rows = np.flatnonzero(source >= 0)
        result = np.zeros((n, 3))
        if len(rows):
            product = self._advancing(source, rows, len(sources), gain)
            columns = [np.concatenate([getattr(x, part) for x in sources]) for part in ("value", "lower", "upper")]
            result[rows] = product.apply(np.stack(columns, axis=1))
        return EnclosureVector.from_bounds(result[:, 0].copy(), result[:, 1].copy(), result[:, 2].copy())

    def _advancing(
        self, source: Indices, rows: Indices, n_sources: int, gain: EnclosureVector | None
    ) -> StochasticStep:
        """The product with P whose row i has its columns in the block ``source[i]``; often the same many times."""
        key, last = source.tobytes(), self._last_advance
        if last is None or last[0] != key or last[1] != n_sources or last[2] is not gain:
            n = self.chain.n_states
            shift = np.repeat(np.maximum(source, 0) * n, np.diff(self._matrix.indptr))
            blocks = (self._matrix.data, self._matrix.indices + shift, self._matrix.indptr)
            matrix = csr_array(blocks, shape=(n, n * n_sources))
            self._last_advance = last = key, n_sources, gain, StochasticStep(matrix, rows, gain)
        return last[3]

    def solve(self, active: Mask, boundary: EnclosureVector, gain: EnclosureVector | None = None) -> EnclosureVector:
        """By refinement and the M-matrix bound, in double-doubles or in integers (`DoubleSolver`, `EnclosedSolver`)."""
        rows = np.flatnonzero(active)
        if not len(rows):
            return boundary
        certain = _all_equal(boundary, ~active) and (gain is None or _all_equal(gain, active))
        parts = ("value",) if certain else ("value", "lower", "upper")
        sides = [(getattr(boundary, part), None if gain is None else getattr(gain, part)) for part in parts]
        solutions = self._equations.solutions(active, sides)
        columns = {
            "value": solutions[0].value,
            "lower": solutions[0 if certain else 1].lower,
            "upper": solutions[0 if certain else 2].upper,
        }
        if gain is None:  # an average of boundary values lies between them
            columns["lower"] = np.maximum(columns["lower"], boundary.lower[~active].min())
            columns["upper"] = np.minimum(columns["upper"], boundary.upper[~active].max())
        merged = {part: getattr(boundary, part).copy() for part in columns}
        for part, values in columns.items():
            merged[part][rows] = values
        return EnclosureVector.from_bounds(merged["value"], merged["lower"], merged["upper"])

    def _bound_rest(
        self,
        x: Floats,
        rows: Indices,
        steps: int,
        active: Mask,
        gain: EnclosureVector | None,
        end: EnclosureVector | None,
    ) -> None:
        """After the last step taken: what is still to come averages present entries and adds gains."""
        least, most = x[:, 1].min(), x[:, 2].max()
        if gain is not None:
            count = np.array([float(steps)])
            least = directed.add_down(least, directed.multiply_down(count, gain.lower[rows].min()))[0]
            most = directed.add_up(most, directed.multiply_up(count, gain.upper[rows].max()))[0]
        lower, upper = np.full(len(rows), least), np.full(len(rows), most)
        if end is not None:
            now = EnclosureVector.from_bounds(x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy())
            there = approach(now, end, steps, active, self._equations.double_solver)
            lower, upper = np.maximum(lower, there.lower[rows]), np.minimum(upper, there.upper[rows])
        x[rows, 1], x[rows, 2] = lower, upper


def enclosing(values: list[Fraction] | Mask) -> EnclosureVector:
    """Every number between its neighbouring doubles; doubles are kept."""
    if isinstance(values, np.ndarray):
        return EnclosureVector.from_floats(values.astype(np.float64))
    return EnclosureVector.from_fractions(values).to_float()


def _all_equal(vector: EnclosureVector, where: Mask) -> bool:
    return bool(np.array_equal(vector.lower[where], vector.upper[where]))
