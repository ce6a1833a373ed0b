"""Work that is stopped: nothing but its error is told."""

from __future__ import annotations

import threading

import pytest

from tracebridge.sharding.backend import passing_over_lost_work


@pytest.mark.parametrize(
    ("name", "error", "is_told"),
    [
        ("ExecutorManagerThread", KeyError(41), False),
        ("ExecutorManagerThread", ValueError("x"), True),
        ("another", KeyError(41), True),
    ],
)
def test_one_fault_of_one_thread_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, is_told: bool
) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda found: told.append(found.exc_type))
    before = threading.excepthook

    def fail() -> None:
        raise error

    with passing_over_lost_work():
        thread = threading.Thread(target=fail, name=name)
        thread.start()
        thread.join()
    assert told == [type(error)] * is_told
    assert threading.excepthook is before
