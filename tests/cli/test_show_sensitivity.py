"""``show --sensitivity``, ``check --robust`` and ``export --intervals``: what the numbers hang on, and what is sure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.test_judging import write_runs

from tracebridge import read_model, write_model
from tracebridge.chain import MarkovChain
from tracebridge.cli import run
from tracebridge.inference.interval_entries import interval_chain_of_fit


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path / "runs.jsonl", ("success", "ab", 30), ("success", "aab", 12), ("failure", "b", 10))
    assert run(["fit", "runs.jsonl", "-o", "chain.json"]) == 0
    capsys.readouterr()
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_transitions_are_ranked_by_effect_and_by_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "chain.json", "--sensitivity"]) == 0
    text = capsys.readouterr().out
    assert "Where engineering pays" in text
    assert "Where more traces pay" in text
    assert "the initial distribution" in text
    document = shown(capsys, "show", "chain.json", "--sensitivity", "--all")
    (found,) = document["properties"]
    assert found["name"] == "success_rate"
    assert found["n_transitions"] == len(found["by_slope"]) == len(found["by_spread"]) == 8
    # the value is the probability of success, to which nothing but b to success and its rivals matters much
    best = found["by_spread"][0]
    assert {(best["source"], best["target"])} <= {("b", "success"), ("b", "failure")}
    shares = [each["variance_share"] for each in found["by_slope"]]
    assert sum(shares) + found["start_share"] == pytest.approx(1)


def test_properties_come_as_text_or_file_with_constants(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my.props").write_text('const int d; "soon": P>=0.5 [ F<=d "success" ];')
    by_file = shown(capsys, "show", "chain.json", "--sensitivity", "--property", "my.props", "--const", "d=2")
    by_text = shown(capsys, "show", "chain.json", "--sensitivity", "--property", 'P=? [ F<=2 "success" ]')
    assert by_file["properties"][0]["by_slope"] == by_text["properties"][0]["by_slope"]
    assert len(by_text["properties"][0]["by_slope"]) == 8


def test_models_without_independent_counts_say_why_there_are_no_deviations(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "chain.json", "-o", "out"]) == 0
    plain = shown(capsys, "show", "out/model.prism", "--sensitivity")
    assert "no counts" in plain["without_deviations"]
    assert plain["properties"][0]["by_spread"] == []
    assert run(["fit", "runs.jsonl", "--model", "order2", "-o", "order2.json"]) == 0
    richer = shown(capsys, "show", "order2.json", "--sensitivity")
    assert "remember more" in richer["without_deviations"]
    assert richer["properties"][0]["by_slope"]


def test_what_has_no_gradient_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'P>=0.5 [ F "success" ] & P<1 [ F "failure" ]'
    assert run(["show", "chain.json", "--sensitivity", "--property", text]) == 0
    assert "no gradient" in capsys.readouterr().out
    assert run(["show", "chain.json", "--all"]) == 2
    assert run(["show", "chain.json", "--sensitivity", "--property", "none.props"]) == 3
    write_model(MarkovChain(states=("a", "b"), transitions=np.full((2, 2), 0.5), initial=[1, 0]), here / "plain.json")
    assert run(["show", "plain.json", "--sensitivity"]) == 2
    assert "name a property" in capsys.readouterr().err
    document = shown(capsys, "show", "plain.json", "--sensitivity", "--property", 'S=? [ "b" ]')
    assert [each["slope"] for each in document["properties"][0]["by_slope"]] == pytest.approx([-0.5, 0.5, -0.5, 0.5])


def test_the_guarantee_stands_beside_the_posterior_interval(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my.props").write_text('"rate": P=? [ F "success" ]; "sure": P>=0.1 [ F "success" ];')
    arguments = ["chain.json", "my.props", "--engine", "closed-form", "--futures", "0", "--draws", "400"]
    document = shown(capsys, "check", *arguments, "--robust", "0.9")
    rate, sure = document["properties"]
    found, interval = rate["guarantee"], rate["uncertainty"]["interval"]
    assert found["level"] == 0.9
    assert found["lower"] < interval["lower"] < interval["upper"] < found["upper"]
    assert found["width_ratio"] == pytest.approx(
        (found["upper"] - found["lower"]) / (interval["upper"] - interval["lower"])
    )
    assert (found["verdict"], sure["guarantee"]["verdict"]) == (None, "satisfied")
    assert run(["check", *arguments, "--robust", "0.9"]) == 0
    assert "Conservative guarantee: with a confidence of at least 90 %" in capsys.readouterr().out
    assert "guarantee" not in shown(capsys, "check", *arguments)["properties"][0]


def test_assess_writes_the_guarantee_and_models_without_counts_have_none(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "my.props").write_text('"rate": P=? [ F "success" ];')
    light = ["--engine", "closed-form", "--draws", "100", "--bootstrap", "0", "--certificate-replicates", "0"]
    run(["assess", "runs.jsonl", "my.props", "-o", "out", "--futures", "0", "--robust", "0.95", *light])
    (found,) = json.loads((here / "out" / "results.json").read_text())["properties"]
    assert found["guarantee"]["lower"] < found["guarantee"]["upper"]
    assert "Conservative guarantee" in (here / "out" / "summary.md").read_text()
    capsys.readouterr()
    assert run(["check", "out/model.prism", "out/properties.props", "--engine", "closed-form", "--robust", "0.9"]) == 0
    assert "no guarantee: this model has no counts" in capsys.readouterr().err


def test_the_interval_chain_is_exported_for_fits_of_first_order(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "chain.json", "--intervals", "0.95", "-o", "out"]) == 0
    text = (here / "out" / "model.prism").read_text()
    chain = interval_chain_of_fit(
        read_model("chain.json").fitted, method="clopper-pearson", level=0.95, together="chain"
    )
    assert f"[{float(chain.lower.data[0])!r},{float(chain.upper.data[0])!r}]:(s'=0)" in text
    assert run(["export", "chain.json", "--to", "drn", "--intervals", "0.95", "-o", "other"]) == 2
    assert run(["export", "chain.json", "-o", "plain"]) == 0
    assert run(["export", "plain/model.prism", "--intervals", "0.95", "-o", "other"]) == 2
    assert "no counts" in capsys.readouterr().err
