"""Which of Storm's solvers answers a query in doubles, and how accurate its answer is assumed to be.

Storm's own error bounds cannot be relied on. Assumed is a relative error of at most

* ``4 w eps (1 + k)`` for k steps, w the largest number of successors, eps = 2^-52;
* ``4 n eps (1 + s)`` for equations in n states solved by state elimination; s is the largest expected number of steps
  (`rounding_amplification`), which is what a double loses in ``1 - p``;
* ``1e-12 (1 + j)`` more, of the largest value, by Gauss-Seidel iteration to 1e-13; j is the largest expected number of
  moves, which are steps to another state: the solvers divide by ``1 - p``;
* ``1e-6 (1 + j)`` more by gmm++, likewise, whose precision cannot be set;
* ``(1e-13 + 4 w eps) / (1 - x)`` for rewards discounted by x, by value iteration to 1e-14;
* `AUTOMATON_SIZE` times all that for LTL, whose equations are over pairs of a state and one of an automaton;
* ``1 + s`` times all that where a condition is built into the chain, whose entries are then as inaccurate as
  probabilities.

Against rational solutions of random chains, sticky and nearly decomposable ones among them, the error was below a tenth
of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.modelcheck import rounding_amplification

if TYPE_CHECKING:
    from tracebridge.checking.engine import Holds
    from tracebridge.checking.storm_formulation import StormQuery
    from tracebridge.checking.storm_worker.protocol import Solver
    from tracebridge.pctl.ast import Operator

#: Up to this many states equations are solved by state elimination, which takes 0.1 s here and grows with the cube.
ELIMINATION_STATES = 300

#: Up to this many where an iteration would be slow or imprecise; state elimination takes one or two seconds here.
SLOW_ELIMINATION_STATES = 600

#: States that the automaton of an LTL formula is assumed to have.
AUTOMATON_SIZE = 16

#: Entries that a quick iteration multiplies in all; some ten seconds.
ITERATION_WORK = 2e9


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverChoice:
    """A solver and the relative error to assume; of one or more, no digit of an answer is to be trusted."""

    solver: Solver
    relative_error: float

    @property
    def is_iteration(self) -> bool:
        """Whether the error is relative to the largest value of all states, not to each."""
        return self.solver in {"gauss-seidel", "gmm"}


def choose_solver(chain: MarkovChain, query: StormQuery, operator: Operator, holds: Holds) -> SolverChoice:
    """The solver for the query that asks about ``operator``, whose operands hold in the states that ``holds`` tells."""
    eps = float(np.finfo(np.float64).eps)
    widest = int(np.diff(chain.transitions.indptr).max())
    if query.steps is not None:  # the solver has nothing to do
        return SolverChoice(solver="elimination", relative_error=4 * widest * eps * (1 + query.steps))
    if query.discount is not None:
        return SolverChoice(solver="elimination", relative_error=(1e-13 + 4 * widest * eps) / float(1 - query.discount))
    steps = rounding_amplification(chain, operator, holds)
    size = AUTOMATON_SIZE if query.automaton else 1
    worse = size * (1 + steps) if query.conditional else size
    error = worse * 4 * chain.n_states * eps * (1 + steps) + 4 * widest * eps * query.delay
    if size * chain.n_states <= ELIMINATION_STATES:
        return SolverChoice(solver="elimination", relative_error=error)
    moves = rounding_amplification(_jump_chain(chain), operator, holds)
    # Each expected move needs about ln(1/precision) = 30 sweeps; for long-run averages the iteration diverges.
    if not query.long_run and 30 * (1 + moves) * chain.transitions.nnz <= ITERATION_WORK:
        return SolverChoice(solver="gauss-seidel", relative_error=error + worse * 1e-12 * (1 + moves))
    if size * chain.n_states <= SLOW_ELIMINATION_STATES:
        return SolverChoice(solver="elimination", relative_error=error)
    return SolverChoice(solver="gmm", relative_error=error + worse * 1e-6 * (1 + moves))


def _jump_chain(chain: MarkovChain) -> MarkovChain:
    """The chain seen only when it moves: no self-loops but those of absorbing states."""
    moving = csr_array(chain.transitions, copy=True)
    rows = np.repeat(np.arange(chain.n_states), np.diff(moving.indptr))
    moving.data = np.where((moving.indices == rows) & ~chain.absorbing[rows], 0.0, moving.data)
    moving.data = moving.data / np.asarray(moving.sum(axis=1))[rows]
    return MarkovChain(
        states=chain.states, transitions=moving, initial=chain.initial, labels=chain.labels, rewards=chain.rewards
    )
