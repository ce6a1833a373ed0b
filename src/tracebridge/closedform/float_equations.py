"""The equations ``x = gain + P x`` on a set of states of one chain, solved in doubles with rigorous bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform.double_solution import DoubleSolver
from tracebridge.closedform.double_system import DoubleSystem
from tracebridge.closedform.enclosed_solution import EnclosedSolver
from tracebridge.closedform.factorization import require_leaving
from tracebridge.closedform.inflow import inflow
from tracebridge.closedform.integer_system import IntegerSystem, rows_of
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Indices, Mask
    from tracebridge.closedform.enclosure import EnclosureVector

    Floats = NDArray[np.float64]
    Side = tuple[Floats, Floats | None]  # values outside of a set of states, shape (n,), and gains, shape (n,)

#: Equations of up to so many states are solved in integers, and of up to so many if doubles are not enough for them.
INTEGER_STATES = 100
MOST_INTEGER_STATES = 50_000


class FloatEquations:
    """By refinement and the M-matrix bound, in double-doubles or in integers (`DoubleSolver`, `EnclosedSolver`)."""

    def __init__(self, chain: MarkovChain) -> None:
        self._chain = chain
        self._last_solver: tuple[bytes, DoubleSolver | None] | None = None

    def solutions(self, active: Mask, sides: list[Side]) -> list[EnclosureVector]:
        """In double-doubles; in integers for a small set, and where double-doubles leave wide bounds or none."""
        size = np.count_nonzero(active)
        solver = self.double_solver(active) if size > INTEGER_STATES else None
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
        rows = self.exact_rows(states)
        rhs = [inflow(rows, active, boundary, None if gain is None else gain[active]) for boundary, gain in sides]
        return EnclosedSolver(IntegerSystem.of_rows(rows, states)).solve(rhs)

    def double_solver(self, active: Mask) -> DoubleSolver | None:
        """For the equations of the active states; several operators in a row often have the same ones.

        None if numbers of the chain are no doubles, or too near to the end of their range.
        """
        key = active.tobytes()
        if self._last_solver is None or self._last_solver[0] != key:
            rationals = self._chain.rationals
            system = None
            if rationals is None:
                system = DoubleSystem.of_doubles(self._chain.transitions, active)
            elif DoubleSystem.fits(rationals):
                system = DoubleSystem.of_integers(rationals, active)
            usable = system is not None and system.in_range()
            self._last_solver = key, DoubleSolver(system) if system is not None and usable else None
        return self._last_solver[1]

    def exact_rows(self, states: Indices) -> RationalMatrix:
        """These rows of the exact chain, in this order."""
        rationals = self._chain.rationals
        if rationals is None:
            return RationalMatrix.from_float(csr_array(self._chain.transitions[states]))
        return rows_of(rationals, states)
