"""tau-bench trajectories: an array (or JSON Lines) of runs, each a list of OpenAI chat messages and a reward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem
from tracebridge.traces.model import Outcome, Trace
from tracebridge.traces.readers.conversation import Message, agent_steps
from tracebridge.traces.readers.records import Record, convert_records, json_records
from tracebridge.traces.readers.reward import outcome_of_reward
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

_TOOL_ERROR_PREFIX = "Error:"


class _Attempt(msgspec.Struct):
    task_id: int | str | None = None
    trial: int | str | None = None


class _Evaluation(msgspec.Struct):
    pass


class _Info(msgspec.Struct):
    reward_info: _Evaluation | msgspec.UnsetType | None = msgspec.UNSET
    error: Any = None


class _Run(_Attempt):
    reward: float | None = None
    traj: list[Message] | None = None
    info: _Info | None = None


_decode_attempt = msgspec.json.Decoder(_Attempt).decode


class TauBenchReader:
    """tau-bench, and any file of OpenAI messages (``traj``) with a ``reward``.

    ============  ===============================================================================
    run           an element of the array, or a line
    step          an assistant message: its tool call (kind ``tool``, the function's name), or, without
                  one, ``respond`` (kind ``message``); parallel calls are one step each
    error         the result of the call, paired by position, starts with ``Error:``
    outcome       ``reward``: 1 success, 0 failure, within 1e-6; anything else is a problem
    censoring     ``step_cap``: ``info.reward_info`` is null, so the environment never finished and the
                  recorded reward of 0 is no verdict; ``harness_crash``: ``traj`` is empty and
                  ``info.error`` is set; ``no_reward``: ``reward`` is null or missing
    task, trial   ``task_id``, ``trial``; a trial that repeats the task id in every run of the file is no
                  replicate and is left out, with a note
    model         not in the file
    trace_id      ``<file>/<task>/<trial>``
    ============  ===============================================================================

    The file is read whole, up to 2 GiB; of each run only the fields above are decoded, one run at a time.
    """

    name = "tau-bench"
    description = "tau-bench: an array or JSON Lines of runs with task_id, trial, reward and traj (OpenAI messages)"

    def detect(self, file: InputFile) -> bool:
        """Records that have a reward, and traj or info and task_id (traj may lie beyond the head)."""
        seen = shape(file.head)
        keys = seen.keys
        return seen.kind in ("object", "array") and "reward" in keys and ("traj" in keys or {"task_id", "info"} <= keys)

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs in file order."""
        records = list(json_records(file, log))
        has_trials = not _trial_repeats_task(records)
        if not has_trials:
            message = "the field trial repeats task_id in every run: it counts no replicates and is left out"
            log.note(Problem(location=Location(path=file.label, field="trial"), message=message))

        def convert(record: Record, document: Any) -> Trace:
            return _trace(msgspec.convert(document, _Run), record, file.stem, has_trials=has_trials)

        yield from convert_records(records, convert, file, log)


def _trial_repeats_task(records: list[Record]) -> bool:
    tasks = set()
    for record in records:
        try:
            attempt = _decode_attempt(record.data)
        except (msgspec.MsgspecError, RecursionError):
            continue  # it is reported when the record itself is converted
        if attempt.trial is None or str(attempt.trial) != str(attempt.task_id):
            return False
        tasks.add(str(attempt.task_id))
    return len(tasks) > 1


def _trace(run: _Run, record: Record, stem: str, *, has_trials: bool) -> Trace:
    task = None if run.task_id is None else str(run.task_id)
    trial = str(run.trial) if has_trials and run.trial is not None else None
    parts = [part for part in (task, trial) if part is not None] or [str(record.number)]
    outcome, termination = _ending(run)
    attributes: dict[str, Any] = {} if run.reward is None else {"reward": run.reward}
    return Trace(
        trace_id="/".join([stem, *parts]),
        outcome=outcome,
        steps=agent_steps(run.traj or [], is_error=_reports_error),
        termination=termination,
        task_id=task,
        trial=trial,
        source=record.source,
        attributes=attributes,
    )


def _ending(run: _Run) -> tuple[Outcome, str | None]:
    info = run.info or _Info()
    if not run.traj and info.error is not None:
        return Outcome.CENSORED, "harness_crash"
    if info.reward_info is None:
        return Outcome.CENSORED, "step_cap"
    if run.reward is None:
        return Outcome.CENSORED, "no_reward"
    return outcome_of_reward(run.reward, field="reward"), None


def _reports_error(message: Message) -> bool:
    return message.starts_with(_TOOL_ERROR_PREFIX)
