"""``tracebridge trials``: estimates against counts by hand, what a budget does, and the diagnostic."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path

import pytest

from tracebridge import Outcome, Step, Trace, fit_chain, read_traces, reliability, write_traces
from tracebridge.cli import run
from tracebridge.cli.corpus import judged_at

QUICK = ["--replicates", "100", "--draws", "100"]


def one(name: str, outcome: str, length: int = 2, task: str | None = None) -> Trace:
    path = tuple(Step(name="plan") for _ in range(length))
    return Trace(trace_id=name, outcome=Outcome(outcome), steps=path, task_id=task)


def tasks(counts: dict[str, tuple[int, int]]) -> list[Trace]:
    """Successes and trials of each task."""
    return [
        one(f"{task}-{i}", "success" if i < c else "failure", task=task)
        for task, (c, n) in counts.items()
        for i in range(n)
    ]


EASY_AND_HARD = {f"easy{i}": (4, 4) for i in range(6)} | {f"hard{i}": (i % 2, 4) for i in range(6)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_traces(tasks(EASY_AND_HARD), "runs.jsonl")
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["trials", *arguments, *QUICK, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_unbiased_estimate_by_hand(here, capsys):
    found = document(capsys, "runs.jsonl", "--k", "1,2,3,5")
    for row, k in zip(found["pass_hat_k"][:3], (1, 2, 3), strict=True):
        by_hand = sum(comb(c, k) / comb(n, k) for c, n in EASY_AND_HARD.values()) / len(EASY_AND_HARD)
        assert row["unbiased"] == pytest.approx(by_hand)
        assert row["unbiased_interval"]["lower"] <= by_hand <= row["unbiased_interval"]["upper"]
        assert row["independent"] == pytest.approx((27 / 48) ** k)
        assert (row["k"], row["n_tasks"], row["beyond"]) == (k, 12, False)
    beyond = found["pass_hat_k"][3]
    assert (beyond["unbiased"], beyond["n_tasks"], beyond["beyond"]) == (None, 0, True)


def test_the_chain_is_raised_to_the_power(here, capsys):
    chain = fit_chain(read_traces("runs.jsonl")).chain
    for d, budget in ((2, ["--d", "2"]), (10_000, [])):
        for row in document(capsys, "runs.jsonl", "--k", "1,2", *budget)["pass_hat_k"]:
            assert row["chain"] == pytest.approx(float(reliability(chain, d)) ** row["k"], abs=1e-9)
            assert row["chain_interval"]["lower"] < row["chain"] < row["chain_interval"]["upper"]


def test_tasks_of_different_difficulty_share_it(here, capsys):
    found = document(capsys, "runs.jsonl")
    assert found["shared_difficulty"]["gap"]["p_value"] <= 0.001
    assert found["shared_difficulty"]["interval"]["lower"] > 0
    assert sum(found["latent_classes"]["weights"]) == pytest.approx(1)
    assert run(["trials", "runs.jsonl", *QUICK]) == 0
    shown = capsys.readouterr()
    assert "trials share the difficulty of their task (p <= 0.001)" in shown.out
    assert "12 tasks with 4 completed trials each, 48 in all, 27 successes" in shown.out
    assert "* beyond the trials of any task" in shown.out
    assert "take all tasks as alike" in shown.err


def test_tasks_that_are_alike_do_not(here, capsys):
    write_traces(tasks({f"t{i}": (2, 4) for i in range(12)}), "alike.jsonl")
    found = document(capsys, "alike.jsonl")
    assert found["shared_difficulty"]["gap"]["p_value"] == 1
    assert found["latent_classes"]["reliabilities"] == [pytest.approx(0.5)]
    assert run(["trials", "alike.jsonl", *QUICK]) == 0
    assert "no shared difficulty is shown" in capsys.readouterr().out


def test_one_trial_a_task_says_that_it_cannot_tell(here, capsys):
    write_traces(tasks({f"t{i}": (i % 2, 1) for i in range(10)}), "once.jsonl")
    assert "two tasks with two trials" in document(capsys, "once.jsonl")["shared_difficulty"]["reason"]
    assert run(["trials", "once.jsonl", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "Cannot be told" in shown
    assert "every task was tried once: nothing tells whether tasks differ" in shown


def test_intervals_without_width_are_not_left_alone(here, capsys):
    """By hand: Wilson's lower end for 10 of 10 is 10 / (10 + 1.96^2), and pass^k is no lower than its power."""
    write_traces(tasks({f"t{i}": (3, 3) for i in range(10)}), "perfect.jsonl")
    assert run(["trials", "perfect.jsonl", *QUICK]) == 0
    shown = capsys.readouterr().out
    end = 10 / (10 + 1.959964**2)
    assert "Wilson's score interval of p, each task counting once" in shown
    rows = {row.split()[0]: row for row in shown.splitlines() if row[:1].isdigit()}
    assert rows["1"].count(f"1.000 [{end:.3f}, 1.000]") == 2
    assert rows["2"].count(f"1.000 [{end**2:.3f}, 1.000]") == 2
    write_traces(tasks({f"t{i}": (0, 3) for i in range(10)}), "hopeless.jsonl")
    assert run(["trials", "hopeless.jsonl", *QUICK]) == 0
    assert capsys.readouterr().out.count(f"0.000 [0.000, {1 - end:.3f}]") >= 4


@pytest.mark.parametrize(
    ("outcome", "length", "expected"),
    [
        ("success", 3, "success"),
        ("success", 4, "failure"),
        ("failure", 4, "failure"),
        ("failure", 1, "failure"),
        ("censored", 2, "censored"),
        ("censored", 3, "failure"),
        ("censored", 4, "failure"),
    ],
)
def test_what_a_run_has_done_within_three_steps(outcome, length, expected):
    """A censored run of three steps had not ended with its third: it cannot succeed within three."""
    (judged,) = judged_at([one("a", outcome, length)], 3)
    assert judged.outcome == expected
    (unlimited,) = judged_at([one("a", outcome, length)], None)
    assert unlimited.outcome == outcome


def test_a_budget_counts_late_successes_as_failures(here, capsys):
    runs = [one(f"r{i}", "success", length=1 + i % 3, task=f"t{i % 4}") for i in range(24)]
    write_traces(runs, "late.jsonl")
    found = document(capsys, "late.jsonl", "--k", "1", "--d", "2")
    assert sum(task["successes"] for task in found["tasks"].values()) == 16
    assert found["pass_hat_k"][0]["unbiased"] == pytest.approx(2 / 3)


def test_censored_runs_under_a_policy(here, capsys):
    runs = [one(f"r{i}", ("success", "censored")[i % 2], task=f"t{i % 3}") for i in range(12)]
    write_traces(runs, "cut.jsonl")
    left_out = document(capsys, "cut.jsonl", "--k", "1")
    assert (left_out["n_censored"], left_out["pass_hat_k"][0]["unbiased"]) == (6, 1)
    failed = document(capsys, "cut.jsonl", "--k", "1", "--censored", "failure")
    assert (failed["n_censored"], failed["pass_hat_k"][0]["unbiased"]) == (0, 0.5)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["runs.jsonl", "--k", "0"], 2, "--k takes numbers of trials such as 1,2,4,8"),
        (["runs.jsonl", "--k", "1,x"], 2, "not '1,x'"),
        (["runs.jsonl", "--k", "9999999999999"], 2, "--k takes numbers"),
        (["nameless.jsonl"], 5, "1 run without the name of a task (--map task=COLUMN"),
    ],
)
def test_what_cannot_be_done_is_said(here, capsys, arguments, code, message):
    write_traces([one("a", "success")], "nameless.jsonl")
    assert run(["trials", *arguments]) == code
    assert message in capsys.readouterr().err


def test_runs_that_are_all_censored_are_told_as_such(here, capsys):
    write_traces([one(f"r{i}", "censored", task="t") for i in range(2)], "cut.jsonl")
    assert run(["trials", "cut.jsonl", *QUICK]) == 5
    message = capsys.readouterr().err
    assert "no trial of a named task was seen to end: 2 runs censored, so that no end was seen" in message
    assert "--censored failure counts censored runs as failures" in message
    assert "without the name of a task" not in message


def test_one_of_each_is_counted_in_the_singular(here, capsys):
    write_traces([one("r", "success", task="t")], "single.jsonl")
    assert run(["trials", "single.jsonl", *QUICK, "--k", "1", "--d", "1"]) == 0
    assert "1 task with 1 completed trial each, 1 in all, 0 successes within 1 step;" in capsys.readouterr().out
