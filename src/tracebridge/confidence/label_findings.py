"""What is doubtful about the labels and the problems of a corpus; none of it is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.confidence.canonical_answer import canonical_answer
from tracebridge.confidence.corpus_scale import place_of
from tracebridge.errors import Location, Problem
from tracebridge.traces.problems import counted, escaped, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracebridge.confidence.broadcast import BroadcastTrace, Poll, Speak

_MAX_NAMED = 5


def shared_problem_findings(traces: Sequence[BroadcastTrace]) -> Iterator[Problem]:
    """Names of problems that stand for several problems, by their texts or reference answers.

    Folds and clusters that are grouped by such a name group shards of problems, not problems.
    """
    texts: dict[str, set[str]] = {}
    for trace in traces:
        texts.setdefault(trace.problem_uid, set()).add(problem_scope(trace)[1])
    shared = [(name, len(found)) for name, found in texts.items() if len(found) > 1]
    if shared:
        some = ", ".join(f"{escaped(name)} ({n})" for name, n in shared[:_MAX_NAMED])
        message = f"{counted(len(shared), 'problem name')}, each of several problems: {some}"
        hint = "folds and clusters by problem are then of shards; give each problem a name, and shards a cluster_id"
        yield Problem(location=Location(field="problem_uid"), message=message, hint=hint)


def label_findings(traces: Sequence[BroadcastTrace]) -> Iterator[Problem]:
    """Equal answers to one problem that are labelled both correct and wrong; how many answers have no label."""
    truths: dict[tuple[tuple[str, str], str], bool] = {}
    contradictions: list[tuple[BroadcastTrace, str]] = []
    n_answers = n_unlabelled = 0
    for trace in traces:
        scope = problem_scope(trace)
        for block in trace.blocks:
            for spoken in (*block.polls, *(() if block.speak is None else (block.speak,))):
                answer = answer_of(spoken)
                if not answer:
                    continue
                n_answers += 1
                if spoken.correct is None:
                    n_unlabelled += 1
                elif truths.setdefault((scope, answer), spoken.correct) != spoken.correct:
                    contradictions.append((trace, answer))
    if contradictions:
        trace, answer = contradictions[0]
        message = (
            f"{counted(len(contradictions), 'label')} against an earlier one of the same answer to the same problem, "
            f"first of {shown(answer)}"
        )
        yield Problem(location=place_of(trace, "correct"), message=message)
    if n_unlabelled:
        message = f"{n_unlabelled} of {n_answers} answers have no label"
        hint = "what needs a label leaves them out, and counts them"
        yield Problem(location=Location(field="correct"), message=message, hint=hint)


def problem_scope(trace: BroadcastTrace) -> tuple[str, str]:
    """What tells problems apart: the name, and the text or else the reference answer.

    Only answers within one scope are compared: ``B`` means something else for another problem.
    """
    if trace.problem_text is not None:
        return trace.problem_uid, trace.problem_text
    if trace.gold is not None and trace.gold.answer is not None:
        return trace.problem_uid, canonical_answer(trace.gold.answer)
    return trace.problem_uid, ""


def answer_of(spoken: Poll | Speak) -> str:
    """The canonical answer of a poll or a speak: the emitter's own form if it gives one; ``""`` without one."""
    answer = spoken.candidate if spoken.candidate is not None else spoken.candidate_raw
    return "" if answer is None else canonical_answer(answer)
