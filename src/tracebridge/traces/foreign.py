"""Trace formats that are known by sight and not read, so that a message can name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracebridge.traces.files import InputFile

# Keys of the first object, which are of that format if any of the sets is among them.
_KEYS: Mapping[str, Sequence[frozenset[str]]] = {
    "a Gemini CLI session": (frozenset({"sessionId", "projectHash"}),),
    "a HAL upload": (frozenset({"config", "results", "raw_eval_results"}),),
    "a Langfuse trace": (frozenset({"observations", "scores"}), frozenset({"traceId", "parentObservationId"})),
    "a LangSmith run": (frozenset({"run_type", "trace_id"}),),
}


def foreign_format(file: InputFile) -> str | None:
    """What a file that no reader recognises seems to be, with its article; None if that is not known either."""
    seen = shape(file.head)
    for name, alternatives in _KEYS.items():
        if any(keys <= seen.keys for keys in alternatives):
            return name
    return None
