from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import FORMATS, Outcome, Trace
from tracebridge.traces.problems import ProblemLog
from tracebridge.traces.readers.endings import EndingRules, known_endings, read_ending_rules


def trace(name: str, outcome: Outcome, termination: str | None) -> Trace:
    return Trace(trace_id=name, outcome=outcome, termination=termination)


RUNS = [
    trace("a", Outcome.CENSORED, "max_steps"),
    trace("b", Outcome.SUCCESS, "max_steps"),
    trace("c", Outcome.FAILURE, "agent_error"),
    trace("d", Outcome.CENSORED, "infrastructure_error"),
    trace("e", Outcome.FAILURE, None),
]


def written(tmp_path: Path, text: str) -> EndingRules:
    path = tmp_path / "endings.toml"
    path.write_text(text)
    return read_ending_rules(path)


@pytest.mark.parametrize(
    "text",
    [
        '[endings]\nmax_steps = "failure"\nagent_error = "censored"\ninfrastructure_error = "drop"\ntimeout = "drop"\n',
        """{"endings": {"max_steps": "failure", "agent_error": "censored", "infrastructure_error": "drop",
        "timeout": "drop"}}""",
    ],
)
def test_rules_change_what_did_not_succeed(tmp_path: Path, text: str) -> None:
    log, rules = ProblemLog(10), written(tmp_path, text)
    assert [(file.path, file.sha256) for file in rules.files] == [
        ("endings.toml", hashlib.sha256(text.encode()).hexdigest())
    ]
    found = {run.trace_id: run.outcome.value for run in rules.apply(RUNS)}
    rules.remark(log, rules.touched, [])
    assert found == {"a": "failure", "b": "success", "c": "censored", "e": "failure"}
    assert [str(note) for note in log.notes] == [
        "endings.toml, field max_steps: 1 run by this rule: counted as failed",
        "endings.toml, field agent_error: 1 run by this rule: counted as censored",
        "endings.toml, field infrastructure_error: 1 run by this rule: left out",
        "endings.toml, field timeout: 0 runs by this rule: left out",
    ]


def test_a_reason_that_no_run_has_may_be_misspelt() -> None:
    log, rules = ProblemLog(10), EndingRules({"max_step": "failure"}, "f")
    assert list(rules.apply(RUNS)) == RUNS
    rules.remark(log, rules.touched, [run.termination for run in RUNS if run.termination])
    assert "did you mean max_steps?" in str(log.notes[0])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[endings]\nmax_steps = "success"\n', "field max_steps: a run that ends so cannot count as 'success'"),
        ("[endings]\nmax_steps = 1\n", "cannot count as 1"),
        ('max_steps = "failure"\n', r"one table \[endings\] was expected"),
        ("[endings]\n", r"one table \[endings\] was expected"),
        ("[endings", "Expected"),
        ('{"endings": {"a": "drop", "a": "drop"}}', "stands twice"),
    ],
)
def test_rules_that_are_none(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(TraceError, match=what):
        written(tmp_path, text)


def test_the_table_of_all_formats() -> None:
    table = {(ending.format, ending.reason): (ending.success, ending.failure) for ending in known_endings()}
    assert len(table) == len(known_endings())
    assert {name for name, _ in table} <= set(FORMATS)
    # a cap censors a failure, the agent's own breakdown does not, and what nobody judged is censored both ways
    assert table["tau2-bench", "max_steps"] == ("censored", "censored")
    assert table["tau2-bench", "too_many_errors"] == ("success", "failure")
    assert table["swe-agent", "exit_cost"] == ("success", "censored")
    assert table["swe-agent", "submitted"] == ("success", "failure")
    assert table["mini-swe-agent", "LimitsExceeded"] == ("success", "censored")
    assert table["atif", "AgentTimeoutError"] == ("success", "censored")
    assert table["atif", "*"] == ("censored", "censored")
    assert table["openhands", "max_iterations"] == ("success", "censored")
    assert table["inspect", "*_limit"] == ("success", "censored")
    assert table["tau-bench", "step_cap"] == ("censored", "censored")
