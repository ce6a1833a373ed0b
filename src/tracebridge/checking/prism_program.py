"""PRISM programs as chains and decision processes, explored by Storm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.transition_rows import ROW_SUM_TOLERANCE
from tracebridge.checking.prism_definitions import evaluate_constants, evaluate_formulas, read_definitions
from tracebridge.checking.storm_process import TIME_LIMIT
from tracebridge.checking.storm_worker import protocol
from tracebridge.errors import Location, ModelError, Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.checking.storm_process import StormWorker
    from tracebridge.checking.storm_worker.protocol import Reply

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONSTANT = re.compile(r"true|false|-?\d{1,400}(/\d{1,400}|(\.\d{1,400})?([eE][+-]?\d{1,3})?)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrismProgram:
    """A program as a chain or a decision process, and why properties cannot use some of its constants and formulas."""

    described: MarkovChain | DecisionProcess
    notes: tuple[str, ...] = ()

    @property
    def chain(self) -> MarkovChain:
        """The chain.

        Raises:
            ModelError: the program is of type mdp.
        """
        if isinstance(self.described, DecisionProcess):
            raise ModelError("the program is of type mdp, not dtmc")
        return self.described


def build_prism_chain(
    text: str,
    *,
    worker: StormWorker,
    constants: Mapping[str, str] | None = None,
    exact: bool = True,
    fix_deadlocks: bool = False,
    time_limit: float = TIME_LIMIT,
) -> MarkovChain:
    """The chain of `build_prism_program`, which see."""
    return build_prism_program(
        text, worker=worker, constants=constants, exact=exact, fix_deadlocks=fix_deadlocks, time_limit=time_limit
    ).chain


def build_prism_program(
    text: str,
    *,
    worker: StormWorker,
    constants: Mapping[str, str] | None = None,
    exact: bool = True,
    fix_deadlocks: bool = False,
    time_limit: float = TIME_LIMIT,
) -> PrismProgram:
    """The reachable part of a PRISM program of type ``dtmc`` or ``mdp``; states are named by variables, ``x=1,y=0``.

    The choices of a decision process have the names of their actions, empty where a command has none.

    Decimals in the text are exact. A program whose rows sum to one only within rounding, or that uses functions Storm
    cannot evaluate in rationals, becomes a chain of doubles. The variables of the chain are those of the program (the
    global ones, then module by module, integers before Booleans), then its formulas; its constants are the program's.

    Args:
        text: the program. constants: its undefined constants: whole numbers, decimals, fractions, true or false.
        exact: work in rationals where the text allows it.
        fix_deadlocks: give states without a transition a loop to themselves instead of refusing them.

    Raises:
        ModelError: the text is no such program, or not a sound one: a syntax error, an undefined constant, commands
            whose guards overlap, an update out of bounds, a deadlock, a row that does not sum to one, several initial
            states.
        EngineError: Storm failed, or took longer than the time limit (the state space may be infinite).
    """
    given = dict(constants or {})
    for name, value in given.items():
        if not _IDENTIFIER.fullmatch(name) or not _CONSTANT.fullmatch(value):
            raise ModelError(f"{name}={value} does not give a constant a number, true or false")

    def explore(*, exact: bool, check_sums: bool) -> Reply:
        message = protocol.BuildProgram(text=text, constants=given, exact=exact, check_sums=check_sums)
        return worker.request(message, time_limit=time_limit)

    def sound_program(explored: protocol.Explored) -> PrismProgram:
        _require_sound(explored, fix_deadlocks=fix_deadlocks)
        return _program(explored, text, {name: _value(value) for name, value in given.items()})

    reply = explore(exact=exact, check_sums=exact)
    if isinstance(reply, protocol.Failure) and reply.kind == "sums":  # judged by MarkovChain, with its tolerance
        reply = explore(exact=True, check_sums=False)
    if isinstance(reply, protocol.Explored):
        return sound_program(reply)
    assert isinstance(reply, protocol.Failure)  # noqa: S101 - the worker pairs replies with requests
    if "interval updates" in reply.message:
        raise ModelError(
            Problem(
                location=Location(),
                message="this is an interval model: its probabilities lie between bounds, and only numbers are read",
                hint="check --robust LEVEL on the fitted chain.json bounds every property over such intervals",
            )
        )
    error = ModelError(f"Storm cannot build this PRISM program: {reply.message}")
    if exact:  # perhaps rationals cannot express it, such as pow(0.5, 0.5); else the first message is the better one
        floating = explore(exact=False, check_sums=False)
        if isinstance(floating, protocol.Explored):
            try:
                return sound_program(floating)
            except ModelError:
                raise error from None
    raise error


def _value(text: str) -> Fraction | bool:
    return text == "true" if text in {"true", "false"} else Fraction(text)


def _require_sound(explored: protocol.Explored, *, fix_deadlocks: bool) -> None:
    """Refuse what Storm had to add or choose transitions for."""
    if explored.overlapping:
        state = explored.overlapping[0]
        raise ModelError(f"several commands are enabled in state {state!r}; a dtmc needs disjoint guards")
    if explored.deadlocks and not fix_deadlocks:
        state = explored.deadlocks[0]
        raise ModelError(
            f"state {state!r} has no transition, which PRISM and Storm mend with a loop; if the run is meant to end "
            "there, give it that loop, and if not, the missing command"
        )


def _program(explored: protocol.Explored, text: str, given: Mapping[str, Fraction | bool]) -> PrismProgram:
    n = len(explored.states)
    initial = protocol.unpack_mask(explored.initial, n)
    if initial.sum() != 1:
        raise ModelError(
            f"the program has {int(initial.sum())} initial states; a chain starts in one, or by a distribution"
        )
    matrix = _matrix(explored)
    start: Any = RationalVector(initial.astype(np.int64), 1)
    variables: dict[str, NDArray[Any]] = {
        name: protocol.unpack_mask(held.values, n) if held.boolean else np.frombuffer(held.values, dtype="<i8")
        for name, held in explored.variables.items()
    }
    definitions = read_definitions(text)
    constants, without_value = evaluate_constants(definitions.constants, given)
    formulas, left_out = evaluate_formulas(definitions.formulas, variables=variables, constants=constants)
    parts: dict[str, Any] = {
        "states": tuple(explored.states),
        "transitions": matrix,
        "initial": start if isinstance(matrix, RationalMatrix) else start.to_float(),
        "labels": {name: protocol.unpack_mask(mask, n) for name, mask in explored.labels.items()},
        "rewards": {name or "rewards": _reward_structure(rewards) for name, rewards in explored.rewards.items()},
        "variables": variables | formulas,
        "constants": constants,
    }
    described: MarkovChain | DecisionProcess
    if explored.groups is None:
        described = MarkovChain(**parts)
    else:
        ends = np.frombuffer(explored.groups, dtype="<i8").tolist()
        actions = tuple(tuple(explored.actions[first:last]) for first, last in pairwise(ends))
        described = DecisionProcess(actions=actions, **parts)
    notes = [f"properties cannot use the constant {name}: {reason}" for name, reason in without_value.items()]
    notes += [f"properties cannot use the formula {name}: {reason}" for name, reason in left_out.items()]
    return PrismProgram(described=described, notes=tuple(notes))


def _matrix(explored: protocol.Explored) -> Any:
    """The transitions: rationals if Storm had them and they sum to one, doubles if they do so within rounding."""
    n = len(explored.states)
    indptr = np.frombuffer(explored.indptr, dtype="<i8").astype(np.int64)
    indices = np.frombuffer(explored.indices, dtype="<i8").astype(np.int64)
    value_of = np.frombuffer(explored.value_of, dtype="<i8")
    if isinstance(explored.values, bytes):
        return csr_array(
            (protocol.unpack_doubles(explored.values)[value_of], indices, indptr), shape=(len(indptr) - 1, n)
        )
    values = [protocol.unpack_rational(value) for value in explored.values]
    tops, bottoms = np.empty(len(values), dtype=object), np.empty(len(values), dtype=object)
    tops[:], bottoms[:] = [value.numerator for value in values], [value.denominator for value in values]
    common = np.lcm.reduceat(bottoms[value_of], indptr[:-1])  # of each row; no row is empty
    numerators = tops[value_of] * (np.repeat(common, np.diff(indptr)) // bottoms[value_of])
    matrix = RationalMatrix(indptr, indices, numerators, common, n)
    sums = matrix.row_sums()
    off = [Fraction(int(sums[i]), int(common[i])) for i in np.flatnonzero(sums != common)]
    within_rounding = all(abs(total - 1) <= ROW_SUM_TOLERANCE for total in off)
    return matrix.to_float() if off and within_rounding else matrix


def _reward_structure(rewards: protocol.RewardNumbers) -> RewardStructure:
    if isinstance(rewards.state, bytes):
        assert not isinstance(rewards.action, list)  # noqa: S101 - one model has one kind of numbers
        return RewardStructure(
            state=protocol.unpack_doubles(rewards.state),
            action=None if rewards.action is None else protocol.unpack_doubles(rewards.action),
        )
    assert not isinstance(rewards.action, bytes)  # noqa: S101 - the same
    state = _rational_vector(rewards.state)
    action = None if rewards.action is None else _rational_vector(rewards.action)
    return RewardStructure(
        state=state.to_float(),
        action=None if action is None else action.to_float(),
        exact_state=state,
        exact_action=action,
    )


def _rational_vector(texts: list[str]) -> RationalVector:
    """The numbers over their common denominator; few are different, and each is read once."""
    values = {text: protocol.unpack_rational(text) for text in dict.fromkeys(texts)}
    common = lcm(*(value.denominator for value in values.values()))
    numerators = {text: value.numerator * (common // value.denominator) for text, value in values.items()}
    return RationalVector(np.array([numerators[text] for text in texts], dtype=object), common)
