"""``tracebridge monitor``: the protocol on standard input and output."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracebridge.chain import fit_chain, write_fit
from tracebridge.cli import run
from tracebridge.inference.online.monitor import runtime_monitor
from tracebridge.traces import Outcome, Step, Trace

PROPERTIES = '"soon": P>=0.5 [ F<=3 "success" ]; "often": pow(P=? [ F "success" ], 2); "cost": R{"steps"}=? [ C ];'


def chain_file(folder: Path) -> Path:
    paths = [(("plan", "search", "answer"), Outcome.SUCCESS), (("plan", "answer"), Outcome.FAILURE)] * 10
    traces = [
        Trace(trace_id=f"{i}", outcome=outcome, steps=tuple(Step(name=name) for name in names))
        for i, (names, outcome) in enumerate(paths)
    ]
    write_fit(folder / "chain.json", fit_chain(traces))
    (folder / "my.props").write_text(PROPERTIES)
    return folder / "chain.json"


def step(run_id: str, name: str) -> dict[str, object]:
    return {"run": run_id, "step": {"name": name}}


def answers(lines: list[object], arguments: list[str], monkeypatch, capsys) -> tuple[int, list[dict[str, object]]]:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code = run(["monitor", *arguments])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_runs_are_told_apart_and_read_as_by_the_library(tmp_path, monkeypatch, capsys):
    chain = chain_file(tmp_path)
    arguments = [str(chain), str(tmp_path / "my.props"), "--draws", "50"]
    lines = [
        step("x", "plan"),
        step("y", "plan"),
        step("x", "answer"),
        {"run": "x", "end": "success"},
        step("x", "plan"),
    ]
    code, found = answers(lines, arguments, monkeypatch, capsys)
    assert code == 0
    from tracebridge.chain import read_fit

    monitor = runtime_monitor(read_fit(chain), PROPERTIES, draws=50)
    plan, answer = Step(name="plan"), Step(name="answer")
    readings = [
        monitor.read([plan]),
        monitor.read([plan]),
        monitor.read([plan, answer]),
        monitor.read([plan, answer], "success"),
        monitor.read([plan]),
    ]
    ids = ["x", "y", "x", "x", "x"]
    assert found == [
        {"line": i + 1, "run": name, **reading.to_dict()}
        for i, (name, reading) in enumerate(zip(ids, readings, strict=True))
    ]
    assert found[3]["properties"][0]["verdict"] == "satisfied"


def test_lines_that_cannot_be_used_are_answered_by_number(tmp_path, monkeypatch, capsys):
    chain = chain_file(tmp_path)
    lines = [
        "{",
        "",
        {"run": "x"},
        {**step("x", "plan"), "end": "success"},
        {"run": "x", "end": "won"},
        {"run": "x", "step": {"name": ""}},
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
        step("x", "plan"),
        {"run": "y", "end": "success"},
    ]
    code, found = answers(lines, [str(chain), "--draws", "0"], monkeypatch, capsys)
    assert code == 3
    assert [each["line"] for each in found] == [1, 3, 4, 5, 6, 7, 8, 9]
    assert all(("error" in each) == (each["line"] != 8) for each in found)
    assert "no run 'y' is open" in found.pop()["error"]
    assert found[-1]["steps"] == 1
    assert found[-1]["success"]["lower"] == "NaN"


def test_a_key_that_stands_twice_is_told_and_not_resolved(tmp_path, monkeypatch, capsys):
    lines = [
        '{"run": "a", "run": "b", "step": {"name": "plan"}}',
        '{"run": "a", "step": {"name": "plan", "name": "x"}}',
    ]
    code, found = answers(lines, [str(chain_file(tmp_path)), "--draws", "0"], monkeypatch, capsys)
    assert code == 3
    assert [each["error"] for each in found] == [
        "the key 'run' stands twice in one object",
        "the key 'name' stands twice in one object",
    ]


def test_a_run_may_have_a_number(tmp_path, monkeypatch, capsys):
    lines = [{"run": 7, "step": {"name": "plan"}}, step("7", "search"), {"run": True, "step": {"name": "plan"}}]
    lines += [{"run": 2**63, "step": {"name": "plan"}}, {"run": 7, "end": "success"}]
    code, found = answers(lines, [str(chain_file(tmp_path)), "--draws", "0"], monkeypatch, capsys)
    assert code == 3
    assert [(each.get("run"), each.get("steps")) for each in found] == [
        ("7", 1),
        ("7", 2),
        (None, None),
        (None, None),
        ("7", 2),
    ]
    assert all("$.run" in each["error"] for each in found[2:4])


def test_the_run_without_news_for_longest_is_dropped(tmp_path, monkeypatch, capsys):
    arguments = [str(chain_file(tmp_path)), "--draws", "0", "--max-runs", "2"]
    lines = [step("a", "plan"), step("b", "plan"), step("a", "search"), step("c", "plan"), step("b", "search")]
    code, found = answers(lines, arguments, monkeypatch, capsys)
    assert code == 0
    assert [(each["run"], each.get("steps")) for each in found] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", None),
        ("c", 1),
        ("a", None),
        ("b", 1),
    ]
    assert found[3]["dropped"] == "more than 2 runs are open"


def test_every_answer_comes_before_the_next_line_is_written(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "tracebridge", "monitor", str(chain_file(tmp_path)), "--draws", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for name in ("plan", "search"):
        process.stdin.write(json.dumps(step("x", name)) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["state"] == name
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["-"], 2, "standard input is for the steps"),
        (["m.prism"], 2, "no fitted chain"),
        (["none.json"], 3, "none.json"),
    ],
)
def test_what_cannot_be_monitored_is_refused(tmp_path, monkeypatch, capsys, arguments, code, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.prism").write_text("dtmc module m s:[0..1] init 0; [] s=0 -> (s'=1); [] s=1 -> true; endmodule")
    assert run(["monitor", *arguments]) == code
    assert told in capsys.readouterr().err
