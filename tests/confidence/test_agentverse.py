"""Event logs of the AgentVerse broadcast, and the labels that are kept beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracebridge.confidence.reading import read_confidence
from tracebridge.errors import TraceError


def poll(turn: int, sender: str, score: int | None, answer: str | None, *, round_: int = 0, ok: bool = True) -> Any:
    return {
        "type": "summary",
        "stage": f"poll_{turn}",
        "round": round_,
        "discussion_turn": turn,
        "sender": sender,
        "score": score,
        "reason": "...",
        "intent": "solve",
        "candidate_answer": answer,
        "parse_succeeded": ok,
    }


def message(stage: str, sender: str, content: str, *, round_: int = 0, **fields: Any) -> Any:
    return {"type": "message", "stage": stage, "round": round_, "sender": sender, "content": content} | fields


def evaluation(round_: int, correctness: Any, answer: str) -> Any:
    return {
        "type": "meta",
        "stage": "evaluation_result",
        "round": round_,
        "correctness": correctness,
        "signal": "PASS" if correctness else "FAIL",
        "final_answer": answer,
    }


LOG = [
    {"type": "meta", "stage": "start", "task_id": 17, "tier": 3},
    poll(0, "ann", 90, "4"),
    poll(0, "bob", 90, "5"),
    poll(0, "cyd", 1, None, ok=False),
    message("discussion_0", "ann", "So it is \\boxed{5}."),
    message("candidate_review_0", "system", "now \\boxed{6}"),
    message("approval_0", "bob", "no", approve=False, revised_answer="6"),
    poll(1, "ann", 10, ""),
    poll(1, "bob", 20, "5"),
    message("discussion_1_skipped", "bob", ""),
    message("approval_1_candidate_update", "system", "", candidate_answer="7"),
    evaluation(0, False, "7"),
    poll(0, "ann", 1, "4", round_=1, ok=False),
    poll(0, "bob", 1, "", round_=1, ok=False),
    evaluation(1, 1, "4"),
    {"type": "metrics", "total_model_calls": 12, "total_tokens": 3400, "wall_time_seconds": 5.5},
]


def write(path: Path, events: list[Any]) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_a_log_is_a_trace(tmp_path: Path) -> None:
    corpus = read_confidence(write(tmp_path / "run7.jsonl", LOG))
    (trace,) = corpus
    assert (trace.trace_id, trace.problem_uid, trace.tier) == ("run7", "17", 3)
    assert [block.block_id for block in trace.blocks] == ["r0t0", "r0t1", "r1t0"]
    first, second, third = trace.blocks
    assert first.selection is not None
    assert (first.selection.agent, first.selection.tie_set, first.selection.derived) == ("ann", ("ann", "bob"), False)
    assert first.speak is not None
    assert (first.speak.utt_id, first.speak.candidate_raw) == ("r0t0s", "5")
    assert second.speak is None
    assert second.selection is not None
    assert (second.selection.agent, second.selection.derived) == ("bob", True)
    incumbents = [block.incumbent_before for block in trace.blocks]
    assert [(found.answer, found.source) for found in incumbents if found is not None] == [
        (None, None),
        ("6", "system"),
        ("7", "previous_attempt"),
    ]
    assert third.selection is not None
    assert third.selection.agent == "ann"  # an unparsed poll can be selected
    assert third.incumbent_after is not None
    assert third.incumbent_after.answer == "4"
    assert [(e.passed, e.submitted_answer) for e in trace.evaluations] == [(False, "7"), (True, "4")]
    assert trace.outcome is not None
    assert (trace.outcome.passed, trace.outcome.stop) == (True, "pass")
    assert trace.usage is not None
    assert (trace.usage.calls, trace.usage.tokens_total, trace.usage.wall_s) == (12, 3400, 5.5)
    assert [(a.agent, a.approve, a.revised_answer) for a in trace.approvals] == [("bob", False, "6")]
    table = corpus.table()
    np.testing.assert_array_equal(table.polls.valid, [True, True, False, False, True, False, False])
    assert table.scale.elicitation is not None
    assert "1 event of other stages" in "\n".join(map(str, corpus.findings))


def test_a_log_without_an_evaluation_is_censored_and_one_that_failed_is_not(tmp_path: Path) -> None:
    open_end = read_confidence(write(tmp_path / "a.jsonl", LOG[:5])).traces[0]
    failed = read_confidence(write(tmp_path / "b.jsonl", LOG[:12])).traces[0]
    assert open_end.outcome is not None
    assert failed.outcome is not None
    assert (open_end.outcome.stop, failed.outcome.stop) == ("censored", "budget")


def test_runs_of_one_file_are_told_apart_by_their_names(tmp_path: Path) -> None:
    events = [event | {"trace_id": name} for event in LOG for name in ("x", "y")]
    corpus = read_confidence(write(tmp_path / "runs.jsonl", events))
    assert [trace.trace_id for trace in corpus] == ["x", "y"]
    assert corpus.traces[0].blocks == corpus.traces[1].blocks


def test_a_run_that_may_have_lost_an_event_is_refused(tmp_path: Path) -> None:
    events = [event | {"trace_id": name} for name in ("x", "y", "z") for event in LOG]
    path = write(tmp_path / "runs.jsonl", events)
    lines = path.read_text().splitlines()
    lines[3] = lines[3][:20]
    path.write_text("\n".join(lines))
    assert [trace.trace_id for trace in read_confidence(path, skip_bad=True)] == ["y", "z"]
    path.write_text("\n".join([*lines[16:], '{"type": "meta", "stage": "eval']))
    assert [trace.trace_id for trace in read_confidence(path, skip_bad=True)] == ["y"]


def test_who_speaks_was_selected_and_a_surprise_is_noted(tmp_path: Path) -> None:
    events = [poll(0, "ann", 90, "4"), poll(0, "bob", 10, "5"), message("discussion_0", "bob", "\\boxed{5}")]
    corpus = read_confidence(write(tmp_path / "run.jsonl", events))
    selection = corpus.traces[0].blocks[0].selection
    assert selection is not None
    assert (selection.agent, selection.score, selection.tie_set) == ("bob", 10, ("ann",))
    assert "'bob' spoke, the first of the largest scores is of ann" in "\n".join(map(str, corpus.findings))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (poll(0, "ann", 50, "4"), "an agent was polled twice"),
        (poll(0, "dan", "high", "4"), "Expected `int | float | null`, got `str`"),  # type: ignore[arg-type]
        (poll(0, "dan", 50, "4", ok="yes"), "Expected `bool`"),  # type: ignore[arg-type]
        (poll(0, "dan", 50, "4", round_=-1), "round is a whole number, this is -1"),
        (message("discussion_0", "ann", "again"), "a second speak in one turn"),
        (poll(0, "dan", 50, "4"), "a poll comes after the speak of its turn"),
        (evaluation(2, "perhaps", "4"), "Expected `bool | null`"),
        ([], "an event is a JSON object"),
    ],
)
def test_events_that_cannot_be_are_refused_with_their_line(tmp_path: Path, event: Any, text: str) -> None:
    has_speak = "speak" in text or "object" in text or "bool | null" in text
    events = [*LOG[:4], *(LOG[4:5] if has_speak else []), event]
    with pytest.raises(TraceError) as caught:
        read_confidence(write(tmp_path / "run.jsonl", events))
    assert text in str(caught.value)
    assert "run.jsonl:" in str(caught.value)


def labels(tmp_path: Path, *records: dict[str, Any]) -> Path:
    return write(tmp_path / "labels.jsonl", list(records))


def test_labels_are_attached_to_polls_and_speaks(tmp_path: Path) -> None:
    log = write(tmp_path / "run7.jsonl", LOG)
    of = {"trace_id": "run7", "block_id": "r0t0"}
    path = labels(
        tmp_path,
        of | {"agent": "ann", "correct": True, "judge": "g", "method": "exact"},
        of | {"agent": "bob", "correct": False},
        of | {"utt_id": "r0t0s", "correct": False},
        of | {"utt_id": "r0t0s", "equiv": [{"judge": "j1", "verdict": "divergent"}]},
        of | {"utt_id": "r0t0s", "equiv": [{"judge": "j2", "verdict": "undecided"}]},
    )
    corpus = read_confidence(log, labels=path)
    table = corpus.table()
    np.testing.assert_array_equal(table.polls.correct[:3], [1, 0, -1])
    np.testing.assert_array_equal(table.speaks.correct, [0])
    assert table.judges == ("j1", "j2")
    np.testing.assert_array_equal(table.speaks.divergent, [[1, -1]])
    assert [file.format for file in corpus.files] == ["agentverse", "labels"]
    assert corpus.traces[0].blocks[0].polls[0].label is not None


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"trace_id": "other", "agent": "ann"}, "the label is of nothing in the corpus"),
        ({"block_id": "r9t9", "agent": "ann"}, "the label is of nothing in the corpus"),
        ({"agent": "eve"}, "the label is of nothing in the corpus"),
        ({"utt_id": "r0t1s"}, "the label is of nothing in the corpus"),
        ({"agent": "ann", "correct": False}, "correct is false here and true before"),
        ({"utt_id": "r0t0s", "equiv": [{"judge": "j", "verdict": "equivalent"}]}, "the judge j decided otherwise"),
        ({}, "a label is of an agent's poll or of an utt_id"),
        ({"agent": "ann", "utt_id": "r0t0s"}, "a label is of an agent's poll or of an utt_id"),
        ({"agent": "ann", "equiv": [{"judge": "j", "verdict": "equivalent"}]}, "equiv is of a speak"),
        ({"agent": "ann", "correct": "true"}, "Expected `bool | null`, got `str`"),
        ({"agent": "ann", "right": True}, "unknown field `right`"),
    ],
)
def test_labels_that_fit_nothing_or_contradict_are_refused(tmp_path: Path, record: dict[str, Any], text: str) -> None:
    of = {"trace_id": "run7", "block_id": "r0t0"}
    path = labels(
        tmp_path,
        of | {"agent": "ann", "correct": True},
        of | {"utt_id": "r0t0s", "equiv": [{"judge": "j", "verdict": "divergent"}]},
        of | record,
    )
    log = write(tmp_path / "run7.jsonl", LOG)
    with pytest.raises(TraceError) as caught:
        read_confidence(log, labels=path)
    assert "labels.jsonl:3" in str(caught.value)
    assert text in str(caught.value)
    corpus = read_confidence(log, labels=path, skip_bad=True)
    assert corpus.n_skipped == 1
    assert corpus.traces[0].blocks[0].polls[0].correct is True
