"""Traces in a wrapping that no reader takes, and how to take it off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.traces.readers.columns import find_columns
from tracebridge.traces.readers.messages import VERDICT_FIELDS
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from tracebridge.traces.files import InputFile


def remedy(file: InputFile) -> str | None:
    """What to do with a file whose format is not recognised, as a hint; None if it is no near miss."""
    seen = shape(file.head)
    if seen.kind == "array":
        columns = find_columns(sorted(seen.keys), file.mapping)
        if "run_id" in columns and ({"state", "step"} & columns.keys() or {"outcome", "steps"} & seen.keys):
            return "write its elements a line each: jq -c '.[]' FILE > FILE.jsonl"
    if seen.kind == "object" and {"kind", "schema_version"} <= seen.keys:
        return "tracebridge wrote this, and it is no traces: check and show read chains, gate and replay evidence"
    if seen.kind in ("object", "array") and "messages" in seen.keys:
        return (
            f"its messages come without a field that says how the run ended, one of {', '.join(VERDICT_FIELDS)}; "
            "--outcomes FILE says it for them, and --format messages alone reads them as runs whose end nobody saw"
        )
    if seen.kind == "zip":
        return "unpack it and name the folder, or name what is inside by a URL: 'zip://**::file:///PATH/FILE.zip'"
    if file.head[257:262] == b"ustar":
        return "unpack it, and name the folder: tar xf FILE"
    if seen.kind == "utf-16":
        return "write it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW"
    if seen.kind == "text" and b"\r" in file.head and b"\n" not in file.head:
        return r"its lines end with CR alone; have them end with LF: tr '\r' '\n' < FILE > NEW"
    return None
