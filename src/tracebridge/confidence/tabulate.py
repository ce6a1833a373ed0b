"""Traces as the columns that every metric of the audit is computed from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from tracebridge.confidence.answer_codes import AnswerCodes, Numbering
from tracebridge.confidence.corpus_scale import common_scale
from tracebridge.confidence.score_scale import confidences, tied
from tracebridge.confidence.table import (
    UNKNOWN,
    BlockColumns,
    ConfidenceTable,
    PollColumns,
    SpeakColumns,
    TraceColumns,
)
from tracebridge.confidence.visible_speaks import Visibility, visible_speaks
from tracebridge.errors import NothingToCheckError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracebridge.confidence.broadcast import BroadcastTrace
    from tracebridge.confidence.table import Codes, Labels, Numbers, ScoreScale

ClusterKey: TypeAlias = Literal["cluster_id", "problem_uid", "trace_id"]
"""What the clusters are: ``cluster_id`` (the problem where a trace has none), ``problem_uid`` or ``trace_id``."""

_VERDICTS = {"divergent": 1, "equivalent": 0, "undecided": UNKNOWN}


def tabulate(
    traces: Sequence[BroadcastTrace],
    *,
    cluster_key: ClusterKey = "cluster_id",
    require_parse_ok: bool = True,
    visibility: Visibility = "all_prior",
) -> ConfidenceTable:
    """The columns of a corpus.

    A poll is valid if it was parsed, has a candidate that is not empty in its canonical form, and a score of the scale.
    Answers are compared within a problem only: equal codes are equal canonical answers to one problem. What nobody
    labelled is ``UNKNOWN``; a trace without an outcome is censored.

    Args:
        traces: at least one, all on one scale.
        cluster_key: what is drawn again in a bootstrap, and grouped for standard errors.
        require_parse_ok: whether a poll that the emitter could not parse is invalid even where it has a candidate.
        visibility: what speakers could see where the traces do not say.

    Raises:
        NothingToCheckError: no trace.
        TraceError: traces on different scales.
        UsageError: an unknown key or visibility.
    """
    for value, known in ((cluster_key, ClusterKey), (visibility, Visibility)):
        if value not in get_args(known):
            raise UsageError(f"{value!r} is none of {', '.join(get_args(known))}")
    if not traces:
        raise NothingToCheckError("there is no trace to tabulate")
    scale, _ = common_scale(traces)
    problems, clusters, modes, agents, judges = (Numbering[str]() for _ in range(5))
    cells = Numbering[tuple[str, str, str]]()
    tiers, tier_of_trace = _tiers(traces)
    answers = AnswerCodes(traces)
    blocks = _blocks(traces, answers)
    polls = _polls(traces, scale, agents, answers, require_parse_ok=require_parse_ok)
    speaks = _speaks(traces, agents, answers, judges, visibility)
    _judge(traces, blocks, polls, speaks, answers, judges)
    return ConfidenceTable(
        traces=TraceColumns(
            identifier=tuple(trace.trace_id for trace in traces),
            problem=_codes(problems(trace.problem_uid) for trace in traces),
            cluster=_codes(clusters(_cluster(trace, cluster_key)) for trace in traces),
            tier=tier_of_trace,
            tier_rank=_numbers(_tier_rank(trace) for trace in traces),
            cell=_codes(
                cells((trace.cell.actor_model, trace.cell.benchmark, trace.cell.judge_model)) for trace in traces
            ),
            mode=_codes(modes(trace.mode) for trace in traces),
            passed=_labels(None if trace.outcome is None else trace.outcome.passed for trace in traces),
            censored=np.array([trace.outcome is None or trace.outcome.stop == "censored" for trace in traces]),
            tokens=_numbers(_tokens(trace) for trace in traces),
            calls=_numbers(None if trace.usage is None else trace.usage.calls for trace in traces),
            wall=_numbers(None if trace.usage is None else trace.usage.wall_s for trace in traces),
        ),
        blocks=blocks,
        polls=polls,
        speaks=speaks,
        scale=scale,
        problems=problems.names,
        clusters=clusters.names,
        tiers=tiers,
        cells=cells.names,
        modes=modes.names,
        agents=agents.names,
        answers=answers.names,
        judges=judges.names,
        equivalent=answers.equivalent(),
    )


def _blocks(traces: Sequence[BroadcastTrace], answers: AnswerCodes) -> BlockColumns:
    selected, incumbents, incumbents_correct = [], [], []
    n_polls = 0
    for row, trace in enumerate(traces):
        for block in trace.blocks:
            agent = None if block.selection is None else block.selection.agent
            places = [place for place, poll in enumerate(block.polls) if poll.agent == agent]
            selected.append(n_polls + places[0] if places else UNKNOWN)
            incumbent = block.incumbent_before
            incumbents.append(UNKNOWN if incumbent is None else answers.of_text(row, incumbent.answer))
            incumbents_correct.append(None if incumbent is None else incumbent.correct)
            n_polls += len(block.polls)
    sizes = [len(block.polls) for trace in traces for block in trace.blocks]
    return BlockColumns(
        trace=np.repeat(np.arange(len(traces)), [len(trace.blocks) for trace in traces]),
        round=_codes(block.round for trace in traces for block in trace.blocks),
        turn=_codes(block.turn for trace in traces for block in trace.blocks),
        first_poll=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        selected=_codes(selected),
        incumbent=_codes(incumbents),
        incumbent_correct=_labels(incumbents_correct),
    )


def _polls(
    traces: Sequence[BroadcastTrace],
    scale: ScoreScale,
    agents: Numbering[str],
    answers: AnswerCodes,
    *,
    require_parse_ok: bool,
) -> PollColumns:
    rows = [(row, poll) for row, trace in enumerate(traces) for block in trace.blocks for poll in block.polls]
    sizes = [len(block.polls) for trace in traces for block in trace.blocks]
    raw = _numbers(poll.score_raw for _, poll in rows)
    confidence = confidences(raw, scale)
    answer = _codes(answers.of_spoken(row, poll) for row, poll in rows)
    is_parsed = np.array([poll.parse_ok or not require_parse_ok for _, poll in rows], dtype=np.bool_)
    return PollColumns(
        block=np.repeat(np.arange(len(sizes)), sizes),
        agent=_codes(agents(poll.agent) for _, poll in rows),
        score=tied(raw, traces[0].score_scale.resolution),
        confidence=confidence,
        valid=is_parsed & (answer != UNKNOWN) & np.isfinite(confidence),
        answer=answer,
        correct=_labels(poll.correct for _, poll in rows),
    )


def _speaks(
    traces: Sequence[BroadcastTrace],
    agents: Numbering[str],
    answers: AnswerCodes,
    judges: Numbering[str],
    visibility: Visibility,
) -> SpeakColumns:
    """The speaks, not yet judged: ``divergent`` is unknown everywhere."""
    places = [(row, block) for row, trace in enumerate(traces) for block in trace.blocks]
    spoken = [(place, row, block.speak) for place, (row, block) in enumerate(places) if block.speak is not None]
    for _, _, speak in spoken:
        for judgement in speak.equiv:
            judges(judgement.judge)
    first_visible, visible = visible_speaks(traces, visibility)
    return SpeakColumns(
        block=_codes(place for place, _, _ in spoken),
        agent=_codes(agents(speak.agent) for _, _, speak in spoken),
        answer=_codes(answers.of_spoken(row, speak) for _, row, speak in spoken),
        correct=_labels(speak.correct for _, _, speak in spoken),
        divergent=np.full((len(spoken), len(judges.names)), UNKNOWN, dtype=np.int8),
        residual=np.zeros(len(spoken), dtype=np.bool_),
        first_visible=first_visible,
        visible=visible,
    )


def _judge(
    traces: Sequence[BroadcastTrace],
    blocks: BlockColumns,
    polls: PollColumns,
    speaks: SpeakColumns,
    answers: AnswerCodes,
    judges: Numbering[str],
) -> None:
    """Fill in the judgements of the spoken answer against that of the selected poll, where both are answers."""
    selected = blocks.selected[speaks.block]
    polled = np.where(selected >= 0, polls.answer[selected] if len(polls.answer) else UNKNOWN, UNKNOWN)
    is_pair = (polled >= 0) & (speaks.answer >= 0)
    speaks.divergent[is_pair & (polled == speaks.answer)] = 0
    said = [block.speak for trace in traces for block in trace.blocks if block.speak is not None]
    for row in np.flatnonzero(is_pair & (polled != speaks.answer)):
        for judgement in said[row].equiv:
            speaks.divergent[row, judges(judgement.judge)] = _VERDICTS[judgement.verdict]
            answers.judged(int(polled[row]), int(speaks.answer[row]), judgement.verdict)
        speaks.residual[row] = bool(said[row].equiv)


def _tiers(traces: Sequence[BroadcastTrace]) -> tuple[tuple[str, ...], Codes]:
    """The names of the tiers from the easiest to the hardest, as far as their ranks say, and each trace's."""
    ranks: dict[str, float] = {}
    for trace in traces:
        if trace.tier not in (None, ""):
            rank = _tier_rank(trace)
            ranks[str(trace.tier)] = min(ranks.get(str(trace.tier), math.inf), math.inf if math.isnan(rank) else rank)
    names = tuple(sorted(ranks, key=lambda name: (ranks[name], name)))
    code = {name: place for place, name in enumerate(names)}
    return names, _codes(code.get(str(trace.tier), UNKNOWN) for trace in traces)


def _tier_rank(trace: BroadcastTrace) -> float:
    """The rank that the trace states, else the number that its tier is; NaN without one."""
    if trace.tier_rank is not None:
        return trace.tier_rank
    if isinstance(trace.tier, int):
        return float(trace.tier)
    is_number = trace.tier is not None and trace.tier.isascii() and trace.tier.isdigit() and len(trace.tier) <= 15
    return float(trace.tier) if is_number and trace.tier is not None else math.nan


def _cluster(trace: BroadcastTrace, key: ClusterKey) -> str:
    if key == "trace_id":
        return trace.trace_id
    return trace.problem_uid if key == "problem_uid" or trace.cluster_id is None else trace.cluster_id


def _tokens(trace: BroadcastTrace) -> float | None:
    usage = trace.usage
    if usage is None or usage.tokens_total is not None:
        return None if usage is None else usage.tokens_total
    if usage.tokens_prompt is None or usage.tokens_completion is None:
        return None
    return usage.tokens_prompt + usage.tokens_completion


def _codes(values: Iterable[int]) -> Codes:
    return np.fromiter(values, dtype=np.int64)


def _numbers(values: Iterable[float | None]) -> Numbers:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _labels(values: Iterable[bool | None]) -> Labels:
    return np.array([UNKNOWN if value is None else value for value in values], dtype=np.int8)
