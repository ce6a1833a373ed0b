"""Methods by which a credible verdict would not have been reached are told wherever the verdict is."""

from __future__ import annotations

from typing import Any

import pytest

from tracebridge.report.uncertainty import contrary_opinions


def finding(verdict: str | None, level: float, *, credible: bool = True, **shares: float) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "uncertainty": {"credible": credible, "level": level},
        "second_opinion": {"satisfied": shares},
    }


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (finding("violated", 0.95, traces=0.023, tasks=0.09), ["tasks"]),
        (finding("violated", 0.75, traces=0.25, tasks=0.26), ["tasks"]),
        (finding("satisfied", 0.75, traces=0.75, tasks=0.74), ["tasks"]),
        (finding("satisfied", 0.9, traces=0.1, tasks=0.2), ["traces", "tasks"]),
        (finding("undecided", 0.9, traces=0.1), []),
        (finding(None, 0.9), []),
        (finding("violated", 0.95, credible=False, traces=0.5), []),
        ({**finding("violated", 0.95), "second_opinion": None}, []),
        ({**finding("violated", 0.95, traces=0.5), "uncertainty": None}, []),
    ],
)
def test_the_methods_that_would_not_have_decided_so(found: dict[str, Any], told: list[str]) -> None:
    lines = [*contrary_opinions(found)]
    assert [line.split(" by the ")[1].split()[0] for line in lines] == told
    assert all(f"not every method says {found['verdict']}" in line for line in lines)
