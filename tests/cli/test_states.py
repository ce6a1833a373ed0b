"""Where states come from, as a user of the command line says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracebridge.cli import run

RUNS = """run_id,step,state,outcome
a,0,plan,
a,1,search_web,
a,2,answer,success
b,0,plan,
b,1,search_mail,failure
c,0,plan,
c,1,answer,success
"""

MAP = """default = "talk"

[[rule]]
state = "search"
name = "search_*"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "map.toml").write_text(MAP)
    return tmp_path


def test_fit_prints_what_is_in_each_state(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "runs.csv", "--states", "map.toml", "-o", "chain.json"]) == 0
    shown = capsys.readouterr()
    rows = [line.split() for line in shown.out.splitlines()]
    assert rows[1][:4] == ["talk", "5", "71.4%", "60%"]
    assert rows[2][:4] == ["search", "2", "28.6%", "50%"]
    assert "plan 60%, answer 40%" in shown.out
    assert "note: states are those of a map with 1 rules" not in shown.err
    assert "note: states are those of a map with 1 rule," in shown.err


def test_documents_stay_alone_on_standard_output(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "runs.csv", "--states", "map.toml", "-o", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["abstraction"]["classifier"]["default"] == "talk"
    assert run(["fit", "runs.csv", "-o", "chain.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["abstraction"]["classifier"] is None


def test_long_lists_of_states_are_cut(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = "".join(f"a,{i},s{i:02},\n" for i in range(60))
    (here / "many.csv").write_text(f"run_id,step,state,outcome\n{steps}a,60,s60,success\n")
    assert run(["fit", "many.csv", "--k-max", "100", "-o", "chain.json"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "and 11 more states; the written file describes all"


def test_text_features(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = [
        {
            "trace_id": str(i),
            "outcome": "success",
            "steps": [{"name": "say", "text": f"{text} {i}"} for text in ("refund money", "parcel street", "hello")],
        }
        for i in range(8)
    ]
    (here / "runs.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    assert run(["fit", "runs.jsonl", "--text-features", "2", "--k-max", "6", "-o", "chain.json"]) == 0
    shown = capsys.readouterr()
    assert "says hello" in shown.out
    assert "states are clusters of rule-based features and text" in shown.err
    assert len(json.loads((here / "chain.json").read_text())["abstraction"]["states"]) == 3


def test_a_malformed_map_is_told_with_place_and_hint(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "map.toml").write_text(MAP + "nmae = 1\n")
    assert run(["fit", "runs.csv", "--states", "map.toml", "-o", "chain.json"]) == 3
    assert "map.toml:3, record rule 1: unknown key 'nmae' (did you mean 'name'?)" in capsys.readouterr().err
    assert not (here / "chain.json").exists()


def test_a_map_and_text_features_exclude_each_other(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "runs.csv", "--states", "map.toml", "--text-features", "1", "-o", "chain.json"]) == 2
    assert "not from both" in capsys.readouterr().err
    assert run(["fit", "runs.csv", "--text-features", "0", "-o", "chain.json"]) == 2


def test_assess_takes_a_map(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my.props").write_text('"found": P=? [ F "search" ];\n')
    options = ["--states", "map.toml", "--engine", "closed-form", "--draws", "0", "-o", "out"]
    assert run(["assess", "runs.csv", "my.props", *options]) == 0
    assert json.loads((here / "out" / "chain.json").read_text())["abstraction"]["classifier"]["kind"] == "rules"
    (here / "my.props").write_text('"planned": P=? [ F "plan" ];\n')
    assert run(["assess", "runs.csv", "my.props", *options, "--force"]) == 3
    assert "a property names 'plan', and the state map mixes steps" in capsys.readouterr().err
