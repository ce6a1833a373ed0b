"""PRISM programs as chains, explored by Storm."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.markov import ROW_SUM_TOLERANCE, MarkovChain, RewardStructure
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.checking.storm_process import TIME_LIMIT
from tracebridge.checking.storm_worker import protocol
from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from tracebridge.checking.storm_process import StormWorker
    from tracebridge.checking.storm_worker.protocol import Reply

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONSTANT = re.compile(r"true|false|-?\d{1,400}(/\d{1,400}|(\.\d{1,400})?([eE][+-]?\d{1,3})?)")


def build_prism_chain(
    text: str,
    *,
    worker: StormWorker,
    constants: Mapping[str, str] | None = None,
    exact: bool = True,
    fix_deadlocks: bool = False,
    time_limit: float = TIME_LIMIT,
) -> MarkovChain:
    """The reachable chain of a PRISM program of type ``dtmc``; states are named by their variables, ``x=1,y=0``.

    Decimals in the text are exact. A program whose rows sum to one only within rounding, or that uses functions Storm
    cannot evaluate in rationals, becomes a chain of doubles.

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

    reply = explore(exact=exact, check_sums=exact)
    if isinstance(reply, protocol.Failure) and reply.kind == "sums":  # judged by MarkovChain, with its tolerance
        reply = explore(exact=True, check_sums=False)
    if isinstance(reply, protocol.Explored):
        return _sound_chain(reply, fix_deadlocks=fix_deadlocks)
    assert isinstance(reply, protocol.Failure)  # noqa: S101 - the worker pairs replies with requests
    error = ModelError(f"Storm cannot build this PRISM program: {reply.message}")
    if exact:  # perhaps rationals cannot express it, such as pow(0.5, 0.5); else the first message is the better one
        floating = explore(exact=False, check_sums=False)
        if isinstance(floating, protocol.Explored):
            try:
                return _sound_chain(floating, fix_deadlocks=fix_deadlocks)
            except ModelError:
                raise error from None
    raise error


def _sound_chain(explored: protocol.Explored, *, fix_deadlocks: bool) -> MarkovChain:
    """The explored chain, unless Storm had to add or choose transitions."""
    if explored.overlapping:
        state = explored.overlapping[0]
        raise ModelError(f"several commands are enabled in state {state!r}; a dtmc needs disjoint guards")
    if explored.deadlocks and not fix_deadlocks:
        state = explored.deadlocks[0]
        raise ModelError(f"state {state!r} has no transition; give absorbing states a loop to themselves")
    return _chain(explored)


def _chain(explored: protocol.Explored) -> MarkovChain:
    n = len(explored.states)
    indptr = np.frombuffer(explored.indptr, dtype="<i8").astype(np.int64)
    indices = np.frombuffer(explored.indices, dtype="<i8").astype(np.int64)
    initial = protocol.unpack_mask(explored.initial, n)
    if initial.sum() != 1:
        raise ModelError(
            f"the program has {int(initial.sum())} initial states; a chain starts in one, or by a distribution"
        )
    start: Any = np.where(initial, 1.0, 0.0)
    matrix: Any
    if isinstance(explored.values, bytes):
        matrix = csr_array((protocol.unpack_doubles(explored.values), indices, indptr), shape=(n, n))
    else:
        entries = [protocol.unpack_rational(value) for value in explored.values]
        rows = [
            dict(zip(indices[a:b].tolist(), entries[a:b], strict=True)) for a, b in itertools.pairwise(indptr.tolist())
        ]
        sums = [sum(row.values(), Fraction(0)) for row in rows]
        matrix = RationalMatrix.from_rows(rows)
        if any(total != 1 for total in sums) and all(abs(total - 1) <= ROW_SUM_TOLERANCE for total in sums):
            matrix = matrix.to_float()
        else:
            start = RationalVector.from_fractions([Fraction(bool(mark)) for mark in initial])
    return MarkovChain(
        states=tuple(explored.states),
        transitions=matrix,
        initial=start,
        labels={name: protocol.unpack_mask(mask, n) for name, mask in explored.labels.items()},
        rewards={name or "rewards": _reward_structure(rewards) for name, rewards in explored.rewards.items()},
    )


def _reward_structure(rewards: protocol.RewardNumbers) -> RewardStructure:
    if isinstance(rewards.state, bytes):
        assert not isinstance(rewards.action, list)  # noqa: S101 - one model has one kind of numbers
        return RewardStructure(
            state=protocol.unpack_doubles(rewards.state),
            action=None if rewards.action is None else protocol.unpack_doubles(rewards.action),
        )
    action = None if rewards.action is None else [protocol.unpack_rational(text) for text in rewards.action]  # type: ignore[arg-type]
    return RewardStructure.from_fractions([protocol.unpack_rational(text) for text in rewards.state], action)
