"""Traces as columns: every column against a slow reading of the definitions."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.confidence.broadcast_traces import random_corpus
from tests.confidence.test_broadcast import changed, record

from tracebridge.confidence.broadcast import BroadcastTrace, Poll, Speak
from tracebridge.confidence.broadcast_file import write_broadcast
from tracebridge.confidence.canonical_answer import canonical_answer
from tracebridge.confidence.reading import read_confidence
from tracebridge.confidence.table import UNKNOWN, ConfidenceTable
from tracebridge.confidence.tabulate import tabulate
from tracebridge.errors import InputError, NothingToCheckError, TraceError, UsageError

SEEDS = st.integers(0, 2**32)


def trace(path: str = "mode", value: object = "broadcast") -> BroadcastTrace:
    return msgspec.convert(changed(path, value), BroadcastTrace)


def truth(value: bool | None) -> int:
    return UNKNOWN if value is None else int(value)


def said(spoken: Poll | Speak) -> str:
    answer = spoken.candidate if spoken.candidate is not None else spoken.candidate_raw
    return canonical_answer(answer or "")


def name(table: ConfidenceTable, code: int) -> str:
    return table.answers[code] if code >= 0 else ""


@settings(max_examples=100)
@given(SEEDS, st.booleans())
def test_polls_and_blocks_are_as_defined(seed: int, require_parse_ok: bool) -> None:
    traces = random_corpus(seed)
    table = tabulate(traces, require_parse_ok=require_parse_ok)
    places = [(row, block) for row, found in enumerate(traces) for block in found.blocks]
    assert table.blocks.trace.tolist() == [row for row, _ in places]
    assert table.blocks.round.tolist() == [block.round for _, block in places]
    n_polls = 0
    for place, (_, block) in enumerate(places):
        assert table.blocks.first_poll[place] == n_polls
        before = block.incumbent_before
        assert name(table, table.blocks.incumbent[place]) == canonical_answer((before and before.answer) or "")
        assert table.blocks.incumbent_correct[place] == truth(before and before.correct)
        chosen = None if block.selection is None else block.selection.agent
        selected = int(table.blocks.selected[place])
        assert (None if selected < 0 else table.agents[table.polls.agent[selected]]) == chosen
        for poll in block.polls:
            is_one = poll.score_raw is not None and 1 <= poll.score_raw <= 100 and poll.score_raw == int(poll.score_raw)
            assert table.polls.block[n_polls] == place
            assert table.agents[table.polls.agent[n_polls]] == poll.agent
            assert name(table, table.polls.answer[n_polls]) == said(poll)
            assert table.polls.correct[n_polls] == truth(poll.correct)
            assert table.polls.valid[n_polls] == (
                (poll.parse_ok or not require_parse_ok) and bool(said(poll)) and is_one
            )
            np.testing.assert_array_equal(
                [table.polls.score[n_polls], table.polls.confidence[n_polls]],
                [
                    math.nan if poll.score_raw is None else poll.score_raw,
                    poll.score_raw / 100 if is_one and poll.score_raw is not None else math.nan,
                ],
            )
            n_polls += 1
    assert len(table.polls.block) == n_polls


@settings(max_examples=100)
@given(SEEDS, st.sampled_from(["all_prior", "window"]))
def test_speaks_their_judgements_and_what_was_visible_are_as_defined(seed: int, visibility: str) -> None:
    traces = random_corpus(seed)
    table = tabulate(traces, visibility=visibility)  # type: ignore[arg-type]
    speaks = table.speaks
    row = 0
    for found in traces:
        earlier: list[tuple[int, Speak]] = []
        for block in found.blocks:
            speak = block.speak
            if speak is None:
                continue
            assert table.agents[speaks.agent[row]] == speak.agent
            assert name(table, speaks.answer[row]) == said(speak)
            assert speaks.correct[row] == truth(speak.correct)
            chosen = None if block.selection is None else block.selection.agent
            polled = next((said(poll) for poll in block.polls if poll.agent == chosen), "")
            verdicts = {judgement.judge: judgement.verdict for judgement in speak.equiv}
            is_pair = bool(polled and said(speak))
            for judge, found_so in zip(table.judges, speaks.divergent[row], strict=True):
                code = {"divergent": 1, "equivalent": 0}.get(verdicts.get(judge, ""), UNKNOWN)
                assert found_so == (UNKNOWN if not is_pair else 0 if polled == said(speak) else code)
            assert speaks.residual[row] == (is_pair and polled != said(speak) and bool(verdicts))
            window = len(earlier)
            has_window = visibility == "window" and found.config.memory_mode == "summary_plus_recent"
            if has_window and found.config.recent_history_window is not None:
                window = found.config.recent_history_window
            recent = earlier[len(earlier) - min(window, len(earlier)) :]
            listed = (
                {at for at, one in recent}
                if block.visible is None
                else {at for at, one in earlier if one.utt_id in block.visible}
            )
            own = {at for at, one in earlier if one.agent == speak.agent}
            seen = speaks.visible[speaks.first_visible[row] : speaks.first_visible[row + 1]]
            assert seen.tolist() == sorted(listed | own)
            earlier.append((row, speak))
            row += 1
    assert len(speaks.block) == row
    assert speaks.first_visible[-1] == len(speaks.visible)


def test_writing_and_reading_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    for seed in range(20):
        traces = random_corpus(seed)
        write_broadcast(traces, path)
        assert read_confidence(path).traces == tuple(
            found if found.source is not None else msgspec.structs.replace(found, source=f"traces.jsonl:{line}")
            for line, found in enumerate(traces, 1)
        )


def test_codes_are_of_answers_to_one_problem() -> None:
    one, same, other = trace(), trace("trace_id", "t2"), trace("problem_uid", "p2")
    table = tabulate([one, same, msgspec.structs.replace(other, trace_id="t3")])
    first, second, third = (set(table.polls.answer[4 * row : 4 * row + 4].tolist()) for row in range(3))
    assert first == second
    assert not first & third
    assert table.answers == ("4", "5", "4", "5")


def test_judges_make_answers_equivalent_unless_one_disagrees() -> None:
    def judged(*verdicts: str) -> BroadcastTrace:
        speak = record()["blocks"][0]["speak"] | {
            "candidate_raw": "four",
            "equiv": [{"judge": f"j{place}", "verdict": verdict} for place, verdict in enumerate(verdicts)],
        }
        return trace("blocks.0.speak", speak)

    table = tabulate([judged("equivalent", "undecided")])
    assert [tuple(table.answers[code] for code in pair) for pair in table.equivalent] == [("4", "four")]
    assert tabulate([judged("equivalent", "divergent")]).equivalent.shape == (0, 2)
    assert tabulate([judged("undecided")]).equivalent.shape == (0, 2)
    assert tabulate([judged()]).speaks.divergent.shape == (2, 0)


def test_very_many_visible_speaks_are_refused_before_they_fill_the_memory() -> None:
    block = trace().blocks[0]
    assert block.speak is not None
    blocks = tuple(
        msgspec.structs.replace(
            block, block_id=f"b{at}", index=at, speak=msgspec.structs.replace(block.speak, utt_id=f"u{at}")
        )
        for at in range(4_500)
    )
    with pytest.raises(InputError, match="more than 10000000 pairs"):
        tabulate([msgspec.structs.replace(trace(), blocks=blocks)])


def test_traces_carry_their_clusters_tiers_ends_and_costs() -> None:
    base = record()
    changes = [
        {"cluster_id": "c", "tier": "10", "outcome": {"passed": True, "stop": "pass"}, "usage": {"tokens_total": 5}},
        {"problem_uid": "c", "tier": 9, "outcome": {"passed": None, "stop": "censored"}},
        {"tier": "hard", "usage": {"tokens_prompt": 1, "tokens_completion": 2, "calls": 3, "wall_s": 0.5}},
        {"tier": "", "outcome": {"passed": False, "stop": "error"}, "usage": {"tokens_prompt": 1}},
    ]
    traces = [
        msgspec.convert(base | change | {"trace_id": f"t{row}"}, BroadcastTrace) for row, change in enumerate(changes)
    ]
    table = tabulate(traces)
    assert [table.clusters[code] for code in table.traces.cluster] == ["c", "c", "p1", "p1"]
    assert table.tiers == ("9", "10", "hard")
    np.testing.assert_array_equal(table.traces.tier, [1, 0, 2, UNKNOWN])
    np.testing.assert_array_equal(table.traces.tier_rank, [10, 9, math.nan, math.nan])
    np.testing.assert_array_equal(table.traces.passed, [1, UNKNOWN, UNKNOWN, 0])
    np.testing.assert_array_equal(table.traces.censored, [False, True, True, False])
    np.testing.assert_array_equal(table.traces.tokens, [5, math.nan, 3, math.nan])
    np.testing.assert_array_equal(table.traces.calls, [math.nan, math.nan, 3, math.nan])
    np.testing.assert_array_equal(table.traces.wall, [math.nan, math.nan, 0.5, math.nan])
    assert tabulate(traces, cluster_key="trace_id").n_clusters == 4
    assert tabulate(traces, cluster_key="problem_uid").clusters == ("p1", "c")
    with pytest.raises(UsageError, match="cluster_id, problem_uid, trace_id"):
        tabulate(traces, cluster_key="tier")  # type: ignore[arg-type]
    with pytest.raises(NothingToCheckError):
        tabulate([])


def test_one_corpus_has_one_scale(tmp_path: Path) -> None:
    other = trace("score_scale", {"min": 0, "max": 1, "integer": False, "elicitation": None})
    traces = [trace(), msgspec.structs.replace(other, trace_id="t2")]
    with pytest.raises(TraceError, match="state 0-1"):
        tabulate(traces)
    path = tmp_path / "traces.jsonl"
    write_broadcast(traces, path)
    with pytest.raises(TraceError) as caught:
        read_confidence(path, skip_bad=True)
    assert "traces.jsonl:1" in str(caught.value)
    assert "traces.jsonl:2" in str(caught.value)


def findings(tmp_path: Path, *traces: BroadcastTrace) -> str:
    path = tmp_path / "traces.jsonl"
    write_broadcast([msgspec.structs.replace(one, trace_id=f"t{row}") for row, one in enumerate(traces)], path)
    return "\n".join(map(str, read_confidence(path).findings))


def test_what_is_doubtful_is_found(tmp_path: Path) -> None:
    assert findings(tmp_path, trace(), trace()) == ""
    shared = findings(tmp_path, trace("problem_text", "1+1?"), trace("problem_text", "2+2?"), trace())
    assert "1 problem name, each of several problems: p1 (3)" in shared
    assert "each of several problems" in findings(
        tmp_path, trace("gold", {"answer": "1"}), trace("gold", {"answer": "2"})
    )
    assert findings(tmp_path, trace("gold", {"answer": "1"}), trace("gold", {"answer": "1.0"})) == ""
    wrong = findings(tmp_path, trace("blocks.1.speak.correct", False))
    assert "1 label against an earlier one of the same answer to the same problem, first of '4'" in wrong
    assert "1 of 6 answers have no label" in findings(tmp_path, trace("blocks.1.speak.correct", None))
    assert "asked for in 2 ways" in findings(tmp_path, trace(), trace("score_scale.elicitation", "sure?"))
    parse_fail = findings(tmp_path, trace(), trace("score_scale.parse_fail_value", 1))
    assert "differ in the score of polls that could not be parsed" in parse_fail
    assert "1 time: no score could be read" in findings(tmp_path, trace("blocks.0.polls.0.score_raw", None))
    beyond = findings(tmp_path, trace("blocks.0.polls.0.score_raw", 0.9))
    assert "the scale 1-100 (whole numbers) has no such score" in beyond
    assert "are confidences of a scale 0-1 among them?" in beyond
    everywhere = trace("score_scale.min", 0)
    polls = tuple(msgspec.structs.replace(poll, score_raw=1) for poll in everywhere.blocks[0].polls)
    blocks = tuple(msgspec.structs.replace(block, polls=polls) for block in everywhere.blocks)
    assert "all 4 scores are at most 1" in findings(tmp_path, msgspec.structs.replace(everywhere, blocks=blocks))
    typo = changed("blocks.0.polls.0.candidat_raw", "x")
    (tmp_path / "typo.jsonl").write_bytes(msgspec.json.encode(typo))
    noted = "\n".join(map(str, read_confidence(tmp_path / "typo.jsonl").findings))
    assert (
        "field candidat_raw: the format has no such key: kept under extra, 1 time (did you mean candidate_raw?)"
        in noted
    )
