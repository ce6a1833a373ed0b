"""Optima over the choices of a decision process in doubles, with rigorous bounds."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform import directed
from tracebridge.closedform.decision.choices import Choices
from tracebridge.closedform.decision.equation import extended
from tracebridge.closedform.decision.optimiser import first_choices
from tracebridge.closedform.decision.policy_iteration import policy_in_doubles, solve_in_rationals, value_in_doubles
from tracebridge.closedform.decision.value_iteration import solve_by_iteration
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.float_arithmetic import FloatArithmetic, enclosing
from tracebridge.closedform.robust.fixed_point import BellmanEquation, solve_bellman
from tracebridge.closedform.robust.rows import IntervalRows
from tracebridge.closedform.stochastic_step import StochasticStep, distributions
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.decision.equation import OptimalityEquation

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

#: Equations of up to so many unknown states are solved in rationals even if doubles are asked for.
RATIONAL_STATES = 40

#: And of up to so many where doubles leave bounds wider than `POOR`, relative to values above one.
MOST_RATIONAL_STATES = 200
POOR = 1e-9

#: With more unknown states than this value iteration comes first, as factorizations may fill in.
ITERATED_STATES = 1_000


#: Steps times transitions, and some for each step; more is refused, a few minutes of work.
MAX_WORK = 5 * 10**8
_WORK_OF_A_STEP = 2_000

_UNIT = 2.0**-53
_SMALLEST = 5e-324


class FloatOptimiser:
    """Doubles that enclose the values of the exact process (`DecisionProcess.exact_transitions`)."""

    exact = False

    def __init__(
        self,
        process: DecisionProcess,
        *,
        rational_states: int = RATIONAL_STATES,
        iterated_states: int = ITERATED_STATES,
    ) -> None:
        """Up to so many unknown states in rationals, and with more than so many by value iteration."""
        self.process = process
        self.choices = Choices(starts=process.choice_starts, pattern=process.transitions)
        self._rational_states, self._iterated_states = rational_states, iterated_states

    @cached_property
    def _matrix(self) -> csr_array:
        """The rows in doubles; an entry is off by two roundings at most."""
        return distributions(self.process.transitions, rounded=self.process.rationals is not None)

    def over(self, process: DecisionProcess) -> FloatOptimiser:
        """The same for another process."""
        return FloatOptimiser(process, rational_states=self._rational_states, iterated_states=self._iterated_states)

    def arithmetic(self, chain: MarkovChain) -> Arithmetic:
        """Doubles for a chain."""
        return FloatArithmetic(chain)

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """Every number between its neighbouring doubles; doubles are kept."""
        return enclosing(values)

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        *,
        maximise: bool,
        gains: list[Fraction] | None = None,
    ) -> EnclosureVector:
        """By rigorous products: the best of lower bounds is a lower bound, and so above. A fixed point ends the loop.

        Raises:
            UnsupportedError: if it would be too much work.
        """
        x = np.stack([start.value, start.lower, start.upper], axis=1)
        for _ in islice(self._stepped(x, active, maximise, gains, cut=False), steps):  # which changes x
            pass
        return _enclosures(x)

    def iterates(
        self,
        start: EnclosureVector,
        active: Mask,
        *,
        maximise: bool,
        gains: list[Fraction] | None = None,
        cut: bool = False,
    ) -> Iterator[EnclosureVector]:
        """What `iterate` gives after 0, 1, 2, ... steps, up to that from which on nothing changes any more.

        Raises:
            UnsupportedError: when it has become too much work; with ``cut`` they end there instead.
        """
        yield start
        x = np.stack([start.value, start.lower, start.upper], axis=1)
        for stepped in self._stepped(x, active, maximise, gains, cut=cut):
            yield _enclosures(stepped)

    def _stepped(
        self, x: NDArray[np.float64], active: Mask, maximise: bool, gains: list[Fraction] | None, *, cut: bool
    ) -> Iterator[NDArray[np.float64]]:
        """Value, lower and upper bound after 1, 2, ... steps, shape (n, 3): the same array, changed each time."""
        rows = np.flatnonzero(active[self.process.state_of_choice])
        if not len(rows):
            return
        product = StochasticStep(self._matrix, rows, None if gains is None else self.vector(gains))
        first = first_choices(self.process, active)
        optimum = np.maximum if maximise else np.minimum
        for done in count(1):
            new = optimum.reduceat(product.apply(x), first, axis=0)
            if np.array_equal(new, x[active]):
                return
            x[active] = new
            yield x
            if done * (product.work + _WORK_OF_A_STEP) > MAX_WORK:
                if cut:
                    return
                raise UnsupportedError(f"more than {done} steps of a process of {len(rows)} choices are too many")

    def solve(self, equation: OptimalityEquation) -> tuple[EnclosureVector, Indices]:
        """Small equations in rationals, large ones by value iteration, others from a policy (`solve_bellman`).

        For the last each choice is a state of its own, with one row, and a state has a row on its choices that is free:
        an interval chain.

        Raises:
            UnsupportedError: if no finite bound can be proved.
        """
        size = int(np.count_nonzero(equation.unknown))
        if size > self._iterated_states and (found := solve_by_iteration(equation, self._matrix)) is not None:
            return found
        policy = policy_in_doubles(equation, self._matrix)
        if size <= self._rational_states:
            return self._in_rationals(equation, policy)
        try:
            values = solve_bellman(self._as_intervals(equation, policy))
        except UnsupportedError:
            if size > MOST_RATIONAL_STATES:
                raise
            return self._in_rationals(equation, policy)
        n = self.process.n_states
        values = values.take(np.arange(n))
        width = (values.upper - values.lower) / np.maximum(1.0, np.abs(values.value))
        if size <= MOST_RATIONAL_STATES and bool((width > POOR).any()):
            return self._in_rationals(equation, policy)
        return values, policy

    def _in_rationals(self, equation: OptimalityEquation, policy: Indices) -> tuple[EnclosureVector, Indices]:
        values, policy = solve_in_rationals(equation, self.process.exact_transitions(), policy)
        return EnclosureVector.from_fractions(values).to_float(), policy

    def _as_intervals(self, equation: OptimalityEquation, policy: Indices) -> BellmanEquation:
        """The equation over the states followed by the choices of the unknown ones."""
        choices, unknown, n = equation.choices, equation.unknown, self.process.n_states
        own = np.flatnonzero(unknown[choices.owner])  # choices of unknown states, state by state
        k = len(own)
        rows = csr_array(extended(self._matrix)[equation.rows])
        chosen = csr_array(rows[own])
        sizes = np.diff(chosen.indptr)
        relative = np.repeat((sizes + 4) * _UNIT, sizes)  # entries are off by two roundings
        certain = np.repeat(sizes == 1, sizes)
        low = np.where(certain, 1.0, np.maximum(chosen.data * (1 - relative), _SMALLEST))
        high = np.where(certain, 1.0, np.minimum(np.nextafter(chosen.data * (1 + relative), 2.0), 1.0))
        of_state = np.diff(choices.starts)[unknown]
        interval_rows = IntervalRows(
            indptr=np.concatenate([[0], np.cumsum(np.concatenate([of_state, sizes]))]),
            indices=np.concatenate([n + np.arange(k), chosen.indices]),
            lower=np.concatenate([np.zeros(k), low]),
            upper=np.concatenate([np.ones(k), high]),
            n_columns=n + k,
        )
        known = np.concatenate([equation.known.astype(np.float64), np.zeros(k)])
        gains = [Fraction(0)] * k if equation.gains is None else equation.gains[own].tolist()
        earned = np.array([directed.enclosing(gain)[1:] for gain in gains], dtype=np.float64).reshape(-1, 2)
        nothing = np.zeros(np.count_nonzero(unknown))
        stay = value_in_doubles(equation, rows, policy, np.ones(len(equation.rows)))
        stay = np.zeros(n) if stay is None else stay
        return BellmanEquation(
            rows=interval_rows,
            unknown=np.concatenate([unknown, np.ones(k, dtype=np.bool_)]),
            known_lower=known,
            known_upper=known,
            gain_lower=np.concatenate([nothing, earned[:, 0]]),
            gain_upper=np.concatenate([nothing, earned[:, 1]]),
            maximise=equation.maximise,
            largest=1.0 if equation.gains is None else None,
            ranking=np.concatenate([stay, 1 + chosen @ stay]),
            every_choice_leaves=equation.every_choice_leaves,
        )


def _enclosures(x: NDArray[np.float64]) -> EnclosureVector:
    """A copy of the columns value, lower and upper bound."""
    return EnclosureVector.from_bounds(x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy())
