"""The Storm engine: a session that asks the Storm process about one chain.

Storm answers in every state of the chain as it is, in our state order, with nothing in between that could rename or
round: arrays go in, numbers come out. Operands of an operator are sent as sets of states, never as names.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.graph import recurrent_classes
from tracebridge.checking.engine import STORM, Holds
from tracebridge.checking.result import Note
from tracebridge.checking.storm_formulation import (
    Conjunction,
    StormQuery,
    formulate,
    parts_of,
    storm_formulation,
)
from tracebridge.checking.storm_numbers import entries_of, rational_of, reward_numbers
from tracebridge.checking.storm_process import TIME_LIMIT, StormWorker
from tracebridge.checking.storm_quantile import quantiles
from tracebridge.checking.storm_rewards import WholeBounds, step_rewards, structure_name, whole_bounds
from tracebridge.checking.storm_solver import SolverChoice, choose_solver
from tracebridge.checking.storm_worker import protocol
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import EngineError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.checking.storm_worker.protocol import Numbers, Solver
    from tracebridge.closedform.enclosure import Enclosure

    Mask = NDArray[np.bool_]

#: What Storm calls the reward structure that is sent with a question.
_SENT = "v0"


@dataclass(frozen=True, slots=True)
class _Question:
    """A formula in Storm's words, and the sets of states and the rewards that it speaks of; see `protocol.Evaluate`."""

    formula: str
    masks: tuple[Mask, ...]
    rewards: tuple[Numbers, ...] = ()
    leaving: Mask | None = None
    bounded: bool = False
    conditional: bool = False


class StormSession:
    """An `EngineSession`: Storm with one chain loaded.

    In exact mode Storm computes in rationals and the values are Fractions. In float mode the values carry the accuracy
    that `storm_solver` assumes; where it would leave no digit, there is no answer. Probabilities of one have bounds of
    width zero where Storm's graph analysis finds them. Numbers below 1e-307 may be given as zero.

    Attributes:
        notes: how operators were asked that Storm's language lacks.
    """

    name = STORM

    def __init__(self, chain: MarkovChain, *, exact: bool, worker: StormWorker, time_limit: float = TIME_LIMIT) -> None:
        """Nothing is sent yet.

        Args:
            exact: work in rationals. worker: may serve several sessions. time_limit: seconds for each query.
        """
        self.chain = chain
        self.exact = exact
        self.notes: list[Note] = []
        self._worker = worker
        self._time_limit = time_limit
        self._structures = {name: f"r{i}" for i, name in enumerate(chain.rewards)}
        self._id = worker.new_model()
        self._loaded_in = -1
        weakref.finalize(self, worker.forget, self._id)

    def evaluate(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """The value of the operator in every state, shape (n,); see `EngineSession.evaluate`.

        Raises:
            PropertyError: a step bound that is no number of steps, or a reward structure that the chain lacks.
            UnsupportedError: Storm has no answer to this operator, or none that is worth anything in doubles.
            EngineTimeoutError: Storm took longer than the time limit.
            EngineError: Storm failed or crashed.
        """
        if parts_of(operator) is not None or self.query(operator).rewritten:
            text = f"Storm is asked {storm_formulation(operator)} for {format_formula(operator)}"
            self.notes.append(Note(kind="formulation", text=text))
        return self.value(operator, holds)

    def evaluate_quantile(
        self, quantile: ast.Quantile, holds: Holds, weights: Sequence[Fraction]
    ) -> tuple[EnclosureVector, Enclosure]:
        """The quantile in every state, and that of the mean; see `EngineSession.evaluate_quantile`.

        Storm's own quantiles are for one start state, and wrong in rationals (2.0.0): it is asked for the operator
        inside with one bound after the other.
        """
        text = f"Storm is asked {format_formula(quantile.operator)} with one bound after the other"
        self.notes.append(Note(kind="formulation", text=text))
        vector, start = quantiles(
            quantile,
            lambda operator: self.value(operator, holds),
            weights,
            self._spent,
        )
        return (vector, start) if self.exact else (vector.to_float(), start)

    def value(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """What `evaluate` returns, without notes."""
        parts = parts_of(operator)
        if parts is not None:
            top, bottom = [self.value(part, holds) for part in parts]
            return self._quotient(top, bottom)
        query = self.query(operator)
        masks = tuple([self._mask(operand, holds) for operand in query.operands])
        question = self._question(operator, query, masks)
        if question is None:
            answer = self._constant(0)
        elif self.exact:
            answer = self._exactly(query, question)
        else:
            answer = self._roughly(query, question, choose_solver(self.chain, query, operator, holds))
        if query.conditional:
            answer = self._under_condition(query, answer, masks)
        if query.sure is not None:
            sure = self._truths(self._ask(_Question(query.sure, masks), "exact" if self.exact else "elimination"))
            infinite = EnclosureVector.constant(len(answer), np.inf, exact=self.exact)
            answer = EnclosureVector.where(sure, answer, infinite)
        if query.positive:
            answer = self._above_zero(query, question, answer)
        return self._complement(answer) if query.complemented else answer

    def query(self, operator: ast.Operator) -> StormQuery:
        """What Storm is asked for an operator that is no quotient of two (`parts_of`).

        Raises:
            PropertyError, UnsupportedError: see `evaluate`.
        """
        if not isinstance(operator, ast.Reward):
            return formulate(operator, "")
        name = structure_name(self.chain, operator.structure)
        unfolded = isinstance(operator.path, ast.CumulativeReward) and bool(operator.path.reward_bounds)
        if name is None or unfolded or operator.condition is not None:
            return formulate(operator, _SENT)
        return formulate(operator, self._structures[name])

    # ------------------------------------------------------------ questions

    def _question(self, operator: ast.Operator, query: StormQuery, masks: tuple[Mask, ...]) -> _Question | None:
        """The question to send; None if no run keeps the bounds on rewards."""
        if query.discount is not None and query.steps is None and self.exact:
            raise UnsupportedError("Storm has no discounted total reward in rationals")
        sent: list[Numbers] = []
        if isinstance(operator, ast.Reward) and query.formula.startswith(f'R{{"{_SENT}"}}'):
            sent.append(self._numbers([*step_rewards(self.chain, operator.structure), Fraction(0)]))
        if not query.collected:
            if (query.conditional or query.automaton) and not sent:
                sent.append(self._nothing())
            return _Question(query.formula, masks, tuple(sent), conditional=query.conditional)
        bounds = whole_bounds(self._spent, self.chain.n_states, query.collected)
        if bounds.impossible:
            return None
        if isinstance(operator, ast.Reward) and bounds.rewards and self._earns_at_no_cost(operator, bounds):
            raise UnsupportedError("Storm fails where reward may be earned for ever within the bounds")
        texts = [
            f'{{"v{number}"}}{text}' for number, texts in enumerate(bounds.bounds, start=len(sent)) for text in texts
        ]
        sent += [self._numbers([Fraction(value) for value in (*reward, 0)]) for reward in bounds.rewards]
        formula = query.formula.replace(query.bounds_text, ",".join(texts))
        leaving = ~masks[1] if len(masks) > 1 else None
        if leaving is not None and not sent:  # a chain with one more state is one with rewards
            sent.append(self._nothing())
        return _Question(formula, masks[:1], tuple(sent), leaving, bounded=bool(texts))

    def _exactly(self, query: StormQuery, question: _Question) -> EnclosureVector:
        numbers = self._ask(question, "exact")
        if query.delay:
            numbers = self._ask_delayed(query, question, numbers, "exact")
        return EnclosureVector.from_fractions([rational_of(text) for text in numbers])

    def _roughly(self, query: StormQuery, question: _Question, choice: SolverChoice) -> EnclosureVector:
        error, solver = choice.relative_error, choice.solver
        if error >= 1:
            raise UnsupportedError(
                f"Storm's doubles may have no correct digit here: a relative error of {error:.1g} must be assumed"
            )
        numbers = self._ask(question, solver)
        if query.delay:
            numbers = self._ask_delayed(query, question, numbers, solver)
        values = protocol.unpack_doubles(numbers)
        certain = np.isinf(values)
        if query.decided_by_graph and bool((values == 1).any()):
            sure = replace(question, formula=question.formula.replace("=?", ">=1", 1))
            certain |= protocol.unpack_doubles(self._ask(sure, solver)) == 1
        lower, upper = values * (1 - error), values / (1 - error)
        if choice.is_iteration:  # it stops by the values that change most; small ones may be far from their end
            slack = error * float(np.max(values, where=np.isfinite(values), initial=0.0))
            lower = np.maximum(lower - slack, 0.0)
            upper = np.where(values > 0, upper + slack, upper)
        if self._may_underflow(query):
            upper = np.maximum(upper, np.finfo(np.float64).tiny)
        if query.is_probability:
            upper = np.minimum(upper, 1)
        return EnclosureVector.from_bounds(values, np.where(certain, values, lower), np.where(certain, values, upper))

    def _may_underflow(self, query: StormQuery) -> bool:
        """Whether a product of so many transition probabilities can leave the range of doubles."""
        steps = max(query.steps or 0, query.delay)
        return -float(np.log10(self.chain.transitions.data.min())) * steps > 300

    def _ask(self, question: _Question, solver: Solver) -> Numbers:
        self._load()
        message = protocol.Evaluate(
            model=self._id,
            formula=question.formula,
            solver=solver,
            labels=[protocol.pack_mask(mask) for mask in question.masks],
            rewards=list(question.rewards),
            leaving=None if question.leaving is None else protocol.pack_mask(question.leaving),
            bounded=question.bounded,
            conditional=question.conditional,
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        if isinstance(reply, protocol.Failure):
            raise EngineError(f"Storm refuses {question.formula}: {reply.message}")
        assert isinstance(reply, protocol.Values)  # noqa: S101 - the worker pairs replies with requests
        return reply.values

    def _ask_delayed(self, query: StormQuery, question: _Question, numbers: Numbers, solver: Solver) -> Numbers:
        """``E[v(X_k); a1 holds on steps 0 .. k-1]``: states outside a1 move on to a state of value zero."""
        leaving = ~question.masks[1] if len(question.masks) > 1 else None
        reward = numbers + self._numbers([Fraction(0)])  # type: ignore[operator]  # bytes, or a list, both
        return self._ask(_Question(f'R{{"{_SENT}"}}=? [ I={query.delay} ]', (), (reward,), leaving), solver)

    def _load(self) -> None:
        """Send the chain unless the running process has it."""
        generation = self._worker.ensure_running()
        if self._loaded_in == generation:
            return
        chain = self.chain
        message = protocol.LoadModel(
            model=self._id,
            indptr=chain.transitions.indptr.astype("<i8").tobytes(),
            indices=chain.transitions.indices.astype("<i8").tobytes(),
            values=entries_of(chain, exact=self.exact),
            initial=protocol.pack_mask(chain.initial > 0),
            rewards=[reward_numbers(structure, exact=self.exact) for structure in chain.rewards.values()],
            forget=self._worker.take_forgotten(),
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        assert isinstance(reply, protocol.Loaded)  # noqa: S101 - the worker pairs replies with requests
        self._loaded_in = generation

    # ------------------------------------------------------------ operands and answers

    def _mask(self, conjunction: Conjunction, holds: Holds) -> Mask:
        mask = np.ones(self.chain.n_states, dtype=np.bool_)
        for formula, wanted in conjunction:
            mask &= (formula.value if isinstance(formula, ast.Truth) else holds(formula)) == wanted
        return mask

    def _numbers(self, values: Sequence[Fraction]) -> Numbers:
        """Numbers in the arithmetic of this session."""
        if self.exact:
            return [protocol.pack_rational(value) for value in values]
        return np.array([float(value) for value in values], dtype="<f8").tobytes()

    def _spent(self, structure: ast.Structure) -> list[Fraction]:
        """What a step from each state spends of a reward structure."""
        return step_rewards(self.chain, structure)

    def _earns_at_no_cost(self, operator: ast.Reward, bounds: WholeBounds) -> bool:
        """Whether some run ends up earning the reward of the operator and no more of those that are bounded."""
        earned = np.array(step_rewards(self.chain, operator.structure)) > 0
        spent: Mask = np.any(np.array(bounds.rewards) > 0, axis=0)
        classes = recurrent_classes(self.chain.transitions)
        return any(bool(np.any(earned[states])) and not bool(np.any(spent[states])) for states in classes)

    def _nothing(self) -> Numbers:
        """A reward of zero in the n states and the extra one."""
        return self._numbers([Fraction(0)] * (self.chain.n_states + 1))

    def _constant(self, value: int) -> EnclosureVector:
        return EnclosureVector.constant(self.chain.n_states, Fraction(value), exact=self.exact)

    def _complement(self, answer: EnclosureVector) -> EnclosureVector:
        """One minus a probability."""
        rest = self._constant(1) - answer
        if self.exact:
            return rest
        return EnclosureVector.from_bounds(*(np.clip(x, 0, 1) + 0.0 for x in (rest.value, rest.lower, rest.upper)))

    def _quotient(self, top: EnclosureVector, bottom: EnclosureVector) -> EnclosureVector:
        """One probability by another that is no smaller; undefined where the latter is zero for certain."""
        share = top / bottom
        if self.exact:
            return share
        if bool((share.undefined & (bottom.upper > 0)).any()):
            raise UnsupportedError("Storm's doubles do not tell in every state whether the condition is possible")
        lower, upper = np.maximum(share.lower, 0), np.minimum(share.upper, 1)
        return EnclosureVector.from_bounds(np.minimum(share.value, 1), lower, upper)

    def _under_condition(self, query: StormQuery, answer: EnclosureVector, masks: tuple[Mask, ...]) -> EnclosureVector:
        """The answer where the condition ``F a1`` is possible, undefined elsewhere.

        Rewards are infinite where a run may satisfy the condition and never reach a0; there Storm may say zero (2.0.0).
        """
        texts = ['P>0 [ F "a1" ]', 'P>0 [ !"a0" U ("a1" & (!"a0") & !(P>=1 [ F "a0" ])) ]']
        solver: Solver = "exact" if self.exact else "elimination"
        possible, endless = [self._truths(self._ask(_Question(text, masks), solver)) for text in texts]
        if not query.is_probability:
            infinite = EnclosureVector.constant(len(answer), np.inf, exact=self.exact)
            answer = EnclosureVector.where(endless, infinite, answer)
        undefined = EnclosureVector.constant(len(answer), np.nan, exact=self.exact)
        return EnclosureVector.where(possible, answer, undefined)

    def _above_zero(self, query: StormQuery, question: _Question | None, answer: EnclosureVector) -> EnclosureVector:
        """One where a probability is above zero, else zero: by the graph where Storm looks at it alone."""
        if question is not None and query.decided_by_graph:
            asked = replace(question, formula=question.formula.replace("=?", ">0", 1))
            above = self._truths(self._ask(asked, "exact" if self.exact else "elimination"))
        else:
            above = np.asarray(answer.value > 0, dtype=np.bool_)
            if not self.exact and bool((~above & (answer.upper > 0)).any()):
                raise UnsupportedError("Storm's doubles cannot tell so small a probability from zero")
        return EnclosureVector.where(above, self._constant(1), self._constant(0))

    def _truths(self, numbers: Numbers) -> Mask:
        """Truth values, which come as doubles in either arithmetic."""
        return np.asarray(protocol.unpack_doubles(numbers) == 1, dtype=np.bool_)
