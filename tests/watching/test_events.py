"""What a drift alarm says: what was seen in the rows that likely changed, and nothing of the others."""

from __future__ import annotations

import pytest
from tests.inference.online.test_drift import baseline

from tracebridge.inference.online.drift import DriftMonitor, DriftReading
from tracebridge.inference.online.drift_causes import ChangedTransition, DriftCause
from tracebridge.watching.events import drift_event


def cause(state: str, probability: float, *transitions: tuple[str, float, float]) -> DriftCause:
    changed = tuple(ChangedTransition(target=name, observed=n, expected=e) for name, n, e in transitions)
    return DriftCause(state=state, probability=probability, log_evidence=probability, transitions=changed)


LIKELY = cause("plan", 0.9, ("failure", 40, 10), ("success", 70, 100), ("plan", 11, 10))
#: The second transition is within what chance does to a count, and a row that little speaks for is what chance makes.
PARTLY = cause("test", 0.6, ("failure", 30, 12), ("edit", 95, 100))
NOISE = cause("edit", 0.2, ("test", 9, 7))


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        (
            [LIKELY, PARTLY, NOISE],
            (
                "after plan came failure 40 times (10 expected), success 70 times (100 expected); "
                "after test came failure 30 times (12 expected)"
            ),
        ),
        ([NOISE], "no row stands out by itself"),
        ([], "no row stands out by itself"),
    ],
)
def test_an_alarm_names_what_was_seen_where_it_likely_changed(monkeypatch, causes, told):
    monkeypatch.setattr(DriftMonitor, "causes", lambda self, *, recent: causes)
    reading = DriftReading(runs=7, log_e=9.0, p=0.001, ever=True, newly=True, detector=1.0, window=False)
    event = drift_event(DriftMonitor(baseline()), reading)
    assert f"): {told}. Other tasks" in event.text
    assert [each["state"] for each in event.data["causes"]] == [each.state for each in causes]
