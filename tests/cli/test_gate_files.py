"""``--junit`` and ``--summary`` of check and assess: the same verdicts as on standard output, in other forms."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tracebridge.cli import run

RUNS = """run_id,step,state,outcome
a,0,plan,
a,1,search,success
b,0,plan,failure
c,0,plan,
c,1,search,success
"""
PROPS = """const int d;
"often": P>=0.5 [ F "success" ];
"soon": P>=0.9 [ F<=d "success" ];
"""
LIGHT = ["--engine", "closed-form", "--draws", "50", "--futures", "0"]


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "my.props").write_text(PROPS)
    return tmp_path


def red(path: Path) -> set[str]:
    """The names of the cases that fail or break."""
    cases = ET.fromstring(path.read_bytes()).iter("testcase")  # noqa: S314 - our own text
    return {case.attrib["name"] for case in cases if {part.tag for part in case} & {"failure", "error"}}


def test_check_writes_them_beside_its_table(here, capsys):
    assert run(["fit", "runs.csv", "-o", "chain.json"]) == 0
    capsys.readouterr()
    files = ["--junit", "check.xml", "--summary", "check.md"]
    assert run(["check", "chain.json", "my.props", "--const", "d=1:2", *LIGHT, *files]) == 1
    table = capsys.readouterr().out
    assert "violated" in table
    names = red(here / "check.xml")
    assert {"soon [d=1]", "soon [d=2]"} <= names
    assert not {"often [d=1]", "often [d=2]"} & names
    assert (here / "check.md").read_text().startswith("## tracebridge\n\n**2 violated, 2 satisfied.**")
    assert run(["check", "chain.json", "my.props", "--const", "d=1", *LIGHT, *files, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["exit_code"] == 1  # the document alone
    assert red(here / "check.xml") == {"soon", "soon (closed form)"}


def test_assess_writes_them_of_its_results(here, capsys):
    light = [*LIGHT, "--bootstrap", "0", "--certificate-replicates", "0", "--const", "d=2", "-o", "out"]
    code = run(["assess", "runs.csv", "my.props", *light, "--junit", "a.xml", "--summary", "-"])
    assert code == json.loads((here / "out" / "results.json").read_text())["exit_code"] == 1
    assert "## tracebridge" in capsys.readouterr().out
    assert red(here / "a.xml") == {"soon", "soon (closed form)"}
    assert run(["assess", "runs.csv", "my.props", *light, "--summary", "-", "--json"]) == 2
    assert run(["assess", "runs.csv", "my.props", *light, "--junit", "out"]) == 2  # a folder
    assert "folder" in capsys.readouterr().err
