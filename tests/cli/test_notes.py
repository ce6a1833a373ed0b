"""Where a reader meets the notes of a result: warnings everywhere, formulations where there is room for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracebridge.cli import run

pytestmark = pytest.mark.storm

pytest.importorskip("stormpy")

STICKY = {
    "kind": "markov-chain",
    "schema_version": 1,
    "states": ["go", "success", "failure"],
    "initial": {"go": "1/1"},
    "transitions": {
        "go": {"go": "999999999/1000000000", "success": "1/2000000000", "failure": "1/2000000000"},
        "success": {"success": "1/1"},
        "failure": {"failure": "1/1"},
    },
    "labels": {},
    "rewards": {},
}

SAFE = 'P=? [ G !"failure" ];'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sticky.json").write_text(json.dumps(STICKY))
    (tmp_path / "safe.props").write_text(SAFE)
    (tmp_path / "runs.csv").write_text("run_id,step,state,outcome\na,0,go,success\nb,0,go,failure\n")
    return tmp_path


def test_the_terminal_shows_warnings_only(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "sticky.json", "safe.props"]) == 0
    captured = capsys.readouterr()
    assert "its exact engine was used" in captured.err
    assert "Storm is asked" not in captured.out + captured.err


def test_the_document_holds_both_kinds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "sticky.json", "safe.props", "--json"]) == 0
    closed_form, storm = json.loads(capsys.readouterr().out)["properties"][0]["engines"]
    assert closed_form["notes"] == []
    assert [note["kind"] for note in storm["notes"]] == ["warning", "formulation"]
    assert storm["notes"][1]["text"].startswith("Storm is asked 1 - (P=? [ F ")


def test_the_summary_tells_how_storm_was_asked(here: Path) -> None:
    assert run(["assess", "runs.csv", "safe.props", "-o", "out"]) == 0
    assert "Storm is asked 1 - (P=?" in (here / "out" / "summary.md").read_text()
