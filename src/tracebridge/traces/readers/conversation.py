"""An agent's steps out of a list of chat messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from tracebridge.traces.model import Step
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.records import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RESPOND = "respond"

# Whose messages are no steps. Any other role may be the agent's under a name that we do not know, and is refused.
_ENVIRONMENT = frozenset({"system", "developer", "user", "tool", "function"})


class Function(msgspec.Struct):
    """The function of a tool call in OpenAI's form."""

    name: str


class ToolCall(msgspec.Struct):
    """A tool call; its name stands beside its arguments (tau2-bench) or inside ``function`` (OpenAI)."""

    name: str | None = None
    function: Function | None = None

    @property
    def tool(self) -> str:
        """The tool's name."""
        name = self.function.name if self.function is not None else self.name
        if not name:
            raise RecordError("a tool call without a name", field="tool_calls")
        return name


class ContentPart(msgspec.Struct):
    """A part of a message that is given in parts."""

    text: str | None = None


class Message(msgspec.Struct):
    """The fields of a chat message that matter here; everything else is skipped, undecoded.

    Attributes:
        requestor: who called the tool, where a user may; a field in some formats only.
        errors: how the message broke the protocol; a field in some formats only.
    """

    requestor: ClassVar[str | None] = None
    errors: ClassVar[Sequence[Any] | None] = None

    role: str
    content: str | list[ContentPart | str] | None = None
    tool_calls: list[ToolCall] | None = None
    error: bool | None = None

    @property
    def text(self) -> str | None:
        """The content as one text."""
        if self.content is None or isinstance(self.content, str):
            return self.content
        return "".join(part if isinstance(part, str) else part.text or "" for part in self.content)

    def starts_with(self, prefix: str) -> bool:
        """Whether the text starts so."""
        text = self.content if isinstance(self.content, str) else self.text
        return text is not None and text.startswith(prefix)


M = TypeVar("M", bound=Message)


def agent_steps(messages: Iterable[M], *, is_error: Callable[[M], bool]) -> tuple[Step, ...]:
    """The agent's steps: one per tool call of an assistant message, and one per assistant message without a call.

    A tool message is the result of the first call that still waits for one: results are paired by position, because
    the ids of calls repeat in real files. Results of tools that the user called are not the agent's and are passed
    over. Messages of users and of the system are the environment's moves, no steps.

    Args:
        messages: a conversation in order.
        is_error: whether a tool message reports an error.

    Raises:
        RecordError: a tool call without a name, an agent's tool result that no call waits for, or an unknown role.
    """
    steps: list[Step] = []
    waiting = end = 0  # the calls that wait for their results are steps[waiting:end]
    for message in messages:
        role = message.role
        if role == "assistant":
            violated = bool(message.errors)
            if calls := message.tool_calls:
                waiting = len(steps)
                text = message.text
                for call in calls:
                    steps.append(Step(name=call.tool, kind="tool", text=text, error=violated))
                    text = None
                end = len(steps)
            else:
                steps.append(Step(name=RESPOND, kind="message", text=message.text, error=violated))
        elif role == "tool" and message.requestor in (None, "assistant"):
            if waiting == end:
                raise RecordError("a tool result that no tool call waits for", field="messages")
            if is_error(message):
                steps[waiting] = msgspec.structs.replace(steps[waiting], error=True)
            waiting += 1
        elif role not in _ENVIRONMENT:
            raise RecordError(
                f"the role {shown(role)} is unknown, and its messages may be the agent's",
                field="messages.role",
                hint=f"roles are assistant, {', '.join(sorted(_ENVIRONMENT))}",
            )
    return tuple(steps)
