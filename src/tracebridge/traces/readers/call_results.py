"""Results of tool calls in the order of the calls that they answer, where ids say which those are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracebridge.traces.readers.conversation import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class IdentifiedMessage(NamedTuple):
    """A chat message with the ids of its calls, or of the call that it answers."""

    message: Message
    calls: tuple[str | None, ...] = ()
    answers: str | None = None


def in_call_order(messages: Iterable[IdentifiedMessage]) -> Iterator[Message]:
    """The messages, the results after each message of the assistant in the order of its calls.

    `agent_steps` pairs results and calls by position. Results that come in another order, or miss one, are brought into
    that form if the ids can be trusted: those of the calls differ, and each result names another one of them. Else, as
    in files that use one id for many calls, the order of the file stands.
    """
    calls: tuple[str | None, ...] = ()
    results: list[IdentifiedMessage] = []
    for entry in messages:
        if entry.message.role == "tool":
            results.append(entry)
            continue
        if results:
            yield from _ordered(results, calls)
            results = []
        if entry.message.role == "assistant":
            calls = entry.calls
        yield entry.message
    yield from _ordered(results, calls)


def _ordered(results: list[IdentifiedMessage], calls: tuple[str | None, ...]) -> list[Message]:
    in_file_order = [result.message for result in results]
    if len(results) == len(calls) == 1:
        return in_file_order
    by_call = {result.answers: result.message for result in results}
    if len(by_call) < len(results) or len(set(calls)) < len(calls) or None in calls or not by_call.keys() <= set(calls):
        return in_file_order
    unanswered = Message(role="tool")
    found = [by_call.get(call) for call in calls]
    last = max((index for index, message in enumerate(found) if message is not None), default=-1)
    return [message or unanswered for message in found[: last + 1]]
