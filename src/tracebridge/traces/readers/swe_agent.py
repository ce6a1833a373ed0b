"""SWE-agent trajectories (``.traj``): what the agent did and how it stopped; the outcome is elsewhere."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.model import Step, Trace
from tracebridge.traces.readers.commands import command_name
from tracebridge.traces.readers.conversation import RESPOND, Message, agent_steps
from tracebridge.traces.readers.records import Record, convert_records
from tracebridge.traces.readers.verdict import ending, marks
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

IS_OWN_END: Mapping[str, bool] = MappingProxyType(
    {
        # The agent stopped by itself, or broke off by what it did itself.
        "submitted": True,
        "exit_forfeit": True,
        "exit_format": True,
        "exit_context": True,
        "exit_command_timeout": True,
        # A limit cut the run.
        "exit_cost": False,
        "exit_total_execution_time": False,
        "early_exit": False,
        # The harness or the provider broke off.
        "exit_error": False,
        "exit_api": False,
        "exit_environment_error": False,
    }
)
"""For each exit status, whether the agent brought it about; if not, a failure that is found later is no verdict."""

_CAUSE = re.compile(r"submitted \((.+)\)")


class _Turn(msgspec.Struct):
    action: str | None = None
    thought: str | None = None
    response: str | None = None
    execution_time: float | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None


class _Named(msgspec.Struct):
    name: str | None = None


class _Agent(msgspec.Struct):
    model: _Named | None = None


class _Replay(msgspec.Struct):
    agent: _Agent | None = None


class _Run(msgspec.Struct):
    trajectory: list[_Turn] | None = None
    history: list[Message] | None = None
    info: _Info | None = None
    replay_config: _Replay | str | None = None


_decode_replay = msgspec.json.Decoder(_Replay | str | None).decode


class SweAgentReader:
    """SWE-agent.

    ============  ===============================================================================
    run           a file
    step          an element of ``trajectory`` (kind ``tool``): the first word of its ``action``, or ``respond`` (kind
                  ``message``) where it has none; a file that has ``history`` alone gives the tool calls and messages
                  of its assistant
    error         not in the format (an observation is free text), so no step is marked
    outcome       not in the file: see the outcome files (``outcomes``)
    censoring     every run, until an outcome file speaks; the reason is ``info.exit_status``, else ``no_outcome``.
                  Where ``IS_OWN_END`` says that the agent did not end the run, it has the attribute ``unfinished``
    task, trial   the name of the file; no trial
    model         ``replay_config.agent.model.name``, else the folder's name up to ``__``
    trace_id      ``<file>`` without ``.traj``
    ============  ===============================================================================

    "Submitted" says that the agent stopped, not that it succeeded.
    """

    name = "swe-agent"
    description = "SWE-agent .traj: one run a file; outcomes come from an outcome file"

    def detect(self, file: InputFile) -> bool:
        """An object with a trajectory and an environment, history or info; or one with history of messages only."""
        seen = shape(file.head)
        if seen.kind != "object":
            return False
        if "trajectory" in seen.keys:
            return not seen.keys.isdisjoint({"environment", "history", "info"}) and "instance_id" not in seen.keys
        return seen.keys in ({"history"}, {"environment", "history"}) and b'"role"' in file.head

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The run that the file is."""

        def convert(_: Record, document: Any) -> Trace:
            return _trace(msgspec.convert(document, _Run), file)

        yield from convert_records([Record(file.document(), file.label, 0)], convert, file, log)


def _trace(run: _Run, file: InputFile) -> Trace:
    status = run.info.exit_status if run.info else None
    is_cut = run.info is not None and not is_own_end(status)
    outcome, termination = ending(None, status, is_cut=is_cut)
    name = file.stem.removesuffix(".traj")
    return Trace(
        trace_id=name,
        outcome=outcome,
        steps=_steps(run),
        termination=termination,
        task_id=name.rpartition("/")[2],
        model=_model(run, file),
        source=file.label,
        attributes=marks(None, outcome, is_cut=is_cut),
    )


def is_own_end(status: str | None) -> bool:
    """Whether the agent ended the run itself; ``submitted (exit_cost)`` is a patch taken after the limit cut it."""
    cause = _CAUSE.fullmatch(status) if status else None
    return IS_OWN_END.get(cause[1] if cause else status or "", False)


def _steps(run: _Run) -> tuple[Step, ...]:
    if run.trajectory is None:
        return agent_steps(run.history or [], is_error=lambda message: bool(message.error))
    return tuple(map(_step, run.trajectory))


def _step(turn: _Turn) -> Step:
    name = command_name(turn.action or "")
    text = turn.action if name else turn.response or turn.thought
    duration = turn.execution_time if turn.execution_time is not None and turn.execution_time >= 0 else None
    return Step(name=name or RESPOND, kind="tool" if name else "message", text=text, duration=duration)


def _model(run: _Run, file: InputFile) -> str | None:
    replay = run.replay_config
    if isinstance(replay, str):  # some versions write it as JSON in a string
        replay = _decode_replay(replay.encode())
    if isinstance(replay, _Replay) and replay.agent and replay.agent.model and replay.agent.model.name:
        return replay.agent.model.name
    if file.path is None:
        return None
    found = _model_of_folder(os.path.abspath(file.path.parent))  # noqa: PTH100 - without a path for every file
    return _model_of_folder(str(file.path.resolve().parent)) if found is None and file.path.is_symlink() else found


@lru_cache(maxsize=256)
def _model_of_folder(folder: str) -> str | None:
    """The model in the name of a folder of runs, or of the one above: both are named ``model__dataset__...``."""
    place = Path(folder).resolve()
    names = [place.name, place.parent.name]
    return next((name.split("__")[0] for name in names if name.count("__") >= 2), None)
