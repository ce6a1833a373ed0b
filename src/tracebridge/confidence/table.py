"""Polls, selections and utterances as columns: what every metric of the audit is computed from.

A *block* is one turn of a deliberation: the agents are polled, one poll is selected, its agent speaks. Blocks are in
order within their trace, polls in the order in which they were asked (in which a first-wins router breaks ties).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.errors import InputError

UNKNOWN = -1
"""In a column of labels (1 yes, 0 no) or of codes: not known, not there, undecided."""

Codes: TypeAlias = NDArray[np.int64]
"""Indices into a tuple of names or into the rows of another table; ``UNKNOWN`` where there is none."""
Labels: TypeAlias = NDArray[np.int8]
"""1 yes, 0 no, ``UNKNOWN``."""
Numbers: TypeAlias = NDArray[np.float64]
"""NaN where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreScale:
    """The scale on which confidence was stated.

    Attributes:
        minimum, maximum: its ends, e.g. 1 and 100, or 0 and 1; a confidence is score / maximum.
        integer: scores are whole numbers, so that ties and bins are exact.
        parse_fail_value: the score that the emitter puts where a poll could not be parsed.
        elicitation: the words in which the confidence was asked for.
        origin: how the scale is known: ``stated`` in the file, or ``inferred`` from the scores.
    """

    minimum: float
    maximum: float
    integer: bool = False
    parse_fail_value: float | None = None
    elicitation: str | None = None
    origin: str = "stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceColumns:
    """One row a trace (T rows).

    Attributes:
        identifier: the trace's own name.
        problem: (T,) codes into ``ConfidenceTable.problems``; the grouping of folds.
        cluster: (T,) codes of independent clusters, 0..G-1; what is drawn again in a bootstrap.
        tier: (T,) codes into ``ConfidenceTable.tiers``; ``UNKNOWN`` without one.
        tier_rank: (T,) difficulty as regressions use it; NaN without one.
        cell: (T,) codes into ``ConfidenceTable.cells`` (actor model, benchmark, judge).
        mode: (T,) codes into ``ConfidenceTable.modes`` (broadcast, single_agent, ...).
        passed: (T,) whether the run passed; ``UNKNOWN`` where it was not judged.
        censored: (T,) the end of the run was not observed.
        tokens, calls, wall: (T,) tokens, calls and seconds used; NaN where not stated.
    """

    identifier: tuple[str, ...]
    problem: Codes
    cluster: Codes
    tier: Codes
    tier_rank: Numbers
    cell: Codes
    mode: Codes
    passed: Labels
    censored: NDArray[np.bool_]
    tokens: Numbers
    calls: Numbers
    wall: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockColumns:
    """One row a block (B rows), in order within each trace, traces one after the other.

    Attributes:
        trace: (B,) rows of the traces, non-decreasing.
        round, turn: (B,) counted from 0.
        first_poll: (B + 1,) block b has the polls ``first_poll[b]:first_poll[b + 1]``.
        selected: (B,) rows of the selected polls; ``UNKNOWN`` where nothing was selected.
        incumbent: (B,) codes of the answer that stood before the block; ``UNKNOWN`` where none did.
        incumbent_correct: (B,) whether it was correct.
    """

    trace: Codes
    round: Codes
    turn: Codes
    first_poll: Codes
    selected: Codes
    incumbent: Codes
    incumbent_correct: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class PollColumns:
    """One row a poll (N rows), in the order of blocks and, within a block, of polling.

    Attributes:
        block: (N,) rows of the blocks, non-decreasing.
        agent: (N,) codes into ``ConfidenceTable.agents``.
        score: (N,) exactly as stated (whole numbers stay whole); NaN where it could not be read.
        confidence: (N,) score / maximum of the scale, in [0, 1]; NaN where the score is none on the scale.
        valid: (N,) parsed, with a candidate answer and a confidence.
        answer: (N,) codes into ``ConfidenceTable.answers`` of the canonical candidate; ``UNKNOWN`` without one.
        correct: (N,) whether the candidate is correct.
    """

    block: Codes
    agent: Codes
    score: Numbers
    confidence: Numbers
    valid: NDArray[np.bool_]
    answer: Codes
    correct: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakColumns:
    """One row a public utterance with a speaker (S rows), at most one a block, in the order of blocks.

    Attributes:
        block: (S,) rows of the blocks, strictly increasing.
        agent: (S,) codes of the speakers.
        answer: (S,) codes of the canonical spoken answer; ``UNKNOWN`` without one.
        correct: (S,) whether it is correct.
        divergent: (S, J) for each judge: 1 the answer differs from the selected poll's, 0 it is equivalent, ``UNKNOWN``
            undecided; canonically equal answers are 0 for every judge.
        residual: (S,) the pair is not canonically equal and went to judges.
        first_visible, visible: (S + 1,), (V,) speak s could see the earlier speaks
            ``visible[first_visible[s]:first_visible[s + 1]]`` (rows of this table, increasing).
    """

    block: Codes
    agent: Codes
    answer: Codes
    correct: Labels
    divergent: NDArray[np.int8]
    residual: NDArray[np.bool_]
    first_visible: Codes
    visible: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceTable:
    """A corpus of deliberations as columns. Codes are indices into the tuples of names.

    Attributes:
        equivalent: (E, 2) pairs of answer codes that judges found equivalent though they are not canonically equal,
            each with the smaller code first, without repetition, in increasing order.

    Raises:
        InputError: columns of unequal length, a code or a row out of range, an order that is not kept.
    """

    traces: TraceColumns
    blocks: BlockColumns
    polls: PollColumns
    speaks: SpeakColumns
    scale: ScoreScale
    problems: tuple[str, ...]
    clusters: tuple[str, ...]
    tiers: tuple[str, ...]
    cells: tuple[tuple[str, str, str], ...]
    modes: tuple[str, ...]
    agents: tuple[str, ...]
    answers: tuple[str, ...]
    judges: tuple[str, ...]
    equivalent: Codes

    def __post_init__(self) -> None:
        traces, blocks, polls, speaks = self.traces, self.blocks, self.polls, self.speaks
        n_traces, n_blocks, n_polls, n_speaks = (
            len(traces.identifier),
            len(blocks.trace),
            len(polls.block),
            len(speaks.block),
        )
        for columns, n_rows in ((traces, n_traces), (blocks, n_blocks), (polls, n_polls), (speaks, n_speaks)):
            _same_length(columns, n_rows)
        for what, codes, n_names, optional in (
            ("a trace's problem", traces.problem, len(self.problems), False),
            ("a trace's cluster", traces.cluster, len(self.clusters), False),
            ("a trace's tier", traces.tier, len(self.tiers), True),
            ("a trace's cell", traces.cell, len(self.cells), False),
            ("a trace's mode", traces.mode, len(self.modes), False),
            ("a block's trace", blocks.trace, n_traces, False),
            ("a block's selected poll", blocks.selected, n_polls, True),
            ("a block's incumbent", blocks.incumbent, len(self.answers), True),
            ("a poll's block", polls.block, n_blocks, False),
            ("a poll's agent", polls.agent, len(self.agents), False),
            ("a poll's answer", polls.answer, len(self.answers), True),
            ("a speak's block", speaks.block, n_blocks, False),
            ("a speak's agent", speaks.agent, len(self.agents), False),
            ("a speak's answer", speaks.answer, len(self.answers), True),
            ("a visible speak", speaks.visible, n_speaks, False),
            ("an equivalent answer", self.equivalent, len(self.answers), False),
        ):
            _in_range(what, codes, n_names, UNKNOWN if optional else 0)
        _expect(bool(np.all(np.diff(blocks.trace) >= 0)), "blocks are not in the order of their traces")
        expected = np.searchsorted(polls.block, np.arange(n_blocks + 1))
        _expect(bool(np.all(np.diff(polls.block) >= 0)), "polls are not in the order of their blocks")
        _expect(np.array_equal(expected, blocks.first_poll), "first_poll does not say where each block's polls begin")
        _expect(bool(np.all(np.diff(speaks.block) > 0)), "speaks are not in the order of their blocks, one a block")
        chosen = np.flatnonzero(blocks.selected >= 0)
        _expect(bool(np.all(polls.block[blocks.selected[chosen]] == chosen)), "a selected poll is of another block")
        _expect(speaks.divergent.shape == (n_speaks, len(self.judges)), "divergent is not one column a judge")
        _expect(
            bool(np.all(np.isnan(polls.confidence) | ((polls.confidence >= 0) & (polls.confidence <= 1)))),
            "a confidence is outside [0, 1]",
        )
        _expect(
            not bool(np.any(polls.valid & (np.isnan(polls.confidence) | (polls.answer < 0)))),
            "a valid poll lacks a confidence or an answer",
        )

    @property
    def cluster_of_block(self) -> Codes:
        """(B,) the cluster of each block's trace."""
        return self.traces.cluster[self.blocks.trace]

    @property
    def n_clusters(self) -> int:
        """The number of independent clusters."""
        return len(self.clusters)


def _same_length(columns: TraceColumns | BlockColumns | PollColumns | SpeakColumns, n_rows: int) -> None:
    ragged = {"first_poll": n_rows + 1, "first_visible": n_rows + 1, "visible": None}
    for field in fields(columns):
        expected, found = ragged.get(field.name, n_rows), len(getattr(columns, field.name))
        _expect(expected is None or found == expected, f"the column {field.name} has {found} rows, not {expected}")


def _in_range(what: str, codes: Codes, n_names: int, least: int) -> None:
    wrong = np.flatnonzero((codes.ravel() < least) | (codes.ravel() >= n_names))
    _expect(wrong.size == 0, f"{what} is {codes.ravel()[wrong[:1]]}, outside {least}..{n_names - 1}")


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InputError(otherwise)
