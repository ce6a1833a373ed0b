"""tau2-bench results: one file, a folder (results.json and simulations/), a bare list, or JSON Lines of simulations."""

from __future__ import annotations

import difflib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import InputFile
from tracebridge.traces.model import Outcome, Trace
from tracebridge.traces.problems import ProblemLog, escaped, shown
from tracebridge.traces.readers.conversation import Message, ToolCall, agent_steps
from tracebridge.traces.readers.instants import instant, started
from tracebridge.traces.readers.records import (
    Record,
    RecordError,
    convert_records,
    decode_document,
    json_records,
    number_records,
)
from tracebridge.traces.readers.reward import outcome_of_reward
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

REWARD_IS_VERDICT: Mapping[str, bool] = MappingProxyType(
    {
        # The conversation came to its end and was evaluated.
        "user_stop": True,
        "agent_stop": True,
        # The agent itself broke off: it sent what no one can act on, called tools wrongly too often, or filled its own
        # context. More patience would not have helped, so the reward of 0 that tau2-bench writes is right.
        "agent_error": True,
        "too_many_errors": True,
        "context_window_exceeded": True,
        # A limit cut the run: tau2-bench writes 0 without evaluating, and a larger limit might have shown a success.
        "max_steps": False,
        "timeout": False,
        # Somebody else broke off: the simulated user, the provider or the harness.
        "user_error": False,
        "infrastructure_error": False,
        "unexpected_error": False,
    }
)
"""For each termination reason of tau2-bench, whether the recorded reward is a verdict; if not, the run is censored."""

_PREMATURE_NOTE = "Simulation terminated prematurely"


class _Message(Message):
    requestor: str | None = None  # type: ignore[misc]  # a field here
    errors: list[Any] | None = None  # type: ignore[misc]


class _RewardNotes(msgspec.Struct):
    note: str | None = None


class _RewardInfo(msgspec.Struct):
    reward: float | None = None
    info: _RewardNotes | None = None

    @property
    def is_premature(self) -> bool:
        return self.info is not None and (self.info.note or "").startswith(_PREMATURE_NOTE)


class _Chunk(msgspec.Struct):
    content: str | None = None
    contains_speech: bool = True
    is_audio: bool = False


class _Tick(msgspec.Struct):
    agent_chunk: _Chunk | None = None
    agent_tool_calls: list[ToolCall] | None = None
    agent_tool_results: list[_Message] | None = None


class _Simulation(msgspec.Struct):
    id: str | None = None
    task_id: int | str | None = None
    trial: int | str | None = None
    start_time: Any = None
    termination_reason: str | None = None
    reward_info: _RewardInfo | None = None
    messages: list[_Message] | None = None
    ticks: list[_Tick] | None = None


class _Agent(msgspec.Struct):
    llm: str | None = None


class _Environment(msgspec.Struct):
    domain_name: str | None = None


class _Info(msgspec.Struct):
    agent_info: _Agent | None = None
    environment_info: _Environment | None = None

    @property
    def model(self) -> str | None:
        return self.agent_info.llm if self.agent_info else None

    @property
    def domain(self) -> str | None:
        return self.environment_info.domain_name if self.environment_info else None


class _IndexEntry(msgspec.Struct):
    id: str


class _Results(msgspec.Struct):
    info: _Info | None = None
    simulations: list[msgspec.Raw] | None = None
    simulation_index: list[_IndexEntry] | None = None


_decode_results = msgspec.json.Decoder(_Results).decode


class Tau2BenchReader:
    """tau2-bench.

    ============  ===============================================================================
    run           an element of ``simulations``; a file of ``simulations/``; an element of a bare list; a line
    step          a tool call of the agent (kind ``tool``), or an assistant message without one (``respond``, kind
                  ``message``); tools that the simulated user calls are the environment's moves
    error         the result of the call, paired by position, has ``error: true``, or the message broke the
                  protocol (its ``errors`` are not empty)
    outcome       ``reward_info.reward``: 1 success, 0 failure, within 1e-6, if the termination reason lets it be
                  a verdict (``REWARD_IS_VERDICT``)
    censoring     the termination reason where the table says so; ``no_reward`` where there is none and the
                  reward is null; ``premature`` where there is none and the reward is marked as not evaluated
    task, trial   ``task_id``, after its domain where that is known (``airline/13``: ids repeat between domains);
                  ``trial``
    model         ``info.agent_info.llm``
    started       ``start_time``, the clock of the machine; the ``timestamp`` of a simulation is that of its end
    trace_id      ``id``, else ``<file>/<task>/<trial>``
    ============  ===============================================================================

    Full-duplex runs have ``ticks`` and no messages: a step is then a tool call or an unbroken stretch of ticks in which
    the agent speaks. Files are read whole, up to 2 GiB, but JSON Lines a line at a time; runs are decoded one at a
    time, without what is not listed.
    """

    name = "tau2-bench"
    description = "tau2-bench: results file or folder, bare list or JSON Lines of simulations"

    def detect(self, file: InputFile) -> bool:
        """A results object, or simulations with a reward_info or a termination_reason and messages or ticks."""
        seen = shape(file.head)
        keys = seen.keys
        if (
            seen.kind == "object"
            and "info" in keys
            and not keys.isdisjoint({"tasks", "simulations", "simulation_index"})
        ):
            return True
        is_simulation = not keys.isdisjoint({"reward_info", "termination_reason"})
        return is_simulation and "reward" not in keys and not keys.isdisjoint({"id", "messages", "ticks", "task_id"})

    def companions(self, file: InputFile) -> Sequence[Path]:
        """The files of ``simulations/`` beside a ``results.json`` that only has their index."""
        if file.path is None or "simulation_index" not in shape(file.head).keys or not _folder(file.path).is_dir():
            return ()
        return sorted(path for path in _folder(file.path).iterdir() if path.suffix == ".json" and path.is_file())

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The simulations in file order; those of a folder are read through their own files."""
        keys = shape(file.head).keys
        if shape(file.head).kind == "object" and "info" in keys and "reward_info" not in keys:
            results = decode_document(_decode_results, file.document(), file.label)
            info = results.info or _Info()
            records: Iterable[Record] = number_records(results.simulations or [], file.label)
            _check_index(results, file, log)
        else:
            records = json_records(file, log)
            info = _info_beside(file, log)

        def convert(record: Record, document: Any) -> Trace:
            return _trace(msgspec.convert(document, _Simulation), record, file.stem, info)

        yield from convert_records(records, convert, file, log)


def _folder(results_path: Path) -> Path:
    return results_path.parent / "simulations"


def _check_index(results: _Results, file: InputFile, log: ProblemLog) -> None:
    if results.simulation_index is None or results.simulations or file.path is None:
        return
    folder = _folder(file.path)
    present = {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
    for entry in results.simulation_index:
        if entry.id not in present:
            location = Location(path=file.label, record=escaped(entry.id), field="simulation_index")
            message = f"the run is listed, but simulations/{escaped(entry.id)}.json is not there"
            log.refuse(Problem(location=location, message=message))


def _info_beside(file: InputFile, log: ProblemLog) -> _Info:
    """Model and domain of a file of ``simulations/``: they stand in the ``results.json`` above it."""
    if file.path is None or file.path.parent.name != "simulations":
        return _Info()
    results_path = file.path.parent.parent / "results.json"
    if not results_path.is_file():
        return _Info()
    try:
        with InputFile(results_path, results_path.name) as results_file:
            return decode_document(_decode_results, results_file.document(), results_file.label).info or _Info()
    except TraceError as error:
        message = f"model and domain are unknown: {error}"
        log.note(Problem(location=Location(path=file.label), message=message))
        return _Info()


def _trace(run: _Simulation, record: Record, stem: str, info: _Info) -> Trace:
    task = None if run.task_id is None else str(run.task_id)
    trial = None if run.trial is None else str(run.trial)
    parts = [part for part in (task, trial) if part is not None] or [str(record.number)]
    outcome, termination = _ending(run)
    reward = run.reward_info.reward if run.reward_info else None
    attributes: dict[str, Any] = {} if reward is None else {"reward": reward}
    attributes |= started(instant(run.start_time))
    return Trace(
        trace_id=run.id or "/".join([stem, *parts]),
        outcome=outcome,
        steps=agent_steps(_conversation(run), is_error=lambda message: bool(message.error)),
        termination=termination,
        task_id=f"{info.domain}/{task}" if info.domain and task is not None else task,
        trial=trial,
        model=info.model,
        source=record.source,
        attributes=attributes,
    )


def _ending(run: _Simulation) -> tuple[Outcome, str | None]:
    reason = run.termination_reason
    reward_info = run.reward_info or _RewardInfo()
    if reason is not None:
        if reason not in REWARD_IS_VERDICT:
            close = difflib.get_close_matches(reason[:60], REWARD_IS_VERDICT, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(REWARD_IS_VERDICT)}"
            message = f"the termination reason {shown(reason)} is unknown, so nobody can say whether the reward counts"
            raise RecordError(message, field="termination_reason", hint=hint)
        if not REWARD_IS_VERDICT[reason]:
            return Outcome.CENSORED, reason
    elif reward_info.is_premature:
        return Outcome.CENSORED, "premature"
    if reward_info.reward is None:
        return Outcome.CENSORED, reason or "no_reward"
    return outcome_of_reward(reward_info.reward, field="reward_info.reward"), reason


def _conversation(run: _Simulation) -> Iterator[_Message]:
    if run.messages is not None:
        yield from run.messages
        return
    speaking = False
    for tick in run.ticks or []:
        chunk = tick.agent_chunk
        speaks = chunk is not None and chunk.contains_speech
        if tick.agent_tool_calls:
            yield _Message(role="assistant", tool_calls=tick.agent_tool_calls)
        elif chunk is not None and speaks and not speaking:
            yield _Message(role="assistant", content=None if chunk.is_audio else chunk.content)
        yield from tick.agent_tool_results or []
        speaking = speaks and not tick.agent_tool_calls
