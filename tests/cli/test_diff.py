"""``tracebridge diff``: a sentence first, then the tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.small_evidence import assess_small

from tracebridge.cli import run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    paths = []
    for name, success in (("old", 0.2), ("new", 0.85)):
        folder = tmp_path_factory.mktemp(name)
        assess_small(folder, success=success, replicates=0, resamples=0)
        paths.append(str(folder / "out" / "evidence.json"))
    return paths


def test_changed_verdicts_and_sure_differences_come_first(files, capsys):
    assert run(["diff", *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 property changed verdict: R1 (undecided -> satisfied); the interval of ")
    shown = "\n".join(lines)
    assert "difference, 0.95 interval" in shown
    assert "runs that ended in success" in shown
    assert "transitions differ, the surest first" in shown


def test_a_file_against_itself_says_that_nothing_changed(files, capsys):
    assert run(["diff", files[0], files[0]]) == 0
    shown = capsys.readouterr()
    assert "the same runs" in shown.err
    first = shown.out.splitlines()[0]
    assert first == "no property changed its verdict; the interval of the difference excludes zero for 0 of 4 numbers"


def test_the_document_has_everything(files, capsys):
    assert run(["diff", *files, "--json", "--level", "0.9"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["level"] == 0.9
    (changed,) = [each for each in document["properties"] if each["key"] == "R1"]
    assert changed["probability_greater"] > 0.9
    assert changed["difference"]["level"] == 0.9
    assert run(["diff", files[0], files[0].replace("evidence", "results")]) == 3


@pytest.mark.parametrize("verb", [["diff"], ["report", "-o", "page.html"], ["gsn", "-o", "case.yaml"]])
def test_evidence_that_was_altered_is_told_by_every_verb(files, verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = Path(files[0]).read_text()
    document = json.loads(text)
    (entry,) = [each for each in document["results"]["properties"] if each["verdict"] == "undecided"]
    entry["verdict"] = "satisfied"
    (tmp_path / "evidence.json").write_text(json.dumps(document))
    given = ["evidence.json", files[1]] if verb == ["diff"] else ["evidence.json"]
    assert run([verb[0], *given, *verb[1:]]) == 6
    told = capsys.readouterr().err
    assert "its digest does not fit" in told
    assert "contradicts itself" in told
    assert not (tmp_path / "case.yaml").exists()
    if verb[0] == "report":
        assert "Altered evidence." in (tmp_path / "page.html").read_text()

    (tmp_path / "evidence.json").write_text(re.sub('"MTTA": [0-9.]+', '"MTTA": 1e999', text, count=1))
    assert run([verb[0], *given, *verb[1:]]) == 3
    assert "1e999 is beyond the largest double" in capsys.readouterr().err
