"""``fit --model``: chains whose states remember more than their step, and the verbs that read them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.chain.expanded.corpora import walks
from tests.inference.expanded.test_cross_validation import order2_rows

from tracebridge import fit_chain, judge, read_traces
from tracebridge.chain import chain_to_dict, read_fit
from tracebridge.chain.expanded.fit import read_expanded_fit
from tracebridge.checking.models import is_model, read_model
from tracebridge.cli import run
from tracebridge.inference.expanded.fitting import fit_model
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["run_id,task_id,state,outcome,site"]
    for i, (path, outcome) in enumerate(walks(order2_rows(), np.array([1, 0, 0]), 40, np.random.default_rng(1))):
        lines += [f"r{i},t{i // 2},{state},{outcome},{'north' if i % 3 else 'south'}" for state in path]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def fit(*options: str) -> int:
    return run(["fit", "runs.csv", "-o", "chain.json", *options])


def test_it_writes_what_the_library_fits(here, capsys):
    assert fit("--model", "order2+clock", "--seed", "3") == 0
    traces = list(read_traces("runs.csv"))
    base = fit_chain(traces)
    assert base.abstraction is not None
    expected = fit_model(base, RunPaths.of_traces(base.abstraction, traces), parse_model("order2+clock"), seed=3)
    read = read_expanded_fit("chain.json")
    assert read.to_dict() == expected.to_dict()
    assert chain_to_dict(read.chain) == chain_to_dict(expected.chain)
    said = capsys.readouterr().err
    assert "over 20 tasks chose the clock" in said
    assert f"wrote {expected.chain.n_states} states to chain.json" in said
    first = Path("chain.json").read_bytes()
    assert fit("--model", "clock+order2", "--seed", "3") == 0
    assert Path("chain.json").read_bytes() == first


def test_standard_input_is_read_once(here, monkeypatch):
    assert fit("--model", "order2") == 0
    stored = read_expanded_fit("chain.json").to_dict()
    with Path("runs.csv").open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": file})())
        assert run(["fit", "-", "-o", "again.json", "--model", "order2", "--format", "flat"]) == 0
    assert read_expanded_fit("again.json").to_dict() == stored


def test_the_first_order_model_is_the_plain_fit(here):
    assert fit("--model", "first-order") == 0
    named = Path("chain.json").read_bytes()
    assert fit() == 0
    assert Path("chain.json").read_bytes() == named
    assert read_fit("chain.json").alpha


def test_groups_are_values_of_an_attribute(here):
    assert fit("--model", "group:site", "--map", "attributes.site=site") == 0
    assert read_expanded_fit("chain.json").model.groups == ("north", "south")
    assert fit("--model", "group:task") == 0
    assert len(read_expanded_fit("chain.json").model.groups) == 20


def test_the_verbs_read_it(here, capsys):
    assert fit("--model", "order2") == 0
    assert is_model("chain.json")
    model = read_model("chain.json")
    assert model.expanded is not None
    assert model.fit is None
    capsys.readouterr()
    assert run(["show", "chain.json", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["model"] == "order2"
    copies = {each["state"]: each["copies"] for each in shown["categories"]}
    assert copies == {"a": 4, "b": 3, "c": 3}  # after each state, and a as the first step
    assert sum(each["visits"] for each in shown["categories"]) == pytest.approx(shown["mean_time"])
    whole = {each["state"]: each for each in shown["states"]}
    b = [each for name, each in whole.items() if name.startswith("b [")]
    mean = sum(each["visits"] * each["mean_time"] for each in b) / sum(each["visits"] for each in b)
    assert shown["categories"][1]["mean_time"] == pytest.approx(mean)
    assert run(["show", "chain.json", "--matrix"]) == 0
    assert "each stands for one of 3 kinds of steps" in capsys.readouterr().out
    Path("two.props").write_text('"r": P=? [ F "success" ];\n"soon": P=? [ !"b" U<=4 "success" ];\n')
    assert run(["check", "chain.json", "two.props", "--engine", "closed-form", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["properties"]
    eventually, soon = (each["engines"][0]["value"]["value"] for each in found)
    assert eventually == pytest.approx(shown["outcomes"]["success"])
    chain = model.chain
    allowed = ~chain.labels["b"]
    chance = chain.labels["success"].astype(float)
    for _ in range(4):
        chance = np.where(chain.labels["success"], 1, np.where(allowed, chain.transitions @ chance, 0))
    assert soon == pytest.approx(chain.initial @ chance)
    capsys.readouterr()
    assert run(["sample", "chain.json", "-n", "3", "--trials", "2"]) == 0
    drawn = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(run_["task_id"], run_["trial"]) for run_ in drawn] == [("task-0", "0"), ("task-0", "1"), ("task-1", "0")]
    assert run(["export", "chain.json", "--to", "json", "-o", "out"]) == 0
    assert run(["whatif", "chain.json", "--json"]) == 0


def test_a_large_matrix_is_not_shown(here, capsys):
    assert fit("--model", f"clock:{','.join(map(str, range(70)))}") == 0
    assert run(["show", "chain.json", "--matrix"]) == 0
    assert "N is not shown" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--model", "order3"], 2, "'order3' in model 'order3' is unknown; parts are first-order, order2"),
        (["--model", "order2+order2"], 2, "says previous twice"),
        (["--model", "clock:1,2"], 2, "start at 0"),
        (["--model", "order2", "--prior", "none"], 2, "leave --prior out"),
        (["--model", "order2", "--support", "observed"], 2, "leave --support out"),
        (["--model", "order2", "--start", "smoothed"], 2, "leave --start out"),
        (["--model", "order2", "--profile", "paper"], 2, "prior laplace"),
        (["--model", "group:colour"], 3, "no run has a value of 'colour'"),
        (["--model", "classes:2"], 3, "2 classes of tasks need a task with 3 completed trials or more"),
    ],
)
def test_what_cannot_be_done_is_said(here, capsys, options, code, message):
    assert fit(*options) == code
    assert message in capsys.readouterr().err
    assert not Path("chain.json").exists()


def test_runs_that_were_all_cut_have_one_way(here, capsys):
    """Without a prior a richer chain cannot be fitted, and with one the prior would decide alone."""
    text = Path("runs.csv").read_text().replace(",success,", ",censored,").replace(",failure,", ",censored,")
    Path("runs.csv").write_text(text)
    for options in (["--prior", "none"], []):
        assert fit("--model", "order2", *options) in (2, 3)
        said = capsys.readouterr().err
        assert "seen to end" in said
        assert "--censored failure" in said
    assert fit("--model", "order2", "--censored", "failure") == 0
    assert read_expanded_fit("chain.json").chain.n_states > 3


def test_a_changed_document_is_refused(here, capsys):
    assert fit("--model", "dwell2") == 0
    document = json.loads(Path("chain.json").read_text())
    document["kappa"] += 1
    Path("chain.json").write_text(json.dumps(document))
    assert run(["show", "chain.json"]) == 3
    assert "chain.json, field parameters: do not follow from the runs" in capsys.readouterr().err


def test_horizon_and_judge_have_the_intervals_of_a_richer_chain(here, capsys):
    assert fit("--model", "order2") == 0
    capsys.readouterr()
    assert run(["horizon", "chain.json", "--draws", "60", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["draws"] == 60
    assert run(["horizon", "chain.json", "--draws", "60"]) == 0
    assert "Bayesian bootstrap of transitions" in capsys.readouterr().err
    model = read_model("chain.json")
    assert model.fit is None
    (found,) = judge(model.fitted, 'P=? [ F "success" ]', draws=60)
    assert found.ok
    assert found.uncertainty.interval.lower < found.uncertainty.point < found.uncertainty.interval.upper
