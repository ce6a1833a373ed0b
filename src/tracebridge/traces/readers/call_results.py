"""Results of tool calls in the order of the calls that they answer, where ids say which those are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tracebridge.traces.readers.conversation import Message, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class IdentifiedCall(ToolCall):
    """A tool call that may have an id."""

    id: str | None = None


class IdentifiedMessage(Message):
    """A chat message that says by id which call it answers."""

    tool_calls: list[IdentifiedCall] | None = None  # type: ignore[assignment]  # a list that nobody adds to
    tool_call_id: str | None = None


M = TypeVar("M", bound=IdentifiedMessage)


def in_call_order(messages: Sequence[M]) -> Sequence[M]:
    """The messages, the results after each message of the assistant in the order of its calls.

    `agent_steps` pairs results and calls by position. Results that come in another order, or miss one, are brought into
    that form if the ids can be trusted: those of the calls differ, and each result names another one of them. Else, as
    in files that use one id for many calls, the order of the file stands.
    """
    if max([len(message.tool_calls) for message in messages if message.tool_calls], default=0) < 2:
        return messages  # a call and its result cannot be out of order
    return list(_ordered(messages))


def _ordered(messages: Sequence[M]) -> Iterator[M]:
    calls: list[str | None] = []
    results: list[M] = []
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        if results:
            yield from _ordered_results(results, calls)
            results = []
        if message.role == "assistant":
            calls = [call.id for call in message.tool_calls or ()]
        yield message
    if results:
        yield from _ordered_results(results, calls)


def _ordered_results(results: Sequence[M], calls: Sequence[str | None]) -> Sequence[M]:
    by_call = {result.tool_call_id: result for result in results}
    if len(by_call) < len(results) or len(set(calls)) < len(calls) or None in calls or not by_call.keys() <= set(calls):
        return results
    unanswered = type(results[0])(role="tool")
    found = [by_call.get(call) for call in calls]
    last = max((index for index, message in enumerate(found) if message is not None), default=-1)
    return [message or unanswered for message in found[: last + 1]]
