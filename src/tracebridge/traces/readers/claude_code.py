"""Claude Code sessions (``~/.claude/projects/*/*.jsonl``): a tree of lines, of which one branch is what happened."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.model import Step, Trace
from tracebridge.traces.problems import counted
from tracebridge.traces.readers.conversation import RESPOND
from tracebridge.traces.readers.instants import first_instant, started
from tracebridge.traces.readers.records import json_records
from tracebridge.traces.readers.verdict import ending, marks
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

_CLEAR = "<command-name>/clear</command-name>"
_SYNTHETIC_MODEL = "<synthetic>"


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: str | list[_Block | str] | None = None

    @property
    def blocks(self) -> list[_Block]:
        if isinstance(self.content, list):
            return [_Block(type="text", text=block) if isinstance(block, str) else block for block in self.content]
        return [] if self.content is None else [_Block(type="text", text=self.content)]

    @property
    def results(self) -> list[_Block]:
        """The results of calls."""
        parts = self.content if isinstance(self.content, list) else ()
        return [part for part in parts if not isinstance(part, str) and part.type == "tool_result"]


class _Line(msgspec.Struct, gc=False):
    type: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None  # noqa: N815 - the names of the format
    logicalParentUuid: str | None = None  # noqa: N815
    isSidechain: bool | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    timestamp: Any = None
    message: _Message | None = None

    @property
    def parent(self) -> str | None:
        """The line that this one goes on from; none after ``/clear``, which leaves nothing to go on from."""
        content = self.message.content if self.type == "user" and self.message is not None else None
        if isinstance(content, str) and content.lstrip().startswith(_CLEAR):
            return None
        return self.parentUuid or self.logicalParentUuid


class ClaudeCodeReader:
    """Claude Code sessions.

    ============  ===============================================================================
    run           a conversation: the lines from one without a parent in the file to its latest descendant. What hangs
                  off elsewhere was abandoned (an edited prompt) and is left out. After ``/clear`` another run begins; a
                  compaction goes on with the same. Lines that stand twice (``uuid``) count once
    step          a ``tool_use`` of the assistant (kind ``tool``, its name), or a message of the assistant without one
                  (``respond``, kind ``message``); a message may stretch over several lines (``message.id``). What a
                  subagent did (``isSidechain``, or in a file of its own) is one step: the call that started it
    error         the result of the call, paired by id and in order, has ``is_error: true``, early or late
    outcome       not in the format: see the outcome files (``outcomes``)
    censoring     every run, until an outcome file speaks: ``api_error`` where the last message is one (the run then has
                  the attribute ``unfinished``), else ``no_outcome``
    task, trial   not in the format
    model         the first ``message.model``
    started       the first ``timestamp`` of the conversation
    trace_id      ``<file>``, with ``/2`` and so on for the conversations after the first
    ============  ===============================================================================
    """

    name = "claude-code"
    description = "Claude Code session JSONL; outcomes come from an outcome file"

    def detect(self, file: InputFile) -> bool:
        """Lines with a type and a session or a parent."""
        seen = shape(file.head)
        keys = seen.keys
        if seen.kind != "object" or "type" not in keys:
            return False
        return "sessionId" in keys or "parentUuid" in keys or {"summary", "leafUuid"} <= keys

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The conversations in the order of their first lines."""
        lines = _lines(file, log)
        own = {name: line for name, line in lines.items() if not line.isSidechain}
        if lines and not own:
            message = "the file holds a subagent's work, which is a step of the session that started it"
            log.note(Problem(location=Location(path=file.label), message=message))
            return
        failed = _failed_calls(own.values())
        n_abandoned = 0
        number = 0
        for conversation, n_others in _conversations(own):
            n_abandoned += n_others
            trace = _trace(conversation, failed, file, number)
            if trace is not None:
                number += 1
                yield trace
        if n_abandoned:
            message = f"left out, as branches that were abandoned: {counted(n_abandoned, 'line')}"
            log.note(Problem(location=Location(path=file.label), message=message))


def _lines(file: InputFile, log: ProblemLog) -> dict[str, _Line]:
    """The lines of the tree by uuid; the first of several counts."""
    lines: dict[str, _Line] = {}
    n_twice = 0
    for record in json_records(file, log):
        try:
            line = msgspec.convert(decode_strictly(bytes(record.data)), _Line)
        except (JsonTextError, msgspec.MsgspecError, RecursionError) as error:
            log.refuse(Problem(location=Location(path=file.label, record=str(record.number)), message=str(error)))
            continue
        if line.uuid is not None:
            n_twice += line.uuid in lines
            lines.setdefault(line.uuid, line)
    if n_twice:
        message = f"repeated, and counted once as first written: {counted(n_twice, 'line')}"
        log.note(Problem(location=Location(path=file.label), message=message))
    return lines


def _conversations(lines: dict[str, _Line]) -> Iterator[tuple[list[_Line], int]]:
    """Each tree's path from its root to the last line, and how many lines of the tree lie off it.

    A call's result may come in beside the path; results are looked for everywhere, and such lines are not counted.
    """
    parents = {name: line.parent for name, line in lines.items()}
    root_of: dict[str, str] = {}
    for name, above in parents.items():
        if above is not None and above in root_of:
            root_of[name] = root_of[above]
            continue
        path: set[str] = set()
        at = name
        while at not in root_of and at not in path:  # a circle has no root: the line where it closes will do
            path.add(at)
            parent = parents[at]
            if parent is None or parent not in parents:
                break
            at = parent
        root = root_of.get(at, at)
        root_of.update(dict.fromkeys(path, root))
    members: dict[str, list[str]] = defaultdict(list)
    for name in lines:
        members[root_of[name]].append(name)
    for names in members.values():
        branch = _path_to(names[-1], parents)
        on_branch = set(branch)
        others = [lines[name] for name in names if name not in on_branch]
        n_others = sum(line.type in ("user", "assistant") and not _is_result(line) for line in others)
        yield [lines[name] for name in branch], n_others


def _path_to(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    path: dict[str, None] = {}
    at: str | None = leaf
    while at is not None and at in parents and at not in path:
        path[at] = None
        at = parents[at]
    return list(reversed(path))


def _is_result(line: _Line) -> bool:
    return line.message is not None and bool(line.message.results)


def _failed_calls(lines: Iterable[_Line]) -> set[tuple[str, int]]:
    """The calls that failed, as id and how many calls had the id before: ids repeat in some files."""
    seen: dict[str, int] = defaultdict(int)
    failed = set()
    for line in lines:
        for block in line.message.results if line.message else ():
            if block.tool_use_id is not None:
                if block.is_error:
                    failed.add((block.tool_use_id, seen[block.tool_use_id]))
                seen[block.tool_use_id] += 1
    return failed


def _trace(lines: list[_Line], failed: set[tuple[str, int]], file: InputFile, number: int) -> Trace | None:
    """The run; None where the assistant never spoke (a command line such as ``/clear``)."""
    messages: dict[str, list[_Block]] = {}
    models: deque[str] = deque()
    is_api_error = False
    for line in lines:
        if line.type != "assistant" or line.message is None:
            continue
        is_api_error = bool(line.isApiErrorMessage)
        if is_api_error:
            continue
        messages.setdefault(line.message.id or str(line.uuid), []).extend(line.message.blocks)
        if line.message.model not in (None, _SYNTHETIC_MODEL):
            models.append(str(line.message.model))
    if not messages and not is_api_error:
        return None
    outcome, termination = ending(None, "api_error" if is_api_error else None, is_cut=is_api_error)
    return Trace(
        trace_id=file.stem if number == 0 else f"{file.stem}/{number + 1}",
        outcome=outcome,
        steps=tuple(_steps(messages.values(), failed)),
        termination=termination,
        model=models[0] if models else None,
        source=file.label,
        attributes=marks(None, outcome, is_cut=is_api_error) | started(first_instant(line.timestamp for line in lines)),
    )


def _steps(messages: Iterable[list[_Block]], failed: set[tuple[str, int]]) -> Iterator[Step]:
    seen: dict[str, int] = defaultdict(int)
    for blocks in messages:
        text = "".join([block.text or "" for block in blocks if block.type == "text"]) or None
        calls = [block for block in blocks if block.type == "tool_use" and block.name]
        if not calls:
            yield Step(name=RESPOND, kind="message", text=text)
        for call in calls:
            key = (call.id or "", seen[call.id or ""])
            seen[call.id or ""] += 1
            yield Step(name=call.name or "", kind="tool", text=text, error=key in failed)
            text = None
