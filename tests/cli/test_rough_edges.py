"""What users run into: pipes, full disks, odd folders, options that meet, files given in the wrong order."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracebridge.cli import run

CLASHING = """run_id,step,state,outcome
a,0,b,
a,1,a.b,success
b,0,b,
b,1,a.b,success
c,0,b,
c,1,a_x2e_b,failure
d,0,a.b,
d,1,b,failure
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(CLASHING)
    (tmp_path / "my.props").write_text('const int d = 1;\n"p": P=? [ F<=d "a.b" ];\n"q": P=? [ X "success" ];\n')
    return tmp_path


def values(capsys: pytest.CaptureFixture[str]) -> list[str]:
    document = json.loads(capsys.readouterr().out)
    return [item["engines"][0]["value"]["value"] for item in document["properties"]]


@pytest.mark.storm
def test_the_pair_of_files_that_assess_wrote_has_the_values_of_the_run(here, capsys):
    assert run(["assess", "runs.csv", "my.props", "-o", "out", "--exact", "--json"]) == 0
    expected = values(capsys)
    for model, properties in (
        ("out/model.prism", "out/properties.props"),
        ("out/chain.json", "out/properties.source.props"),
        ("out/model.prism", "out/properties.source.props"),
    ):
        assert run(["check", model, properties, "--exact", "--json"]) == 0
        assert values(capsys) == expected
    assert run(["check", "out/chain.json", "out/properties.props"]) == 3
    assert "rewritten for the model.prism beside them" in capsys.readouterr().err


def test_export_does_not_write_over_an_assessment(here, capsys):
    assert run(["assess", "runs.csv", "my.props", "-o", "out", "--engine", "closed-form"]) == 0
    before = (here / "out" / "results.json").read_bytes()
    assert run(["export", "out/chain.json", "-o", "out"]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["export", "out/chain.json", "-o", "out", "--force"]) == 0
    assert (here / "out" / "results.json").read_bytes() == before
    assert run(["export", "out/chain.json", "-o", "exported"]) == 0
    assert run(["export", "out/chain.json", "-o", "exported"]) == 0  # its own folder it may write again


def test_the_paper_profile_needs_no_other_option(here):
    assert run(["fit", "runs.csv", "-o", "paper.json", "--profile", "paper"]) == 0
    document = json.loads((here / "paper.json").read_text())
    assert (document["prior"], document["support"]) == ("laplace", "full")


@pytest.mark.parametrize("prior", ["jeffreys", "none", "0.25", "1/7"])
def test_priors_by_name_and_by_number(here, prior):
    assert run(["fit", "runs.csv", "-o", "c.json", "--prior", prior]) == 0


def test_a_wrong_prior_names_the_right_ones(here, capsys):
    assert run(["fit", "runs.csv", "-o", "c.json", "--prior", "flat"]) == 2
    assert "mass-one, jeffreys, laplace, none" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_to_is_no_internal_error(here, capsys):
    assert run(["assess", "runs.csv", "my.props", "-o", "/proc/nowhere", "--engine", "closed-form"]) == 2
    assert "/proc/nowhere" in capsys.readouterr().err
    assert run(["assess", "runs.csv", "my.props", "-o", "-"]) == 2
    assert run(["fit", "runs.csv", "-o", "nowhere/c.json"]) == 2
    assert not (here / "-").exists()


def test_nothing_is_left_behind_by_a_run_that_fails(here):
    (here / "bad.csv").write_text("run_id,step,state,outcome\na,0,b,maybe\n")
    assert run(["assess", "bad.csv", "my.props", "-o", "out"]) == 3
    assert not (here / "out").exists()


def tracebridge(arguments: list[str], **streams: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "tracebridge", *arguments], text=True, **streams)  # type: ignore[call-overload]


def test_a_reader_that_leaves_is_neither_a_violation_nor_a_fault(here):
    assert run(["fit", "runs.csv", "-o", "c.json"]) == 0
    process = tracebridge(["sample", "c.json", "-n", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(here):
    assert run(["fit", "runs.csv", "-o", "c.json"]) == 0
    with Path("/dev/full").open("w") as full:
        process = tracebridge(["show", "c.json"], stdout=full, stderr=subprocess.PIPE)
        _, message = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "No space left" in message
    assert "Traceback" not in message


def test_sample_as_one_document(here, capsys):
    assert run(["fit", "runs.csv", "-o", "c.json"]) == 0
    capsys.readouterr()
    assert run(["sample", "c.json", "-n", "3", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["traces"]) == 3
    assert run(["sample", "c.json", "-n", "3", "--json", "-o", "s.jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "s.jsonl"
    assert len((here / "s.jsonl").read_text().splitlines()) == 3


def test_labels_of_a_chain_on_standard_input(here, capsys, monkeypatch):
    assert run(["fit", "runs.csv", "-o", "c.json"]) == 0
    capsys.readouterr()
    for name in ("c.json", "runs.csv"):
        content = (here / name).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run(["props", "labels", "-", "--json"]) == 0
        assert "a.b" in json.loads(capsys.readouterr().out)["labels"]


def test_the_property_file_in_the_wrong_place_is_recognised(here, capsys):
    assert run(["assess", "my.props", "runs.csv", "-o", "out"]) == 2
    assert "behind the traces" in capsys.readouterr().err


def test_only_one_argument_can_be_standard_input(here, capsys):
    assert run(["check", "-", "-"]) == 2
    assert "standard input" in capsys.readouterr().err


@pytest.mark.storm
def test_constants_of_a_prism_model_come_from_the_same_option(here, capsys):
    (here / "m.prism").write_text(
        "dtmc\nconst double p;\nmodule m\n s:[0..2];\n [] s=0 -> p:(s'=1) + 1-p:(s'=2);\n"
        ' [] s>0 -> true;\nendmodule\nlabel "success" = s=1;\n'
    )
    (here / "m.props").write_text('const int d;\nP=? [ F<=d "success" ];')
    assert run(["check", "m.prism", "m.props", "--const", "p=0.3,d=2", "--exact", "--json"]) == 0
    assert values(capsys) == ["3/10"]
    assert run(["check", "m.prism", "m.props", "--const", "d=2"]) == 3
    assert "p" in capsys.readouterr().err
    assert run(["fit", "runs.csv", "-o", "c.json"]) == 0
    assert run(["check", "c.json", "my.props", "--const", "nope=1"]) == 2
    assert "nope" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["ctmc", "smg", "pta", "pomdp"])
def test_other_kinds_of_prism_models_are_named(here, capsys, kind):
    (here / "m.prism").write_text(f"// a comment\n{kind}\nmodule m\n s:[0..1];\n [] s=0 -> (s'=1);\nendmodule\n")
    assert run(["show", "m.prism"]) == 3
    assert f"of type {kind}" in capsys.readouterr().err


@pytest.mark.storm
def test_an_infinite_prism_model_ends_at_the_time_limit(here, capsys):
    (here / "m.prism").write_text(
        "dtmc\nmodule m\n x:int init 0;\n [] true -> 0.5:(x'=x+1) + 0.5:(x'=0);\nendmodule\nlabel \"success\" = x=1;\n"
    )
    assert run(["check", "m.prism", "my.props", "--time-limit", "2"]) == 4
    assert "2" in capsys.readouterr().err


def test_a_storm_that_does_not_load_is_said_once_and_the_closed_form_answers(here):
    assert run(["fit", "runs.csv", "-o", "c.json"]) == 0
    (here / "broken" / "stormpy").mkdir(parents=True)
    (here / "broken" / "stormpy" / "__init__.py").write_text('raise ImportError("a library is missing")')
    environment = {**os.environ, "PYTHONPATH": str(here / "broken")}
    done = tracebridge(["check", "c.json", "my.props"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    table, messages = done.communicate(timeout=60)
    assert done.returncode == 4  # no second engine: not a pass
    assert table.count("answered") == 2
    assert messages.count("a library is missing") == 1
    assert "Traceback" not in messages


def test_steps_that_are_called_like_an_end_are_told(tmp_path, capsys):
    """They are no problem, and a chain renames them; but an end that was recorded as a step is worth a look."""
    path = tmp_path / "runs.jsonl"
    path.write_text('{"trace_id": "a", "outcome": "failure", "steps": [{"name": "plan"}, {"name": "success"}]}\n')
    assert run(["traces", "validate", str(path)]) == 0
    captured = capsys.readouterr()
    assert "all fine" in captured.out
    assert "1 step called 'success'" in captured.err
    assert "'step_success'" in captured.err
    assert run(["traces", "validate", str(path), "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note in captured.err
