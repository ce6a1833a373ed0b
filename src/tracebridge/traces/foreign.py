"""Trace formats that are known by sight and not read, so that a message can name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracebridge.traces.files import InputFile

# Keys of the first object, which are of that format if any of the sets is among them.
_KEYS: Mapping[str, Sequence[frozenset[str]]] = {
    "an Inspect log": (frozenset({"version", "status", "eval"}),),
    "a SWE-agent trajectory": (frozenset({"trajectory", "environment"}), frozenset({"trajectory", "history"})),
    "a mini-SWE-agent trajectory": (frozenset({"trajectory_format"}),),
    "an ATIF trajectory": (
        frozenset({"schema_version", "session_id", "agent"}),
        frozenset({"schema_version", "steps", "agent"}),
        frozenset({"schema_version", "trajectory_id"}),
    ),
    "an OpenTelemetry trace (OTLP)": (frozenset({"resourceSpans"}),),
    "an OpenHands log": (
        frozenset({"instance_id", "history"}),
        frozenset({"instance_id", "test_result"}),
        frozenset({"id", "timestamp", "source", "action"}),
    ),
    "a Claude Code session": (frozenset({"type", "sessionId"}), frozenset({"type", "parentUuid"})),
    "a list of chat messages": (frozenset({"role", "content"}),),
    "a Who&When log": (
        frozenset({"mistake_agent"}),
        frozenset({"mistake_step"}),
        frozenset({"is_corrected", "history"}),
    ),
}
_INSPECT_MEMBERS = (b"header.json", b"_journal/", b"samples/", b"summaries.json")


def foreign_format(file: InputFile) -> str | None:
    """What a file that no reader recognises seems to be, with its article; None if that is not known either."""
    seen = shape(file.head)
    if seen.kind == "zip":
        return "an Inspect log (.eval)" if any(member in file.head for member in _INSPECT_MEMBERS) else None
    for name, alternatives in _KEYS.items():
        if any(keys <= seen.keys for keys in alternatives):
            return name
    return None
