"""`certify --model`: the certificate of a richer chain, without the rest of the pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_assess_model import write_runs

from tracebridge.cli import run

FAST = ("--replicates", "19")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path / "runs.jsonl", 120)
    return tmp_path


def test_the_right_model_is_not_rejected_and_the_wrong_one_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certify", "runs.jsonl", "--model", "clock:0,2", *FAST]) in (0, 4)
    assert "timing (licenses R(d)" in capsys.readouterr().out
    assert run(["certify", "runs.jsonl", "--model", "order2", *FAST]) == 1
    shown = capsys.readouterr().out
    assert "REJECT" in shown
    assert "to do:" in shown


@pytest.mark.parametrize("held_out", [False, True])
def test_the_document_says_what_was_judged(held_out: bool, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--held-out"] if held_out else []
    code = run(["certify", "runs.jsonl", "--model", "clock:0,2", "--json", *FAST, *options])
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == code
    assert document["certificate"]["held_out"] is held_out
    assert sum(document["certificate"]["runs"].values()) == (60 if held_out else 120)


def test_a_richer_chain_is_certified_as_the_model_that_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --chain the certificate is that of --model with what the chain chose; other runs get a fit of their own."""
    assert run(["fit", "runs.jsonl", "--model", "clock:0,2+order2", "-o", "chain.json"]) == 0
    capsys.readouterr()
    documents = []
    write_runs(here / "others.jsonl", 60)
    for arguments in (["runs.jsonl", "--chain", "chain.json"], ["runs.jsonl", "--model", "clock:0,2+order2"]):
        run(["certify", *arguments, "--json", *FAST])
        documents.append(json.loads(capsys.readouterr().out))
    by_chain, by_name = documents
    assert by_chain["certificate"] == by_name["certificate"]
    assert by_chain["is_that_chain"] is True
    assert by_name["is_that_chain"] is None
    run(["certify", "others.jsonl", "--chain", "chain.json", *FAST])
    assert "these are not the runs" in capsys.readouterr().err
    for clashing in (["--model", "clock"], ["--covariate", "task"], ["--prior", "none"]):
        assert run(["certify", "runs.jsonl", "--chain", "chain.json", *clashing]) == 2
    assert run(["compare", "runs.jsonl", "others.jsonl", "--chain", "chain.json", "--replicates", "100"]) == 0


@pytest.mark.parametrize("options", [["--model", "auto"], ["--model", "clock", "--covariate", "task"]])
def test_what_does_not_go_together_is_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certify", "runs.jsonl", *options]) == 2
    assert capsys.readouterr().err
