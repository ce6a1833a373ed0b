"""Chat messages in OpenAI's form with a reward or another verdict beside them, or a bare conversation."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.jsonl import JsonlReader
from tracebridge.traces.model import Outcome, Trace
from tracebridge.traces.readers.call_results import IdentifiedMessage, in_call_order
from tracebridge.traces.readers.conversation import agent_steps
from tracebridge.traces.readers.records import Record, convert_records, json_records
from tracebridge.traces.readers.verdict import agreed_verdict, ending, verdict_of
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

VERDICT_FIELDS = ("reward", "success", "passed", "correct", "resolved", "outcome")
"""The fields beside ``messages`` that may say how the run ended."""

_TOOL_ERROR_PREFIX = "Error:"
# Fields that only other formats with messages have.
_OTHER_FORMATS = frozenset({"reward_info", "termination_reason", "ticks", "trajectory_format", "eval", "sessionId"})


class _Run(msgspec.Struct):
    messages: list[IdentifiedMessage]
    id: int | str | None = None
    run_id: int | str | None = None
    trace_id: int | str | None = None
    task_id: int | str | None = None
    trial: int | str | None = None
    model: str | None = None
    termination: str | None = None
    reward: Any = None
    success: Any = None
    passed: Any = None
    correct: Any = None
    resolved: Any = None
    outcome: Any = None


class MessagesReader:
    """OpenAI chat messages with a verdict.

    ============  ===============================================================================
    run           an object with ``messages``: an element of an array, a line, or the file; or a bare list of
                  messages (an array, or one message a line), which is one run
    step          a tool call of an assistant message (kind ``tool``, the function's name), or an assistant
                  message without one (``respond``, kind ``message``)
    error         the result of the call, paired by id where ids are unique, else by position, has ``error: true`` or
                  starts with ``Error:``
    outcome       the one of ``reward``, ``success``, ``passed``, ``correct``, ``resolved``, ``outcome`` that is
                  there: a boolean, 0 or 1 (within 1e-6), or a usual word; several must agree
    censoring     ``no_outcome``: none of these fields, or null; or the word for it that ``outcome`` has. The
                  reason is ``termination`` where the run has one
    task, trial   ``task_id``, ``trial``
    model         ``model``
    trace_id      ``id``, ``run_id`` or ``trace_id``; else ``<file>/<task>/<trial>``
    ============  ===============================================================================

    JSON Lines are read a line at a time; an array is read whole, up to 2 GiB.
    """

    name = "messages"
    description = "OpenAI chat messages with a reward or another verdict: array, JSON Lines, or a bare conversation"

    def detect(self, file: InputFile) -> bool:
        """Objects with messages and a verdict that are of no other format, or a list of messages."""
        seen = shape(file.head)
        if seen.kind not in ("object", "array") or JsonlReader().detect(file):
            return False
        if "messages" in seen.keys:
            return not seen.keys.isdisjoint(VERDICT_FIELDS) and seen.keys.isdisjoint(_OTHER_FORMATS)
        return is_bare_conversation(file) and b"<returncode>" not in file.head

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs in file order."""
        bare = is_bare_conversation(file)
        records = iter([one_conversation(file, log)]) if bare else json_records(file, log)
        first = list(islice(records, 2))

        def convert(record: Record, document: Any) -> Trace:
            run = _Run(msgspec.convert(document, list[IdentifiedMessage])) if bare else msgspec.convert(document, _Run)
            return _trace(run, record, file.stem, is_only=len(first) == 1)

        yield from convert_records(chain(first, records), convert, file, log)


def is_bare_conversation(file: InputFile) -> bool:
    """Whether a file is a list of chat messages and nothing else, as an array or one a line."""
    keys = shape(file.head).keys
    return "role" in keys and not keys.isdisjoint({"content", "tool_calls"})


def one_conversation(file: InputFile, log: ProblemLog) -> Record:
    """The messages of a bare conversation as one JSON array."""
    if shape(file.head).kind == "array":
        return Record(file.document(), file.label, 0)
    return Record(b"[" + b",".join(bytes(record.data) for record in json_records(file, log)) + b"]", file.label, 0)


def _trace(run: _Run, record: Record, stem: str, *, is_only: bool) -> Trace:
    task = None if run.task_id is None else str(run.task_id)
    trial = None if run.trial is None else str(run.trial)
    given = next((name for name in (run.id, run.run_id, run.trace_id) if name is not None), None)
    parts = [part for part in (task, trial) if part is not None]
    if not parts and not is_only:
        parts = [str(record.number)]
    outcome, termination = _ending(run)
    has_reward = isinstance(run.reward, int | float) and not isinstance(run.reward, bool)
    return Trace(
        trace_id="/".join([stem, *parts]) if given is None else str(given),
        outcome=outcome,
        steps=agent_steps(in_call_order(run.messages), is_error=_reports_error),
        termination=termination,
        task_id=task,
        trial=trial,
        model=run.model,
        source=record.source,
        attributes={"reward": float(run.reward)} if has_reward else {},
    )


def _ending(run: _Run) -> tuple[Outcome, str | None]:
    given = {name: value for name in VERDICT_FIELDS if (value := getattr(run, name)) is not None}
    verdict = agreed_verdict(
        {name: verdict_of(value, field=name) for name, value in given.items()}, what="fields for the outcome"
    )
    reason = run.termination
    if verdict is None and reason is None and isinstance(run.outcome, str):
        reason = run.outcome
    return ending(verdict, reason, is_cut=False)


def _reports_error(message: IdentifiedMessage) -> bool:
    return bool(message.error) or message.starts_with(_TOOL_ERROR_PREFIX)
