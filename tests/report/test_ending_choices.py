"""An assessment shows what runs counted as, and what its numbers would be if they had counted as something else."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from tests.small_evidence import PROPERTIES, SETTINGS

from tracebridge.pipeline import assess


def test_the_summary_and_the_results_show_every_choice(tmp_path: Path) -> None:
    outcomes = [("success", None)] * 6 + [("failure", None)] * 2
    outcomes += [("censored", "step_cap")] * 3 + [("failure", "gave up"), ("censored", "outage")]
    lines = [
        {"trace_id": str(i), "outcome": outcome, "steps": [{"name": "plan"}]} | ({"termination": why} if why else {})
        for i, (outcome, why) in enumerate(outcomes)
    ]
    runs, rules, properties = tmp_path / "runs.jsonl", tmp_path / "rules.toml", tmp_path / "agent.props"
    runs.write_text("\n".join(map(json.dumps, lines)) + "\n")
    rules.write_text('[endings]\noutage = "drop"\n')
    properties.write_text(PROPERTIES)
    result = assess([runs], properties, output=tmp_path / "out", endings=rules, prior="none", **SETTINGS)
    choices = result.document["ending_choices"]
    found = {(each["reason"], each["counted_as"]): each["numbers"] for each in choices["choices"]}
    assert set(found) == {
        ("step_cap", "failure"),
        ("step_cap", "drop"),
        ("gave up", "censored"),
        ("gave up", "drop"),
    }
    # Without a prior and with one step a run, R_inf is the pass rate; properties are in the order of their file.
    assert choices["present"]["pass_rate"] == str(Fraction(6, 9))
    assert choices["present"]["R_inf"] == pytest.approx(6 / 9)
    assert found["step_cap", "failure"]["R_inf"] == pytest.approx(6 / 12)
    assert found["gave up", "drop"]["properties"][0] == pytest.approx(6 / 8)
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "| step\\_cap | 3 censored | failures | 0.5000 |" in summary
    assert "| outage | 1 | 1 unknown | 1 dropped |" in summary
    assert "1 run left out by a rule" in summary
