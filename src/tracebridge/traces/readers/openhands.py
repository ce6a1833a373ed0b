"""OpenHands: evaluation rows (``output.jsonl``) and lists of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.model import Outcome, Step, Trace
from tracebridge.traces.readers.conversation import RESPOND
from tracebridge.traces.readers.instants import first_instant, started
from tracebridge.traces.readers.openhands_sdk import SdkEvent, are_sdk_events, sdk_steps
from tracebridge.traces.readers.records import Record, RecordError, convert_records, json_records
from tracebridge.traces.readers.verdict import agreed_verdict, ending, marks, verdict_of
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

_NO_STEPS = frozenset({"system", "recall", "null", "change_agent_state", "condensation", "condensation_request"})
ENDS = (("maximum iteration", "max_iterations", True), ("AgentStuckInLoop", "stuck_in_loop", False))
"""Words in the error of a run, the reason for the end that they stand for, and whether something cut the run."""


class _Extras(msgspec.Struct):
    metadata: Any = None
    exit_code: Any = None


class _Arguments(msgspec.Struct):
    name: Any = None
    content: Any = None
    command: Any = None
    thought: Any = None


_NO_ARGUMENTS = _Arguments()


class _Event(msgspec.Struct):
    id: int | str | None = None
    timestamp: Any = None
    source: str | None = None
    action: str | None = None
    observation: str | None = None
    cause: int | str | None = None
    args: _Arguments | None = None
    extras: _Extras | None = None
    success: bool | None = None


_HISTORY = list[_Event | tuple[_Event, _Event]]


class _Report(msgspec.Struct):
    resolved: Any = None


class _TestResult(msgspec.Struct):
    report: _Report | None = None


class _Model(msgspec.Struct):
    model: str | None = None


class _RunMetadata(msgspec.Struct):
    llm_config: _Model | None = None


class _Run(msgspec.Struct):
    instance_id: int | str
    history: Any = None
    metadata: _RunMetadata | None = None
    test_result: _TestResult | None = None
    report: _Report | None = None
    error: str | None = None


class OpenHandsReader:
    """OpenHands.

    ============  ===============================================================================
    run           a row with an ``instance_id`` and a ``history``; or a list of events, which is one run
    step          an action of the agent: its ``action`` (kind ``tool``; of ``call_tool_mcp`` the tool's name), or
                  ``respond`` (kind ``message``) for a message. System prompts, recalls and changes of state are none.
                  Of the agent SDK (version 1): an ``ActionEvent`` (its ``tool_name``), or a message of the agent
    error         the observation that the action caused is an ``error``, has ``success: false`` or an exit code over 0.
                  Of the SDK: it has ``is_error`` or such an exit code, or the action was refused or broke the scaffold
    outcome       ``report.resolved``, of the row or of its ``test_result``; else see the outcome files (``outcomes``)
    censoring     ``max_iterations``: ``error`` says so, and the run was not resolved (that there is a patch says
                  nothing); ``error``: any other error but that the agent was stuck in a loop; ``no_outcome``
    task, trial   ``instance_id``; no trial
    model         ``metadata.llm_config.model``
    started       the first ``timestamp`` of an event, the clock of the machine
    trace_id      ``<file>/<instance_id>``; of a list of events ``<file>``
    ============  ===============================================================================
    """

    name = "openhands"
    description = "OpenHands: output.jsonl rows or a list of events, of the agent SDK too"

    def detect(self, file: InputFile) -> bool:
        """Rows with an instance_id and a history, or events."""
        seen = shape(file.head)
        if seen.kind not in ("object", "array"):
            return False
        keys = seen.keys
        if "instance_id" in keys:  # the history may lie beyond the head
            return not keys.isdisjoint({"history", "test_result"}) and "trajectory" not in keys
        return _is_event_list(file)

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs in file order."""
        events = _is_event_list(file)
        records: Iterable[Record]
        if not events:
            records = json_records(file, log)
        elif shape(file.head).kind == "array":
            records = [Record(file.document(), file.label, 0)]
        else:
            lines = [bytes(record.data) for record in json_records(file, log)]
            if len(lines) == 1 and "kind" in shape(file.head).keys:
                hint = "join the files of its events, one event a line: jq -c . events/*.json > run.jsonl"
                raise file.damaged("this is one event of a run, not the run", hint=hint)
            records = [Record(b"[" + b",".join(lines) + b"]", file.label, 0)]

        def convert(record: Record, document: Any) -> Trace:
            if events:
                steps, began = _told_by(document)
                outcome, reason = ending(None, None, is_cut=False)
                return Trace(
                    trace_id=file.stem,
                    outcome=outcome,
                    termination=reason,
                    steps=steps,
                    source=file.label,
                    attributes=started(began),
                )
            return _trace(msgspec.convert(document, _Run), record, file.stem)

        yield from convert_records(records, convert, file, log)


def _is_event_list(file: InputFile) -> bool:
    keys = shape(file.head).keys
    is_sdk_event = "kind" in keys and b'Event"' in file.head
    return {"id", "source", "timestamp"} <= keys and (is_sdk_event or not keys.isdisjoint({"action", "observation"}))


def _trace(run: _Run, record: Record, stem: str) -> Trace:
    if run.history is None:
        raise RecordError("the row has no history, so its steps are unknown", field="history")
    outcome, termination, attributes = _ending(run)
    name = str(run.instance_id)
    metadata = run.metadata or _RunMetadata()
    steps, began = _told_by(run.history)
    return Trace(
        trace_id=f"{stem}/{name}",
        outcome=outcome,
        steps=steps,
        termination=termination,
        task_id=name,
        model=metadata.llm_config.model if metadata.llm_config else None,
        source=record.source,
        attributes=attributes | started(began),
    )


def _ending(run: _Run) -> tuple[Outcome, str | None, dict[str, Any]]:
    reports = {"report": run.report, "test_result.report": run.test_result.report if run.test_result else None}
    verdicts = {
        name: verdict_of(report.resolved, field=f"{name}.resolved") for name, report in reports.items() if report
    }
    verdict = agreed_verdict(verdicts, what="reports")
    reason, is_cut = None, False
    if run.error:
        known = [(name, cut) for words, name, cut in ENDS if words in run.error]
        reason, is_cut = known[0] if known else ("error", True)
    outcome, termination = ending(verdict, reason, is_cut=is_cut)
    return outcome, termination, marks(verdict, outcome, is_cut=is_cut)


def _told_by(history: Any) -> tuple[tuple[Step, ...], str | None]:
    """The steps of a run, and when it began."""
    if are_sdk_events(history):
        sdk_events = msgspec.convert(history, list[SdkEvent])
        return sdk_steps(sdk_events), first_instant(event.timestamp for event in sdk_events)
    events = _flat(msgspec.convert(history, _HISTORY))
    return _steps(events), first_instant(event.timestamp for event in events)


def _flat(history: list[_Event | tuple[_Event, _Event]]) -> list[_Event]:
    """Older files pair each action with its observation, which is then caused by it."""
    events = []
    for number, entry in enumerate(history):
        if isinstance(entry, _Event):
            events.append(entry)
        else:
            name = f"pair {number}"
            events.append(msgspec.structs.replace(entry[0], id=name))
            events.append(msgspec.structs.replace(entry[1], cause=name))
    return events


def _steps(events: list[_Event]) -> tuple[Step, ...]:
    steps: dict[object, Step] = {}
    last: object = None
    for number, event in enumerate(events):
        if event.action is not None and event.source == "agent" and event.action not in _NO_STEPS:
            last = ("unnamed", number) if event.id is None else event.id
            steps[last] = _step(event)
        elif event.observation is not None and _is_error(event):
            cause = last if event.cause is None else event.cause
            if cause in steps:
                steps[cause] = msgspec.structs.replace(steps[cause], error=True)
    return tuple(steps.values())


def _step(event: _Event) -> Step:
    args = event.args or _NO_ARGUMENTS
    text: str | None = None
    for given in (args.command, args.content, args.thought):
        if isinstance(given, str) and given:
            text = given
            break
    if event.action == "message":
        return Step(name=RESPOND, kind="message", text=text)
    name = args.name if event.action == "call_tool_mcp" else event.action
    if not isinstance(name, str) or not name:
        raise RecordError("an action without a name", field="history.action")
    return Step(name=name, kind="tool", text=text)


def _is_error(event: _Event) -> bool:
    if event.observation == "error" or event.success is False:
        return True
    extras = event.extras
    if extras is None:
        return False
    inner = extras.metadata.get("exit_code") if isinstance(extras.metadata, dict) else None
    return _is_failure(extras.exit_code) or _is_failure(inner)


def _is_failure(exit_code: object) -> bool:
    return isinstance(exit_code, int) and exit_code > 0
