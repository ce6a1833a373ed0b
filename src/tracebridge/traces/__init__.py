"""Agent traces from files: the boundary where untrusted data enter.

A trace is one run of an agent: its steps in order, how it ended (success, failure or censored), and why. Readers turn
each known file format into traces and say exactly what is wrong with the records they refuse; native trace files are
JSON Lines, one trace a line.
"""

from __future__ import annotations

from tracebridge.traces.corpus import TraceFile, TraceSet
from tracebridge.traces.ending_counts import EndingCount, EndingTally
from tracebridge.traces.inputs import is_read_once
from tracebridge.traces.jsonl import write_traces
from tracebridge.traces.model import Outcome, Step, Trace
from tracebridge.traces.readers import COLUMNS, FORMATS, OUTCOME_WORDS, known_readers
from tracebridge.traces.schema import trace_schema
from tracebridge.traces.stream import TraceStream, open_traces, read_traces
from tracebridge.traces.summary import StepCount, TraceSummary, TraceTally, summarize

__all__ = [
    "COLUMNS",
    "FORMATS",
    "OUTCOME_WORDS",
    "EndingCount",
    "EndingTally",
    "Outcome",
    "Step",
    "StepCount",
    "Trace",
    "TraceFile",
    "TraceSet",
    "TraceStream",
    "TraceSummary",
    "TraceTally",
    "is_read_once",
    "known_readers",
    "open_traces",
    "read_traces",
    "summarize",
    "trace_schema",
    "write_traces",
]
