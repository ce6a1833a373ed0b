"""``tracebridge watch``: verdicts that change, alarms, and going on where it stopped."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from tests.cli.test_monitor import chain_file

from tracebridge.cli import run
from tracebridge.traces import Outcome, Step, Trace
from tracebridge.traces.jsonl import encode_checked
from tracebridge.watching import Watcher, WatchOptions

PROPERTIES = '//@ credible 0.95\n"good": P>=0.3 [ F "success" ];\n"rate": P=? [ F "success" ];\n'


def lines(first: int, number: int, names: tuple[str, ...], outcome: Outcome) -> bytes:
    steps = tuple(Step(name=name) for name in names)
    traces = [Trace(trace_id=f"run-{first + i}", outcome=outcome, steps=steps) for i in range(number)]
    return b"".join(encode_checked(trace) + b"\n" for trace in traces)


def as_before(first: int, number: int) -> bytes:
    """Runs as those of the baseline, its two kinds by turns."""
    good, bad = ("plan", "search", "answer"), ("plan", "answer")
    return b"".join(
        lines(i, 1, good, Outcome.SUCCESS) + lines(i + 1, 1, bad, Outcome.FAILURE)
        for i in range(first, first + number, 2)
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    chain_file(tmp_path)
    (tmp_path / "good.props").write_text(PROPERTIES)
    (tmp_path / "runs").mkdir()
    return tmp_path


def once(capsys, *arguments: str) -> tuple[int, list[dict[str, object]]]:
    verb = ["watch", "runs", "good.props", "--once", "--json", "--engine", "closed-form", "--draws", "200"]
    code = run([*verb, "--certify-every", "0", *arguments])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_only_changes_are_told_and_it_goes_on_where_it_stopped(here, capsys):
    arguments = ("--baseline", "chain.json", "--forget", "50", "--state", "state.json")
    log = here / "runs" / "day.jsonl"
    log.write_bytes(as_before(0, 60))
    code, (verdict, status) = once(capsys, *arguments)
    assert code == 0
    assert (verdict["event"], verdict["property"], verdict["verdict"]) == ("verdict", "good", "satisfied")
    assert status["runs"] == 60
    assert 40 < status["effective_runs"] < 60

    assert once(capsys, *arguments) == (0, [status])

    with log.open("ab") as stream:
        stream.write(lines(60, 60, ("plan", "guess", "answer"), Outcome.FAILURE))
    code, events = once(capsys, *arguments)
    assert code == 1
    assert [event["event"] for event in events[:2]] == ["unseen", "drift"]
    assert events[0]["step"]["name"] == "guess"
    assert events[1]["causes"][0]["state"] == "plan"
    # the counts of the row that changed, and no other row
    named = events[1]["text"].split(": ", 2)[2]
    told = r"after plan came a state that the baseline does not have [\d.]+ times \([\d.]+ expected\)"
    assert re.match(rf"{told}(, \w+ [\d.]+ times \([\d.]+ expected\))?\. Other tasks", named)
    (changed,) = [event for event in events if event["event"] == "verdict"]
    assert (changed["before"], changed["verdict"]) == ("satisfied", "violated")
    assert events[-1]["drift"]["alarmed_at"] is not None

    code, (last,) = once(capsys, *arguments)
    assert code == 1  # the verdict; no new alarm
    assert last["alarms"] == events[-1]["alarms"]


def test_a_state_file_of_another_baseline_is_refused(here, capsys):
    (here / "runs" / "day.jsonl").write_bytes(as_before(0, 4))
    once(capsys, "--state", "state.json")
    assert run(["watch", "runs", "--once", "--baseline", "chain.json", "--state", "state.json"]) == 3
    assert "another baseline" in capsys.readouterr().err
    (here / "state.json").write_text("{}")
    assert run(["watch", "runs", "--once", "--state", "state.json"]) == 3


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_follows_until_it_is_interrupted(here, capsys, monkeypatch, by):
    """A reader looks, sleeps, looks again; a run in the middle of which it slept is read when it is whole."""
    log, text = here / "runs" / "day.jsonl", as_before(0, 40)
    naps: list[float] = []
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            os.kill(os.getpid(), by)
        with log.open("ab") as stream:
            stream.write(text[: len(text) // 3] if len(naps) == 1 else text[len(text) // 3 :])

    monkeypatch.setattr("tracebridge.cli.watch.time.sleep", sleep)
    verb = ["watch", "runs", "good.props", "--every", "40", "--engine", "closed-form", "--interval", "0.5"]
    assert run([*verb, "--certify-every", "0"]) == 130
    captured = capsys.readouterr()
    shown = captured.out.splitlines()
    assert captured.err.startswith("40 runs, good satisfied, 0 alarms\n"), "whoever stops it is told how it stands"
    assert naps == [0.5] * 3
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert len(shown) == 1
    assert shown[0].startswith("run 40: good satisfied: 0.5")


def test_bad_records_are_told_and_the_rest_is_certified(here, capsys):
    (here / "runs" / "day.jsonl").write_bytes(as_before(0, 40) + b"no run\n")
    code = run(["watch", "runs", "--once"])
    captured = capsys.readouterr()
    assert code in (0, 4)
    assert "problem: day.jsonl:41" in captured.err
    assert captured.out.startswith("run 40: certificate of the last 40 runs: ")
    assert captured.err.splitlines()[-1].startswith("40 runs, certificate ")


@pytest.mark.parametrize("every", ["20", "30"], ids=["after the last fit", "with a fit of its own"])
def test_the_last_look_certifies_whenever_the_last_fit_was(here, capsys, every):
    (here / "runs" / "day.jsonl").write_bytes(as_before(0, 40))
    run(["watch", "runs", "--once", "--every", every])
    assert capsys.readouterr().out.startswith("run 40: certificate of the last 40 runs: ")


def test_properties_that_do_not_fit_are_no_success(here, capsys):
    """Nothing was checked, which whoever looks at the exit code alone must see."""
    (here / "runs" / "day.jsonl").write_bytes(as_before(0, 40))
    (here / "typo.props").write_text('P>=0.1 [ F "sucess" ]\n')
    assert run(["watch", "runs", "typo.props", "--once", "--engine", "closed-form", "--certify-every", "0"]) == 3
    assert 'did you mean "success"?' in capsys.readouterr().out


def test_the_certificate_goes_on_with_the_runs_of_before(here, capsys):
    """The last 30 of 40 runs, 20 before and 20 after a restart: as if it had never stopped."""
    verb = ["watch", "runs", "--once", "--window", "30", "--certify-every", "1"]
    log, text = here / "runs" / "day.jsonl", as_before(0, 40).splitlines(keepends=True)
    log.write_bytes(b"".join(text[:20]))
    run([*verb, "--state", "state.json"])
    with log.open("ab") as stream:
        stream.writelines(text[20:])
    watcher = Watcher(["runs"], options=WatchOptions(window=30, certify_every=1))
    watcher.resume("state.json")
    list(watcher.look(last=True))
    assert [run.trace_id for run in watcher.window] == [f"run-{i}" for i in range(10, 40)]
    found = watcher.certificate
    alone = Watcher(["runs"], options=WatchOptions(window=30, certify_every=1))
    list(alone.look(last=True))
    assert (found.p, found.n_events) == (alone.certificate.p, alone.certificate.n_events)
    assert sum(found.runs.values()) == 30
    capsys.readouterr()

    document = json.loads((here / "state.json").read_text())
    (here / "state.json").write_text(json.dumps(document | {"window": "AAAA"}))
    assert run([*verb, "--state", "state.json"]) == 3
    assert "what was saved of the last runs" in capsys.readouterr().err


def test_what_cannot_be_watched_is_refused(here, capsys):
    assert run(["watch", "good.props"]) == 2
    assert "needs a trace file" in capsys.readouterr().err
    assert run(["watch", "runs", "good.props", "good.props", "--once"]) == 2
    assert run(["watch", "runs", "--once"]) == 5
    assert run(["watch", "missing", "--once"]) == 3


def test_a_run_that_was_counted_is_not_counted_again(here, capsys):
    log = here / "runs" / "day.jsonl"
    log.write_bytes(as_before(0, 40) + as_before(0, 10))
    _, events = once(capsys, "--state", "state.json")
    told = [event["text"] for event in events if event["event"] == "problem"]
    assert len(told) == 1
    assert "10 runs were counted before" in told[0]
    assert "line 41" in told[0] or ":41" in told[0]
    assert events[-1]["runs"] == 40

    log.write_bytes(as_before(20, 30))  # trimmed to its newest lines
    _, events = once(capsys, "--state", "state.json")
    assert events[-1]["runs"] == 50
    assert any("20 runs were counted before" in event["text"] for event in events if event["event"] == "problem")
