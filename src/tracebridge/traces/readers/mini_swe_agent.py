"""mini-SWE-agent trajectories: shell commands in chat messages; whether the task was solved is elsewhere."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.model import Step, Trace
from tracebridge.traces.readers.commands import command_name
from tracebridge.traces.readers.conversation import RESPOND, ContentPart
from tracebridge.traces.readers.instants import instant_of_seconds, started
from tracebridge.traces.readers.messages import is_bare_conversation, one_conversation
from tracebridge.traces.readers.records import Record, RecordError, convert_records
from tracebridge.traces.readers.verdict import ending, marks
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

IS_OWN_END: Mapping[str, bool] = MappingProxyType({"Submitted": True, "LimitsExceeded": False})
"""For each exit status, whether the agent brought it about; any other name is that of an exception: it did not."""

_COMMAND_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d{1,10})\s*</returncode>")


class _Command(msgspec.Struct):
    command: str


class _Extra(msgspec.Struct):
    actions: list[_Command] | None = None
    returncode: int | None = None
    timestamp: Any = None


class _Arguments(msgspec.Struct):
    arguments: str = "{}"


class _Call(msgspec.Struct):
    function: _Arguments


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[ContentPart | str] | None = None
    extra: _Extra | None = None
    tool_calls: list[_Call] | None = None

    @property
    def text(self) -> str:
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "".join(part if isinstance(part, str) else part.text or "" for part in self.content)


class _Model(msgspec.Struct):
    model_name: str | None = None


class _Config(msgspec.Struct):
    model: _Model | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None
    config: _Config | None = None


class _Run(msgspec.Struct):
    messages: list[_Message]
    info: _Info | None = None
    instance_id: str | None = None


_decode_arguments = msgspec.json.Decoder(_Command).decode


class MiniSweAgentReader:
    """mini-SWE-agent, both layouts: a bare list of messages (v1), or an object with ``trajectory_format`` (v2).

    ============  ===============================================================================
    run           a file
    step          a command of an assistant message (kind ``tool``): its first word; a message without a command is
                  ``respond`` (kind ``message``)
    error         the answer to the command has a return code other than 0 (``<returncode>``)
    outcome       not in the file: see the outcome files (``outcomes``)
    censoring     every run, until an outcome file speaks; the reason is ``info.exit_status``, else ``no_outcome``.
                  Any status but ``Submitted`` gives the run the attribute ``unfinished``
    task, trial   ``instance_id``, else the name of the file without ``.traj.json``; no trial
    model         ``info.config.model.model_name``
    started       the first ``extra.timestamp`` of a message, that of the first answer (v2)
    trace_id      ``<file>`` without ``.traj.json``
    ============  ===============================================================================
    """

    name = "mini-swe-agent"
    description = "mini-SWE-agent .traj.json, v1 and v2: one run a file; outcomes come from an outcome file"

    def detect(self, file: InputFile) -> bool:
        """The trajectory_format (it may lie beyond the head), or messages with return codes."""
        seen = shape(file.head)
        keys = seen.keys
        if seen.kind == "object" and (
            "trajectory_format" in keys
            or ("info" in keys and "trajectory" not in keys and b'"mini_version"' in file.head)
        ):
            return True
        return is_bare_conversation(file) and b"<returncode>" in file.head

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The run that the file is."""
        bare = is_bare_conversation(file)
        record = one_conversation(file, log) if bare else Record(file.document(), file.label, 0)

        def convert(_: Record, document: Any) -> Trace:
            run = _Run(messages=msgspec.convert(document, list[_Message])) if bare else msgspec.convert(document, _Run)
            return _trace(run, file)

        yield from convert_records([record], convert, file, log)


def _trace(run: _Run, file: InputFile) -> Trace:
    info = run.info or _Info()
    is_cut = run.info is not None and not IS_OWN_END.get(info.exit_status or "", False)
    outcome, termination = ending(None, info.exit_status or None, is_cut=is_cut)
    name = file.stem.removesuffix(".traj")
    return Trace(
        trace_id=name,
        outcome=outcome,
        steps=_steps(run.messages),
        termination=termination,
        task_id=run.instance_id or name.rpartition("/")[2],
        model=info.config.model.model_name if info.config and info.config.model else None,
        source=file.label,
        attributes=marks(None, outcome, is_cut=is_cut) | started(_began(run.messages)),
    )


def _began(messages: list[_Message]) -> str | None:
    stamps = (message.extra.timestamp for message in messages if message.extra is not None)
    return next((at for stamp in stamps if (at := instant_of_seconds(stamp)) is not None), None)


def _steps(messages: list[_Message]) -> tuple[Step, ...]:
    steps: list[Step] = []
    waiting = end = 0  # the commands that wait for their answers are steps[waiting:end]
    for message in messages:
        role = message.role
        if role == "assistant":
            waiting = len(steps)
            for text in _commands(message):
                if name := command_name(text):
                    steps.append(Step(name=name, kind="tool", text=text))
            end = len(steps)
            if waiting == end:
                steps.append(Step(name=RESPOND, kind="message", text=message.text))
        elif role in ("user", "tool") and waiting < end and (code := _return_code(message)) is not None:
            if code != 0:
                steps[waiting] = msgspec.structs.replace(steps[waiting], error=True)
            waiting += 1
    return tuple(steps)


def _commands(message: _Message) -> list[str]:
    if message.extra is not None and message.extra.actions is not None:
        return [action.command for action in message.extra.actions]
    if message.tool_calls:
        try:
            return [_decode_arguments(call.function.arguments.encode()).command for call in message.tool_calls]
        except msgspec.MsgspecError as error:
            raise RecordError(f"the arguments of a tool call: {error}", field="messages.tool_calls") from error
    blocks = _COMMAND_BLOCK.findall(message.text)
    return blocks if len(blocks) == 1 else []  # any other number is refused by the agent itself


def _return_code(message: _Message) -> int | None:
    if message.extra is not None and message.extra.returncode is not None:
        return message.extra.returncode
    text = message.text
    found = _RETURN_CODE.search(text) if "<returncode>" in text else None
    return int(found[1]) if found else None
