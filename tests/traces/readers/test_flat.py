from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import TraceError, UsageError
from tracebridge.traces import OUTCOME_WORDS, Outcome, Step, TraceSet, read_traces
from tracebridge.traces.readers import COLUMNS


def read(tmp_path: Path, text: str, *, name: str = "rows.csv", **options: object) -> TraceSet:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_traces(path, **options)  # type: ignore[arg-type]


def problem(tmp_path: Path, text: str, **options: object) -> str:
    with pytest.raises(TraceError) as caught:
        read(tmp_path, text, **options)
    return str(caught.value)


def test_rows_become_runs(tmp_path: Path) -> None:
    corpus = read(
        tmp_path,
        "run_id,step,state,outcome,error,task,trial,model,kind,text,confidence,tokens,duration,termination\n"
        "a,0,search,,false,t1,0,m,tool,hello,0.5,12,1.5,\n"
        "b,0,search,fail,,t2,0,m,,,,,,gave up\n"
        'a,1,book,pass,TRUE,,,,tool,"two\nlines, quoted",,,,\n',
    )
    a, b = corpus
    assert a.steps == (
        Step(name="search", kind="tool", text="hello", confidence=0.5, tokens=12, duration=1.5),
        Step(name="book", kind="tool", error=True, text="two\nlines, quoted"),
    )
    assert (a.trace_id, a.outcome, a.task_id, a.trial, a.model) == ("a", Outcome.SUCCESS, "t1", "0", "m")
    assert (a.termination, a.source) == (None, "rows.csv:2")
    assert (b.outcome, b.termination) == (Outcome.FAILURE, "gave up")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(tmp_path: Path, delimiter: str) -> None:
    rows = ["run_id,step,state,outcome", "a,0,x,1", "a,1,y,1"]
    corpus = read(tmp_path, "\n".join(row.replace(",", delimiter) for row in rows), name="rows.txt")
    assert [step.name for step in corpus.traces[0].steps] == ["x", "y"]


def test_json_lines_and_their_types(tmp_path: Path) -> None:
    rows = [
        {"run_id": 7, "step": 1, "state": "x", "outcome": True, "error": False, "trial": 0},
        {"run_id": 7, "step": 2, "state": "y", "outcome": 1.0, "error": None, "confidence": 0.25},
        {"run_id": "8", "step": 1.0, "state": "x", "outcome": 0},
    ]
    corpus = read(tmp_path, "\n".join(map(json.dumps, rows)), name="rows.jsonl")
    assert [(trace.trace_id, trace.outcome, trace.trial) for trace in corpus] == [
        ("7", Outcome.SUCCESS, "0"),
        ("8", Outcome.FAILURE, None),
    ]
    assert corpus.traces[0].steps[1].confidence == 0.25


def test_mapping_of_columns(tmp_path: Path) -> None:
    text = "id,n,action,passed\na,0,x,yes\na,1,y,yes\n"
    by_state = read(tmp_path, text, mapping={"run_id": "id", "step": "n", "state": "action", "outcome": "passed"})
    by_step = read(tmp_path, text, mapping={"run_id": "id", "step": "action", "outcome": "passed"})
    for corpus in (by_state, by_step):
        assert [step.name for step in corpus.traces[0].steps] == ["x", "y"]
        assert corpus.outcomes() == {"success": 1, "failure": 0, "censored": 0}
    assert "columns that are not read: n" in str(by_step.notes[0])


def test_a_step_column_of_names_needs_no_state_column(tmp_path: Path) -> None:
    corpus = read(tmp_path, "run_id,step,outcome\na,search,ok\na,2,ok\n")
    assert [step.name for step in corpus.traces[0].steps] == ["search", "2"]
    assert "no column names the states" in problem(tmp_path, "run_id,step,outcome\na,1,ok\na,2,ok\n")
    corpus = read(tmp_path, "run_id,step,outcome\na,7,ok\na,7,ok\n", mapping={"state": "step"})
    assert [step.name for step in corpus.traces[0].steps] == ["7", "7"]


@pytest.mark.parametrize(("word", "outcome"), OUTCOME_WORDS.items())
def test_outcome_words(tmp_path: Path, word: str, outcome: Outcome) -> None:
    for written in (word, word.upper(), f" {word} "):
        (trace,) = read(tmp_path, f"run_id,state,outcome\na,x,{written}\n")
        assert trace.outcome is outcome
        is_reason = outcome is Outcome.CENSORED and word != "censored"
        assert trace.termination == (word if is_reason else None)


def test_the_words_that_users_were_promised() -> None:
    for word in ("pass", "ok", "true", "1", "solved", "resolved"):
        assert OUTCOME_WORDS[word] is Outcome.SUCCESS
    assert not OUTCOME_WORDS.keys() & {"done", "finished", "completed", "submitted", "error", "halted", ""}


@pytest.mark.parametrize("blank", ["", "NaN", "null", "n/a"])
def test_a_run_without_outcome_is_censored(tmp_path: Path, blank: str) -> None:
    (trace,) = read(tmp_path, f"run_id,state,outcome\na,x,{blank}\n")
    assert (trace.outcome, trace.termination) == (Outcome.CENSORED, "no_outcome")


def test_a_row_that_names_the_absorber_is_no_step(tmp_path: Path) -> None:
    corpus = read(
        tmp_path,
        "run_id,step,state,outcome\n"
        "a,0,x,\na,1,Success,\n"
        "b,0,x,pass\nb,,success,pass\n"
        "c,0,failure,ok\nc,1,x,ok\n"
        "d,0,censored,\n",
    )
    assert [(trace.outcome.value, [step.name for step in trace.steps]) for trace in corpus] == [
        ("success", ["x"]),
        ("success", ["x"]),
        ("success", ["failure", "x"]),
        ("censored", []),
    ]
    message = problem(tmp_path, "run_id,state,outcome\na,x,pass\na,failure,pass\n")
    assert "rows.csv:3, record a, field state: the run ends in failure but its outcome is 'pass'" in message


def test_a_run_without_a_step(tmp_path: Path) -> None:
    corpus = read(tmp_path, "run_id,step,state,outcome\na,,,fail\nb,0,x,ok\n")
    assert (corpus.traces[0].steps, corpus.traces[0].outcome) == ((), Outcome.FAILURE)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(order=st.permutations([(run, step) for run in "ab" for step in range(4)]), start=st.integers(-1, 3))
def test_numbered_rows_may_come_in_any_order(tmp_path: Path, order: list[tuple[str, int]], start: int) -> None:
    text = "run_id,step,state,outcome\n"
    text += "".join(f"{run},{start + step},{run}{step},ok\n" for run, step in order)
    corpus = read(tmp_path, text)
    for trace in corpus:
        assert [step.name for step in trace.steps] == [f"{trace.trace_id}{index}" for index in range(4)]


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("a,0,x,pass\na,1,y,fail\n", "rows.csv:3, record a, field outcome: 'fail' contradicts 'pass'"),
        ("a,0,x,done\n", "rows.csv:2, record a, field outcome: 'done' does not say the outcome"),
        ("a,0,x,0.5\n", "'0.5' does not say the outcome"),
        ("a,0,x,ok\na,2,y,ok\n", "rows.csv:3, record a, field step: step 2 follows step 0: rows are missing"),
        ("a,0,x,ok\na,0,y,ok\n", "rows.csv:3, record a, field step: step 0 stands twice"),
        ("a,0,x,ok\na,,y,ok\n", "field step: the row has no step number"),
        ("a,zero,x,ok\n", "an integer was expected, got 'zero'"),
        ("a,0,,ok\n", "field state: step '0' has no state"),
        ("a,0,x\x1by,ok\n", "field steps[0].name: control character U+001B"),
    ],
)
def test_a_bad_run_is_named_and_the_others_survive(tmp_path: Path, rows: str, what: str) -> None:
    text = "run_id,step,state,outcome\n" + rows + "good,0,x,ok\n"
    assert what in problem(tmp_path, text)
    kept = read(tmp_path, text, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["good"]
    assert kept.n_skipped == 1


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("error", "maybe", "true or false was expected"),
        ("confidence", "1.5", "<= 1.0"),
        ("confidence", "high", "got 'high'"),
        ("tokens", "-1", ">= 0"),
        ("tokens", "1.5", "got '1.5'"),
        ("duration", "inf", "finite"),
    ],
)
def test_values_that_cannot_be_read(tmp_path: Path, column: str, value: str, what: str) -> None:
    assert what in problem(tmp_path, f"run_id,state,outcome,{column}\na,x,ok,{value}\n")


def test_numbers_as_tables_with_gaps_hold_them(tmp_path: Path) -> None:
    corpus = read(tmp_path, "run_id,step,state,outcome,tokens,error\na,0.0,x,1.0,5.0,1.0\na,1.0,y,1.0,nan,0.0\n")
    assert corpus.traces[0].outcome is Outcome.SUCCESS
    assert corpus.traces[0].steps == (Step(name="x", tokens=5, error=True), Step(name="y"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("run_id,state,outcome\na,x\n", "rows.csv:2: the row has 2 cells, the header 3"),
        ("run_id,state,outcome,state\na,x,ok,y\n", "the column 'state' stands twice"),
        ('run_id,state,outcome\na,"x,ok\n', "rows.csv:2: the row cannot be split into cells"),
        ("run_id,state,outcome\n,x,ok\n", "rows.csv:2: the row names no run"),
    ],
)
def test_a_table_that_cannot_be_split_is_unusable(tmp_path: Path, text: str, what: str) -> None:
    assert what in problem(tmp_path, text)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"run_id,state,outcome\na,x\xff,ok\n")
    with pytest.raises(TraceError, match=r"rows.csv:2:4: byte 0xff is not valid UTF-8"):
        read_traces(path)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"run_id": "a", "state": "x", "state": "y"}', "rows.jsonl:2: the key 'state' stands twice"),
        ('{"run_id": "a", "state": ["x"]}', "rows.jsonl:2, field state: one value was expected, got a list"),
        ("[1]", "rows.jsonl:2: a row is a JSON object"),
        ('{"state": "x"}', "no column names the run; there are state"),
        ('{"run_id": "a", "st', "rows.jsonl:2:20: the JSON text breaks off"),
    ],
)
def test_json_rows_that_cannot_be_attributed_make_the_file_unusable(tmp_path: Path, line: str, what: str) -> None:
    text = '{"run_id": "a", "state": "x", "outcome": "ok"}\n' + line + "\n"
    assert what in problem(tmp_path, text, name="rows.jsonl")


def test_mappings_that_mean_nothing(tmp_path: Path) -> None:
    text = "run_id,state,outcome\na,x,ok\n"
    with pytest.raises(UsageError, match="did you mean outcome"):
        read(tmp_path, text, mapping={"outcom": "passed"})
    with pytest.raises(UsageError, match="mapped to 2 fields"):
        read(tmp_path, text, mapping={"outcome": "x", "state": "x"})
    with pytest.raises(UsageError, match="flat traces only"):
        read(tmp_path, text, mapping={"outcome": "x"}, format="tau-bench")
    assert "there is no column 'passed'; there are run_id, state, outcome" in problem(
        tmp_path, text, mapping={"outcome": "passed"}
    )
    rows = '{"run_id": "a", "state": "x", "outcome": "ok"}\n'
    assert "no row has the column 'passed'" in problem(tmp_path, rows, name="rows.jsonl", mapping={"outcome": "passed"})


def test_every_field_can_be_mapped(tmp_path: Path) -> None:
    mapping = {name: f"my_{name}" for name in COLUMNS}
    sample = dict.fromkeys(COLUMNS, "") | {"run_id": "a", "step": "0", "state": "x", "outcome": "ok"}
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(mapping.values())
    writer.writerow(sample[name] for name in mapping)
    (trace,) = read(tmp_path, text.getvalue(), mapping=mapping)
    assert (trace.trace_id, trace.steps, trace.outcome) == ("a", (Step(name="x"),), Outcome.SUCCESS)


words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(runs=st.dictionaries(words, st.lists(st.tuples(words, st.booleans()), max_size=4), min_size=1, max_size=3))
def test_csv_and_json_rows_say_the_same(tmp_path: Path, runs: dict[str, list[tuple[str, bool]]]) -> None:
    rows = [
        {"run_id": run, "step": str(index), "state": f"s{state}", "outcome": "ok", "error": str(error).lower()}
        for run, steps in runs.items()
        for index, (state, error) in enumerate(steps)
    ] + [{"run_id": run, "step": "", "state": "", "outcome": "ok", "error": ""} for run in runs]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=["run_id", "step", "state", "outcome", "error"])
    writer.writeheader()
    writer.writerows(rows)
    from_csv = read(tmp_path, text.getvalue(), name="rows.csv")
    from_json = read(tmp_path, "\n".join(map(json.dumps, rows)), name="rows.jsonl")
    expected = {run: [(f"s{state}", error) for state, error in steps] for run, steps in runs.items()}
    for corpus in (from_csv, from_json):
        assert {trace.trace_id: [(step.name, step.error) for step in trace.steps] for trace in corpus} == expected
        assert corpus.outcomes()["success"] == len(runs)


@pytest.mark.parametrize(
    ("row", "mapping", "format_name"),
    [
        ({"trace_id": "a", "state": "x", "outcome": "success"}, None, "flat"),
        ({"trace_id": "a", "action": "x", "outcome": "success"}, {"state": "action"}, "flat"),
        ({"trace_id": "a", "outcome": "success"}, {"state": "action"}, "jsonl"),
        ({"trace_id": "a", "outcome": "success", "steps": []}, None, "jsonl"),
    ],
)
def test_rows_and_traces_are_told_apart(
    tmp_path: Path, row: dict[str, object], mapping: dict[str, str] | None, format_name: str
) -> None:
    corpus = read(tmp_path, json.dumps(row), name="rows.jsonl", mapping=mapping)
    assert [file.format for file in corpus.files] == [format_name]
