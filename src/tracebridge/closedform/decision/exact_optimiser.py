"""Optima over the choices of a decision process in rationals."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.decision.choices import Choices
from tracebridge.closedform.decision.optimiser import first_choices
from tracebridge.closedform.decision.policy_iteration import policy_in_doubles, solve_in_rationals
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.exact_arithmetic import MAX_EXACT_WORK, ExactArithmetic
from tracebridge.closedform.integer_system import rows_of
from tracebridge.closedform.rational_solution import EXACT_LIMIT
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.decision.equation import OptimalityEquation

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

_FEW_STATES = 20  # so many are solved exactly as fast as in doubles


class ExactOptimiser:
    """Rationals: backward induction in integers, and policy iteration.

    Raises:
        UnsupportedError: for more states than are computed with in rationals.
    """

    exact = True

    def __init__(self, process: DecisionProcess) -> None:
        if process.n_states > EXACT_LIMIT:
            raise UnsupportedError(
                f"{process.n_states} states are too many for exact arithmetic (at most {EXACT_LIMIT}); use doubles"
            )
        self.process = process
        self.choices = Choices(starts=process.choice_starts, pattern=process.transitions)
        self._matrix = process.exact_transitions()

    def over(self, process: DecisionProcess) -> ExactOptimiser:
        """The same for another process."""
        return ExactOptimiser(process)

    def arithmetic(self, chain: MarkovChain) -> Arithmetic:
        """Rationals for a chain."""
        return ExactArithmetic(chain)

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """The numbers themselves."""
        entries = values.tolist() if isinstance(values, np.ndarray) else values
        return EnclosureVector.from_fractions([Fraction(value) for value in entries])

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        *,
        maximise: bool,
        gains: list[Fraction] | None = None,
    ) -> EnclosureVector:
        """In integers over one denominator, which the common denominator of all rows multiplies in each step.

        Raises:
            UnsupportedError: if that is too much work.
        """
        rows = np.flatnonzero(active[self.process.state_of_choice])
        if not steps or not len(rows):
            return start
        P = rows_of(self._matrix, rows)
        common = lcm(*map(int, set(P.denominators.tolist())))
        if steps * len(P.indices) * (1 + steps * common.bit_length() / 128) > MAX_EXACT_WORK:
            raise UnsupportedError(
                f"{steps} exact steps of {len(P.indices)} transitions are too much work: their common denominator has "
                f"{common.bit_length()} bits and is raised to the power {steps}; use doubles"
            )
        factor = np.array([common // int(bottom) for bottom in P.denominators.tolist()], dtype=object)
        entries = P.numerators.astype(object) * factor[P.row_of_entry]
        earned = [Fraction(0)] * len(rows) if gains is None else [gains[row] for row in rows.tolist()]
        scale = lcm(*{value.denominator for value in [*start.value.tolist(), *earned]})
        x = np.array([int(value * scale) for value in start.value.tolist()], dtype=object)
        gained = np.array([int(value * scale) for value in earned], dtype=object)
        first = first_choices(self.process, active)
        optimum = np.maximum if maximise else np.minimum
        for _ in range(steps):
            gained, scale = gained * common, scale * common
            new = x * common
            worth = np.add.reduceat(entries * x[P.indices], P.indptr[:-1]) + gained
            new[active] = optimum.reduceat(worth, first)
            if np.array_equal(new, x * common):
                scale //= common
                break
            x = new
        return EnclosureVector.from_fractions([Fraction(top, scale) for top in x.tolist()])

    def solve(self, equation: OptimalityEquation) -> tuple[EnclosureVector, Indices]:
        """Policy iteration, from a policy that is optimal in doubles where an exact solution takes longer than that."""
        few = np.count_nonzero(equation.unknown) <= _FEW_STATES
        start = equation.proper_policy() if few else policy_in_doubles(equation, self.process.transitions)
        values, policy = solve_in_rationals(equation, self._matrix, start)
        return EnclosureVector.from_fractions(values), policy
