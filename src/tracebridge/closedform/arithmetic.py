"""The two ways to compute with a chain: doubles with rigorous bounds, and rationals.

The evaluator of operators is written once against the protocol `Arithmetic`. It needs three things only: the transition
matrix applied many times, or once to a vector for each state, and the solution of ``x = gain + P x`` on a set of states
that is left almost surely.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform import directed
from tracebridge.closedform.accurate_product import AccurateProduct
from tracebridge.closedform.double_solution import DoubleSolver
from tracebridge.closedform.double_system import DoubleSystem
from tracebridge.closedform.enclosed_solution import EnclosedSolver
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.factorization import require_leaving
from tracebridge.closedform.far_steps import INVISIBLE, approach
from tracebridge.closedform.integer_system import IntegerSystem, rows_of
from tracebridge.closedform.rational_solution import EXACT_LIMIT, solve_exact
from tracebridge.closedform.stochastic_step import StochasticStep
from tracebridge.errors import EngineError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]
    Limit = Callable[[], EnclosureVector]
    Side = tuple[Floats, Floats | None]  # values outside of a set of states, shape (n,), and gains, shape (n,)


#: Up to so many active states are raised to a power in ball arithmetic where that is less work than the steps are, or
#: the steps are too many to be taken; 40 squarings of so many states take some 20 seconds.
POWER_STATES = 400
_STEP_OVERHEAD = 2_000  # one step costs about as much as so many multiplications of balls

#: A large chain takes so many steps at most, and fewer of those that cost more; the rest is bounded.
MAX_STEPS = 100_000
_MAX_WORK = 2e10

#: Steps that cost more than this in all are left out if the limit is as good: about a second.
_FAR_WORK = 1e8

#: Equations of up to so many states are solved in integers, and of up to so many if doubles are not enough for them.
INTEGER_STATES = 100
MOST_INTEGER_STATES = 50_000

#: Exact stepping is refused above so many operations on machine words.
MAX_EXACT_WORK = 2e10


class Arithmetic(Protocol):
    """What the evaluator of operators computes with; every vector has one entry a state."""

    @property
    def chain(self) -> MarkovChain:
        """The chain that is computed with."""

    @property
    def exact(self) -> bool:
        """Whether vectors are rational."""

    def on(self, chain: MarkovChain) -> Self:
        """The same arithmetic for another chain."""

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """Rationals as a vector of this arithmetic; a mask becomes zeros and ones."""

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        gain: EnclosureVector | None = None,
        limit: Limit | None = None,
    ) -> EnclosureVector:
        """``x <- gain + P x`` on the active states, ``steps`` times; the other entries stay as they are.

        Where x only rises or only falls with the number of steps, ``limit`` gives what it tends to; it is called only
        if there are too many steps to take all of them.
        """

    def advance(
        self, sources: Sequence[EnclosureVector], source: Indices, gain: EnclosureVector | None = None
    ) -> EnclosureVector:
        """``gain + P x`` in the states i with ``source[i] >= 0``, which take x from ``sources[source[i]]``; else 0."""

    def solve(self, active: Mask, boundary: EnclosureVector, gain: EnclosureVector | None = None) -> EnclosureVector:
        """The x with ``x = gain + P x`` on the active states, which are left almost surely; else x = boundary."""


def distributions(rows: csr_array, *, rounded: bool) -> csr_array:
    """Rows in doubles that denote distributions; an entry is off by two roundings at most.

    Args:
        rows: CSR. rounded: they are roundings of rationals; else each row stands for its quotient by its exact sum.
    """
    if rounded:
        return rows
    sums = AccurateProduct(rows).row_sums().high
    return csr_array((rows.data / np.repeat(sums, np.diff(rows.indptr)), rows.indices, rows.indptr), shape=rows.shape)


def enclosing(values: list[Fraction] | Mask) -> EnclosureVector:
    """Every number between its neighbouring doubles; doubles are kept."""
    if isinstance(values, np.ndarray):
        return EnclosureVector.from_floats(values.astype(np.float64))
    return EnclosureVector.from_fractions(values).to_float()


class FloatArithmetic:
    """Doubles; every vector encloses the numbers of the exact chain (`MarkovChain.exact_transitions`)."""

    exact = False

    def __init__(self, chain: MarkovChain) -> None:
        self.chain = chain
        self._last_solver: tuple[bytes, DoubleSolver | None] | None = None
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
            there = approach(start, end, steps, active, self._double_solver)
            if there.ahead <= INVISIBLE:
                value = np.where(active, end.value, start.value)
                return EnclosureVector.from_bounds(value, there.lower, there.upper)
        power_pays = steps > len(rows) ** 3 * steps.bit_length() / _STEP_OVERHEAD + len(rows)
        if len(rows) <= POWER_STATES and (power_pays or steps > affordable):
            return self._power(start, steps, rows, gain, product)
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
        solutions = self._solutions(active, sides)
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

    def _solutions(self, active: Mask, sides: list[Side]) -> list[EnclosureVector]:
        """In double-doubles; in integers for a small set, and where double-doubles leave wide bounds or none."""
        size = np.count_nonzero(active)
        solver = self._double_solver(active) if size > INTEGER_STATES else None
        rough: list[EnclosureVector] | None = None
        if solver is not None:
            rhs = [solver.system.inflow(boundary, None if gain is None else gain[active]) for boundary, gain in sides]
            if all(b.in_range() for b in rhs):
                try:
                    rough = solver.solve(rhs)
                except EngineError:
                    if size > MOST_INTEGER_STATES:
                        require_leaving(solver.system.entries, solver.system.exits > 0)
                        raise
                if not solver.satisfied:
                    self._last_solver = None  # it has no way left to try
                if rough is not None and (solver.satisfied or size > MOST_INTEGER_STATES):
                    return rough
        try:
            return self._solve_in_integers(active, sides)
        except EngineError:
            if rough is None:
                raise
            return rough

    def _solve_in_integers(self, active: Mask, sides: list[Side]) -> list[EnclosureVector]:
        states = np.flatnonzero(active)
        rows = self._exact_rows(states)
        rhs = [
            _right_hand_side(rows, active, boundary, None if gain is None else gain[active]) for boundary, gain in sides
        ]
        return EnclosedSolver(IntegerSystem.of_rows(rows, states)).solve(rhs)

    def _double_solver(self, active: Mask) -> DoubleSolver | None:
        """For the equations of the active states; several operators in a row often have the same ones.

        None if numbers of the chain are no doubles, or too near to the end of their range.
        """
        key = active.tobytes()
        if self._last_solver is None or self._last_solver[0] != key:
            rationals = self.chain.rationals
            system = None
            if rationals is None:
                system = DoubleSystem.of_doubles(self.chain.transitions, active)
            elif DoubleSystem.fits(rationals):
                system = DoubleSystem.of_integers(rationals, active)
            usable = system is not None and system.in_range()
            self._last_solver = key, DoubleSolver(system) if system is not None and usable else None
        return self._last_solver[1]

    def _exact_rows(self, states: Indices) -> RationalMatrix:
        """These rows of the exact chain, in this order."""
        rationals = self.chain.rationals
        if rationals is None:
            return RationalMatrix.from_float(csr_array(self.chain.transitions[states]))
        return rows_of(rationals, states)

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
            there = approach(now, end, steps, active, self._double_solver)
            lower, upper = np.maximum(lower, there.lower[rows]), np.minimum(upper, there.upper[rows])
        x[rows, 1], x[rows, 2] = lower, upper

    def _power(
        self,
        start: EnclosureVector,
        steps: int,
        rows: NDArray[np.int64],
        gain: EnclosureVector | None,
        product: StochasticStep,
    ) -> EnclosureVector:
        """``M^steps`` on the active entries, M with one more state of value 1 for all that comes from outside."""
        from flint import arb, arb_mat, ctx

        m = len(rows)
        position = {state: i for i, state in enumerate(rows.tolist())}
        with ctx.workprec(128 + 2 * steps.bit_length()):
            matrix = arb_mat(m + 1, m + 1)
            matrix[m, m] = arb(1)
            exact_rows = self._exact_rows(rows)
            for i, state in enumerate(rows.tolist()):
                inflow = arb(0) if gain is None else _ball(gain, state)
                for target, p in exact_rows.row(i).items():
                    entry = arb(p.numerator) / arb(p.denominator)
                    if target in position:
                        matrix[i, position[target]] = entry
                    else:
                        inflow += entry * _ball(start, target)
                matrix[i, m] = inflow
            x = arb_mat([[_ball(start, state)] for state in rows.tolist()] + [[arb(1)]])
            remaining = steps
            while remaining:
                if remaining & 1:
                    x = matrix * x
                remaining >>= 1
                if remaining:
                    matrix = matrix * matrix
            bounds = np.array([directed.ball_bounds(x[i, 0]) for i in range(m)])
        lower, upper = np.maximum(bounds[:, 0], 0.0), bounds[:, 1]
        if gain is None:
            # Whatever the entries were m steps before the end, between the extremes, the last m steps lead here: that
            # settles exactly what the graph settles.
            last = np.stack([start.value, start.lower, start.upper], axis=1)
            last[rows] = [start.value.min(), start.lower.min(), start.upper.max()]
            for _ in range(m):
                last[rows] = product.apply(last)
            lower, upper = np.maximum(lower, last[rows, 1]), np.minimum(upper, last[rows, 2])
        merged = [start.value.copy(), start.lower.copy(), start.upper.copy()]
        for part, values in zip(merged, (lower + (upper - lower) / 2, lower, upper), strict=True):
            part[rows] = values
        return EnclosureVector.from_bounds(*merged)


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
        rhs = _right_hand_side(rows_of(self._rationals, rows), active, boundary.value, gains)
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


def _right_hand_side(
    rows: RationalMatrix, active: Mask, boundary: NDArray[Any], gain: NDArray[Any] | None
) -> list[Fraction]:
    """``gain_i + sum_j p_ij boundary_j`` over the inactive j, in rationals; ``rows`` and gain are of the active i."""
    kept = ~active[rows.indices]
    sources, targets = rows.row_of_entry[kept], rows.indices[kept]
    sums = np.zeros(rows.shape[0], dtype=object)
    np.add.at(sums, sources, rows.numerators[kept].astype(object) * _as_rationals(boundary[targets]))
    inflow = [
        Fraction(total) / bottom if isinstance(total, Fraction) else Fraction(total, bottom)
        for total, bottom in zip(sums.tolist(), rows.denominators.tolist(), strict=True)
    ]
    if gain is None:
        return inflow
    return [a + b for a, b in zip(inflow, _as_rationals(gain).tolist(), strict=True)]


def _as_rationals(values: NDArray[Any]) -> NDArray[Any]:
    """Doubles or Fractions as Fractions, whole numbers as ints, dtype object."""
    result = np.empty(len(values), dtype=object)
    result[:] = [int(x) if x == int(x) else Fraction(x) for x in values.tolist()]
    return result


def _all_equal(vector: EnclosureVector, where: Mask) -> bool:
    return bool(np.array_equal(vector.lower[where], vector.upper[where]))


def _ball(vector: EnclosureVector, index: int) -> Any:
    from flint import arb

    return arb(vector.lower[index]).union(arb(vector.upper[index]))


def _list(values: list[Fraction] | Mask) -> list[Any]:
    entries: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return entries
