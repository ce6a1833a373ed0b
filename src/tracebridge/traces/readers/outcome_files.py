"""Outcomes that lie apart from the traces: reports, tables, and folders of evaluation logs."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.corpus import TraceFile
from tracebridge.traces.files import InputFile
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.model import Outcome, Trace
from tracebridge.traces.problems import counted, escaped, shown
from tracebridge.traces.readers.records import RecordError
from tracebridge.traces.readers.verdict import UNFINISHED, VERDICT, ending, marks, verdict_of
from tracebridge.traces.sniff import plain_name, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracebridge.traces.problems import ProblemLog

ID_COLUMNS = ("trace_id", "instance_id", "task_id", "task_name", "run_id", "id")
VERDICT_COLUMNS = ("resolved", "outcome", "success", "passed", "correct", "reward", "score")
VERDICT_LISTS = {
    "resolved_ids": True,
    "resolved": True,
    "successful_tasks": True,
    "unresolved_ids": False,
    "unresolved": False,
    "failed_tasks": False,
    # the agent ended without a change, which solves nothing
    "empty_patch_ids": False,
    "no_generation": False,
    # the evaluation itself broke off or never ran
    "error_ids": None,
    "incomplete_ids": None,
}
"""The lists of ids in a report of SWE-bench, SWE-agent or HAL, and the verdict that each means; null for none."""

_LOG_NAME = "run_instance.log"
_RESOLVED = re.compile(r"['\"]?resolved['\"]?:\s*(True|False|true|false)\b")
_MAX_BYTES = 1 << 30

Key: TypeAlias = "str | tuple[str, str]"


class OutcomeStore:
    """The verdicts of one or more outcome files, by trace_id, by task, or by task and trial.

    Attributes:
        verdicts: for each key, who said what, in the order read.
        files: the files that were read, with their hashes.
    """

    def __init__(self) -> None:
        self.files: list[TraceFile] = []
        self.verdicts: dict[Key, list[tuple[bool, str]]] = {}

    def __len__(self) -> int:
        return len(self.verdicts)

    def add(self, key: Key, verdict: bool | None, source: str) -> None:
        """Remember a verdict; none is remembered for what was not judged."""
        if verdict is not None:
            self.verdicts.setdefault(key, []).append((verdict, source))

    def apply(self, traces: Iterable[Trace], log: ProblemLog) -> Iterator[Trace]:
        """The traces with the outcomes that are stored for them; the others stay as they are.

        A stored success counts whatever ended the run. A stored failure does not count for a run that something cut
        (its attribute ``unfinished``): that stays censored. Where two files, or a file and the trace itself, contradict
        each other, the run goes to the log, and is left out. So do the second and later runs of a task if the files
        name tasks only. Outcomes of runs that are not there are a note in the end, or a problem if all are.
        """
        claimed: dict[Key, str] = {}
        used: set[Key] = set()
        for trace in traces:
            used.update(key for key in _keys(trace) if key in self.verdicts)
            key = self._key(trace)
            if key is None:
                yield trace
                continue
            location = Location(path=trace.source, record=escaped(trace.trace_id), field="outcome")
            first = claimed.setdefault(key, trace.trace_id)
            if first != trace.trace_id:
                message = f"the outcome of {shown(_name(key))} was taken by the run {shown(first)} already"
                hint = "tell the runs of a task apart in the outcome file: by trace_id, or by task_id and trial"
                log.refuse(Problem(location=location, message=message, hint=hint))
            elif (conflict := self._conflict(key, trace)) is not None:
                hint = "the sources of an outcome must agree; remove the wrong one"
                log.refuse(Problem(location=location, message=conflict, hint=hint))
            else:
                yield _judged(trace, self.verdicts[key][0][0])
        self._tell_unused([key for key in self.verdicts if key not in used], log)

    def _tell_unused(self, unused: list[Key], log: ProblemLog) -> None:
        if not unused:
            return
        some = ", ".join(shown(_name(key)) for key in unused[:5]) + (", …" if len(unused) > 5 else "")
        place = Location(path=self.verdicts[unused[0]][0][1].partition(" (")[0])
        if len(unused) < len(self.verdicts):
            message = f"of {counted(len(unused), 'outcome')} there is no run: {some}"
            log.note(Problem(location=place, message=message))
        else:
            hint = "outcomes are found by trace_id, by task_id, or by both task_id and trial"
            log.refuse(Problem(location=place, message=f"no run has any of these outcomes: {some}", hint=hint))

    def _key(self, trace: Trace) -> Key | None:
        return next((key for key in _keys(trace) if key in self.verdicts), None)

    def _conflict(self, key: Key, trace: Trace) -> str | None:
        found = self.verdicts[key]
        if trace.outcome is not Outcome.CENSORED:
            found = [*found, (trace.outcome is Outcome.SUCCESS, "the trace itself")]
        if len({verdict for verdict, _ in found}) < 2:
            return None
        sides = "; ".join(f"{source} says {'success' if verdict else 'failure'}" for verdict, source in found[:4])
        return f"the outcomes of {shown(_name(key))} contradict each other: {sides}"


def read_outcomes(paths: Sequence[str | Path]) -> OutcomeStore:
    """Read outcome files, or folders of evaluation logs.

    A file is a report (``VERDICT_LISTS``), a JSON object from id to verdict or to an object that has one, or a table:
    CSV, TSV, a JSON array of objects or JSON Lines, with one of ``ID_COLUMNS`` (``task_id`` with ``trial`` where both
    are there) and one of ``VERDICT_COLUMNS``. Verdicts are booleans, 0 or 1, or usual words. Of a folder count
    ``<id>/run_instance.log`` (its last ``resolved: True`` or ``False``), ``report.json`` and ``results.json``, at any
    depth.

    Raises:
        TraceError: a path that is not there, or a file that holds no outcome or a bad one.
    """
    store = OutcomeStore()
    for path in map(Path, paths):
        if path.is_dir():
            _read_folder(path, store)
        else:
            _read_file(path, path.name, store)
    return store


def _read_folder(folder: Path, store: OutcomeStore) -> None:
    n_before = len(store)
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            label = path.relative_to(folder.parent).as_posix()
            if name == _LOG_NAME:
                _read_log(path, label, store)
            elif name in ("report.json", "results.json"):
                _read_file(path, label, store)
    if len(store) == n_before:
        message = f"no outcome in this folder: no {_LOG_NAME}, report.json or results.json says one"
        raise TraceError(message, location=Location(path=folder.name))


def _read_log(path: Path, label: str, store: OutcomeStore) -> None:
    with InputFile(path, label) as file:
        found = _RESOLVED.findall(file.document(_MAX_BYTES).decode(errors="replace"))
        store.files.append(_on_record(file))
    if found:
        store.add(path.parent.name, found[-1].lower() == "true", label)


def _read_file(path: Path, label: str, store: OutcomeStore) -> None:
    with InputFile(path, label) as file:
        kind = shape(file.head).kind
        data = file.document(_MAX_BYTES)
        try:
            if kind == "text":
                _add_rows(_csv_rows(data), label, store)
            else:
                _add_document(data, label, store)
        except (RecordError, JsonTextError, UnicodeDecodeError, csv.Error) as error:
            hint = getattr(error, "hint", None)
            location = Location(path=label, line=getattr(error, "line", None), field=getattr(error, "field", None))
            raise TraceError(Problem(location=location, message=str(error), hint=hint)) from error
        store.files.append(_on_record(file))


def _on_record(file: InputFile) -> TraceFile:
    sha256 = file.sha256()
    return TraceFile(path=file.label, format="outcomes", sha256=sha256, n_bytes=file.n_bytes, n_records=0)


def _csv_rows(data: bytes) -> list[dict[str, Any]]:
    text = data.decode()
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter, restkey="", strict=True)
    return [{plain_name(key): value or None for key, value in row.items() if key} for row in rows]


def _add_document(data: bytes, label: str, store: OutcomeStore) -> None:
    try:
        document = decode_strictly(data)
    except JsonTextError:
        lines = [line for line in data.split(b"\n") if line.strip()]
        if len(lines) < 2:
            raise
        document = [decode_strictly(line) for line in lines]
    if isinstance(document, dict) and isinstance(document.get("results"), dict):
        document = document["results"]  # HAL
    if isinstance(document, list):
        _add_rows(document, label, store)
    elif isinstance(document, dict) and (lists := [name for name in VERDICT_LISTS if _is_ids(document.get(name))]):
        for name in lists:
            for key in document[name]:
                store.add(str(key), VERDICT_LISTS[name], f"{label} ({name})")
    elif isinstance(document, dict) and _is_row(document):
        _add_rows([document], label, store)
    elif isinstance(document, dict) and document:
        for key, value in document.items():
            verdict = _row_verdict(value, key) if isinstance(value, dict) else verdict_of(value, field=escaped(key))
            store.add(key, verdict, label)
    else:
        raise RecordError(f"there is no outcome in {shown(document)}")


def _is_row(row: dict[str, Any]) -> bool:
    return any(name in row for name in ID_COLUMNS) and any(name in row for name in VERDICT_COLUMNS)


def _is_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str | int) for item in value)


def _add_rows(rows: list[Any], label: str, store: OutcomeStore) -> None:
    if not rows:
        raise RecordError("there is no row")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise RecordError(f"row {number} is {shown(row)}, where an object was expected")
        name = next((name for name in ID_COLUMNS if row.get(name) is not None), None)
        if name is None:
            raise RecordError(f"row {number} has none of {', '.join(ID_COLUMNS)}")
        trial = row.get("trial")
        by_trial = trial is not None and name in ("task_id", "task_name", "instance_id")
        key: Key = (str(row[name]), str(trial)) if by_trial else str(row[name])
        store.add(key, _row_verdict(row, f"row {number}"), f"{label} (row {number})")


def _row_verdict(row: dict[str, Any], place: str) -> bool | None:
    name = next((name for name in VERDICT_COLUMNS if name in row), None)
    if name is None:
        message = f"{shown(place)} has none of {', '.join(VERDICT_COLUMNS)}"
        raise RecordError(message, hint="is this a file of predictions, which nobody has judged?")
    value = row[name]
    if isinstance(value, str):
        value = {"1.0": True, "0.0": False}.get(value.strip(), value)
    return verdict_of(value, field=f"{escaped(place)}.{name}")


def _keys(trace: Trace) -> list[Key]:
    keys: list[Key] = [trace.trace_id]
    if trace.task_id is not None:
        keys += [(trace.task_id, trace.trial)] if trace.trial is not None else []
        keys.append(trace.task_id)
    return keys


def _name(key: Key) -> str:
    return key if isinstance(key, str) else " trial ".join(key)


def _judged(trace: Trace, verdict: bool) -> Trace:
    if trace.outcome is not Outcome.CENSORED:
        return trace
    is_cut = bool(trace.attributes.get(UNFINISHED))
    reason = None if trace.termination == "no_outcome" else trace.termination
    outcome, termination = ending(verdict, reason, is_cut=is_cut)
    unmarked = {key: value for key, value in trace.attributes.items() if key not in (UNFINISHED, VERDICT)}
    attributes = unmarked | marks(verdict, outcome, is_cut=is_cut)
    return msgspec.structs.replace(trace, outcome=outcome, termination=termination, attributes=attributes)
