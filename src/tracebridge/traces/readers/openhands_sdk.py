"""The events of OpenHands' agent SDK, which say their ``kind``: its runs since version 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.model import Step
from tracebridge.traces.readers.conversation import RESPOND, ContentPart
from tracebridge.traces.readers.records import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Message(msgspec.Struct):
    content: str | list[ContentPart] | None = None


class _Observation(msgspec.Struct):
    is_error: bool | None = None
    exit_code: Any = None


class SdkEvent(msgspec.Struct):
    """The fields of an event that matter here."""

    kind: str = ""
    id: str | None = None
    timestamp: Any = None
    source: str | None = None
    thought: list[ContentPart] = []
    tool_name: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    llm_message: _Message | None = None
    observation: _Observation | None = None


def are_sdk_events(history: object) -> bool:
    """Whether these are events of the SDK; those before it have no kind."""
    return isinstance(history, list) and any(
        isinstance(event, dict) and isinstance(event.get("kind"), str) for event in history
    )


def sdk_steps(events: Iterable[SdkEvent]) -> tuple[Step, ...]:
    """The agent's steps: one per tool call, and one per message of its own.

    An observation is the result of the action that it names, or else of the call. It reports an error if it says so, or
    has an exit code above 0; an error of the scaffold and a rejected action are errors too.

    Raises:
        RecordError: an action without a tool.
    """
    steps: list[Step] = []
    place_of: dict[str, int] = {}
    for event in events:
        if event.kind == "ActionEvent" and event.source in (None, "agent"):
            if not event.tool_name:
                raise RecordError("an action without a tool_name", field="history.tool_name")
            place_of |= {name: len(steps) for name in (event.id, event.tool_call_id) if name is not None}
            steps.append(Step(name=event.tool_name, kind="tool", text=_text(event.thought)))
        elif event.kind == "MessageEvent" and event.source == "agent":
            content = event.llm_message.content if event.llm_message else None
            steps.append(Step(name=RESPOND, kind="message", text=_text(content)))
        elif _reports_error(event):
            answered = (event.action_id, event.tool_call_id)
            place = next((place_of[name] for name in answered if name in place_of), None)
            if place is not None:
                steps[place] = msgspec.structs.replace(steps[place], error=True)
    return tuple(steps)


def _reports_error(event: SdkEvent) -> bool:
    if event.kind in ("AgentErrorEvent", "UserRejectObservation"):
        return True
    found = event.observation
    if event.kind != "ObservationEvent" or found is None:
        return False
    return bool(found.is_error) or (isinstance(found.exit_code, int) and found.exit_code > 0)


def _text(content: str | list[ContentPart] | None) -> str | None:
    if content is None or isinstance(content, str):
        return content
    return "".join(part.text or "" for part in content) or None
