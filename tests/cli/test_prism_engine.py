"""PRISM on the command line: a third column where it is there, and nothing else where it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.checking.prism_stand_in import install

from tracebridge.chain import write_chain
from tracebridge.cli import run
from tracebridge.cli.meta import _Engine, _self_test

pytestmark = pytest.mark.storm

RUNS = """run_id,step,state,outcome
a,0,plan,
a,1,search,
a,2,answer,success
b,0,plan,
b,1,search,failure
"""

PROPS = """"reach": P>=0.1 [ F "success" ];
"within": P=? [ F<=3 "success" ];
"least": quantile(min b, P>=0.1 [ F<=b "success" ]);
"""


#: Storm takes a second to start, and is not what most of these tests are about.
TWO = ["--engine", "closed-form", "--engine", "prism"]


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with runs and properties, in which no PRISM is found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEBRIDGE_PRISM", "")
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "my.props").write_text(PROPS)
    (tmp_path / "tools").mkdir()
    return tmp_path


@pytest.fixture
def prism(here) -> str:
    return str(install(here / "tools"))


@pytest.fixture
def model(here) -> str:
    from tests.checking.storm_chains import three_transient_states

    write_chain("chain.json", three_transient_states())
    return "chain.json"


def test_check_shows_three_columns_and_says_what_prism_lacks(model, prism, capsys):
    assert run(["check", model, "my.props", "--prism", prism]) == 0
    captured = capsys.readouterr()
    head, *rows = captured.out.splitlines()
    assert head.split() == ["property", "verdict", "value", "closed", "form", "Storm", "PRISM", "gap"]
    assert rows[0].split()[-4:-1] == ["0.3037974684"] * 3
    assert rows[2].split()[-2] == "unsupported"
    assert "least: without PRISM: PRISM has no quantile" in captured.err


def test_check_in_json_names_the_version_and_every_engine(model, prism, monkeypatch, capsys):
    monkeypatch.setenv("TRACEBRIDGE_PRISM", prism)
    assert run(["check", model, "my.props", "--exact", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tool"]["engines"]["PRISM"] == "4.10.fake"
    reach, within, _ = document["properties"]
    assert [engine["value"]["value"] for engine in reach["engines"]] == ["24/79"] * 3
    assert [engine["exact"] for engine in within["engines"]] == [True, True, False]
    assert reach["gap"] == 0


def test_without_one_there_are_two_columns(model, capsys):
    assert run(["check", model, "my.props"]) == 0
    assert "PRISM" not in "".join(capsys.readouterr())


def test_assess_writes_what_prism_found(here, prism, capsys):
    quick = ["--draws", "0", "--bootstrap", "0", "--certificate-replicates", "0"]
    assert run(["assess", "runs.csv", "my.props", "-o", "out", "--prism", prism, *quick]) in {0, 4}
    assert "| closed form | Storm | PRISM | gap |" in (here / "out" / "summary.md").read_text()
    document = json.loads((here / "out" / "results.json").read_text())
    assert document["tool"]["engines"]["PRISM"] == "4.10.fake"
    assert [engine["engine"] for engine in document["properties"][0]["engines"]] == ["closed form", "Storm", "PRISM"]


def test_whatif_asks_it_too(model, prism, capsys):
    arguments = ["whatif", model, "--redirect", "s2:0.1->s1", "--property", "my.props", "--prism", prism, *TWO]
    assert run(arguments) == 0
    assert "PRISM" in capsys.readouterr().out


def test_an_engine_that_disagrees_is_the_loudest_outcome(model, prism, monkeypatch, capsys):
    monkeypatch.setenv("FAKE_PRISM", "wrong")
    assert run(["check", model, "my.props", "--prism", prism, *TWO]) == 6
    assert "THE ENGINES DISAGREE" in capsys.readouterr().err


def test_an_engine_that_fails_is_said_and_the_others_stand(model, prism, monkeypatch, capsys):
    monkeypatch.setenv("FAKE_PRISM", "message")
    assert run(["check", model, "my.props", "--prism", prism, *TWO]) == 4
    captured = capsys.readouterr()
    assert "satisfied" in captured.out
    assert "Something about the model is wrong" in captured.err


def test_a_path_without_an_executable_is_a_wrong_call(model, capsys):
    assert run(["check", model, "my.props", "--prism", "nowhere"]) == 2
    assert "where there is no executable file" in capsys.readouterr().err


def test_doctor_tests_it_in_both_arithmetics(prism, capsys):
    assert run(["doctor", "--json", "--prism", prism]) == 0
    tests = [each for each in json.loads(capsys.readouterr().out)["engines"] if each["engine"] == "prism"]
    expected = {"engine": "prism", "version": "4.10.fake", "path": prism, "result": "passed"}
    assert tests == [{**expected, "arithmetic": arithmetic} for arithmetic in ("double", "rational")]


def test_the_self_test_finds_fault_with_one_that_is_wrong(prism, monkeypatch):
    engine = _Engine("prism", "4.10", prism)
    monkeypatch.setenv("FAKE_PRISM", "wrong")
    assert _self_test(engine, exact=False)["result"] == "wrong: 0.125 for 24/79"
    monkeypatch.setenv("FAKE_PRISM", "message")
    assert "Something about the model is wrong" in (_self_test(engine, exact=True)["result"] or "")


def test_doctor_says_how_to_get_one(here, prism, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(here / "tools"))
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"{prism} is not asked" in out
    assert "www.prismmodelchecker.org" in out
    assert "third engine is optional" in out
