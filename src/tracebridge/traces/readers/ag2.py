"""AG2 (AutoGen) conversations as MAST publishes them; and Who&When logs, which are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.model import Step, Trace
from tracebridge.traces.readers.records import Record, RecordError, convert_records, json_records
from tracebridge.traces.readers.verdict import ending, verdict_of
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

_EXIT_CODE = re.compile(r"exitcode:\s*(-?\d{1,10})\b")


class _Message(msgspec.Struct):
    content: str | list[str] | None = None
    name: str | None = None
    role: str | None = None


class _Other(msgspec.Struct):
    correct: Any = None


class _Run(msgspec.Struct):
    instance_id: int | str
    trajectory: list[_Message]
    other_data: _Other | None = None


class Ag2Reader:
    """AG2 conversations of MAST (MASFT).

    ============  ===============================================================================
    run           an object with ``instance_id`` and ``trajectory``: the file, an element of an array, or a line
    step          a message (kind ``message``), named after the speaker: ``name``. ``role`` tells only how the message
                  looks to the next model, and is no speaker
    error         the message reports a run of code with an exit code other than 0 (``exitcode: 1``)
    outcome       ``other_data.correct``
    censoring     ``no_outcome``: the field is missing or null. A cap on messages leaves no trace in the file
    task, trial   ``instance_id``; the seeds of the published folders are no field
    model         not in the file
    trace_id      ``<file>/<instance_id>``
    ============  ===============================================================================
    """

    name = "ag2"
    description = "AG2 (AutoGen) conversations as MAST publishes them, with other_data.correct"

    def detect(self, file: InputFile) -> bool:
        """Records with an instance_id and a trajectory."""
        seen = shape(file.head)
        return seen.kind in ("object", "array") and {"instance_id", "trajectory"} <= seen.keys

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs in file order."""

        def convert(record: Record, document: Any) -> Trace:
            return _trace(msgspec.convert(document, _Run), record, file.stem)

        yield from convert_records(json_records(file, log), convert, file, log)


class WhoAndWhenReader:
    """Who&When logs are refused: the corpus holds failures only.

    ============  ===============================================================================
    run           none: every run of the corpus was selected because it failed (``mistake_agent``, ``mistake_step``), so
                  nothing about the rate of success can be learnt from it, and no censoring policy mends that
    step          none
    error         none
    outcome       ``is_correct`` and ``is_corrected`` are the text "False" in every file
    censoring     none
    task, trial   none
    model         none
    ============  ===============================================================================
    """

    name = "who-and-when"
    description = "Who&When: refused, because the corpus is selected on its outcome"

    def detect(self, file: InputFile) -> bool:
        """Records that say whose mistake it was."""
        seen = shape(file.head)
        named = not seen.keys.isdisjoint({"mistake_agent", "mistake_step", "mistake_reason"})
        return seen.kind in ("object", "array") and (named or {"is_corrected", "history"} <= seen.keys)

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:  # noqa: ARG002 - a reader's
        """Refuses the file.

        Raises:
            TraceError: always.
        """
        raise file.damaged(
            "a Who&When log: its runs were selected because they failed, so they cannot say how often runs succeed",
            hint="use the runs that the selection was made from",
        )


def _trace(run: _Run, record: Record, stem: str) -> Trace:
    verdict = verdict_of(run.other_data.correct if run.other_data else None, field="other_data.correct")
    outcome, termination = ending(verdict, None, is_cut=False)
    name = str(run.instance_id)
    return Trace(
        trace_id=f"{stem}/{name}",
        outcome=outcome,
        steps=tuple(map(_step, run.trajectory)),
        termination=termination,
        task_id=name,
        source=record.source,
    )


def _step(message: _Message) -> Step:
    if not message.name:
        raise RecordError("a message without the name of its speaker", field="trajectory.name")
    content = message.content
    text = "\n".join(content) if isinstance(content, list) else content or ""
    code = _EXIT_CODE.search(text) if "exitcode" in text else None
    return Step(name=message.name, kind="message", text=text, error=code is not None and int(code[1]) != 0)
