"""Polls as people have them: one line a poll, or one line an item."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tracebridge.confidence.broadcast_file import write_broadcast
from tracebridge.confidence.reading import read_confidence
from tracebridge.confidence.score_scale import parse_scale
from tracebridge.errors import InputError, NothingToCheckError, TraceError, UsageError

CSV = """item,agent,candidate,confidence,correct,tier
q1,ann,4,0.9,true,1
q1,bob,5,0.9,false,1
q2,ann,x,,,2
q2,bob,y,Unparseable,no,2
q2,cyd,"y, z",0.30,1,2
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def rows(text: str = CSV) -> list[dict[str, str]]:
    import csv
    import io

    return list(csv.DictReader(io.StringIO(text)))


def test_rows_of_a_csv_file_are_items_with_a_derived_selection(tmp_path: Path) -> None:
    corpus = read_confidence(write(tmp_path / "polls.csv", CSV))
    assert corpus.is_selection_derived
    assert (corpus.scale.maximum, corpus.scale.origin) == (1, "inferred from the scores")
    table = corpus.table()
    assert table.traces.identifier == ("q1", "q2")
    assert table.tiers == ("1", "2")
    assert table.agents == ("ann", "bob", "cyd")
    np.testing.assert_array_equal(table.polls.correct, [1, 0, -1, 0, 1])
    np.testing.assert_array_equal(table.polls.valid, [True, True, False, False, True])
    np.testing.assert_array_equal(table.polls.score, [0.9, 0.9, np.nan, np.nan, 0.3])
    np.testing.assert_array_equal(table.blocks.selected, [0, 4])  # the first of equals; what can be read
    assert not len(table.speaks.block)
    assert bool(table.traces.censored.all())
    findings = "\n".join(map(str, corpus.findings))
    assert "2 times: no score could be read, the poll is invalid" in findings
    assert "'Unparseable'" in findings
    assert "polls.csv:4" in findings
    assert "1 of 5 answers have no label" in findings


def test_all_forms_of_the_same_polls_are_the_same(tmp_path: Path) -> None:
    nested: dict[str, dict[str, object]] = {}
    for row in rows():
        item = nested.setdefault(row["item"], {"item": row["item"], "tier": row["tier"], "polls": []})
        confidence: object = row["confidence"] or None
        if confidence not in (None, "Unparseable"):
            confidence = float(row["confidence"])
        correct = {"true": True, "1": True, "false": False, "no": False, "": None}[row["correct"]]
        poll = {"agent": row["agent"], "answer": row["candidate"], "confidence": confidence, "correct": correct}
        item["polls"].append(poll)  # type: ignore[attr-defined]
    files = [
        write(tmp_path / "a.csv", CSV),
        write(tmp_path / "b.tsv", CSV.replace('"y, z"', "y; z").replace(",", "\t").replace("y; z", "y, z")),
        write(tmp_path / "c.jsonl", "".join(json.dumps(row) + "\n" for row in rows())),
        write(tmp_path / "d.json", json.dumps(rows())),
        write(tmp_path / "e.jsonl", "".join(json.dumps(item) + "\n" for item in nested.values())),
        write(tmp_path / "f.json", json.dumps(list(nested.values()), indent=1)),
        tmp_path / "g.csv.gz",
    ]
    files[-1].write_bytes(gzip.compress(b"\xef\xbb\xbf" + CSV.encode()))
    read = []
    for path in files:
        out = tmp_path / "out.jsonl"
        write_broadcast(read_confidence(path), out)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        read.append([{key: value for key, value in line.items() if key != "source"} for line in lines])
    assert all(other == read[0] for other in read)


def test_unparsed_polls_can_be_selected_and_are_invalid(tmp_path: Path) -> None:
    blocks = ["c90 w80 i1", "w85 c85 c70", "i95 c60 w60", "i1 i1 i1"]  # c correct, w wrong, i not parsed
    lines = [
        f"b{row},a{place},x{poll[0]},{poll[1:]},{poll[0] == 'c'},{poll[0] != 'i'}"
        for row, block in enumerate(blocks)
        for place, poll in enumerate(block.split())
    ]
    path = write(tmp_path / "p.csv", "\n".join(["item,agent,answer,score,correct,parse_ok", *lines]))
    table = read_confidence(path, scale=parse_scale("1-100")).table()
    selected = table.blocks.selected
    np.testing.assert_array_equal(selected, [0, 3, 6, 9])
    np.testing.assert_array_equal(table.polls.valid[selected], [True, True, False, False])
    np.testing.assert_array_equal(table.polls.correct[selected], [1, 0, 0, 0])
    assert read_confidence(path).table(require_parse_ok=False).polls.valid.all()


def test_grades_and_confidences_near_one(tmp_path: Path) -> None:
    text = """id,model,answer,grade,confidence_level
1,a,x,Unparseable,0
1,b,y,Correct,0.9999996846064470
1,c,z,Incorrect,0.99999909116577300
2,a,x,Correct,0.999999091165773
"""
    table = read_confidence(write(tmp_path / "p.csv", text)).table()
    np.testing.assert_array_equal(table.polls.valid, [False, True, True, True])
    np.testing.assert_array_equal(table.polls.correct, [-1, 1, 0, 1])
    assert table.polls.score[2] == table.polls.score[3] < table.polls.score[1] < 1
    np.testing.assert_array_equal(table.blocks.selected, [1, 3])


def test_columns_by_other_names_are_mapped(tmp_path: Path) -> None:
    text = "Question;LLM;Response;Sure\n1;a;x;55\n1;b;y;65\n"
    path = write(tmp_path / "p.csv", text)
    mapping = {"item": "question", "agent": "LLM", "candidate": "response", "confidence": "sure"}
    corpus = read_confidence(path, mapping=mapping)
    assert corpus.scale.maximum == 100
    assert corpus.scale.integer
    np.testing.assert_array_equal(corpus.table().blocks.selected, [1])
    with pytest.raises(TraceError, match="--map item=COLUMN"):
        read_confidence(path)
    with pytest.raises(TraceError, match="there is no column 'answer'"):
        read_confidence(path, mapping=mapping | {"candidate": "answer"})
    with pytest.raises(UsageError, match="did you mean candidate"):
        read_confidence(path, mapping={"candidat": "x"})


def test_an_answer_of_the_item_is_no_candidate_of_its_polls(tmp_path: Path) -> None:
    item = {"id": 7, "answer": "gold", "polls": [{"agent": "a", "confidence": 0.5}]}
    path = write(tmp_path / "p.jsonl", json.dumps(item) + "\n")
    with pytest.raises(TraceError, match="no column is the candidate"):
        read_confidence(path)
    item["polls"] = [{"agent": "a", "confidence": 0.5, "answer": "4"}]
    corpus = read_confidence(write(path, json.dumps(item) + "\n"), mapping={"gold": "answer"})
    (trace,) = corpus
    assert (trace.trace_id, trace.blocks[0].polls[0].candidate_raw) == ("7", "4")
    assert trace.gold is not None
    assert trace.gold.answer == "gold"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q3,ann,x,0.5,maybe,1", "polls.csv:7, record q3, field correct: true or false was expected, got 'maybe'"),
        (",ann,x,0.5,true,1", "polls.csv:7: the item has no name: ''"),
        ("q3,,x,0.5,true,1", "polls.csv:7, record q3, field agent: the agent has no name: ''"),
        ("q3,ann,x,0.5", "polls.csv:7: the row has 4 cells, the header 6"),
        ("q1,ann,x,0.5,true,1", "an agent stands twice in the item"),
        ("q1,cyd,x,0.5,true,2", "polls.csv:7, record q1, field tier: '2' contradicts '1' of the same item"),
        ('q3,ann,"x,0.5,true,1', "polls.csv:7: the row cannot be split into cells"),
        ("q3,ann,x,95,true,1", "polls.csv:7: scores of two scales: 3 strictly between 0 and 1 and 1 above 1"),
        ("q3,ann,x,1.0000001,true,1", "polls.csv:7: scores of two scales"),
        ("q3,ann,x,-0.5,true,1", "polls.csv:7: a score is below 0: -0.5"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_confidence(write(tmp_path / "polls.csv", CSV + line + "\n"))
    assert message in str(caught.value)


def test_bad_items_are_skipped_whole_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "polls.csv", CSV + "q3,ann,x,95,maybe,1\nq3,bob,x,0.5,,1\n")
    corpus = read_confidence(path, skip_bad=True)
    assert [trace.trace_id for trace in corpus] == ["q1", "q2"]
    assert corpus.n_skipped == 1
    assert corpus.scale.maximum == 1  # a refused item says nothing about the scale


def test_an_item_that_may_have_lost_a_poll_is_skipped_too(tmp_path: Path) -> None:
    good = [
        f'{{"item": {item}, "agent": "{agent}", "answer": "x", "confidence": 0.5}}'
        for item in range(4)
        for agent in "ab"
    ]
    broken = [*good[:4], '{"item": 2, "agent": "c", "ans', *good[4:]]  # between the polls of items 1 and 2
    path = write(tmp_path / "p.jsonl", "\n".join(broken))
    with pytest.raises(TraceError) as caught:
        read_confidence(path)
    assert "p.jsonl:5:" in str(caught.value)
    assert "record 1: a record beside it cannot be read" in str(caught.value)
    corpus = read_confidence(path, skip_bad=True)
    assert [trace.trace_id for trace in corpus] == ["0", "3"]
    assert corpus.n_skipped == 3
    rows = CSV + "q2,dan,y, z,0.5,,2\n"  # the item can be told: it comes before the delimiter too many
    assert [trace.trace_id for trace in read_confidence(write(tmp_path / "p.csv", rows), skip_bad=True)] == ["q1"]


def test_a_stated_scale_makes_other_scores_invalid_and_counts_them(tmp_path: Path) -> None:
    path = write(tmp_path / "polls.csv", CSV + "q3,ann,x,1.0000001,true,1\nq3,bob,x,1,true,1\nq3,cyd,x,NaN,,1\n")
    corpus = read_confidence(path, scale=parse_scale("0-1"))
    assert corpus.scale.origin == "stated by the user"
    table = corpus.table()
    np.testing.assert_array_equal(table.polls.valid[-3:], [False, True, False])
    assert table.polls.score[-3] == 1.0000001
    assert table.blocks.selected[-1] == 6
    assert "the scale 0-1 has no such score, the poll is invalid (q3/0/ann at polls.csv:7: 1.0000001)" in "\n".join(
        map(str, corpus.findings)
    )


def test_small_scales_must_be_stated(tmp_path: Path) -> None:
    path = write(tmp_path / "polls.csv", "item,agent,answer,confidence\n1,a,x,4\n1,b,y,5\n")
    with pytest.raises(InputError, match="say which scale it is"):
        read_confidence(path)
    table = read_confidence(path, scale=parse_scale("0-5")).table()
    np.testing.assert_array_equal(table.polls.confidence, [0.8, 1])


def test_numbers_that_json_does_not_have_are_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    write(path, '{"item": 1, "agent": "a", "answer": "x", "confidence": NaN}\n')
    with pytest.raises(TraceError, match=r"p\.jsonl:1: 'NaN' is not a JSON number"):
        read_confidence(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file holds nothing"),
        ("hello\n", "no deliberations and no polls"),
        ('{"a": 1}\n', "no deliberations and no polls"),
        ("[]", "no deliberations and no polls"),
        ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ('{"item": 1, "polls": {}}\n', "an array of polls"),
        ('{"item": 1, "polls": []}\n', "the item has no poll"),
        ('{"item": 1, "polls": [{"agent": "a", "answer": ["x"], "confidence": 1}]}\n', "one value was expected"),
        ('{"item": 1, "polls": [{"agent": "a", "answer": "x", "confidence": [1]}]}\n', "a confidence is a number"),
        ('{"item": 1, "item": 2, "polls": []}\n', "stands twice"),
    ],
)
def test_files_that_are_no_polls_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_confidence(write(tmp_path / "p.jsonl", text))
    assert message in str(caught.value)


def test_a_header_without_rows_is_nothing_to_check(tmp_path: Path) -> None:
    with pytest.raises(NothingToCheckError):
        read_confidence(write(tmp_path / "p.csv", "item,agent,answer,confidence\n"))


@pytest.mark.shared_data
def test_the_real_polls_route_as_published(shared_data: Path) -> None:
    corpus = read_confidence(shared_data / "polls" / "routing_polls.jsonl")
    assert (len(corpus), corpus.findings) == (5650, ())
    table = corpus.table()
    assert abs(table.polls.correct[table.blocks.selected].mean() - 0.797) < 5e-4
    scores, correct = table.polls.score.reshape(-1, 3), table.polls.correct.reshape(-1, 3)
    top = scores == scores.max(axis=1, keepdims=True)
    assert abs(((top * correct).sum(axis=1) / top.sum(axis=1)).mean() - 0.784) < 5e-4
    assert abs(max(correct[:, agent].mean() for agent in range(3)) - 0.806) < 5e-4
