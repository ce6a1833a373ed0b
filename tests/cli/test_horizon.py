"""``tracebridge horizon``: golden numbers of the specification, and intervals around the chain's own."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import click
import numpy as np
import pytest

from tracebridge import MarkovChain, RationalMatrix, RationalVector, TransitionCounts, fit_counts, write_model
from tracebridge.chain import write_fit
from tracebridge.cli import run
from tracebridge.cli.app import app
from tracebridge.inference.posterior import DEFAULT_DRAWS

F = Fraction


def write(rows: list[dict[int, Fraction]], path: str = "chain.json") -> None:
    """A chain with these transient rows; success and failure are the two places behind them."""
    m = len(rows)
    chain = MarkovChain(
        states=(*(f"s{i}" for i in range(m)), "success", "failure"),
        transitions=RationalMatrix.from_rows([*rows, {m: F(1)}, {m + 1: F(1)}]),
        initial=RationalVector.from_fractions([1] + [0] * (m + 1)),
        labels={"absorbed": np.arange(m + 2) >= m},
    )
    write_model(chain, path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def golden(here: Path) -> None:
    tenths = [{0: 1, 1: 5, 2: 4}, {0: 1, 1: 2, 2: 3, 3: 3, 4: 1}, {1: 1, 2: 6, 4: 3}]
    write([{j: F(x, 10) for j, x in row.items()} for row in tenths])


@pytest.fixture
def fitted(here: Path) -> None:
    paths = [(["plan", "search", "answer"], "success")] * 30 + [(["plan", "search", "search"], "failure")] * 20
    write_fit("fit.json", fit_counts(TransitionCounts.from_paths(paths)))


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["horizon", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_golden_chain(golden, capsys):
    found = document(capsys, "chain.json", "--d-max", "6")
    assert [row["R"] for row in found["R"]] == pytest.approx([0, 0, 0.15, 0.207, 0.2403, 0.26088, 0.274437], abs=1e-12)
    assert found["R_inf"] == {"value": pytest.approx(24 / 79), "interval": None}
    assert found["horizon"]["exact"] == 9
    assert found["horizon"]["diagonal"] == pytest.approx(15.54, abs=0.005)
    assert found["horizon"]["condition"] == pytest.approx(6.9188, abs=5e-5)
    assert found["horizon"]["perron"] >= 9
    assert found["draws"] == 0
    assert document(capsys, "chain.json", "--gap", "0.001")["horizon"]["exact"] == 16


def test_the_shape_is_that_of_the_second_differences(golden, capsys):
    """R(d) = 0, 0, .15, .207, ...: the slope rises at d = 1 and falls from there on."""
    shape = document(capsys, "chain.json", "--d-max", "6")["shape"]
    assert shape["convex"] == [1]
    assert shape["concave"] is False


@pytest.mark.parametrize(("length", "exact"), [(2, 14), (3, 18), (5, 25), (8, 34)])
def test_the_heuristic_of_the_paper_falls_short_on_pipelines(here, capsys, length, exact):
    """Equal self-loops .6 and failures .02: Q is defective, eq. 14 does not apply."""
    write([{i: F(6, 10), i + 1: F(38, 100), length + 1: F(2, 100)} for i in range(length)])
    rules = document(capsys, "chain.json")["horizon"]
    assert rules["exact"] == exact
    assert rules["heuristic"] == 9
    assert rules["diagonal"] is None
    assert "diagonalised" in rules["reason"]
    assert rules["perron"] >= exact


def test_a_chain_without_cycles(here, capsys):
    write([{1: F(9, 10), 4: F(1, 10)}, {2: F(9, 10), 4: F(1, 10)}, {3: F(8, 10), 4: F(2, 10)}])
    found = document(capsys, "chain.json", "--target", "0.648")
    assert found["horizon"]["exact"] == 3
    assert found["horizon"]["reason"] == "the chain has no cycle: rho is 0"
    assert found["budget"] == {"target": 0.648, "d": 3, "interval": None}
    assert run(["horizon", "chain.json", "--target", "0.65"]) == 0
    assert "R(d) >= 0.65: never" in capsys.readouterr().out


def test_the_exponential_limit_holds_in_its_regime(here, capsys):
    """One state with rare ends, and failures rarer still: off by less than eps / mu + mu."""
    write([{1: F(1, 1000), 2: F(1, 10**6), 0: 1 - F(1, 1000) - F(1, 10**6)}])
    limit = document(capsys, "chain.json", "--d-max", "5")["exponential_limit"]
    assert limit["success_rate"] == pytest.approx(1e-3)
    assert limit["ratio"] == pytest.approx(1e-3)
    assert limit["gap"] < 2e-3
    assert limit["obstacles"] == []
    assert run(["horizon", "chain.json", "--d-max", "5"]) == 0
    assert "1 - exp(-mu d) holds within 0.05" in capsys.readouterr().out


def test_the_regime_check_names_the_obstacle(here, capsys):
    """The constant eps / mu = .1 of the literature's figure, where the gap tends to 1/11 and more."""
    write([{1: F(1, 1000), 2: F(1, 10_000), 0: 1 - F(11, 10_000)}])
    limit = document(capsys, "chain.json", "--d-max", "5")["exponential_limit"]
    assert limit["gap"] == pytest.approx(1 / 11, abs=1e-3)
    assert limit["scaled_gap"] < 1e-3
    assert ["not rare" in line for line in limit["obstacles"]] == [True]


def test_no_success_has_no_rate(here, capsys):
    write([{0: F(1, 2), 2: F(1, 2)}])
    assert "no run succeeds" in document(capsys, "chain.json")["exponential_limit"]["reason"]


def test_a_fit_has_intervals_around_its_numbers(fitted, capsys):
    arguments = ("fit.json", "--target", "0.4", "--draws", "300", "--seed", "5")
    found = document(capsys, *arguments)
    for row in [*found["R"][3:], {"R": found["R_inf"]["value"], "interval": found["R_inf"]["interval"]}]:
        assert row["interval"]["lower"] < row["R"] < row["interval"]["upper"]
    assert found["horizon"]["interval"]["lower"] <= found["horizon"]["exact"] <= found["horizon"]["interval"]["upper"]
    assert found["budget"]["interval"]["lower"] == found["budget"]["d"] == 3
    assert document(capsys, *arguments) == found


def test_what_a_person_reads(fitted, golden, capsys):
    assert run(["horizon", "fit.json", "--draws", "200"]) == 0
    shown = capsys.readouterr()
    assert "95 % interval" in shown.out
    assert "a heuristic, no bound" in shown.out
    assert "see tracebridge certify" in shown.err
    assert run(["horizon", "chain.json"]) == 0
    shown = capsys.readouterr()
    assert "interval" not in shown.out
    assert "no intervals, for this model has no counts" in shown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gap", "x"], "--gap takes a number"),
        (["--gap", "0"], "between 0 and 1"),
        (["--gap", "2"], "between 0 and 1"),
        (["--gap", "1e999999999"], "--gap takes a number"),
        (["--target", "2"], "between 0 and 1"),
    ],
)
def test_what_cannot_be_done_is_said(golden, capsys, arguments, message):
    assert run(["horizon", "chain.json", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_every_verb_draws_as_often_unless_it_is_told():
    """One number of draws for the same kind of interval, that of the library."""
    context = click.Context(app)
    defaults = {
        name: option.default
        for name in app.list_commands(context)
        for option in app.get_command(context, name).params
        if option.name == "draws" and option.default is not None
    }
    assert {"assess", "check", "horizon", "trials"} <= set(defaults)
    assert set(defaults.values()) == {DEFAULT_DRAWS}
