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
from tracebridge.traces.readers import COLUMNS, flat_rows


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


def test_json_numbers_mean_what_their_texts_do(tmp_path: Path) -> None:
    rows = [
        {"run_id": "a", "step": 0, "outcome": 1, "duration": -0.0},
        {"run_id": "a", "step": 1, "outcome": 1, "duration": 2},
    ]
    text = "\n".join(map(json.dumps, rows))
    assert "no column names the states" in problem(tmp_path, text, name="rows.jsonl")
    (trace,) = read(tmp_path, text, name="rows.jsonl", mapping={"state": "step"})
    assert [(step.name, str(step.duration)) for step in trace.steps] == [("0", "0.0"), ("1", "2.0")]


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
        ("run_id,state,outcome,state\na,x,ok,y\n", "the column 'state' stands twice"),
        ("run_id,state,outcome\n,x,ok\n,y,ok\n", "rows.csv:2: the row names no run"),
    ],
)
def test_a_table_without_runs_is_unusable(tmp_path: Path, text: str, what: str) -> None:
    assert what in problem(tmp_path, text)
    assert what in problem(tmp_path, text, skip_bad=True)


HEADER = b"run_id,step,state,outcome\n"
GOOD = b"first,0,x,ok\nb,0,x,ok\n"
MORE = b"b,1,y,ok\nlast,0,x,ok\n"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (b"b,7\n", "rows.csv:4, record b: the row has 2 cells, the header 4"),
        (b"b,7,x,ok,ok\n", "rows.csv:4, record b: the row has 5 cells, the header 4"),
        (b"b,7,x\nb,8,x,ok,ok\n", "rows.csv:5, record b: the row has 5 cells, the header 4"),
        (b"b,7,\xff,ok\n", "rows.csv:4:5, record b: byte 0xff is not valid UTF-8"),
        (b'b,7,"x"y,ok\n', "rows.csv:4, record b: the row cannot be split into cells: "),
        (b'b,7,"x\ny"z,ok\n', "rows.csv:4, record b: the row cannot be split into cells: "),
        (b"b,7,x,maybe\n", "rows.csv:4, record b, field outcome: 'maybe' does not say"),
    ],
)
def test_a_bad_row_costs_its_run_and_no_other(tmp_path: Path, row: bytes, what: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(HEADER + GOOD + row + MORE + b"other,zero,x,ok\n")
    with pytest.raises(TraceError) as caught:
        read_traces(path)
    text = str(caught.value)
    assert what in text
    assert "record other, field step: an integer was expected" in text  # it hides no other problem
    kept = read_traces(path, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["first", "last"]
    assert kept.n_skipped == 2


@pytest.mark.parametrize("row", [b",7,y,ok\n", b"\xff,7,y,ok\n", b"\n\xffb,7,y,ok\n", b' ,"y"z,y,ok\n', b" ,1\n"])
def test_a_bad_row_that_names_no_run_is_refused_alone(tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(HEADER + GOOD + row + MORE)
    kept = read_traces(path, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["first", "b", "last"]
    (problem,) = kept.problems
    assert kept.n_skipped == 1
    assert "a run may have lost this step" in str(problem)


def test_empty_rows_of_a_spreadsheet_are_no_rows(tmp_path: Path) -> None:
    corpus = read(tmp_path, "run_id,state,outcome\na,x,ok\n,,\n , ,\n\n")
    assert (len(corpus), corpus.n_skipped) == (1, 0)


def test_a_quote_that_swallows_rows_costs_their_runs(tmp_path: Path) -> None:
    text = 'run_id,state,outcome\na,x,ok\nb,x,ok\nc,"x,ok\nb,y,ok\nd,x,ok\ne,"x",ok\nlast,x,ok\na,y,ok\n'
    listed = problem(tmp_path, text)
    assert "rows.csv:4, record c: the row cannot be split into cells" in listed
    assert "lines 4 to 7 were not read; 3 rows of 3 runs went with it: b, d, e (is a quote opened" in listed
    assert listed.count("\n") == 0
    kept = read(tmp_path, text, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["a", "last"]
    assert [len(trace.steps) for trace in kept] == [2, 1]
    assert kept.n_skipped == 4


def test_a_quote_that_swallows_rows_into_a_well_formed_one(tmp_path: Path) -> None:
    text = 'run_id,state,outcome\na,x,ok\nc,"\na,y,ok\nc,",\nlast,x,ok\n'
    listed = problem(tmp_path, text)
    assert "rows.csv:3, record c, field state: a line break in 'a,y,ok\\nc,'; 1 row of 1 run went with it: a" in listed
    assert [trace.trace_id for trace in read(tmp_path, text, skip_bad=True)] == ["last"]


@pytest.mark.parametrize(
    ("row", "where"),
    [('c,"x,ok', "rows.csv:9, record c"), (',"x,ok', "rows.csv:9: "), ('c,y\nc,"x,ok', "rows.csv:10, rec")],
)
@pytest.mark.parametrize("is_large", [False, True])
def test_a_quote_that_is_never_closed_ends_the_reading_there_and_is_told_once(
    tmp_path: Path, row: str, where: str, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the run has many other problems, and runs that lose rows come before it."""
    monkeypatch.setattr(flat_rows, "MAX_AHEAD_ROWS", 2 if is_large else 1 << 20)
    rows = [row, *(f"{run},y,ok" for run in "bdddb")]
    text = "\n".join(["run_id,state,outcome", "a,x,ok", "b,x,ok", *["c,x"] * 5, *rows, ""])
    listed = problem(tmp_path, text)
    never = next(line for line in listed.splitlines() if "the quote that opens in this row is never closed" in line)
    assert never.startswith(where)
    assert "5 rows of 2 runs went with it: b, d (close it, or" in never
    assert listed.count("never closed") == 1
    assert not {f"record {run}" for run in "bd"} & set(listed.replace(":", ",").split(", "))
    kept = read(tmp_path, text, skip_bad=True)
    assert [trace.trace_id for trace in kept] == ["a"]
    assert kept.n_skipped == 3 + row.startswith(",")


@pytest.mark.parametrize("cell", ["long " * 100_000, '"' + "long\n" * 100_000 + '"'])
def test_a_cell_may_be_as_long_as_a_line(tmp_path: Path, cell: str) -> None:
    before = csv.field_size_limit()
    (trace,) = read(tmp_path, f"run_id,state,text,outcome\na,x,{cell},ok\n")
    assert trace.steps[0].text == cell.strip('"').strip()
    assert csv.field_size_limit() == before


cells = st.text(st.sampled_from('ab",\n x'), max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(rows=st.lists(st.tuples(st.sampled_from("pqr"), st.booleans()), min_size=1, max_size=8), data=st.data())
def test_no_run_loses_a_step_unnoticed(tmp_path: Path, rows: list[tuple[str, bool]], data: st.DataObject) -> None:
    """Whatever is done to some rows behind their run id: a run that is kept has all of its steps."""
    text = "run_id,state,outcome\n"
    for run, is_damaged in rows:
        text += f"{run},{data.draw(cells)}\n" if is_damaged else f"{run},s,ok\n"
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        kept = read_traces(path, skip_bad=True)
    except TraceError:
        return
    for trace in kept:
        whole = sum(run == trace.trace_id for run, is_damaged in rows if not is_damaged)
        assert sum(step.name == "s" for step in trace.steps) >= whole


def test_many_bad_rows_of_a_run_are_listed_first_and_counted(tmp_path: Path) -> None:
    listed = problem(tmp_path, "run_id,state,outcome\n" + "a,x\n" * 9 + "b,x,ok\n")
    assert listed.count("the row has 2 cells") == 5
    assert "rows.csv, record a: and 4 more problems in this run" in listed


def test_bytes_that_are_no_text_in_the_header(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"run_id,st\xffate,outcome\na,x,ok\n")
    with pytest.raises(TraceError, match=r"rows.csv:1:10: byte 0xff is not valid UTF-8"):
        read_traces(path, format="flat")


@pytest.mark.parametrize(
    ("line", "what", "kept"),
    [
        ('{"run_id": "a", "state": "x", "state": "y"}', "rows.jsonl:2, record a: the key 'state' stands twice", "b"),
        (
            '{"run_id": "a", "state": ["x"]}',
            "rows.jsonl:2, record a, field state: one value was expected, got a list",
            "b",
        ),
        ('{"run_id": "a", "state": "x", "tokens": NaN}', "rows.jsonl:2, record a: 'NaN' is not a JSON number", "b"),
        ('{"run_id": "a", "state": "\udcff"}', "rows.jsonl:2:27, record a: byte 0xff is not valid UTF-8", "b"),
        ("[1]", "rows.jsonl:2: a row is a JSON object", "ab"),
        ('{"state": "x"}', "rows.jsonl:2: no column names the run; there are state", "ab"),
        ('{"run_id": "a", "st', "rows.jsonl:2:20: the JSON text breaks off", "ab"),
        ('{"run_id": "a", "run_id": "b"}', "rows.jsonl:2: the key 'run_id' stands twice", "ab"),
        ('{"run_id": "a\udcff", "state": "x"}', "rows.jsonl:2:14: byte 0xff is not valid UTF-8", "ab"),
        ('{"run_id": ["a"], "state": "x"}', "rows.jsonl:2, field run_id: one value was expected", "ab"),
        ("[" * 200_000, "rows.jsonl:2: the JSON text is nested too deeply", "ab"),
    ],
)
def test_a_bad_json_row_costs_its_run_if_it_names_one(tmp_path: Path, line: str, what: str, kept: str) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [f'{{"run_id": "{run}", "state": "x", "outcome": "ok"}}' for run in "ab"]
    path.write_bytes("\n".join([rows[0], line, rows[1]]).encode(errors="surrogateescape"))
    with pytest.raises(TraceError) as caught:
        read_traces(path)
    assert what in str(caught.value)
    assert ("a run may have lost this step" in str(caught.value)) == (kept == "ab")
    corpus = read_traces(path, skip_bad=True)
    assert "".join(trace.trace_id for trace in corpus) == kept
    assert corpus.n_skipped == 1


def test_the_row_of_an_end_takes_part_in_the_order_if_it_is_numbered(tmp_path: Path) -> None:
    """Numbered 0, too, which is false to Python; without a number it stands outside of the order."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"run_id": "a", "step": 0, "state": "x"}\n{"run_id": "a", "step": 0, "state": "success"}\n')
    with pytest.raises(TraceError, match="step 0 stands twice"):
        read_traces(path)
    path.write_text('{"run_id": "a", "step": 0, "state": "x"}\n{"run_id": "a", "state": "success"}\n')
    assert read_traces(path).traces[0].outcome is Outcome.SUCCESS


@pytest.mark.parametrize(
    "header", ["Run_ID, Step ,STATE,Outcome", "run id,step,State,OUTCOME", "RUN-ID,Step,state,outcome"]
)
def test_column_names_are_taken_in_any_case(tmp_path: Path, header: str) -> None:
    (trace,) = read(tmp_path, f"{header}\na,0,x,ok\na,1,y,ok\n")
    assert ([step.name for step in trace.steps], trace.outcome) == (["x", "y"], Outcome.SUCCESS)
    keys = header.split(",")
    rows = [dict(zip(keys, ("a", step, name, "ok"), strict=True)) for step, name in enumerate("xy")]
    corpus = read(tmp_path, "\n".join(map(json.dumps, rows)), name="rows.jsonl")
    assert corpus.traces[0].steps == trace.steps


def test_an_exact_column_name_wins_and_the_other_is_told(tmp_path: Path) -> None:
    corpus = read(tmp_path, "Run_ID,run_id,State,outcome\nno,a,x,ok\n")
    assert corpus.traces[0].trace_id == "a"
    assert "columns that are not read: Run_ID" in str(corpus.notes[0])
    (trace,) = read(tmp_path, "Id,State,A,a\nr,x,fail,ok\n", mapping={"run_id": "id", "outcome": "a"})
    assert (trace.trace_id, trace.outcome) == ("r", Outcome.SUCCESS)


def test_a_column_that_looks_like_a_field_is_named(tmp_path: Path) -> None:
    corpus = read(tmp_path, "run_id,state,outcome,tokns,zzz\na,x,ok,5,1\n")
    assert "columns that are not read: tokns, zzz (did you mean --map tokens=tokns?)" in str(corpus.notes[0])
    meant = read(tmp_path, "run_id,state,outcome\na,x,ok\n", mapping={"outcome": "-"})
    assert "columns that are not read: outcome (to read one" in str(meant.notes[0])


def test_a_file_without_any_outcome_is_refused_unless_that_is_meant(tmp_path: Path) -> None:
    for name, text in (
        ("rows.csv", "run_id,state,result\na,x,ok\nb,x,ok\n"),
        ("rows.jsonl", '{"run_id": "a", "state": "x", "result": 1}\n{"run_id": "b", "state": "x", "result": 1}\n'),
    ):
        message = problem(tmp_path, text, name=name)
        assert "no column says how the runs ended" in message
        assert "columns that are not read: result" in message
        assert "--map outcome=-" in message
        corpus = read(tmp_path, text, name=name, mapping={"outcome": "-"})
        assert corpus.outcomes()["censored"] == 2
        assert any("no run has an outcome: 2 runs censored" in str(note) for note in corpus.notes)
        assert read(tmp_path, text, name=name, mapping={"outcome": "result"}).outcomes()["success"] == 2
    blank = read(tmp_path, "run_id,state,outcome\na,x,\n")
    assert "rows.csv, field outcome: no run has an outcome: 1 run censored" in str(blank.notes[0])
    by_state = read(tmp_path, "run_id,state\na,x\na,success\nb,x\n")
    assert by_state.outcomes() == {"success": 1, "failure": 0, "censored": 1}


def test_a_field_can_be_left_unread(tmp_path: Path) -> None:
    text = "run_id,step,state,outcome,error\na,0,x,ok,weird\na,9,y,ok,weird\n"
    (trace,) = read(tmp_path, text, mapping={"step": "-", "error": "-"})
    assert [step.name for step in trace.steps] == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("rows.csv", "session,tool,passed\na,x,ok\n"), ("rows.jsonl", '{"session": "a", "tool": "x", "passed": 1}\n')],
)
def test_a_mapped_column_that_is_not_there_is_named(tmp_path: Path, name: str, text: str) -> None:
    for mapping in (
        {"run_id": "session", "state": "nope", "outcome": "passed"},
        {"run_id": "nope", "state": "tool", "outcome": "passed"},
    ):
        message = problem(tmp_path, text, name=name, mapping=mapping)
        assert "column 'nope'" in message
        assert all(column in message for column in ("session", "tool", "passed"))
    both = problem(tmp_path, text, name=name, mapping={"run_id": "nope", "state": "neither"})
    assert "'nope', 'neither'" in both


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


def test_columns_become_attributes_where_that_is_asked_for(tmp_path: Path) -> None:
    rows = "run_id,state,outcome,w,crew,other\na,x,1,0.25,red,1\nb,x,0,,blue,2\nb,y,0,3/4,blue,3\n"
    mapping = {"attributes.weight": "w", "attributes.team": "crew"}
    corpus = read(tmp_path, rows, mapping=mapping)
    assert [trace.attributes for trace in corpus] == [
        {"team": "red", "weight": "0.25"},
        {"team": "blue", "weight": "3/4"},
    ]
    assert [str(note) for note in corpus.notes] == [
        "rows.csv: columns that are not read: other (to read one, --map FIELD=COLUMN or attributes.NAME=COLUMN)"
    ]
    assert [trace.attributes for trace in read(tmp_path, rows)] == [{}, {}]


def test_attributes_of_json_rows(tmp_path: Path) -> None:
    rows = [{"run_id": "a", "state": "x", "outcome": 1, "w": 0.5}, {"run_id": "b", "state": "x", "outcome": 0}]
    corpus = read(tmp_path, "\n".join(map(json.dumps, rows)), name="r.jsonl", mapping={"attributes.w": "w"})
    assert [trace.attributes for trace in corpus] == [{"w": "0.5"}, {}]


def test_an_attribute_is_one_of_the_run(tmp_path: Path) -> None:
    found = problem(tmp_path, "run_id,state,outcome,w\na,x,1,1\na,y,1,2\n", mapping={"attributes.w": "w"})
    assert "'2' contradicts '1' above" in found
    assert "attributes.w" in found


@pytest.mark.parametrize("field", ["attributes.", "attributes", "attribute.w"])
def test_other_words_are_no_fields(tmp_path: Path, field: str) -> None:
    with pytest.raises(UsageError, match="is no field of a flat trace"):
        read(tmp_path, "run_id,state,outcome,w\na,x,1,1\n", mapping={field: "w"})


def test_an_attribute_without_its_column_is_refused(tmp_path: Path) -> None:
    rows = "run_id,state,outcome\na,x,1\n"
    assert "there is no column 'w'" in problem(tmp_path, rows, mapping={"attributes.w": "w"})
