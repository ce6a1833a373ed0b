"""The Storm engine over a decision process: the queries of `storm_formulation` with the optimum that is meant."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.checking.result import Note
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_formulation import StormQuery, formulate, parts_of, storm_formulation
from tracebridge.checking.storm_numbers import entries_of, rational_of, reward_numbers
from tracebridge.checking.storm_process import TIME_LIMIT, StormWorker
from tracebridge.checking.storm_quantile import quantiles
from tracebridge.checking.storm_rewards import structure_name, whole_bounds
from tracebridge.checking.storm_solver import SolverChoice
from tracebridge.checking.storm_steps import constant_number
from tracebridge.checking.storm_worker import protocol
from tracebridge.closedform.decision import FloatOptimiser, optimal_values, optimum_of
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.modelcheck import rounding_amplification
from tracebridge.closedform.until import BoundedPath
from tracebridge.errors import EngineError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracebridge.checking.engine import Holds
    from tracebridge.checking.storm import _Question
    from tracebridge.checking.storm_worker.protocol import Numbers, Solver
    from tracebridge.closedform.enclosure import Enclosure
    from tracebridge.pctl.ast import Optimum

#: Up to so many states Storm solves by policy iteration with state elimination, which takes a second here.
POLICY_ITERATION_STATES = 300

#: Relative error to assume of Storm's sound value iteration, which it runs to a tenth of it.
SOUND_ERROR = 1e-8

#: Absolute error to assume of Storm's answers about several objectives, which it approximates in rationals too.
SEVERAL_OBJECTIVES_ERROR = 1e-8

#: States that Storm is asked about one by one.
CONDITIONED_STATES = 40

_ASKED = re.compile(r"\b(P|S|T|R\{[^}]*\})=\?")


class DecisionStormSession(StormSession):
    """A `StormSession` with a decision process loaded.

    In exact mode Storm works in rationals, by policy iteration. In doubles it does so too on small processes; the error
    that is assumed is that of the chain under the optimal scheduler (see `storm_solver`). On larger ones it is asked
    for sound value iteration.
    """

    def __init__(
        self, process: DecisionProcess, *, exact: bool, worker: StormWorker, time_limit: float = TIME_LIMIT
    ) -> None:
        """Nothing is sent yet."""
        super().__init__(process.frame, exact=exact, worker=worker, time_limit=time_limit)
        self.process = process
        self._exact: DecisionStormSession | None = None

    def evaluate(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """The optimum of the operator in every state; see `EngineSession.evaluate`.

        Several objectives have a value at the start alone; that of other states is undefined.

        Raises:
            PropertyError, UnsupportedError, EngineTimeoutError, EngineError: as `StormSession.evaluate`.
        """
        if isinstance(operator, ast.Multi):
            return self._several(operator, holds)
        if isinstance(operator, ast.Probability) and operator.condition is not None:
            return self._under_a_condition(operator, holds)
        query = self.query(operator)
        if query.rewritten:
            text = _with_optimum(storm_formulation(operator), _asked_of(query))
            self.notes.append(Note(kind="formulation", text=f"Storm is asked {text} for {format_formula(operator)}"))
        return self.value(operator, holds)

    def evaluate_quantile(
        self, quantile: ast.Quantile, holds: Holds, weights: Sequence[Fraction]
    ) -> tuple[EnclosureVector, Enclosure]:
        """The quantile in every state, and that of the mean; see `StormSession.evaluate_quantile`.

        Where the optimum without a bound is at the threshold, and it is a minimum below one, no number of bounds tells
        whether one attains it: the quantile is then open above. A minimum of one means that every choice keeps it.
        """
        text = f"Storm is asked {format_formula(quantile.operator)} with one bound after the other"
        self.notes.append(Note(kind="formulation", text=text))
        path = quantile.operator.path
        bounds = [getattr(path, "bound", None), *(each.bound for each in getattr(path, "reward_bounds", ()))]
        if any(isinstance(bound, ast.StepBound) and bound.lower is not None for bound in bounds):
            raise UnsupportedError("of a decision process Storm is asked for quantiles over upper bounds only")
        complemented = isinstance(path, ast.Globally | ast.WeakUntil | ast.Release)
        is_maximum = (optimum_of(quantile.operator) == "max") != complemented
        threshold = quantile.operator.threshold
        is_sure = (
            threshold is not None
            and isinstance(path, ast.Temporal)
            and constant_number(threshold.value) == (0 if complemented else 1)
        )
        vector, start = quantiles(
            quantile,
            lambda operator: self.value(operator, holds),
            weights,
            self._spent,
            attains_at_once=is_maximum or is_sure,
        )
        return (vector, start) if self.exact else (vector.to_float(), start)

    def query(self, operator: ast.Operator) -> StormQuery:
        """What Storm is asked, with the optimum; the other one where one minus its answer is meant.

        Raises:
            PropertyError, UnsupportedError: see `evaluate`.
        """
        if parts_of(operator) is not None:
            raise UnsupportedError("Storm is not asked for probabilities under a condition of a decision process")
        query = super().query(operator)
        if query.collected and isinstance(operator, ast.Reward):
            raise UnsupportedError("Storm (2.0.0) may crash on rewards within bounds on rewards in a decision process")
        if query.conditional or query.discount is not None or query.sure is not None:
            raise UnsupportedError("Storm is asked this of chains only")
        if query.positive:  # whether some run does
            return replace(query, formula=_with_optimum(query.formula, "max"))
        assert isinstance(operator, ast.Probability | ast.Reward | ast.SteadyState)  # noqa: S101 - the others are positive
        optimum = optimum_of(operator)
        if query.complemented:
            optimum = "min" if optimum == "max" else "max"
        return replace(query, formula=_with_optimum(query.formula, optimum))

    def value(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """What `evaluate` returns, without notes."""
        query = self.query(operator)
        question = self._question(operator, query, tuple(self._mask(operand, holds) for operand in query.operands))
        if question is None:
            answer = self._constant(0)
        elif self.exact:
            answer = self._exactly(query, question)
        else:
            answer = self._roughly(query, question, self._choice(query, operator, holds))
        if query.positive:
            answer = self._above_zero(query, question, answer)
        if query.complemented:
            answer = self._complement(answer)
        if answer.exact:
            return answer
        return EnclosureVector.from_bounds(
            *(part + 0.0 for part in (answer.value, answer.lower, answer.upper))
        )  # no -0

    # ------------------------------------------------------------ questions

    def _choice(self, query: StormQuery, operator: ast.Operator, holds: Holds) -> SolverChoice:
        """A solver and the error to assume."""
        eps = float(np.finfo(np.float64).eps)
        n = self.process.n_states
        widest = int(np.diff(self.process.transitions.indptr).max())
        if query.collected:  # one equation a level, each with an error of its own
            levels = whole_bounds(self._spent, n, query.collected).levels
            return SolverChoice(solver="sound", relative_error=SOUND_ERROR * levels)
        if query.steps is not None:
            return SolverChoice(solver="policy-iteration", relative_error=4 * widest * eps * (1 + query.steps))
        if query.automaton or query.long_run or n > POLICY_ITERATION_STATES:
            return SolverChoice(solver="sound", relative_error=SOUND_ERROR)
        if query.positive:  # the graph decides
            return SolverChoice(solver="policy-iteration", relative_error=eps)
        unbounded = _without_bound(operator)  # after its delay
        scheduler = optimal_values(FloatOptimiser(self.process), unbounded, holds).scheduler
        assert scheduler is not None  # noqa: S101 - without a bound there always is one
        steps = rounding_amplification(self.process.induced(scheduler), unbounded, holds)
        error = 4 * n * eps * (1 + steps) + 4 * widest * eps * query.delay
        return SolverChoice(solver="policy-iteration", relative_error=error)

    def _spent(self, structure: ast.Structure) -> list[Fraction]:
        """What each choice spends of a reward structure."""
        name = structure_name(self.chain, structure)
        if name is None:
            return [Fraction(1)] * self.process.n_choices
        held = self.process.rewards[name]
        own = [Fraction(0)] * self.process.n_choices
        if held.exact_action is not None:
            own = held.exact_action.to_fractions()
        elif held.action is not None:
            own = [Fraction(value) for value in held.action.tolist()]
        state = held.fractions(action=False)
        return [state[i] + value for i, value in zip(self.process.state_of_choice.tolist(), own, strict=True)]

    def _may_underflow(self, query: StormQuery) -> bool:
        steps = max(query.steps or 0, query.delay)
        return -float(np.log10(self.process.transitions.data.min())) * steps > 300

    def _ask_delayed(self, query: StormQuery, question: _Question, numbers: Numbers, solver: Solver) -> Numbers:
        leaving = ~question.masks[1] if len(question.masks) > 1 else None
        reward = numbers + self._numbers([Fraction(0)])  # type: ignore[operator]  # bytes, or a list, both
        formula = _with_optimum(f'R{{"v0"}}=? [ I={query.delay} ]', _asked_of(query))
        return self._ask(replace(question, formula=formula, masks=(), rewards=(reward,), leaving=leaving), solver)

    def _load(self) -> None:
        """Send the process unless the running Storm has it."""
        generation = self._worker.ensure_running()
        if self._loaded_in == generation:
            return
        process = self.process
        message = protocol.LoadModel(
            model=self._id,
            indptr=process.transitions.indptr.astype("<i8").tobytes(),
            indices=process.transitions.indices.astype("<i8").tobytes(),
            values=entries_of(process, exact=self.exact),  # type: ignore[arg-type]  # rows of either kind of model
            initial=protocol.pack_mask(process.initial > 0),
            rewards=[reward_numbers(structure, exact=self.exact) for structure in process.rewards.values()],
            forget=self._worker.take_forgotten(),
            groups=process.choice_starts.astype("<i8").tobytes(),
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        assert isinstance(reply, protocol.Loaded)  # noqa: S101 - the worker pairs replies with requests
        self._loaded_in = generation

    # ------------------------------------------------------------ several objectives

    def _several(self, multi: ast.Multi, holds: Holds) -> EnclosureVector:
        """The value of ``multi`` in the one start state, 1 or 0 where all its objectives have thresholds."""
        (starts,) = np.nonzero(self.process.initial)
        if len(starts) != 1:
            raise UnsupportedError("Storm answers about several objectives for one initial state only")
        if multi.kind != "multi":
            raise UnsupportedError(f"Storm is not asked {multi.kind}")
        operands: list[bytes] = []
        texts = []
        decides = True
        for objective in multi.objectives:
            if not isinstance(objective, ast.Probability | ast.Reward) or objective.condition is not None:
                raise UnsupportedError("Storm takes P and R without a condition as objectives")
            name = structure_name(self.chain, objective.structure) if isinstance(objective, ast.Reward) else None
            if isinstance(objective, ast.Reward) and name is None:
                raise UnsupportedError("Storm has no objective over one a step")
            query = _always(objective) or formulate(objective, "" if name is None else self._structures[name])
            if query.rewritten or query.conditional or query.collected or query.discount is not None:
                raise UnsupportedError(f"Storm cannot be asked for {format_formula(objective)} as an objective")
            text = _renumbered(query.formula, len(operands))
            operands += [protocol.pack_mask(self._mask(operand, holds)) for operand in query.operands]
            texts.append(_objective(text, objective))
            decides &= objective.threshold is not None

        answer = float(self._in_rationals()._ask_at_start(f"multi({', '.join(texts)})", operands))
        slack = 0.0
        if not decides:
            text = "Storm approximates the values of several objectives, also in rationals"
            self.notes.append(Note(kind="warning", text=text))
            slack = SEVERAL_OBJECTIVES_ERROR * max(1.0, abs(answer))
        bounds = [np.full(self.process.n_states, np.nan) for _ in range(3)]
        for bound, number in zip(bounds, (answer, answer - slack, answer + slack), strict=True):
            bound[starts] = number
        return EnclosureVector.from_bounds(*bounds)

    # ------------------------------------------------------------ answers at the start

    def evaluate_start_under_condition(self, operator: ast.Probability, holds: Holds) -> Enclosure:
        """Of a process with one more state, from which all start states are reached as runs start in them."""
        process = self.process
        n, matrix = process.n_states, process.exact_transitions()
        rows = [matrix.row(choice) for choice in range(int(process.choice_starts[-1]))]
        starts = {state: weight for state, weight in enumerate(process.exact_initial()) if weight}
        widened = DecisionProcess(
            states=tuple(map(str, range(n + 1))),
            actions=(*process.actions, ("",)),
            transitions=RationalMatrix.from_rows([*rows, starts], n + 1),
            initial=np.eye(1, n + 1, n)[0],
        )
        return self._greatest_under_condition(widened, [n], operator, holds)[0]

    def _under_a_condition(self, operator: ast.Probability, holds: Holds) -> EnclosureVector:
        """The greatest probability in every state."""
        return self._greatest_under_condition(self.process, range(self.process.n_states), operator, holds)

    def _greatest_under_condition(
        self, process: DecisionProcess, states: Iterable[int], operator: ast.Probability, holds: Holds
    ) -> EnclosureVector:
        """The greatest probability of reaching one set given that another is reached, of which Storm tells one state.

        Each state is the start of a process of its own, in rationals; undefined is where the other cannot be reached.
        States that the process has beyond those of the session are in neither set.
        """
        if optimum_of(operator) == "min":
            raise UnsupportedError("Storm (2.0.0) may be wrong about the least probability under a condition")
        if parts_of(operator) is not None:
            raise UnsupportedError("of a decision process Storm takes F without bounds on both sides of || only")
        query = formulate(operator, "")
        more = process.n_states - self.process.n_states
        masks = [np.append(self._mask(operand, holds), np.zeros(more, dtype=np.bool_)) for operand in query.operands]
        operands = [protocol.pack_mask(mask) for mask in masks]
        if self.process.n_states > CONDITIONED_STATES:
            raise UnsupportedError(
                "Storm tells probabilities under a condition for one state at a time, and is not asked about more than "
                f"{CONDITIONED_STATES}"
            )
        values: list[Fraction | float] = []
        for state in states:
            start = np.eye(1, process.n_states, state, dtype=np.int64)[0]
            started = replace(process, initial=RationalVector(start, 1))  # type: ignore[arg-type]  # rationals too
            session = DecisionStormSession(started, exact=True, worker=self._worker, time_limit=self._time_limit)
            possible = session._ask_at_start('Pmax>0 [ F "a1" ]', operands)
            asked = _with_optimum(query.formula, "max")
            values.append(session._ask_at_start(asked, operands) if possible else nan)
        answer = EnclosureVector.from_fractions(values)
        return answer if self.exact else answer.to_float()

    def _in_rationals(self) -> DecisionStormSession:
        """The exact session of this process: in doubles Storm (2.0.0) may be wrong about several objectives."""
        if self.exact:
            return self
        if self._exact is None:
            self._exact = DecisionStormSession(
                self.process, exact=True, worker=self._worker, time_limit=self._time_limit
            )
        return self._exact

    def _ask_at_start(self, formula: str, operands: list[bytes]) -> Fraction | float:
        """The answer in the one initial state; truth is 1."""
        self._load()
        message = protocol.Evaluate(
            model=self._id,
            formula=formula,
            solver="exact",
            labels=operands,
            rewards=[],
            at_start=True,
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        if isinstance(reply, protocol.Failure):
            lacking = "not supported" in reply.message or "not implemented" in reply.message
            raise (UnsupportedError if lacking else EngineError)(f"Storm refuses {formula}: {reply.message}")
        assert isinstance(reply, protocol.Values)  # noqa: S101 - the worker pairs replies with requests
        if isinstance(reply.values, bytes):  # a truth value
            return float(protocol.unpack_doubles(reply.values)[0])
        return rational_of(reply.values[0])


def _without_bound(operator: ast.Operator) -> ast.Operator:
    """The operator without the step bound of its path."""
    if isinstance(operator, ast.Probability) and isinstance(operator.path, BoundedPath):
        return replace(operator, path=replace(operator.path, bound=None))
    return operator


def _with_optimum(text: str, optimum: Optimum) -> str:
    """A query in Storm's words for the least or the greatest value."""
    return _ASKED.sub(lambda asked: f"{asked[1]}{optimum}=?", text)


def _asked_of(query: StormQuery) -> Optimum:
    """Which optimum a query with one asks for."""
    return "min" if "min=?" in query.formula else "max"


def _always(objective: ast.Probability | ast.Reward) -> StormQuery | None:
    """The query for ``P`` of ``G`` without a bound, which Storm has as an objective; None for any other."""
    match objective.path:
        case ast.Globally(operand, None, ()) if isinstance(operand, ast.Formula):
            return StormQuery('P=? [ G "a0" ]', operands=(((operand, True),),))
    return None


def _renumbered(text: str, first: int) -> str:
    """A query whose operands are ``a{first}``, ``a{first + 1}``, ..."""
    return re.sub(r'"a(\d+)"', lambda found: f'"a{first + int(found[1])}"', text)


def _objective(text: str, objective: ast.Probability | ast.Reward) -> str:
    """A query as an objective: with its optimum, or its threshold."""
    if objective.threshold is None:
        return _with_optimum(text, optimum_of(objective))
    comparison, number = objective.threshold.comparison, constant_number(objective.threshold.value)
    bound = f"{comparison}{number.numerator}/{number.denominator}"
    return _ASKED.sub(lambda asked: f"{asked[1]}{bound}", text)
