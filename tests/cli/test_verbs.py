"""The command line as a user meets it: documents on standard output, messages on standard error, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tracebridge.cli import run
from tracebridge.cli.app import app

RUNS = """run_id,step,state,outcome
a,0,plan,
a,1,search,
a,2,answer,success
b,0,plan,
b,1,search,failure
c,0,plan,
c,1,answer,success
d,0,plan,
d,1,search,
d,2,search,
d,3,answer,failure
"""

PROPS = """const int d = 3;
"reach": P=? [ F<=d "success" ];
"sure":  P>=1 [ F "absorbed" ];
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "my.props").write_text(PROPS)
    return tmp_path


@pytest.fixture
def chain(here: Path) -> str:
    assert run(["fit", "runs.csv", "-o", "chain.json"]) == 0
    return "chain.json"


def all_commands(group: click.Group = app, path: tuple[str, ...] = ()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from all_commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = list(all_commands())


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_verb_explains_itself_and_takes_the_common_options(path, command, capsys):
    assert run([*path, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert "--seed" in text
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.name} has no help"


def test_no_argument_shows_the_help(capsys):
    assert run([]) == 2
    assert "tracebridge demo" in capsys.readouterr().err


def test_an_unknown_verb_is_a_usage_error(capsys):
    assert run(["frobnicate"]) == 2
    assert "frobnicate" in capsys.readouterr().err


def test_fit_show_check_on_a_flat_file(chain, capsys):
    capsys.readouterr()
    assert run(["show", chain, "--matrix"]) == 0
    shown = capsys.readouterr().out
    assert "runs end in" in shown
    assert "search" in shown
    assert all(len(line) <= 100 for line in shown.splitlines())
    assert run(["check", chain, "my.props"]) == 0
    table = capsys.readouterr().out
    assert "closed form" in table
    assert "Storm" in table
    assert all(len(line) <= 100 for line in table.splitlines())


@pytest.mark.storm
def test_check_writes_one_json_document(chain, capsys):
    capsys.readouterr()
    assert run(["check", chain, "my.props", "--exact", "--const", "d=2", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    first = document["properties"][0]
    assert first["name"] == "reach"
    assert first["gap"] == 0.0
    assert [engine["engine"] for engine in first["engines"]] == ["closed form", "Storm"]
    assert first["engines"][0]["value"] == first["engines"][1]["value"]


def test_a_violated_property_exits_1(chain, here):
    (here / "hard.props").write_text('P>=0.999 [ F "success" ];')
    assert run(["check", chain, "hard.props", "--engine", "closed-form"]) == 1


def test_no_property_exits_5(chain, here, capsys):
    (here / "empty.props").write_text("// nothing\n")
    assert run(["check", chain, "empty.props"]) == 5
    assert "no property" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('P=? [ F "sucess" ];', ["bad.props:1:", "sucess", "did you mean", "success"]),
        ('P=? [ F "success" ;', ["bad.props:1:", "[", "^"]),
        ('R{"stepz"}=? [ F "success" ];', ["bad.props:1:", "stepz", "steps"]),
        ('P=? [ F<=k "success" ];', ["bad.props:1:", "k"]),
    ],
)
def test_a_bad_property_is_one_clear_message_with_its_place(chain, here, capsys, text, words):
    (here / "bad.props").write_text(text)
    capsys.readouterr()
    assert run(["check", chain, "bad.props"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    for word in words:
        assert word in captured.err


def test_models_that_break_an_invariant_are_refused_with_their_place(here, capsys):
    document = {
        "kind": "markov-chain",
        "schema_version": 1,
        "states": ["a", "b"],
        "initial": {"a": 1.0},
        "transitions": {"a": {"a": 0.5, "b": 0.499}, "b": {"b": 1.0}},
        "labels": {},
        "rewards": {},
    }
    (here / "model.json").write_text(json.dumps(document))
    assert run(["check", "model.json", "my.props"]) == 3
    message = capsys.readouterr().err
    assert "model.json" in message
    assert "'a'" in message
    assert "0.999" in message
    (here / "model.prism").write_text(
        "dtmc\nmodule m\n s:[0..1];\n [] s=0 -> 0.5:(s'=0)+0.499:(s'=1);\n [] s=1 -> true;\nendmodule\n"
    )
    assert run(["check", "model.prism", "my.props"]) == 3
    message = capsys.readouterr().err
    assert "model.prism" in message
    assert "999" in message


def test_a_truncated_document_is_refused_with_line_and_column(chain, here, capsys):
    whole = Path(chain).read_text()
    (here / "cut.json").write_text(whole[: len(whole) // 2])
    capsys.readouterr()
    assert run(["check", "cut.json", "my.props"]) == 3
    assert "cut.json:" in capsys.readouterr().err


def test_a_missing_file_says_so(here, capsys):
    assert run(["show", "nowhere.json"]) == 3
    assert "nowhere.json: there is no such file" in capsys.readouterr().err
    assert run(["traces", "summary", "nowhere.jsonl"]) == 3
    assert "nowhere.jsonl" in capsys.readouterr().err


def test_traces_summary_validate_convert_round_trip(here, capsys):
    assert run(["traces", "summary", "runs.csv", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["outcomes"] == {"success": 2, "failure": 2, "censored": 0}
    assert run(["traces", "convert", "runs.csv", "-o", "native.jsonl.gz"]) == 0
    capsys.readouterr()
    assert run(["traces", "summary", "native.jsonl.gz", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {key: again[key] for key in ("n_runs", "n_steps", "outcomes", "steps")} == {
        key: summary[key] for key in ("n_runs", "n_steps", "outcomes", "steps")
    }
    assert run(["traces", "validate", "native.jsonl.gz"]) == 0


def test_validate_lists_every_problem(here, capsys):
    lines = [
        '{"trace_id": "1", "outcome": "success", "steps": [{"name": "a"}]}',
        '{"trace_id": "2", "outcome": "sucess", "steps": []}',
        '{"trace_id": "3", "outcome": "failure", "steps": [{"name": ""}]}',
        '{"trace_id": "4", "outcome": "failure"',
    ]
    (here / "bad.jsonl").write_text("\n".join(lines))
    assert run(["traces", "validate", "bad.jsonl"]) == 3
    out = capsys.readouterr().out
    for line in (2, 3, 4):
        assert f"bad.jsonl:{line}" in out
    assert run(["fit", "bad.jsonl", "-o", "c.json"]) == 3
    assert not (here / "c.json").exists()
    assert run(["fit", "bad.jsonl", "-o", "c.json", "--skip-bad"]) == 0


def test_column_names_can_be_mapped(here, capsys):
    (here / "mine.csv").write_text("session,n,tool,passed\nx,0,go,\nx,1,stop,yes\n")
    mapping = "run_id=session,step=n,state=tool,outcome=passed"
    assert run(["traces", "summary", "mine.csv", "--map", mapping, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcomes"]["success"] == 1


def test_sample_is_decided_by_the_seed_and_can_be_fitted_again(chain, here, capsys):
    capsys.readouterr()
    for name in ("one.jsonl", "two.jsonl"):
        assert run(["sample", chain, "-n", "50", "--seed", "7", "-o", name]) == 0
    assert (here / "one.jsonl").read_bytes() == (here / "two.jsonl").read_bytes()
    assert run(["sample", chain, "-n", "50", "--seed", "8", "-o", "three.jsonl"]) == 0
    assert (here / "one.jsonl").read_bytes() != (here / "three.jsonl").read_bytes()
    assert run(["fit", "one.jsonl", "-o", "again.json"]) == 0


def test_export_comes_back_as_the_same_chain(chain, here, capsys):
    assert run(["export", chain, "-o", "out", "--properties", "my.props"]) == 0
    capsys.readouterr()
    documents = []
    for model in (chain, "out/model.prism"):
        assert run(["show", model, "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert (here / "out" / "properties.props").read_text().count("P") >= 2


def test_a_folder_of_someone_else_is_not_written_to(here, capsys):
    (here / "mine").mkdir()
    (here / "mine" / "thesis.tex").write_text("years of work")
    assert run(["assess", "runs.csv", "my.props", "-o", "mine", "--engine", "closed-form"]) == 2
    assert "--force" in capsys.readouterr().err
    assert [path.name for path in (here / "mine").iterdir()] == ["thesis.tex"]


def test_labels_of_a_model_and_of_traces(chain, capsys):
    capsys.readouterr()
    found = []
    for source in (chain, "runs.csv"):
        assert run(["props", "labels", source, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert found[0]["labels"]["success"] == ["success"]
    assert "steps" in found[0]["reward_structures"]


def test_props_lint_format_explain(here, capsys):
    assert run(["props", "lint", "my.props"]) == 0
    (here / "bad.props").write_text('P>=1.5 [ F "success" ];')
    assert run(["props", "lint", "bad.props"]) == 1
    capsys.readouterr()
    assert run(["props", "format", "my.props"]) == 0
    canonical = capsys.readouterr().out
    (here / "canonical.props").write_text(canonical)
    assert run(["props", "format", "canonical.props"]) == 0
    assert capsys.readouterr().out == canonical
    assert run(["props", "explain", "my.props"]) == 0
    assert "success" in capsys.readouterr().out


def test_hostile_names_are_shown_and_never_act(here, capsys):
    markup = "<img src=x onerror=alert(1)>|`x`[a](b)"
    line = {"trace_id": "1", "outcome": "success", "steps": [{"name": markup}]}
    (here / "evil.jsonl").write_text(json.dumps(line) + "\n")
    assert run(["assess", "evil.jsonl", "my.props", "-o", "out", "--engine", "closed-form"]) == 0
    summary = (here / "out" / "summary.md").read_text()
    assert "img src" in summary
    assert "<img" not in summary.replace("\\<img", "")
    assert run(["show", "out/model.prism"]) == 0
    assert "img src" in capsys.readouterr().out
    (here / "escape.jsonl").write_text(json.dumps({**line, "steps": [{"name": "\x1b[2J"}]}) + "\n")
    assert run(["traces", "summary", "escape.jsonl"]) == 3
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err


def test_schema_and_doctor(capsys):
    assert run(["schema", "trace"]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")
    assert run(["doctor", "--json"]) in {0, 4}
    engines = json.loads(capsys.readouterr().out)["engines"]
    first = {name: engines[0][name] for name in ("engine", "arithmetic", "result")}
    assert first == {"engine": "closed-form", "arithmetic": "double", "result": "passed"}


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (path, command)
        for path, command in COMMANDS
        if any(isinstance(p, click.Option) and p.required for p in command.params)
    ],
)
def test_a_required_option_that_is_missing_is_told(here: Path, capsys: pytest.CaptureFixture[str], path, command):
    arguments = ["runs.csv" for parameter in command.params if isinstance(parameter, click.Argument)]
    assert run([*path, *arguments]) == 2
    assert "Missing option" in capsys.readouterr().err
