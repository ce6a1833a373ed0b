"""The Storm engine: a session that asks the Storm process about one chain.

Storm answers in every state of the chain as it is, in our state order, with nothing in between that could rename or
round: arrays go in, numbers come out. Operands of an operator are sent as sets of states, never as names.
"""

from __future__ import annotations

import weakref
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracebridge.checking.engine import STORM, Holds
from tracebridge.checking.result import Note
from tracebridge.checking.storm_formulation import Conjunction, StormQuery, formulate, storm_formulation
from tracebridge.checking.storm_process import TIME_LIMIT, StormWorker
from tracebridge.checking.storm_solver import SolverChoice, choose_solver
from tracebridge.checking.storm_worker import protocol
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import EngineError, PropertyError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from tracebridge.chain.markov import MarkovChain, RewardStructure
    from tracebridge.chain.rational import RationalVector
    from tracebridge.checking.storm_worker.protocol import Numbers, Solver

    Mask = NDArray[np.bool_]


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
        query = self.query(operator)
        if query.rewritten:
            text = f"Storm is asked {storm_formulation(operator)} for {format_formula(operator)}"
            self.notes.append(Note(kind="formulation", text=text))
        masks = [self._mask(operand, holds) for operand in query.operands]
        if self.exact:
            answer = self._exactly(query, masks)
        else:
            answer = self._roughly(query, masks, choose_solver(self.chain, query, operator, holds))
        return self._complement(answer) if query.complemented else answer

    def query(self, operator: ast.Operator) -> StormQuery:
        """What Storm is asked for an operator.

        Raises:
            PropertyError, UnsupportedError: see `evaluate`.
        """
        return formulate(operator, self._structure(operator))

    # ------------------------------------------------------------ queries

    def _exactly(self, query: StormQuery, masks: list[Mask]) -> EnclosureVector:
        numbers = self._ask(query.formula, masks, "exact")
        if query.delay:
            numbers = self._ask_delayed(query, masks, numbers, "exact")
        return EnclosureVector.from_fractions([_rational(text) for text in numbers])

    def _roughly(self, query: StormQuery, masks: list[Mask], choice: SolverChoice) -> EnclosureVector:
        error, solver = choice.relative_error, choice.solver
        if error >= 1:
            raise UnsupportedError(
                f"Storm's doubles may have no correct digit here: a relative error of {error:.1g} must be assumed"
            )
        numbers = self._ask(query.formula, masks, solver)
        if query.delay:
            numbers = self._ask_delayed(query, masks, numbers, solver)
        values = protocol.unpack_doubles(numbers)
        certain = np.isinf(values)
        if query.formula.startswith("P") and query.steps is None and not query.delay and bool((values == 1).any()):
            certain |= protocol.unpack_doubles(self._ask(query.formula.replace("=?", ">=1", 1), masks, solver)) == 1
        lower, upper = values * (1 - error), values / (1 - error)
        if self._may_underflow(query):
            upper = np.maximum(upper, np.finfo(np.float64).tiny)
        if query.is_probability:
            upper = np.minimum(upper, 1)
        return EnclosureVector.from_bounds(values, np.where(certain, values, lower), np.where(certain, values, upper))

    def _may_underflow(self, query: StormQuery) -> bool:
        """Whether a product of so many transition probabilities can leave the range of doubles."""
        steps = query.steps if query.steps is not None else query.delay
        return -float(np.log10(self.chain.transitions.data.min())) * steps > 300

    def _ask(
        self,
        formula: str,
        masks: list[Mask],
        solver: Solver,
        *,
        reward: Numbers | None = None,
        leaving: Mask | None = None,
    ) -> Numbers:
        self._load()
        message = protocol.Evaluate(
            model=self._id,
            formula=formula,
            solver=solver,
            labels=[protocol.pack_mask(mask) for mask in masks],
            reward=reward,
            leaving=None if leaving is None else protocol.pack_mask(leaving),
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        if isinstance(reply, protocol.Failure):
            raise EngineError(f"Storm refuses {formula}: {reply.message}")
        assert isinstance(reply, protocol.Values)  # noqa: S101 - the worker pairs replies with requests
        return reply.values

    def _ask_delayed(self, query: StormQuery, masks: list[Mask], numbers: Numbers, solver: Solver) -> Numbers:
        """``E[v(X_k); a1 holds on steps 0 .. k-1]``: states outside a1 move on to a state of value zero."""
        leaving = ~masks[1] if len(masks) > 1 else None
        return self._ask(f'R{{"v"}}=? [ I={query.delay} ]', [], solver, reward=numbers, leaving=leaving)

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
            values=_entries(chain, exact=self.exact),
            initial=protocol.pack_mask(chain.initial > 0),
            rewards=[_reward_numbers(structure, exact=self.exact) for structure in chain.rewards.values()],
            forget=self._worker.take_forgotten(),
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        assert isinstance(reply, protocol.Loaded)  # noqa: S101 - the worker pairs replies with requests
        self._loaded_in = generation

    # ------------------------------------------------------------ operands

    def _mask(self, conjunction: Conjunction, holds: Holds) -> Mask:
        mask = np.ones(self.chain.n_states, dtype=np.bool_)
        for formula, wanted in conjunction:
            mask &= holds(formula) == wanted
        return mask

    def _structure(self, operator: ast.Operator) -> str:
        if not isinstance(operator, ast.Reward):
            return ""
        names = ", ".join(f'"{name}"' for name in self._structures) or "none"
        if operator.structure is None:
            if len(self._structures) != 1:
                raise PropertyError(f"R without a reward structure needs a chain with exactly one; it has: {names}")
            return "r0"
        if operator.structure not in self._structures:
            raise PropertyError(f'there is no reward structure "{operator.structure}"; the chain has: {names}')
        return self._structures[operator.structure]

    def _complement(self, answer: EnclosureVector) -> EnclosureVector:
        """One minus a probability."""
        rest = EnclosureVector.constant(len(answer), Fraction(1), exact=self.exact) - answer
        if self.exact:
            return rest
        return EnclosureVector.from_bounds(*(np.clip(x, 0, 1) + 0.0 for x in (rest.value, rest.lower, rest.upper)))


def _entries(chain: MarkovChain, *, exact: bool) -> Numbers:
    """The stored entries of P; exact ones in the same places as the doubles."""
    if not exact:
        doubles: bytes = chain.transitions.data.astype("<f8").tobytes()
        return doubles
    matrix = chain.exact_transitions()
    bottoms = matrix.denominators[matrix.row_of_entry].tolist()
    return [protocol.pack_rational(Fraction(a, b)) for a, b in zip(matrix.numerators.tolist(), bottoms, strict=True)]


def _reward_numbers(structure: RewardStructure, *, exact: bool) -> protocol.RewardNumbers:
    def numbers(doubles: NDArray[np.float64], rationals: RationalVector | None) -> Numbers:
        if not exact:
            return doubles.astype("<f8").tobytes()
        fractions = rationals.to_fractions() if rationals else [Fraction(value) for value in doubles.tolist()]
        return [protocol.pack_rational(value) for value in fractions]

    action = None if structure.action is None else numbers(structure.action, structure.exact_action)
    return protocol.RewardNumbers(state=numbers(structure.state, structure.exact_state), action=action)


def _rational(text: Any) -> Fraction | float:
    return float("inf") if text == "inf" else protocol.unpack_rational(text)
