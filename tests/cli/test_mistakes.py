"""The likeliest mistakes on a command line: each is told with what was meant, before any work is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracebridge.cli import run

ROWS = "run_id,step,state,outcome\na,0,plan,\na,1,search,success\nb,0,plan,failure\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    (place / "runs.csv").write_text(ROWS)
    (place / "my.props").write_text('const int d = 3;\n"soon": P>=0.3 [ F<=d "success" ];\n')
    (place / "out").mkdir()
    (place / "out" / "evidence.json").write_text(json.dumps({"kind": "tracebridge-evidence", "schema_version": 1}))
    assert run(["fit", str(place / "runs.csv"), "-o", str(place / "chain.json")]) == 0
    return place


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("asess runs.csv", 2, "did you mean assess?"),
        ("lint my.props", 2, "did you mean props lint?"),
        ("help", 2, "tracebridge --help"),
        ("--seed 1 check chain.json my.props", 2, "--seed before the verb"),
        ("assess chain.json my.props -o new", 3, "check and show read chains"),
        ("assess runs.csv my.props -o new --covariate team", 2, "no run has the covariate 'team'"),
        ("fit runs.csv -o absent/chain.json", 2, "'absent', and there is no such folder"),
        ("fit runs.csv -o out", 2, "'out' is a folder"),
        ("fit runs.csv -o new.json --endings my.props", 3, "neither TOML nor JSON"),
        ("traces convert runs.csv -o absent/runs.jsonl", 2, "no such folder"),
        ("sample chain.json -o absent/runs.jsonl", 2, "no such folder"),
        ("check my.props chain.json", 3, "a model is named before its properties"),
        ("check runs.csv my.props", 3, "tracebridge fit makes a chain of traces"),
        ("check out my.props", 3, "out/chain.json"),
        ("check out/evidence.json my.props", 3, "its chain is in the chain.json beside it"),
        ("check chain.json absent.props", 3, "no such property file"),
        ("check chain.json my.props --const d=1:", 2, "a range is start:end"),
    ],
)
def test_a_mistake_is_told(words, code, told, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    assert run(words.split(" ")) == code
    captured = capsys.readouterr()
    assert told in " ".join(captured.err.split())
    assert not captured.out
    assert sorted(folder.rglob("*")) == before


@pytest.mark.storm
def test_properties_may_be_given_as_text(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    text = 'P>=0.3 [ F<=3 "success" ]'
    documents = []
    for properties in (text, "same.props"):
        Path("same.props").write_text(text)
        assert run(["check", "chain.json", properties, "--json", "--draws", "50"]) == 0
        (document,) = json.loads(capsys.readouterr().out)["properties"]
        documents.append(json.dumps(document).replace("same.props", "<text>"))
    assert documents[0] == documents[1]
    assert run(["props", "explain", text]) == 0
    assert text in capsys.readouterr().out
    assert run(["whatif", "chain.json", "--redirect", "search:0.5->plan", "--property", text]) == 1
    assert "satisfied before, violated after" in capsys.readouterr().err
    assert run(["check", "chain.json", 'P=? [ F "sucess" ]']) == 3
    assert 'did you mean "success"?' in capsys.readouterr().err
