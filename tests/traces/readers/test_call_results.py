from __future__ import annotations

import pytest

from tracebridge.traces.readers.call_results import IdentifiedCall, IdentifiedMessage, in_call_order
from tracebridge.traces.readers.conversation import Function, agent_steps


def failed(ids: list[str | None], results: list[tuple[str | None, bool]]) -> list[bool]:
    """Which of the calls failed, given the results in the order of the file."""
    calls = [IdentifiedCall(function=Function(name=f"f{number}"), id=name) for number, name in enumerate(ids)]
    messages = [
        IdentifiedMessage(role="user"),
        IdentifiedMessage(role="assistant", tool_calls=calls),
        *(IdentifiedMessage(role="tool", error=error, tool_call_id=name) for name, error in results),
    ]
    return [step.error for step in agent_steps(in_call_order(messages), is_error=lambda message: bool(message.error))]


@pytest.mark.parametrize(
    ("ids", "results", "expected"),
    [
        (["a", "b"], [("a", True), ("b", False)], [True, False]),
        (["a", "b"], [("b", False), ("a", True)], [True, False]),
        (["a", "b", "c"], [("b", True)], [False, True, False]),
        (["a", "b"], [], [False, False]),
        # ids that cannot be trusted: the order of the file
        (["a", "a"], [("a", False), ("a", True)], [False, True]),
        (["a", "b"], [("b", True), ("z", False)], [True, False]),
        (["a", "b"], [("b", True), ("b", False)], [True, False]),
        ([None, None], [(None, True)], [True, False]),
    ],
)
def test_results_go_to_their_calls(
    ids: list[str | None], results: list[tuple[str | None, bool]], expected: list[bool]
) -> None:
    assert failed(ids, results) == expected


def test_several_rounds() -> None:
    rounds = [
        IdentifiedMessage(role="assistant", tool_calls=[IdentifiedCall(name="f", id="a"), IdentifiedCall("g", id="b")]),
        IdentifiedMessage(role="tool", error=True, tool_call_id="b"),
        IdentifiedMessage(role="assistant", tool_calls=[IdentifiedCall(name="f", id="c"), IdentifiedCall("g", id="d")]),
        IdentifiedMessage(role="tool", error=True, tool_call_id="d"),
        IdentifiedMessage(role="tool", tool_call_id="c"),
    ]
    steps = agent_steps(in_call_order(rounds), is_error=lambda message: bool(message.error))
    assert [step.error for step in steps] == [False, True, False, True]
