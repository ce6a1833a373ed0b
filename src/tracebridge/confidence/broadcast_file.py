"""Files of `broadcast-trace/0.1`: written whole or not at all, the same traces as the same bytes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from tracebridge.confidence.broadcast_lines import write_line
from tracebridge.errors import TraceError
from tracebridge.traces.atomic_file import write_whole
from tracebridge.traces.problems import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracebridge.confidence.broadcast import BroadcastTrace


def write_broadcast(traces: Iterable[BroadcastTrace], path: str | Path) -> int:
    """Write one line a trace (a corpus is an iterable of its traces); return their number.

    The file is compressed if its name ends in ``.gz`` or ``.zst``, and appears only when it is complete.

    Raises:
        TraceError: a trace that would not read back as it is, or a trace_id used twice; nothing is written then.
        OSError: the file cannot be written.
    """
    lines: dict[str, bytes] = {}
    for trace in traces:
        if trace.trace_id in lines:
            raise TraceError(f"the trace_id {shown(trace.trace_id)} is used twice")
        lines[trace.trace_id] = write_line(trace) + b"\n"
    write_whole(path, _compressed(b"".join(lines.values()), Path(path).suffix))
    return len(lines)


def _compressed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    if suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor(write_checksum=True).compress(data)
    return data
