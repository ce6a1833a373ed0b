"""Inspect logs: ``.eval`` archives (deflate or zstandard) and ``.json``."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem
from tracebridge.traces.model import Outcome, Trace
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.call_results import IdentifiedCall, IdentifiedMessage, in_call_order
from tracebridge.traces.readers.conversation import agent_steps
from tracebridge.traces.readers.inspect_json import without_nan
from tracebridge.traces.readers.instants import first_instant, started
from tracebridge.traces.readers.records import (
    Record,
    RecordError,
    convert_records,
    decode_document,
    number_records,
)
from tracebridge.traces.readers.verdict import agreed_verdict, ending, marks, verdict_of
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

MAX_VERSION = 3
GRADES: Mapping[str, bool] = MappingProxyType({"C": True, "I": False, "N": False})
"""Inspect's grades: correct, incorrect, no answer. ``P`` (partially correct) is refused, as half a success."""

_MEMBERS = (b"header.json", b"_journal/", b"samples/", b"summaries.json")
_ATTACHMENT = "attachment://"


class _Call(IdentifiedCall):
    function: str | None = None  # type: ignore[assignment]  # here a name

    @property
    def tool(self) -> str:
        """The tool's name."""
        if not self.function:
            raise RecordError("a tool call without a function", field="messages.tool_calls")
        return self.function


class _ToolError(msgspec.Struct):
    type: str | None = None


class _Message(IdentifiedMessage):
    tool_calls: list[_Call] | None = None  # type: ignore[assignment]  # a list that nobody adds to
    error: _ToolError | str | bool | None = None  # type: ignore[assignment]  # here also what went wrong
    tool_error: Any = None

    def look_up(self, attachments: Mapping[str, str]) -> None:
        """Put the texts in that the content refers to."""
        if isinstance(self.content, str):
            self.content = _looked_up(self.content, attachments)
        elif self.content is not None:
            texts = (part if isinstance(part, str) else part.text or "" for part in self.content)
            self.content = [_looked_up(text, attachments) for text in texts]


def _looked_up(text: str, attachments: Mapping[str, str]) -> str:
    """A text, or what it refers to: Inspect stores long texts apart."""
    return attachments.get(text.removeprefix(_ATTACHMENT), text) if text.startswith(_ATTACHMENT) else text


class _Score(msgspec.Struct):
    value: Any = None


class _Limit(msgspec.Struct):
    type: str


class _Transcript(msgspec.Struct):
    content: dict[str, str] = {}


class _Sample(msgspec.Struct):
    id: int | str
    epoch: int
    messages: list[_Message] = []
    scores: dict[str, _Score] | None = None
    score: _Score | None = None
    limit: _Limit | None = None
    error: Any = None
    invalidation: Any = None
    started_at: Any = None
    attachments: dict[str, str] = {}
    transcript: _Transcript | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        """Texts that messages refer to; logs of 2024 have them in the transcript."""
        return self.attachments or (self.transcript.content if self.transcript is not None else {})


class _Eval(msgspec.Struct):
    task: str
    model: str | None = None
    created: Any = None


class _Stats(msgspec.Struct):
    started_at: Any = None


class InspectHeader(msgspec.Struct):
    """A log without its samples, unless they stand in the same JSON document."""

    eval: _Eval
    version: int = 1
    status: str = "started"
    invalidated: bool | None = None
    stats: _Stats | None = None
    samples: list[msgspec.Raw] | None = None

    @property
    def starts(self) -> tuple[Any, Any]:
        """When the evaluation began."""
        return (self.stats.started_at if self.stats else None, self.eval.created)


_decode_log = msgspec.json.Decoder(InspectHeader).decode


class InspectReader:
    """Inspect logs of versions 1 to 3.

    ============  ===============================================================================
    run           a sample in one epoch; where Inspect retried it, the last try
    step          a tool call of an assistant message (kind ``tool``, its ``function``), or an assistant message without
                  one (``respond``, kind ``message``)
    error         the result of the call, paired by id where ids are unique, else by position, has an ``error``
    outcome       the value of the sample's scores: ``C`` success, ``I`` and ``N`` failure, or a boolean, 0 or 1;
                  several scorers must agree
    censoring     a limit that was hit, unless the score is a success: the type of the limit, e.g. ``message_limit``;
                  ``error``: the sample broke off; ``no_score``; ``invalidated``
    task, trial   ``<eval.task>/<sample id>``, the epoch
    model         ``eval.model``
    started       ``started_at`` of the sample; where there is none, the start of the whole evaluation: that of its
                  ``stats``, else ``eval.created``
    trace_id      ``<file>/<sample id>/<epoch>``
    ============  ===============================================================================

    A log of a cancelled or broken-off evaluation gives the samples that it has, with a note. A log that was invalidated
    as a whole, or of a version above 3, is refused. Archives are read whole, up to 2 GiB, and decompressed one sample
    at a time, up to 1 GiB each; a sample may be stored whole or in chunks.

    inspect_ai is not needed: the logs of all its versions that were tried, from 0.3.30 to 0.3.285, and
    the real ones at hand give the same steps here as its own reader gives. What it reads beyond these, the format
    ``inspect-ai`` reads by it.
    """

    name = "inspect"
    description = "Inspect .eval (deflate or zstandard) and .json logs, versions 1 to 3"

    def detect(self, file: InputFile) -> bool:
        """An archive with Inspect's members, or an object with a version, a status and an eval."""
        seen = shape(file.head)
        if seen.kind == "zip":
            return any(member in file.head for member in _MEMBERS)
        return seen.kind == "object" and {"status", "eval"} <= seen.keys

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The samples in the order of the file."""
        if shape(file.head).kind == "zip":
            from tracebridge.traces.readers.inspect_archive import InspectArchive  # zipfile is slow to import

            archive = InspectArchive(file, log)
            header = decode_header(archive.header, archive.header_label)
            records = archive.samples()
        else:
            header = decode_header(without_nan(file.document()), file.label)
            records = iter(number_records(header.samples or [], file.label))
        if not 1 <= header.version <= MAX_VERSION:
            message = f"version {shown(header.version)} of the log format is not known; 1 to {MAX_VERSION} are"
            raise file.damaged(message, hint="inspect_ai itself may read it: --format inspect-ai")
        yield from sample_traces(header, records, file, log)


def decode_header(data: bytes, label: str) -> InspectHeader:
    """What an Inspect log says of its evaluation. Raises TraceError for anything else."""
    return decode_document(_decode_log, data, label)


def sample_traces(
    header: InspectHeader, records: Iterable[Record], file: InputFile, log: ProblemLog
) -> Iterator[Trace]:
    """The runs of an evaluation.

    Args:
        header: of the log. records: its samples. log: takes those that cannot be used.

    Raises:
        TraceError: the log was marked as invalid.
    """
    if header.invalidated:
        raise file.damaged("the log was marked as invalid, so its outcomes are none")
    if header.status != "success":
        message = f"the evaluation did not end well (status {shown(header.status)}): only some of its samples are here"
        log.note(Problem(location=Location(path=file.label, field="status"), message=message))

    def convert(record: Record, document: Any) -> Trace:
        return _trace(msgspec.convert(document, _Sample), record, header, file)

    yield from convert_records(records, convert, file, log)


def _trace(sample: _Sample, record: Record, header: InspectHeader, file: InputFile) -> Trace:
    outcome, termination, attributes = _ending(sample)
    task = header.eval
    if texts := sample.texts:
        for message in sample.messages:
            message.look_up(texts)
    return Trace(
        trace_id=f"{file.stem}/{sample.id}/{sample.epoch}",
        outcome=outcome,
        steps=agent_steps(in_call_order(sample.messages), is_error=_reports_error),
        termination=termination,
        task_id=f"{task.task}/{sample.id}",
        trial=str(sample.epoch),
        model=task.model,
        source=record.source,
        attributes=attributes | started(first_instant((sample.started_at, *header.starts))),
    )


def _reports_error(message: _Message) -> bool:
    return message.error is not None or message.tool_error is not None


def _ending(sample: _Sample) -> tuple[Outcome, str | None, dict[str, Any]]:
    if sample.invalidation is not None:
        return Outcome.CENSORED, "invalidated", {}
    scores = dict(sample.scores or ({} if sample.score is None else {"score": sample.score}))
    verdict = agreed_verdict({name: _grade(name, score.value) for name, score in scores.items()}, what="scores")
    reason, is_cut = ("no_score" if verdict is None else None), False
    if sample.limit is not None:
        reason, is_cut = f"{sample.limit.type}_limit", True
    elif sample.error is not None:
        reason, is_cut = "error", True
    outcome, termination = ending(verdict, reason, is_cut=is_cut)
    return outcome, termination, marks(verdict, outcome, is_cut=is_cut)


def _grade(name: str, value: object) -> bool | None:
    field = f"scores.{name}.value"
    if isinstance(value, str):
        if value in GRADES:
            return GRADES[value]
        if value == "P":
            raise RecordError("partially correct is neither success nor failure", field=field, hint="write C or I")
    return verdict_of(value, field=field)
