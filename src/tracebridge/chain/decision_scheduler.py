"""Memoryless schedulers of a decision process, and the chains that they make of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.transition_rows import ROW_SUM_TOLERANCE
from tracebridge.errors import Location, ModelError, Problem

if TYPE_CHECKING:
    from tracebridge.chain.decision import DecisionProcess

Weight = Fraction | int | float
Decision = str | int | Mapping[str, Weight] | Mapping[int, Weight]
"""What is done in one state: an action by its name or its position among those of the state, or weights of several."""

Scheduler = NDArray[np.int64] | Mapping[str, Decision]
"""The choice of each state as a row of the transition matrix, shape (n,); or decisions by the names of states. A state
with one choice may be left out of a mapping."""

_Weights = list[dict[int, Weight]]  # of choices (rows), for each state


def induced_chain(process: DecisionProcess, scheduler: Scheduler) -> MarkovChain:
    """The Markov chain that a process is under a scheduler, over the same states, labels and rewards.

    The action reward of a state is the mean of those of its choices. The chain is rational where the process is and all
    weights are whole numbers or Fractions.

    Raises:
        ModelError: a state or an action that there is not, a name that several choices of a state share, a state with
            several choices and no decision, or weights that are negative or do not sum to one (within 1e-12 if some are
            doubles).
    """
    weights = _weights(process, scheduler)
    exact = process.rationals is not None and not any(
        isinstance(weight, float) for row in weights for weight in row.values()
    )
    transitions: RationalMatrix | csr_array
    if exact:
        assert process.rationals is not None  # noqa: S101 - what exact says
        transitions = RationalMatrix.from_rows(
            [_mixed_row(process.rationals, row) for row in weights], process.n_states
        )
    else:
        transitions = csr_array(_matrix(weights, process.n_choices) @ process.transitions)
    return MarkovChain(
        states=process.states,
        transitions=transitions,
        initial=process.initial if process.initial_rationals is None else process.initial_rationals,  # type: ignore[arg-type]
        labels=process.labels,
        rewards={name: _mixed_rewards(held, weights, exact=exact) for name, held in process.rewards.items()},
        variables=process.variables,
        constants=process.constants,
    )


def _weights(process: DecisionProcess, scheduler: Scheduler) -> _Weights:
    if isinstance(scheduler, Mapping):
        for name in scheduler:
            process.index(name)
        return [_decided(process, i, scheduler.get(name)) for i, name in enumerate(process.states)]
    choices, starts = np.asarray(scheduler), process.choice_starts
    if choices.shape != (process.n_states,) or choices.dtype.kind not in "iu":
        raise ModelError(f"a scheduler of {process.n_states} states is as many whole numbers, not {choices!r:.80}")
    wrong = np.flatnonzero((choices < starts[:-1]) | (choices >= starts[1:]))
    if len(wrong):
        state = int(wrong[0])
        raise ModelError(
            f"state {process.states[state]!r}: its choices are the rows {starts[state]} to {starts[state + 1] - 1}, "
            f"and {choices[state]} is none of them"
        )
    return [{choice: 1} for choice in choices.tolist()]


def _decided(process: DecisionProcess, state: int, decision: Decision | None) -> dict[int, Weight]:
    """The weights of the choices of one state."""
    first, names = int(process.choice_starts[state]), process.actions[state]
    if decision is None:
        if len(names) == 1:
            return {first: 1}
        raise _refusal(process, state, f"nothing is decided, and it has {len(names)} choices")
    if isinstance(decision, str | int):
        return {first + _position(process, state, decision): 1}
    weights: dict[int, Weight] = {}
    for action, weight in decision.items():
        if not 0 <= weight < math.inf:
            raise _refusal(process, state, f"the weight of {action!r} is {weight!r}")
        choice = first + _position(process, state, action)
        weights[choice] = weights.get(choice, 0) + weight
    total = sum((Fraction(weight) for weight in weights.values()), Fraction(0))
    rounded = any(isinstance(weight, float) for weight in weights.values())
    if abs(total - 1) > (ROW_SUM_TOLERANCE if rounded else 0):
        raise _refusal(process, state, f"the weights sum to {float(total) if rounded else total}")
    return {choice: weight for choice, weight in weights.items() if weight}


def _position(process: DecisionProcess, state: int, action: str | int) -> int:
    names = process.actions[state]
    if isinstance(action, int):
        if not 0 <= action < len(names):
            raise _refusal(process, state, f"there is no choice {action}, they are counted from 0 to {len(names) - 1}")
        return action
    found = [i for i, name in enumerate(names) if name == action]
    if len(found) != 1:
        problem = "several choices are" if found else "no choice is"
        raise _refusal(process, state, f"{problem} called {action!r}")
    return found[0]


def _refusal(process: DecisionProcess, state: int, message: str) -> ModelError:
    hint = "its actions are " + ", ".join(map(repr, process.actions[state][:8]))
    return ModelError(
        Problem(location=Location(), message=f"scheduler, state {process.states[state]!r}: {message}", hint=hint)
    )


def _mixed_row(matrix: RationalMatrix, weights: Mapping[int, Weight]) -> dict[int, Fraction]:
    if len(weights) == 1:
        return matrix.row(next(iter(weights)))
    mixed: dict[int, Fraction] = {}
    for choice, weight in weights.items():
        for target, probability in matrix.row(choice).items():
            mixed[target] = mixed.get(target, Fraction(0)) + Fraction(weight) * probability
    return mixed


def _matrix(weights: _Weights, n_choices: int) -> csr_array:
    """The weights as a matrix of shape (n, m)."""
    indptr = np.cumsum([0, *map(len, weights)])
    indices = np.array([choice for row in weights for choice in row], dtype=np.int64)
    data = np.array([float(weight) for row in weights for weight in row.values()])
    return csr_array((data, indices, indptr), shape=(len(weights), n_choices))


def _mixed_rewards(structure: RewardStructure, weights: _Weights, *, exact: bool) -> RewardStructure:
    if structure.action is None:
        return structure
    if not exact:
        return RewardStructure(
            state=structure.state,
            action=_matrix(weights, len(structure.action)) @ structure.action,
            exact_state=structure.exact_state,
        )
    held = (
        structure.exact_action.to_fractions()
        if structure.exact_action
        else [Fraction(value) for value in structure.action.tolist()]
    )
    mean = [sum((Fraction(weight) * held[choice] for choice, weight in row.items()), Fraction(0)) for row in weights]
    action = RationalVector.from_fractions(mean)
    return RewardStructure(
        state=structure.state, action=action.to_float(), exact_state=structure.exact_state, exact_action=action
    )
