"""The one scale of a corpus, and what its scores say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.confidence.table import ScoreScale
from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.problems import counted, escaped, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracebridge.confidence.broadcast import BroadcastTrace, StatedScale

_MAX_NAMED = 5


def common_scale(traces: Sequence[BroadcastTrace]) -> tuple[ScoreScale, list[Problem]]:
    """The scale that all traces state, and findings about it.

    Traces may differ in the words of the question and in what stands for a poll that could not be parsed: the scale
    then carries none, with a finding.

    Raises:
        TraceError: traces state different scales; with the first traces of each.
    """
    kinds: dict[tuple[float, float, bool, float], list[BroadcastTrace]] = {}
    for trace in traces:
        of_trace = trace.score_scale
        key = (of_trace.min, of_trace.max, of_trace.integer, of_trace.resolution)
        kinds.setdefault(key, []).append(trace)
    if len(kinds) > 1:
        raise TraceError(
            Problem(
                location=place_of(trace, "score_scale"),
                message=f"a corpus has one scale, and {len(alike)} of its traces state {_words(trace.score_scale)}",
                hint="audit them apart",
            )
            for alike in kinds.values()
            for trace in alike[:_MAX_NAMED]
        )
    findings: list[Problem] = []
    questions = sorted({trace.score_scale.elicitation or "" for trace in traces})
    if len(questions) > 1:
        message = (
            f"confidence was asked for in {len(questions)} ways, such as {' and '.join(map(shown, questions[:2]))}"
        )
        findings.append(Problem(location=Location(field="score_scale.elicitation"), message=message))
    parse_fail_values = {trace.score_scale.parse_fail_value for trace in traces}
    if len(parse_fail_values) > 1:
        message = "traces differ in the score of polls that could not be parsed"
        findings.append(Problem(location=Location(field="score_scale.parse_fail_value"), message=message))
    stated = traces[0].score_scale
    scale = ScoreScale(
        minimum=stated.min,
        maximum=stated.max,
        integer=stated.integer,
        parse_fail_value=stated.parse_fail_value if len(parse_fail_values) == 1 else None,
        elicitation=(questions[0] or None) if len(questions) == 1 else None,
        origin=stated.origin,
    )
    return scale, findings


def scale_findings(traces: Sequence[BroadcastTrace], scale: ScoreScale) -> Iterator[Problem]:
    """Scores that could not be read, that the scale does not have, and that look like another scale."""
    unread: list[str] = []
    beyond: list[str] = []
    fractions: list[str] = []
    n_small = n_scores = 0
    for trace in traces:
        for block in trace.blocks:
            for poll in block.polls:
                score = poll.score_raw
                if score is None:
                    if len(unread) < _MAX_NAMED:
                        unread.append(f"{_name(trace, block.block_id, poll.agent)}{_written(poll.extra)}")
                    else:
                        unread.append("")
                    continue
                n_scores += 1
                n_small += score <= 1
                is_whole = score == int(score)
                if not scale.minimum <= score <= scale.maximum or (scale.integer and not is_whole):
                    beyond.append(f"{_name(trace, block.block_id, poll.agent)}: {score!r}")
                if 0 < score < 1 < scale.maximum:
                    fractions.append(f"{_name(trace, block.block_id, poll.agent)}: {score!r}")
    where = Location(field="score_raw")
    ends = f"{scale.minimum:g}-{scale.maximum:g}" + (" (whole numbers)" if scale.integer else "")
    if unread:
        yield _counted(where, unread, "no score could be read, the poll is invalid")
    if beyond:
        yield _counted(where, beyond, f"the scale {ends} has no such score, the poll is invalid")
    if fractions:
        hint = "are confidences of a scale 0-1 among them?"
        yield _counted(where, fractions, f"a score lies strictly between 0 and 1 on the scale {ends}", hint)
    elif n_scores and n_small == n_scores and scale.maximum > 1:
        message = f"all {n_scores} scores are at most 1 on the scale {ends}"
        yield Problem(location=where, message=message, hint="is the scale 0-1?")


def place_of(trace: BroadcastTrace, field: str | None = None) -> Location:
    """Where a trace came from, for a message."""
    return Location(path=trace.source, record=escaped(trace.trace_id), field=field)


def _counted(where: Location, named: list[str], message: str, hint: str | None = None) -> Problem:
    some = ", ".join(named[:_MAX_NAMED]) + (", …" if len(named) > _MAX_NAMED else "")
    return Problem(location=where, message=f"{counted(len(named), 'time')}: {message} ({some})", hint=hint)


def _name(trace: BroadcastTrace, block_id: str, agent: str) -> str:
    return escaped(f"{trace.trace_id}/{block_id}/{agent}") + (f" at {trace.source}" if trace.source else "")


def _written(extra: dict[str, object]) -> str:
    return f": {shown(extra['confidence'])}" if "confidence" in extra else ""


def _words(scale: StatedScale) -> str:
    words = f"{scale.min:g}-{scale.max:g}"
    words += " in whole numbers" if scale.integer else ""
    return words + ("" if scale.resolution == 1e-9 else f", resolution {scale.resolution:g}")
