"""Harbor's agent trajectories (ATIF) with the ``result.json`` of their trial, which alone knows the outcome."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import InputFile
from tracebridge.traces.model import Step, Trace
from tracebridge.traces.problems import escaped, shown
from tracebridge.traces.readers.conversation import RESPOND, ContentPart
from tracebridge.traces.readers.harbor_trial import find_result, read_result
from tracebridge.traces.readers.instants import first_instant, started
from tracebridge.traces.readers.records import Record, RecordError, convert_records, decode_document
from tracebridge.traces.readers.verdict import NO_OUTCOME, ending, marks
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracebridge.traces.problems import ProblemLog
    from tracebridge.traces.readers.harbor_trial import TrialResult

_VERSION = re.compile(r"ATIF-v1\.[0-8]")
_PART = re.compile(r"(.*trajectory)\.(.+)\.json")
_MAX_CONTINUATIONS = 1000


class _Call(msgspec.Struct):
    function_name: str
    tool_call_id: str | None = None


class _Result(msgspec.Struct):
    content: str | list[ContentPart] | None = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Metrics(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Step(msgspec.Struct):
    source: str
    timestamp: Any = None
    message: str | list[ContentPart] = ""
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None

    @property
    def text(self) -> str:
        return self.message if isinstance(self.message, str) else "".join(part.text or "" for part in self.message)

    @property
    def tokens(self) -> int | None:
        metrics = self.metrics
        if metrics is None or (metrics.prompt_tokens is None and metrics.completion_tokens is None):
            return None
        return (metrics.prompt_tokens or 0) + (metrics.completion_tokens or 0)


class _Agent(msgspec.Struct):
    name: str | None = None
    model_name: str | None = None


class _Versioned(msgspec.Struct):
    schema_version: Any = None


class _Trajectory(msgspec.Struct):
    agent: _Agent
    steps: list[_Step]
    session_id: str | None = None
    trajectory_id: str | None = None
    continued_trajectory_ref: str | None = None


_decode_trajectory = msgspec.json.Decoder(_Trajectory).decode


class AtifReader:
    """Harbor (terminal-bench): ATIF v1.0 to v1.8.

    ============  ===============================================================================
    run           a trajectory and the continuations that ``continued_trajectory_ref`` names, joined. Files beside it
                  that are parts of it (``trajectory.cont-1.json``, subagents) are no runs
    step          a tool call of a step whose ``source`` is agent (kind ``tool``, ``function_name``), or such a step
                  without a call (``respond``, kind ``message``). Copied context (``is_copied_context``) is left out
    error         not in the format (a failure is free text), so no step is marked
    outcome       ``verifier_result.rewards`` of the trial's ``result.json``, in the trajectory's folder or, if that is
                  ``agent/``, in the one above: the reward called ``reward``, or the only one; 1 success, 0 failure
    censoring     the type of the trial's exception, of a step of it too, where ``EXCEPTIONS`` does not make the reward
                  a verdict; a reward of 0 after a timeout; ``no_reward`` where the verifier gave none;
                  ``no_outcome`` where there is no ``result.json``
    task, trial   ``task_name``, ``trial_name`` of ``result.json``
    model         ``agent.model_name``
    started       the first ``timestamp`` of a step that is no copied context; else ``started_at`` of ``result.json``
    trace_id      ``<file>``
    ============  ===============================================================================
    """

    name = "atif"
    description = "Harbor ATIF trajectory.json, with the result.json of its trial"

    def detect(self, file: InputFile) -> bool:
        """An object with a schema_version and the keys of a trajectory."""
        seen = shape(file.head)
        return (
            seen.kind == "object"
            and "schema_version" in seen.keys
            and not seen.keys.isdisjoint({"session_id", "trajectory_id", "agent"})
            and "trace_id" not in seen.keys
        )

    def companions(self, file: InputFile) -> Sequence[Path]:
        """The trial's result and the continuations, so that their hashes are on record too."""
        if file.path is None or _whole_of(file.path) is not None:
            return ()
        result = find_result(file.path)
        folder = file.path.parent
        names = _continuations(folder, folder.stat().st_mtime_ns).get(file.path.name, ())
        own = [path for name in names if (path := folder / name).is_file()]
        beside = [result] if result is not None and result.parent == file.path.parent else []
        return [*own, *beside]

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The run that the file is; none for a part of another file's run."""
        whole = None if file.path is None else _whole_of(file.path)
        if whole is not None:
            message = f"a part of the run in {escaped(whole.name)}, no run of its own"
            log.note(Problem(location=Location(path=file.label), message=message))
            return
        if "__header__" in shape(file.head).keys:
            raise file.damaged(
                "a trajectory that is being streamed, without its end", hint="write it out as one trajectory.json"
            )
        result_path = None if file.path is None else find_result(file.path)
        result = None if result_path is None else read_result(result_path)

        def convert(_: Record, document: Any) -> Trace:
            version = msgspec.convert(document, _Versioned).schema_version
            if not isinstance(version, str) or not _VERSION.fullmatch(version):
                message = f"the schema version {shown(version)} is not one of ATIF-v1.0 to ATIF-v1.8"
                raise RecordError(message, field="schema_version")
            return _trace(msgspec.convert(document, _Trajectory), file, result)

        yield from convert_records([Record(file.document(), file.label, 0)], convert, file, log)


@lru_cache(maxsize=8)
def _continuations(folder: Path, changed: int) -> Mapping[str, Sequence[str]]:  # noqa: ARG001 - the key is the listing
    """The names of continuations in a folder, sorted, by the name of the trajectory that they are parts of."""
    found: dict[str, list[str]] = {}
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names are all that is needed
        part = _PART.fullmatch(name)
        if part and part[2].startswith("cont-"):
            found.setdefault(f"{part[1]}.json", []).append(name)
    return found


def _whole_of(path: Path) -> Path | None:
    """The trajectory that this file is a part of, by its name."""
    part = _PART.fullmatch(path.name)
    whole = path.with_name(f"{part[1]}.json") if part else path
    return whole if part and whole.is_file() else None


def _trace(trajectory: _Trajectory, file: InputFile, result: TrialResult | None) -> Trace:
    verdict, reason, is_cut = (None, NO_OUTCOME, False) if result is None else result.judgement()
    outcome, termination = ending(verdict, reason, is_cut=is_cut)
    attributes: dict[str, Any] = {} if result is None or result.reward is None else {"reward": result.reward}
    attributes |= marks(verdict, outcome, is_cut=is_cut)
    stamps = [step.timestamp for step in trajectory.steps if not step.is_copied_context]
    attributes |= started(first_instant([*stamps, result.started_at if result else None]))
    return Trace(
        trace_id=file.stem,
        outcome=outcome,
        steps=tuple(step for part in _parts(trajectory, file) for step in _steps(part)),
        termination=termination,
        task_id=result.task_name if result else None,
        trial=result.trial_name if result else None,
        model=trajectory.agent.model_name or (result.model if result else None),
        source=file.label,
        attributes=attributes,
    )


def _parts(first: _Trajectory, file: InputFile) -> Iterator[_Trajectory]:
    yield first
    part, seen = first, {file.path}
    while (reference := part.continued_trajectory_ref) is not None:
        path = None if file.path is None else _continuation(file.path, reference)
        if path is None or path in seen or len(seen) > _MAX_CONTINUATIONS:
            message = f"the run goes on in {shown(reference)}, which is not there"
            if path is not None:
                message = f"the run goes on in {shown(reference)}, which leads back to a part of it"
            raise RecordError(message, field="continued_trajectory_ref", hint="without it the run would be cut short")
        seen.add(path)
        try:
            with InputFile(path, path.name) as continuation:
                part = decode_document(_decode_trajectory, continuation.document(), continuation.label)
        except TraceError as error:
            raise RecordError(f"its continuation: {error}", field="continued_trajectory_ref") from error
        yield part


def _continuation(path: Path, reference: str) -> Path | None:
    """The file of a continuation: as named, or with the prefix that the first file's name has before ``trajectory``."""
    if "/" in reference or "\\" in reference or "\0" in reference:
        return None  # a trajectory refers to its own folder
    prefix = path.name[: path.name.rfind("trajectory")] if "trajectory" in path.name else ""
    candidates = [path.with_name(name) for name in (reference, prefix + reference) if name]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _steps(trajectory: _Trajectory) -> Iterator[Step]:
    for step in trajectory.steps:
        if step.source != "agent" or step.is_copied_context:
            continue
        text: str | None = step.text
        tokens = step.tokens
        if not step.tool_calls:
            yield Step(name=RESPOND, kind="message", text=text, tokens=tokens)
            continue
        for call in step.tool_calls:
            if not call.function_name:
                raise RecordError("a tool call without a name", field="steps.tool_calls")
            yield Step(name=call.function_name, kind="tool", text=text, tokens=tokens)
            text = tokens = None
