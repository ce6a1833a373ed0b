"""The published JSON Schema of a native trace line."""

from __future__ import annotations

from typing import Any

import msgspec


def trace_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that a line of a native trace file obeys.

    What a schema cannot say is checked by the reader too: no key twice in an object, and a trace_id is used once.
    """
    from importlib.resources import files  # slow to import, and rarely needed

    text = files("tracebridge.traces").joinpath("trace.schema.json").read_bytes()
    schema: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    return schema
