"""What the surrogate is shown before the call: the tools and the conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tracebridge.confidence.surrogate.calls import Tool

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The conversation before a call and the tools that there are."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]

    def with_request(self, content: str) -> CallContext:
        """The same with other words in place of everything that the user said."""
        messages = (replace(m, content=content) if m.role == "user" else m for m in self.messages)
        return replace(self, messages=tuple(messages))


#: How a context becomes the surrogate's prompt; its own chat template may be given instead of `render_context`.
Renderer = Callable[[CallContext], str]


def render_context(context: CallContext) -> str:
    """A plain prompt: the tools as JSON, the messages by role, and the assistant's turn opened."""
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in context.tools
    ]
    lines = ["Tools:", *(json.dumps(tool, ensure_ascii=False, sort_keys=True) for tool in tools), ""]
    lines += [f"{message.role}: {message.content}" for message in context.messages]
    return "\n".join([*lines, "assistant calls: "])
