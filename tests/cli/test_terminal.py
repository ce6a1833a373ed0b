"""What reaches a terminal: no control character of any input, from any verb, and colour only where it is wanted."""

from __future__ import annotations

import copy
import json
import os
import pty
import re
import sys

import numpy as np
import pytest

from tracebridge import MarkovChain, write_model
from tracebridge.cli import run
from tracebridge.report.evidence_document import digest_of

ESC = "\x1b[31mRED\x9b1m\x07\r\u202e"
SHOWN = "\\x1b[31mRED"

RUNS = [
    {
        "trace_id": f"r{i}",
        "task_id": f"t{i // 2}",
        "outcome": "success" if i % 3 else "failure",
        "termination": ESC,
        "model": ESC,
        "attributes": {ESC: ESC},
        "steps": [{"kind": "tool", "name": "plan", "text": f"{ESC} word{i % 4}", "attributes": {ESC: ESC}}]
        * (1 + i % 2),
    }
    for i in range(30)
]
PROPS = f"""// {ESC}
//@ requirement {ESC}
"reached": P>=0.1 [ F "success" ];
//@ {ESC} {ESC}
P=? [ F "{ESC}" ];
"""
LIGHT = ["--engine", "closed-form", "--draws", "50", "--futures", "0"]
ASSESS = [*LIGHT, "--bootstrap", "0", "--certificate-replicates", "19"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Hostile traces, properties, chain and evidence, in files whose names are hostile where that is possible."""
    place = tmp_path_factory.mktemp("hostile")
    for name in ("runs.jsonl", f"{ESC}.jsonl"):
        (place / name).write_text("".join(json.dumps(row) + "\n" for row in RUNS))
    named = [{**row, "steps": [{"name": ESC}]} for row in RUNS[:3]]
    (place / "bad.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*RUNS[3:], *named]))
    (place / "bad.csv").write_text(f"run_id,step,state,outcome\na,0,{ESC[:-2]},success\n")
    (place / "my.props").write_text('"reached": P>=0.1 [ F "success" ];\n', encoding="utf-8")
    (place / "bad.props").write_text(PROPS.replace("\r", ""), encoding="utf-8")
    states = (ESC, "success", "failure")
    P = np.array([[0.2, 0.5, 0.3], [0, 1, 0], [0, 0, 1.0]])
    labels = {"success": [False, True, False], "failure": [False, False, True], ESC: [True, False, False]}
    write_model(MarkovChain(states=states, transitions=P, initial=[1.0, 0, 0], labels=labels), place / "chain.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert run(["assess", f"{ESC}.jsonl", "my.props", "-o", "out", *ASSESS]) in {0, 4}
    document = json.loads((place / "out" / "evidence.json").read_text())
    for number in (1, 2):
        edited = copy.deepcopy(document)
        (item,) = edited["results"]["properties"]
        item |= {"reason": f"{number}{ESC}", "verdict": "undecided", "marks": [ESC]}
        item["annotations"]["requirement"] = ESC
        edited["results"]["standings"]["timing"]["reasons"] = [ESC]
        edited["command"]["options"]["prior"] = f"{number}{ESC}"
        edited["digest"] = digest_of(edited)
        (place / f"evidence{number}.json").write_text(json.dumps(edited))
    return place


COMMANDS = [
    ["traces", "summary", f"{ESC}.jsonl"],
    ["traces", "validate", "bad.jsonl"],
    ["traces", "summary", "bad.jsonl", "--skip-bad"],
    ["traces", "summary", "bad.csv"],
    ["fit", f"{ESC}.jsonl", "-o", "fit.json", "--text-features", "1"],
    ["fit", "bad.jsonl", "-o", "fit.json", "--skip-bad"],
    ["certify", "runs.jsonl", "--replicates", "19"],
    ["compare", "runs.jsonl", f"{ESC}.jsonl", "--replicates", "100"],
    ["assess", f"{ESC}.jsonl", "bad.props", "-o", "out2", *ASSESS],
    ["assess", f"{ESC}.jsonl", "my.props", "-o", "out2", "--covariate", ESC, "--summary", "-", "--force", *ASSESS],
    ["show", "chain.json"],
    ["horizon", "chain.json"],
    ["sample", "chain.json", "-n", "2"],
    ["check", "chain.json", "my.props", *LIGHT, "--summary", "-"],
    ["check", "chain.json", "bad.props", *LIGHT],
    ["props", "labels", "chain.json"],
    ["props", "labels", "runs.jsonl"],
    ["props", "lint", "bad.props"],
    ["props", "format", "bad.props"],
    ["props", "explain", "bad.props"],
    ["export", "chain.json", "--to", "prism", "-o", "exported"],
    ["gate", "evidence1.json"],
    ["gate", "evidence1.json", "--against", "evidence2.json", "--summary", "-"],
    ["gsn", "evidence1.json"],
    ["gsn", "evidence1.json", "--to", "mermaid"],
    ["replay", "evidence1.json"],
    ["diff", "evidence1.json", "evidence2.json"],
    ["show", f"{ESC}.json"],
    ["check", ESC],
    ["schema", ESC],
    [ESC],
]
USAGE = COMMANDS[-3:]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]).replace(ESC, "ESC"))
def test_no_verb_lets_input_drive_the_terminal(folder, monkeypatch, capsys, command):
    monkeypatch.chdir(folder)
    capsys.readouterr()
    assert run(command) in ({2} if command in USAGE else {0, 1, 3, 4, 6})
    captured = capsys.readouterr()
    assert captured.out or captured.err
    for text in (captured.out, captured.err):
        assert {char for char in text if not char.isprintable()} <= {"\n"}


def test_hostile_names_are_shown_and_not_dropped(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(["show", "chain.json"]) == 0
    assert "RED" in capsys.readouterr().out
    assert run(["traces", "summary", "bad.jsonl"]) == 3
    assert SHOWN in capsys.readouterr().err


def on_a_terminal(command: list[str], monkeypatch) -> bytes:
    """What a verb writes to a terminal of its own, which tells no size."""
    main, other = pty.openpty()
    with os.fdopen(other, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert run(command) == 0
        stream.flush()
        written = os.read(main, 1 << 20)
    os.close(main)
    monkeypatch.undo()
    return written


def test_colours_are_left_out_where_no_color_asks_for_that(folder, monkeypatch):
    """https://no-color.org: a variable that is set and not empty; other styles are not colours."""
    command = ["check", str(folder / "chain.json"), str(folder / "my.props"), *LIGHT]
    written = {}
    for value in (None, "", "1"):
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        monkeypatch.delenv("NO_COLOR", raising=False)
        if value is not None:
            monkeypatch.setenv("NO_COLOR", value)
        written[value] = on_a_terminal(command, monkeypatch)
        assert b"satisfied" in written[value]
    assert b"\x1b[32m" in written[None]  # green
    assert written[""] == written[None]
    assert not re.search(rb"\x1b\[([0-9;]*;)?[349][0-9]", written["1"])
