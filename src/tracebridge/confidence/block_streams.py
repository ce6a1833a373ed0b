"""The blocks of a corpus as questions: its agents as streams to compose, or as models to correct online.

Both ways lead back: what composition or correction gives is the confidence of polls, which routing can then use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.composition_streams import Streams, require_room
from tracebridge.confidence.online import ResponseStream
from tracebridge.confidence.table import UNKNOWN, Codes
from tracebridge.errors import InputError, UsageError

if TYPE_CHECKING:
    from tracebridge.confidence.table import ConfidenceTable

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockStreams:
    """The valid polls of the Q blocks that have any, an agent a stream.

    Attributes:
        streams: their answers, equal where they are canonically equal. A question has the name of its problem, so that
            a split by hash keeps all blocks of a problem on one side.
        block: (Q,) rows of the blocks.
        poll: (Q, n) rows of the polls; ``UNKNOWN`` where an agent has no valid one.
        agents: the names of the streams.
    """

    streams: Streams
    block: Codes
    poll: Codes
    agents: tuple[str, ...]

    def of_polls(self, confidence: Floats, n_polls: int) -> Floats:
        """Confidence of the streams, shape (Q, n), as a column of polls, shape (n_polls,); NaN for all others.

        Raises:
            UsageError: another shape.
        """
        if confidence.shape != self.poll.shape:
            raise UsageError(f"confidence of shape {confidence.shape} for streams of shape {self.poll.shape}")
        column = np.full(n_polls, np.nan)
        there = self.poll != UNKNOWN
        column[self.poll[there]] = confidence[there]
        return column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockResponses:
    """The valid, labelled polls as responses, a round for every block that has any, in the order of blocks.

    Attributes:
        responses: of the agents.
        block: (T,) rows of the blocks. poll: (N,) rows of the polls.
    """

    responses: ResponseStream
    block: Codes
    poll: Codes


def block_streams(table: ConfidenceTable, *, n_options: int = 0) -> BlockStreams:
    """The streams of a corpus.

    Args:
        n_options: how many answers every question has; 0 for open ones.

    Raises:
        InputError: an agent with two valid polls in a block, two labels for one answer of a block.
        UsageError: the corpus has no agent, or too many.
    """
    polls = table.polls
    rows = np.flatnonzero(polls.valid)
    _require_one_poll_each(table, rows)
    blocks, question = np.unique(polls.block[rows], return_inverse=True)
    require_room(len(blocks), len(table.agents))
    poll = np.full((len(blocks), len(table.agents)), UNKNOWN, dtype=np.int64)
    poll[question, polls.agent[rows]] = rows
    there = poll != UNKNOWN
    problem = table.traces.problem[table.blocks.trace[blocks]]
    streams = Streams.of(
        [table.problems[p] for p in problem.tolist()],
        np.where(there, polls.answer[poll], UNKNOWN),
        np.where(there, polls.confidence[poll], np.nan),
        np.where(there, polls.correct[poll], UNKNOWN),
        n_options=n_options,
    )
    return BlockStreams(streams=streams, block=blocks, poll=poll, agents=table.agents)


def block_responses(table: ConfidenceTable, *, delay: int = 0) -> BlockResponses:
    """The responses of a corpus, whose blocks are taken to be in the order of time.

    Args:
        delay: after how many more blocks an outcome is known.

    Raises:
        InputError: an agent with two such polls in a block. UsageError: a negative delay.
    """
    if delay < 0:
        raise UsageError(f"a delay counts blocks from 0, not {delay}")
    polls = table.polls
    rows = np.flatnonzero(polls.valid & (polls.correct != UNKNOWN))
    _require_one_poll_each(table, rows)
    blocks, round_ = np.unique(polls.block[rows], return_inverse=True)
    responses = ResponseStream(
        models=table.agents,
        round=round_.astype(np.int64),
        model=polls.agent[rows],
        answer=polls.answer[rows],
        confidence=polls.confidence[rows],
        correct=polls.correct[rows],
        delay=np.full(len(rows), delay, dtype=np.int64),
    )
    return BlockResponses(responses=responses, block=blocks, poll=rows)


def _require_one_poll_each(table: ConfidenceTable, rows: Codes) -> None:
    key = table.polls.block[rows] * len(table.agents) + table.polls.agent[rows]
    repeated = np.flatnonzero(np.bincount(key, minlength=1) > 1) if len(key) else key
    if len(repeated):
        block, agent = divmod(int(repeated[0]), len(table.agents))
        trace = table.traces.identifier[int(table.blocks.trace[block])]
        raise InputError(f"trace {trace!r}: agent {table.agents[agent]!r} has two valid polls in one block")
