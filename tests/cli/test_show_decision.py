"""``show`` and ``sample`` of a decision process; its numbers are worked out by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tracebridge.chain import RationalMatrix, RationalVector
from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.decision_document import write_decision
from tracebridge.cli import run

F = Fraction


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A fast and a slow way from the start; the slow one goes through a state in which one may wait for ever."""
    rows = [
        {2: F(3, 5), 3: F(2, 5)},
        {1: F(9, 10), 3: F(1, 10)},
        {2: F(1)},
        {1: F(1)},
        {2: F(1)},
        {3: F(1)},
    ]
    path = tmp_path / "model.json"
    process = DecisionProcess(
        states=("start", "think", "good", "bad"),
        actions=(("fast", "slow"), ("", "wait"), ("",), ("",)),
        transitions=RationalMatrix.from_rows(rows, 4),
        initial=RationalVector(np.array([1, 0, 0, 0]), 1),
        labels={"success": np.array([False, False, True, False])},
    )
    write_decision(path, process)
    return str(path)


def test_show_gives_both_optima_of_each_end(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", model, "--json", "--d-max", "3"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ends"]["success"] == pytest.approx({"min": 0, "max": 0.9})
    assert document["ends"]["bad"] == pytest.approx({"min": 0.1, "max": 0.4})
    assert [each["states"] for each in document["end_components"] if each["can_be_left"]] == [["think"]]
    assert [row["max"] for row in document["R"]] == pytest.approx([0, 0.6, 0.9, 0.9])
    assert [row["min"] for row in document["R"]] == [0, 0, 0, 0]
    assert run(["show", model]) == 0
    shown = capsys.readouterr().out
    assert "runs end in success with probability 0 to 0.9" in shown
    assert "fast, slow" in shown
    assert "think: can be left" in shown
    assert run(["show", model, "--matrix"]) == 2


def test_sample_says_how_choices_are_made(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sample", model, "-n", "50", "--max-steps", "100"]) == 0
    uniform = capsys.readouterr()
    assert "uniformly at random" in uniform.err
    assert {json.loads(line)["outcome"] for line in uniform.out.splitlines()} == {"success", "censored"}
    assert run(["sample", model, "-n", "50", "--scheduler", "max:success"]) == 0
    best = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {len(each["steps"]) for each in best if each["outcome"] == "success"} == {2}  # the slow way, without waiting
    assert run(["sample", model, "--scheduler", "best"]) == 2
    assert "uniform" in capsys.readouterr().err
