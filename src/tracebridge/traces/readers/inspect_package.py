"""Inspect logs as the package inspect_ai reads them, for those that our own reader does not know."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.problems import escaped
from tracebridge.traces.readers.inspect_json import without_nan
from tracebridge.traces.readers.inspect_log import decode_header, sample_traces
from tracebridge.traces.readers.records import Record
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.model import Trace
    from tracebridge.traces.problems import ProblemLog

# What `sample_traces` looks at; a log also holds every event, which takes most of its bytes.
_OF_LOG = {
    "version": True,
    "status": True,
    "invalidated": True,
    "eval": {"task", "model", "created"},
    "stats": {"started_at"},
}
_OF_SAMPLE = {"id", "epoch", "messages", "scores", "limit", "error", "invalidation", "started_at"}


class InspectPackageReader:
    """Inspect logs of every form that the installed inspect_ai reads, by that package.

    ============  ===============================================================================
    run           a sample in one epoch, as inspect_ai gives it
    step          as in the format ``inspect``; so are all of these:
    error         the result of the call has an ``error``
    outcome       the value of the sample's scores, which must agree
    censoring     a limit that was hit; ``error``, ``no_score``, ``invalidated``
    task, trial   ``<eval.task>/<sample id>``, the epoch
    model         ``eval.model``
    started       ``started_at`` of the sample, or of the evaluation
    trace_id      ``<file>/<sample id>/<epoch>``
    ============  ===============================================================================

    For logs that ``inspect`` refuses, such as those of a version of the log format that came after it. It takes the
    extra ``inspect``, and is used where ``--format`` names it. A log is held in memory as a whole.
    """

    name = "inspect-ai"
    description = "Inspect logs that the format inspect does not know, by inspect_ai itself (extra inspect)"

    def detect(self, file: InputFile) -> bool:  # noqa: ARG002
        """No file: `InspectReader` needs no package, and is quicker."""
        return False

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The samples in the order in which inspect_ai gives them."""
        found = _read(file)
        header = decode_header(_text(found, _OF_LOG), file.label)
        yield from sample_traces(header, _records(found, file), file, log)


def _read(file: InputFile) -> Any:
    place = Location(path=file.label)
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        hint = "pip install 'tracebridge[inspect]'"
        raise TraceError(Problem(location=place, message="this takes the package inspect_ai", hint=hint)) from error
    form = "eval" if shape(file.head).kind == "zip" else "json"
    try:
        return read_eval_log(io.BytesIO(file.document()), format=form, resolve_attachments=True)
    except TraceError:
        raise
    except Exception as error:
        told = escaped(f"{type(error).__name__}: {error}", 300)
        raise TraceError(Problem(location=place, message=f"inspect_ai cannot read it: {told}")) from error


def _records(found: Any, file: InputFile) -> Iterator[Record]:
    for number, sample in enumerate(found.samples or ()):
        yield Record(_text(sample, _OF_SAMPLE), f"{file.label}[{number}]", number)


def _text(model: Any, fields: Any) -> bytes:
    return without_nan(model.model_dump_json(include=fields).encode())
