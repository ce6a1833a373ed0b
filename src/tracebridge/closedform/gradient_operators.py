"""The operators of the property language on a tape: the methods of `modelcheck`, ready to be differentiated.

What the graph decides (zero, one, infinite) is decided first, as there, and does not move: the edges stay the edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import collected_steps, discount_factor, number_of_steps, step_window
from tracebridge.closedform.branching import satisfied_by_runs
from tracebridge.closedform.budget import budgets, step_budget
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.expected_reward import reward_structure
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.gradient_budgets import unfold
from tracebridge.closedform.gradient_tape import Edges, GradientTape, Traced
from tracebridge.closedform.reward_bounded import collecting_recursion, until_recursion
from tracebridge.closedform.reward_graph import not_surely_reached, reference_states, total_reward_regions
from tracebridge.closedform.until import BoundedPath, decided_by_graph, until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import (
    AutomatonPath,
    CumulativeReward,
    InstantaneousReward,
    LongRunReward,
    Next,
    PathReward,
    Probability,
    Quantified,
    Quantile,
    ReachReward,
    Reward,
    SteadyState,
    is_pctl,
    state_operand,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.ltl.question import DecidedProduct
    from tracebridge.closedform.ltl.reward import Collecting
    from tracebridge.closedform.until import Holds, UntilForm
    from tracebridge.pctl.ast import Operator, PathFormula

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


class TracedOperators:
    """Operators of one chain, as vectors of one tape; a value may be infinite or NaN, and is a constant there."""

    def __init__(self, chain: MarkovChain) -> None:
        P = chain.transitions
        sizes = np.diff(P.indptr)
        # A row of doubles stands for itself divided by its sum.
        self.tape = GradientTape(P.data / np.repeat(np.add.reduceat(P.data, P.indptr[:-1]), sizes))
        self._chain = chain
        self._edges = Edges(
            sources=np.repeat(np.arange(chain.n_states), sizes),
            targets=P.indices,
            entries=np.arange(P.nnz),
            nodes=chain.n_states,
        )
        self._everywhere = np.ones(chain.n_states, dtype=np.bool_)
        self._zero = self.tape.constant(np.zeros(chain.n_states))

    def value(self, operator: Operator, holds: Holds) -> Traced:
        """The operator in every state, shape (n,); its threshold is not looked at.

        Args:
            operator: bounds are already numbers. holds: the states where an operand is true, shape (n,).

        Raises:
            UnsupportedError: for a quantile, and for operators of decision processes and games; and if it would be too
                much work.
            PropertyError: for a bound that is no number of its kind, and for an unknown reward structure.
            EngineError: a system has no solution in doubles.
        """
        match operator:
            case Probability():
                return self._probability(operator, holds)
            case Reward():
                return self._reward(operator, holds)
            case SteadyState():
                return self._long_run_average(holds(operator.operand).astype(np.float64))
            case Quantified():
                return self.tape.constant(satisfied_by_runs(self._chain.transitions, operator, holds))
            case Quantile():
                raise UnsupportedError("a quantile is one of the bounds and jumps from one to the next: no derivative")
        raise UnsupportedError("operators of decision processes and games have no gradient on a chain")

    def pull_back(self, vector: Traced, weights: Floats) -> Floats:
        """The derivative of ``weights @ vector`` by each stored entry of P, all others fixed, shape (entries,).

        Raises:
            UnsupportedError: where a weight is on a state with an infinite or undefined value.
        """
        for i in np.flatnonzero((weights != 0) & ~np.isfinite(vector.value)).tolist()[:1]:
            raise UnsupportedError(
                f"the value from {self._chain.states[i]!r} is {float(vector.value[i])!r}: it has no derivative"
            )
        return self.tape.gradient(vector, weights)

    # ------------------------------------------------------------ P

    def _probability(self, operator: Probability, holds: Holds) -> Traced:
        path = operator.path
        if any(isinstance(node, AutomatonPath) for node in walk(path)):
            raise UnsupportedError("automata in files are not read; write the path as a formula")
        if operator.condition is not None:
            return self._conditional(path, operator.condition, holds)
        if is_pctl(path):
            if isinstance(path, Next):
                goal = self.tape.constant(holds(state_operand(path.operand)))
                return self.tape.iterate(self._edges, goal, 1, self._everywhere)
            if isinstance(path, BoundedPath):
                form = until_form(path, holds, self._chain.n_states)
                if path.reward_bounds:
                    dimensions = budgets(self._chain, path.bound, path.reward_bounds, path.span)
                    return self._until_within(form, dimensions)
                return self._until(form, step_window(path.bound))
        from tracebridge.closedform.ltl.probability import decided_path

        decided = decided_path(self._chain.transitions, path, holds)
        return self._first_formula(self._product_probabilities(decided))

    def _until(self, form: UntilForm, window: StepWindow) -> Traced:
        """``left U right`` in a window of steps, or its complement: see `until.until_probability`."""
        tape, left, right = self.tape, form.left, form.right
        decided = tape.constant(np.full(len(left), form.complemented))
        if window.empty:
            return decided
        if window.length is None:
            possible, certain = decided_by_graph(self._chain.transitions, form)
            opened = tape.solve(self._edges, tape.constant(certain), possible & ~certain)
        else:
            end = tape.constant(~right if form.complemented else right)
            opened = tape.iterate(self._edges, end, window.length, left & ~right)
        if window.first == 0:
            return opened
        one_earlier = tape.where(left, tape.iterate(self._edges, opened, 1, self._everywhere), decided)
        return tape.iterate(self._edges, one_earlier, window.first - 1, left)

    def _conditional(self, path: PathFormula, condition: PathFormula, holds: Holds) -> Traced:
        from tracebridge.closedform.ltl.probability import decided_cases

        cases = decided_cases(self._chain.transitions, path, condition, holds)
        x, y = (self._first_formula(self._product_probabilities(case)) for case in cases)
        return self.tape.quotient(x, self.tape.sum(x, y))

    # ------------------------------------------------------------ R and S

    def _reward(self, operator: Reward, holds: Holds) -> Traced:
        structure, path = reward_structure(self._chain, operator.structure, operator.span), operator.path
        per_step = structure.per_step
        if operator.condition is not None:
            if not isinstance(path, ReachReward):
                raise UnsupportedError("R under a condition is evaluated for F of a formula only")
            return self._conditional_reward(holds(path.operand), operator.condition, per_step, holds)
        match path:
            case ReachReward(operand):
                return self._reward_until(per_step, holds(operand))
            case PathReward():
                from tracebridge.closedform.ltl.reward import until_satisfied

                collecting = until_satisfied(self._chain.transitions, path.path, holds)
                gain = self.tape.constant(np.tile(per_step, len(collecting.open)))
                return self._infinite_where(collecting.endless, self._collected(collecting, gain))
            case CumulativeReward():
                return self._cumulative(path, per_step)
            case InstantaneousReward(time):
                start = self.tape.constant(structure.state)
                return self.tape.iterate(self._edges, start, number_of_steps(time), self._everywhere)
            case LongRunReward():
                return self._long_run_average(per_step)

    def _reward_until(self, per_step: Floats, target: Mask) -> Traced:
        missing = not_surely_reached(self._chain.transitions, target)
        return self._infinite_where(missing, self._sum_of_gains(per_step, ~missing & ~target))

    def _cumulative(self, path: CumulativeReward, per_step: Floats) -> Traced:
        steps = collected_steps(path)
        if path.reward_bounds:
            if path.discount is not None:
                raise UnsupportedError("a discount together with a reward bound is not evaluated")
            dimensions = budgets(self._chain, None, path.reward_bounds, path.span)
            if steps is not None:
                dimensions.append(step_budget(self._chain, 0, steps))
            return self._collected_within(per_step, dimensions)
        factor = 1.0 if path.discount is None else float(discount_factor(path.discount))
        if steps is not None:
            gain = self.tape.constant(per_step)
            return self.tape.iterate(self._edges, self._zero, steps, self._everywhere, gain, factor)
        if path.discount is not None:
            return self._sum_of_gains(per_step, self._everywhere, factor)
        return self._total_reward(per_step)

    def _total_reward(self, per_step: Floats) -> Traced:
        endless, collecting = total_reward_regions(self._chain.transitions, per_step > 0)
        return self._infinite_where(endless, self._sum_of_gains(per_step, collecting))

    def _long_run_average(self, per_step: Floats) -> Traced:
        """Cycles through one state of each recurrent class: see `long_run.long_run_average`."""
        tape = self.tape
        of_class, class_of, recurrent, references = reference_states(self._chain.transitions)
        inner = recurrent & ~references
        reward, length = (
            tape.iterate(self._edges, self._sum_of_gains(gain, inner), 1, references, tape.constant(gain))
            for gain in (per_step, np.ones_like(per_step))
        )
        average = tape.take(tape.quotient(reward, length), of_class[class_of])
        return tape.solve(self._edges, tape.where(recurrent, average, self._zero), ~recurrent)

    def _sum_of_gains(self, per_step: Floats, active: Mask, factor: float = 1.0) -> Traced:
        return self.tape.solve(self._edges, self._zero, active, self.tape.constant(per_step), factor)

    def _infinite_where(self, mask: Mask, finite: Traced) -> Traced:
        if not mask.any():
            return finite
        return self.tape.where(mask, self.tape.constant(np.full(len(mask), np.inf)), finite)

    # ------------------------------------------------------------ within budgets

    def _until_within(self, form: UntilForm, dimensions: Sequence[Budget]) -> Traced:
        """``left U right`` within bounds on rewards, or its complement: see `reward_bounded.until_within`."""
        if any(dimension.empty for dimension in dimensions):
            return self.tape.constant(np.full(self._chain.n_states, form.complemented))
        recursion = until_recursion(FloatArithmetic(self._chain), form)
        equations = unfold(self._chain.transitions, recursion, dimensions)
        # A run that is stuck among open states never satisfies the bounds.
        settled = np.where(equations.stuck, float(form.complemented), equations.settled)
        return self._last_level(self.tape.solve(equations.edges, self.tape.constant(settled), equations.active))

    def _collected_within(self, per_step: Floats, dimensions: Sequence[Budget]) -> Traced:
        """What is collected within bounds on rewards: see `reward_bounded.collected_within`."""
        if any(dimension.empty for dimension in dimensions):
            return self._zero
        tape = self.tape
        arithmetic = FloatArithmetic(self._chain)
        recursion = collecting_recursion(arithmetic, EnclosureVector.from_floats(per_step), dimensions)
        equations = unfold(self._chain.transitions, recursion, dimensions)
        total = self._total_reward(per_step)  # of what is collected in the end where nothing is spent any more
        places = np.arange(equations.edges.nodes) % self._chain.n_states
        endless = equations.reaching(equations.stuck & ~np.isfinite(total.value)[places])
        finite = tape.where(np.isfinite(total.value), total, self._zero)
        boundary = tape.where(equations.stuck, tape.take(finite, places), tape.constant(equations.settled))
        gain = tape.constant(per_step[places])
        collected = tape.solve(equations.edges, boundary, equations.active & ~endless, gain)
        return self._last_level(self._infinite_where(endless, collected))

    def _last_level(self, nodes: Traced) -> Traced:
        """The nodes of the whole budget, shape (n,)."""
        return self.tape.take(nodes, np.arange(len(nodes.value) - self._chain.n_states, len(nodes.value)))

    # ------------------------------------------------------------ on products with an automaton

    def _product_probabilities(self, decided: DecidedProduct) -> Traced:
        """The probability of the formula of each reached node, one formula after the other, shape (F * n,)."""
        between = decided.between
        return self.tape.solve(
            self._product_edges(decided, between), self.tape.constant(decided.certain.ravel()), between.ravel()
        )

    def _conditional_reward(self, target: Mask, condition: PathFormula, per_step: Floats, holds: Holds) -> Traced:
        from tracebridge.closedform.ltl.reward import until_target

        tape = self.tape
        collecting = until_target(self._chain.transitions, target, condition, holds)
        of_condition = self._product_probabilities(collecting.decided)
        each_step = tape.constant(np.tile(per_step, len(collecting.open)))
        collected = self._collected(collecting, tape.product(each_step, of_condition))
        average = tape.quotient(collected, self._first_formula(of_condition))
        return self._infinite_where(collecting.endless, average)

    def _collected(self, collecting: Collecting, gain: Traced) -> Traced:
        """What is collected from every state on, shape (n,); ``gain`` has the shape (F * n,)."""
        nothing = self.tape.constant(np.zeros(collecting.open.size))
        edges = self._product_edges(collecting.decided, collecting.open)
        return self._first_formula(self.tape.solve(edges, nothing, collecting.open.ravel(), gain))

    def _product_edges(self, decided: DecidedProduct, open_: NDArray[np.bool_]) -> Edges:
        formulas, states = np.nonzero(open_)
        if not len(states):
            nothing = np.empty(0, dtype=np.int64)
            return Edges(sources=nothing, targets=nothing, entries=nothing, nodes=open_.size)
        leaving = decided.product.leaving(self._chain.transitions, formulas, states)
        sources = np.repeat(formulas * self._chain.n_states + states, leaving.lengths)
        return Edges(sources=sources, targets=leaving.targets, entries=leaving.entries, nodes=open_.size)

    def _first_formula(self, nodes: Traced) -> Traced:
        return self.tape.take(nodes, np.arange(self._chain.n_states))
