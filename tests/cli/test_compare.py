"""``tracebridge compare``: rates, pairs and contributions by hand, and what may be claimed from few runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy.stats import binomtest

from tracebridge import Outcome, Step, Trace, write_traces
from tracebridge.cli import run

QUICK = ["--replicates", "200"]


def one(name: str, path: str, outcome: str, task: str | None = None) -> Trace:
    return Trace(
        trace_id=name, outcome=Outcome(outcome), steps=tuple(Step(name=step) for step in path.split()), task_id=task
    )


def agent(successes: set[int], n: int, *, prefix: str = "t", lookup: bool = False) -> list[Trace]:
    """One run a task; with ``lookup`` those that fail look something up before."""
    return [
        one(
            f"run{i}",
            "plan answer" if i in successes or not lookup else "plan lookup answer",
            "success" if i in successes else "failure",
            f"{prefix}{i:02}",
        )
        for i in range(n)
    ]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_traces(agent(set(range(10)), 40), "old.jsonl")
    write_traces(agent(set(range(4, 34)), 40), "new.jsonl")
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["compare", *arguments, *QUICK, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_rates_and_pairs_by_hand(here, capsys):
    """Tasks 0-3 are lost, 10-33 won: McNemar's test is the sign test of 24 against 4."""
    found = document(capsys, "old.jsonl", "new.jsonl", "--d", "2")
    for figure in ("pass_rate", "R_inf", "R_d"):
        assert (found[figure]["first"], found[figure]["second"]) == (pytest.approx(0.25), pytest.approx(0.75))
        assert found[figure]["interval"]["lower"] < 0.5 < found[figure]["interval"]["upper"]
    tasks = found["common_tasks"]
    assert (tasks["n_tasks"], tasks["n_better"], tasks["n_worse"]) == (40, 24, 4)
    assert tasks["p_value"] == pytest.approx(binomtest(4, 28).pvalue)
    assert [each["task"] for each in found["changed_tasks"][:4]] == ["t00", "t01", "t02", "t03"]
    assert found["MTTA"]["difference"] == pytest.approx(0)
    assert found["headline"].startswith("B succeeds more often than A on the 40 tasks of both: +0.500")


def test_contributions_add_up(here, capsys):
    """Only where `answer` leads changes: it carries all of the difference."""
    for figure in document(capsys, "old.jsonl", "new.jsonl")["decomposition"].values():
        assert figure["rows"]["answer"] == pytest.approx(0.5)
        assert figure["start"] + sum(figure["rows"].values()) == pytest.approx(figure["after"] - figure["before"])
        assert (figure["only_A"], figure["only_B"]) == ([], [])


def test_a_state_of_one_alone(here, capsys):
    write_traces(agent(set(range(10)), 40, lookup=True), "lookup.jsonl")
    found = document(capsys, "old.jsonl", "lookup.jsonl")
    assert found["decomposition"]["R_inf"]["only_B"] == ["lookup"]
    assert found["MTTA"]["difference"] == pytest.approx(30 / 40)
    assert found["R_inf"]["difference"] == pytest.approx(0)
    assert found["headline"].startswith("no difference in success is shown")
    (plan,) = (row for row in found["rows"] if row["state"] == "plan")
    assert plan["p_holm"] < 0.01


def test_what_a_person_reads(here, capsys):
    assert run(["compare", "old.jsonl", "new.jsonl", *QUICK]) == 0
    shown = capsys.readouterr()
    assert "A  old.jsonl: 40 runs (10 success, 30 failure, 0 censored)" in shown.out
    assert "95 % interval" in shown.out
    assert "worse: t00 (1/1 -> 0/1)" in shown.out
    assert "to failure: 75% -> 25%" in shown.out
    assert "(in all)" in shown.out
    assert "see tracebridge certify" in shown.err


def test_other_tasks_are_not_paired(here, capsys):
    write_traces(agent(set(range(30)), 40, prefix="u"), "other.jsonl")
    found = document(capsys, "old.jsonl", "other.jsonl")
    assert "no task was attempted in both" in found["common_tasks"]["reason"]
    assert found["changed_tasks"] == []
    assert found["headline"].startswith("B succeeds more often than A: +0.500")


def test_nothing_is_claimed_from_a_single_run(here, capsys):
    """Its bootstrap has no width: the test of the pair, and Newcombe's interval without one, know better."""
    write_traces(agent({0}, 1), "won.jsonl")
    write_traces(agent(set(), 1), "lost.jsonl")
    write_traces(agent(set(), 1, prefix="u"), "strange.jsonl")
    for other in ("lost.jsonl", "strange.jsonl"):
        headline = document(capsys, "won.jsonl", other)["headline"]
        assert "no difference in success is shown" in headline
        assert headline.endswith(
            "A is a single run, which says nothing about how runs vary; B is a single run, which "
            "says nothing about how runs vary"
        )


def test_where_all_resamples_are_alike_the_interval_has_a_width(here, capsys):
    write_traces(agent(set(range(12)), 12), "all.jsonl")
    write_traces(agent(set(), 12), "none.jsonl")
    found = document(capsys, "all.jsonl", "none.jsonl")
    newcombe = found["pass_rate"]["interval"]
    for interval in (found["R_inf"]["interval"], found["common_tasks"]["difference"]["interval"]):
        assert (interval["lower"], interval["upper"]) == pytest.approx((newcombe["lower"], newcombe["upper"]))
    assert f"[-1.000, {newcombe['upper']:+.3f}]" in found["headline"]
    assert found["headline"].startswith("B succeeds less often than A on the 12 tasks of both")


def test_the_headline_takes_the_widest_interval_of_the_same_runs(here, capsys):
    """A never fails: its R_inf and its common tasks rest on the same runs, and say so alike."""
    never = [one(f"a{t}{i}", "plan answer", "success", f"t{t}") for t in range(3) for i in range(7)]
    other = [
        one(f"b{t}{i}", "plan answer", "success" if i < 4 - t else "failure", f"t{t}")
        for t in range(3)
        for i in range(7)
    ]
    write_traces(never, "never.jsonl")
    write_traces(other, "other.jsonl")
    found = document(capsys, "never.jsonl", "other.jsonl")
    intervals = [found["R_inf"]["interval"], found["common_tasks"]["difference"]["interval"]]
    assert all(each["method"].startswith("MOVER of Wilson score of 3") for each in intervals)
    wide = max(intervals, key=lambda each: each["upper"] - each["lower"])
    assert f"[{wide['lower']:+.3f}, {wide['upper']:+.3f}]" in found["headline"]
    assert found["headline"].endswith("3 tasks: too few for a sure interval")


def test_few_common_tasks_do_not_lead(here, capsys):
    runs = [*agent(set(range(30)), 40, prefix="u"), one("x", "plan answer", "failure", "t00")]
    write_traces(runs, "mostly_other.jsonl")
    found = document(capsys, "old.jsonl", "mostly_other.jsonl")
    assert found["common_tasks"]["n_tasks"] == 1
    assert found["headline"].startswith("B succeeds more often than A: ")


def test_runs_that_were_never_seen_to_end_are_named(here, capsys):
    """A loop without an exit: R_inf stands, the mean is infinite, and nothing is attributed."""
    runs = [*agent(set(range(10)), 40), one("cut", "plan ask wait ask wait ask", "censored", "t99")]
    write_traces(runs, "stuck.jsonl")
    found = document(capsys, "old.jsonl", "stuck.jsonl")
    assert found["MTTA"]["second"] == "Infinity"
    assert run(["compare", "old.jsonl", "stuck.jsonl", *QUICK]) == 0
    assert "not attributed" in capsys.readouterr().out


def test_states_of_a_chain(here, capsys):
    assert run(["fit", "old.jsonl", "-o", "chain.json", "--min-count", "50"]) == 0
    capsys.readouterr()
    found = document(capsys, "old.jsonl", "new.jsonl", "--chain", "chain.json")
    assert set(found["decomposition"]["R_inf"]["rows"]) == {"other"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["old.jsonl", "old.jsonl"], 2, "the same"),
        (["old.jsonl", "absent.jsonl"], 3, "there is no such file"),
        (["old.jsonl", "cut.jsonl"], 5, "no run of B has an end that was seen"),
        (["old.jsonl", "new.jsonl", "--chain", "chain.json", "--k-max", "3"], 2, "leave out --k-max"),
        (["old.jsonl", "new.jsonl", "--d", "0"], 2, "--d"),
    ],
)
def test_what_cannot_be_done_is_said(here, capsys, arguments, code, message):
    write_traces([one("a", "plan", "censored")], "cut.jsonl")
    assert run(["compare", *arguments]) == code
    assert message in capsys.readouterr().err
