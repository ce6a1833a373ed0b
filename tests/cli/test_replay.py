"""``tracebridge replay`` as a reviewer uses it: the verdict first, then what differs, then what was left out."""

from __future__ import annotations

import json
import shutil

import jsonschema
import pytest
from tests.small_evidence import assess_small

from tracebridge.cli import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    assess_small(folder, resamples=0)
    return folder


@pytest.fixture
def copied(folder, tmp_path):
    return shutil.copytree(folder / "out", tmp_path / "out")


def test_an_honest_file_is_as_recorded(folder, capsys):
    assert run(["replay", str(folder / "out" / "evidence.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("replayed: ")
    assert "files beside it as recorded" in lines[1]
    assert any("give them with --traces" in line and "results.certificate" in line for line in lines)


def test_one_changed_probability_is_told_with_its_place_and_the_difference(copied, capsys):
    path = copied / "evidence.json"
    document = json.loads(path.read_text())
    row = document["chain"]["chain"]["transitions"]["plan"]
    recorded, row["search"] = row["search"], "1/7"
    path.write_text(json.dumps(document))
    assert run(["replay", str(path), "--json"]) == 6
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"]
    told = {each["path"]: each for each in found["differences"]}
    assert told["digest"]["kind"] == "digest"
    changed = told["chain.chain.transitions.plan.search"]
    assert (changed["recorded"], changed["found"]) == ("1/7", recorded)
    top, bottom = map(int, recorded.split("/"))
    assert changed["difference"] == pytest.approx(top / bottom - 1 / 7)
    assert run(["replay", str(path)]) == 6
    shown = capsys.readouterr().out
    assert shown.startswith("NOT AS RECORDED: ")
    assert f"chain.chain.transitions.plan.search: recorded 1/7, found {recorded}; " in shown


def test_the_report_is_not_written_over_what_is_compared(copied, capsys):
    evidence = copied / "evidence.json"
    assert run(["report", str(evidence), "-o", str(copied / "chain.json")]) == 2
    assert "is compared with" in capsys.readouterr().err


def test_with_the_traces_all_is_computed_again(folder, capsys):
    evidence, traces = folder / "out" / "evidence.json", folder / "runs.jsonl"
    assert run(["replay", str(evidence), "--traces", str(traces), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["with_traces"]
    assert "--traces" not in " ".join(each["reason"] for each in found["not_recomputed"] if "chain" in each["path"])
    assert found["values"]["different"] == 0
    assert found["files_as_recorded"] == 6


def test_what_is_no_evidence_ends_with_3(folder, tmp_path, capsys):
    assert run(["replay", str(folder / "out" / "results.json")]) == 3
    assert "this is 'tracebridge-results', not 'tracebridge-evidence'" in capsys.readouterr().err
    assert run(["replay", str(tmp_path / "none.json")]) == 3
    assert run(["replay", str(folder / "out" / "evidence.json"), "--endings", str(folder / "runs.jsonl")]) == 2


def test_text_of_the_file_cannot_drive_the_terminal(copied, capsys):
    path = copied / "evidence.json"
    document = json.loads(path.read_text())
    document["files"]["\x1b[2Jevil"] = "0" * 64
    document["results"]["notes"] = ["\x1b]0;owned\x07"]
    path.write_text(json.dumps(document))
    assert run(["replay", str(path)]) == 6
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\x07" not in shown.out + shown.err


def test_the_schema_is_printed(folder, capsys):
    assert run(["schema", "evidence"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.validate(json.loads((folder / "out" / "evidence.json").read_text()), schema)
