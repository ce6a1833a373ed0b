"""Confidence tables written down in words: a few of them for a block, as studies and tests draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.table import (
    UNKNOWN,
    BlockColumns,
    ConfidenceTable,
    PollColumns,
    ScoreScale,
    SpeakColumns,
    TraceColumns,
)

ScalarT = TypeVar("ScalarT", bound=np.generic)


@dataclass(frozen=True)
class Block:
    """One turn. ``polls``: words like ``c90:4``, an agent each: c correct, w wrong, u unlabelled, i invalid, then the
    score (``nan`` if unread) and the answer. ``speak``: words like ``c:7`` (answer) or None; ``by``: the speaker's
    number. ``judged``: the verdict of each judge, or None for canonical equality by all. ``selected``: position of the
    selected poll, the first highest by default, -1 for none."""

    polls: str
    speak: str | None = None
    by: int | None = None
    judged: tuple[int, ...] | None = None
    selected: int | None = None
    incumbent: str | None = None
    round: int = 0


@dataclass(frozen=True)
class Run:
    """A deliberation, with the codes of its cluster, tier and cell; ``usage``: tokens, calls, seconds."""

    blocks: Sequence[Block]
    cluster: int = 0
    tier: int = 0
    cell: int = 0
    mode: str = "broadcast"
    passed: int = 1
    usage: tuple[float, float, float] = field(default=(np.nan, np.nan, np.nan))


LABELS = {"c": 1, "w": 0, "u": UNKNOWN, "i": UNKNOWN}


def build_table(
    runs: Sequence[Run],
    *,
    judges: tuple[str, ...] = ("first",),
    equivalent: Sequence[tuple[str, str]] = (),
    n_agents: int = 3,
    n_tiers: int = 1,
) -> ConfidenceTable:
    """The table of these deliberations.

    Args:
        runs: in order. judges: of equivalence. equivalent: answers that judges found equivalent, in pairs.
        n_agents, n_tiers: how many there are, used or not.
    """
    rows = _Rows(n_judges=len(judges))
    for trace, run in enumerate(runs):
        rows.add(trace, run.blocks)
    modes = tuple(dict.fromkeys(run.mode for run in runs))
    pairs = sorted({tuple(sorted((rows.code(one), rows.code(other)))) for one, other in equivalent})
    n_cells = 1 + max((run.cell for run in runs), default=0)
    return ConfidenceTable(
        traces=_trace_columns(runs, modes),
        blocks=rows.block_columns(),
        polls=rows.poll_columns(),
        speaks=rows.speak_columns(),
        scale=ScoreScale(minimum=1, maximum=100, integer=True, parse_fail_value=1),
        problems=tuple(f"p{t}" for t in range(len(runs))),
        clusters=tuple(f"c{k}" for k in range(1 + max((run.cluster for run in runs), default=0))),
        tiers=tuple(str(k + 1) for k in range(n_tiers)),
        cells=tuple((f"m{k}", "bench", "judge") for k in range(n_cells)),
        modes=modes,
        agents=tuple(f"a{k}" for k in range(n_agents)),
        answers=tuple(rows.answers),
        judges=judges,
        equivalent=np.array(pairs, dtype=np.int64).reshape(-1, 2),
    )


def _trace_columns(runs: Sequence[Run], modes: Sequence[str]) -> TraceColumns:
    n = len(runs)
    usage = np.array([run.usage for run in runs], dtype=np.float64).reshape(n, 3)
    return TraceColumns(
        identifier=tuple(f"t{t}" for t in range(n)),
        problem=np.arange(n),
        cluster=np.array([run.cluster for run in runs], dtype=np.int64),
        tier=np.array([run.tier for run in runs], dtype=np.int64),
        tier_rank=np.array([run.tier for run in runs], dtype=np.float64),
        cell=np.array([run.cell for run in runs], dtype=np.int64),
        mode=np.array([modes.index(run.mode) for run in runs], dtype=np.int64),
        passed=np.array([run.passed for run in runs], dtype=np.int8),
        censored=np.zeros(n, dtype=np.bool_),
        tokens=usage[:, 0],
        calls=usage[:, 1],
        wall=usage[:, 2],
    )


@dataclass
class _Rows:
    """The rows of blocks, polls and utterances in the making.

    Attributes:
        blocks: trace, round, turn, selected poll, incumbent. polls: block, agent, score, whether it is valid, answer,
            label. speaks: block, agent, answer, label, verdicts, whether it is residual.
        first_poll, first_visible: where the polls of each block, and what was visible to each utterance, begin.
    """

    n_judges: int
    answers: dict[str, int] = field(default_factory=dict)
    blocks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    polls: list[tuple[int, int, float, bool, int, int]] = field(default_factory=list)
    speaks: list[tuple[int, int, int, int, tuple[int, ...], bool]] = field(default_factory=list)
    visible: list[int] = field(default_factory=list)
    first_poll: list[int] = field(default_factory=lambda: [0])
    first_visible: list[int] = field(default_factory=lambda: [0])

    def code(self, answer: str | None) -> int:
        """Of an answer; of none, ``UNKNOWN``."""
        return UNKNOWN if answer in (None, "") else self.answers.setdefault(str(answer), len(self.answers))

    def add(self, trace: int, blocks: Sequence[Block]) -> None:
        """The blocks of one deliberation; an utterance sees all that were before it."""
        earlier: list[int] = []
        for turn, block in enumerate(blocks):
            selected = self._add_polls(block)
            self.blocks.append((trace, block.round, turn, selected, self.code(block.incumbent)))
            if block.speak is not None:
                self._add_speak(block, block.speak, selected)
                self.visible += earlier
                self.first_visible.append(len(self.visible))
                earlier.append(len(self.speaks) - 1)

    def _add_polls(self, block: Block) -> int:
        """The row of the selected one."""
        rows = []
        for agent, word in enumerate(block.polls.split()):
            stated, _, answer = word.partition(":")
            kind, score = stated[0], float(stated[1:])
            rows.append((len(self.blocks), agent, score, kind != "i", self.code(answer), LABELS[kind]))
        scores = [-np.inf if np.isnan(row[2]) else row[2] for row in rows]
        chosen = block.selected if block.selected is not None else (int(np.argmax(scores)) if rows else -1)
        selected = UNKNOWN if chosen < 0 else len(self.polls) + chosen
        self.polls += rows
        self.first_poll.append(len(self.polls))
        return selected

    def _add_speak(self, block: Block, words: str, selected: int) -> None:
        kind, _, answer = words.partition(":")
        _, speaker, _, _, polled, _ = self.polls[selected] if selected >= 0 else (0, 0, 0.0, False, UNKNOWN, UNKNOWN)
        said = self.code(answer)
        verdicts = block.judged or (int(said != polled),) * self.n_judges
        agent = speaker if block.by is None else block.by
        self.speaks.append((len(self.blocks) - 1, agent, said, LABELS[kind], verdicts, said != polled))

    def block_columns(self) -> BlockColumns:
        """Of all blocks so far."""
        trace, round_, turn, selected, incumbent = (_column(self.blocks, k, np.int64) for k in range(5))
        return BlockColumns(
            trace=trace,
            round=round_,
            turn=turn,
            first_poll=np.array(self.first_poll, dtype=np.int64),
            selected=selected,
            incumbent=incumbent,
            incumbent_correct=np.full(len(trace), UNKNOWN, dtype=np.int8),
        )

    def poll_columns(self) -> PollColumns:
        """Of all polls so far."""
        score = _column(self.polls, 2, np.float64)
        return PollColumns(
            block=_column(self.polls, 0, np.int64),
            agent=_column(self.polls, 1, np.int64),
            score=score,
            confidence=score / 100,
            valid=_column(self.polls, 3, np.bool_),
            answer=_column(self.polls, 4, np.int64),
            correct=_column(self.polls, 5, np.int8),
        )

    def speak_columns(self) -> SpeakColumns:
        """Of all utterances so far."""
        return SpeakColumns(
            block=_column(self.speaks, 0, np.int64),
            agent=_column(self.speaks, 1, np.int64),
            answer=_column(self.speaks, 2, np.int64),
            correct=_column(self.speaks, 3, np.int8),
            divergent=_column(self.speaks, 4, np.int8).reshape(len(self.speaks), self.n_judges),
            residual=_column(self.speaks, 5, np.bool_),
            first_visible=np.array(self.first_visible, dtype=np.int64),
            visible=np.array(self.visible, dtype=np.int64),
        )


def _column(rows: Sequence[Sequence[Any]], position: int, dtype: type[ScalarT]) -> NDArray[ScalarT]:
    return np.array([row[position] for row in rows], dtype=dtype)
