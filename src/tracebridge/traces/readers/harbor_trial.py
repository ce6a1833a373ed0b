"""The ``result.json`` of a Harbor trial: reward, exception, task, trial; and the trials that have no trajectory."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem
from tracebridge.traces.files import InputFile
from tracebridge.traces.model import Outcome, Trace
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.instants import instant, started
from tracebridge.traces.readers.records import Record, RecordError, convert_records, decode_document
from tracebridge.traces.readers.verdict import ending, verdict_of
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracebridge.traces.problems import ProblemLog

EXCEPTIONS: Mapping[str, bool] = MappingProxyType(
    {
        # The agent's own doing: the reward is a verdict.
        "NonZeroAgentExitCodeError": True,
        "NonZeroAgentExitCode": True,
        "ContextLengthExceededError": True,
        "OutputLengthExceededError": True,
        "RefusalError": True,
        # A limit cut the run: a reward of 1 is a success that was verified, a reward of 0 is no failure yet.
        "AgentTimeoutError": False,
    }
)
"""For each exception after which the reward means something, whether it is a verdict both ways (true), or only a reward
of 1 is (false). After any other exception (sandbox, provider, verifier, or one that nobody knows) no reward counts."""

TRAJECTORY_NAMES = ("agent/trajectory.json", "trajectory.json")
_MAX_RESULT_BYTES = 64 << 20


class _ModelInfo(msgspec.Struct):
    name: str | None = None
    provider: str | None = None


class _AgentInfo(msgspec.Struct):
    model_info: _ModelInfo | None = None


class _Exception(msgspec.Struct):
    exception_type: str


class _Verifier(msgspec.Struct):
    rewards: dict[str, float | None] | None = None


class _StepResult(msgspec.Struct):
    exception_info: _Exception | None = None


class TrialResult(msgspec.Struct):
    """The fields of a trial's ``result.json`` that matter here."""

    task_name: str
    trial_name: str
    started_at: Any = None
    agent_info: _AgentInfo | None = None
    verifier_result: _Verifier | None = None
    exception_info: _Exception | None = None
    step_results: list[_StepResult] | None = None

    @property
    def model(self) -> str | None:
        """The model as ``provider/name``."""
        info = self.agent_info.model_info if self.agent_info else None
        return "/".join(filter(None, (info.provider, info.name))) or None if info else None

    @property
    def exception(self) -> str | None:
        """The type of the trial's exception, or of the first step that has one: it may stand only there."""
        infos = [self.exception_info, *(step.exception_info for step in self.step_results or [])]
        return next((info.exception_type for info in infos if info is not None), None)

    @property
    def reward(self) -> float | None:
        """The reward that is called so, or the only one.

        Raises:
            RecordError: there are several, and none is called ``reward``.
        """
        rewards = (self.verifier_result.rewards if self.verifier_result else None) or {}
        if "reward" in rewards or not rewards:
            return rewards.get("reward")
        if len(rewards) > 1:
            message = f"which of the rewards {', '.join(map(shown, list(rewards)[:10]))} is the outcome?"
            raise RecordError(message, field="verifier_result.rewards", hint="call it reward")
        return next(iter(rewards.values()))

    def judgement(self) -> tuple[bool | None, str | None, bool]:
        """The verdict, the reason for the end, and whether something cut the run.

        Raises:
            RecordError: a reward that is neither 0 nor 1.
        """
        exception = self.exception
        if exception is not None and exception not in EXCEPTIONS:
            return None, exception, True
        verdict = verdict_of(self.reward, field="verifier_result.rewards")
        is_cut = exception is not None and not EXCEPTIONS[exception]
        return verdict, exception or ("no_reward" if verdict is None else None), is_cut


_decode_result = msgspec.json.Decoder(TrialResult).decode


def find_result(trajectory: Path) -> Path | None:
    """The ``result.json`` of the trial that a trajectory belongs to."""
    folders = [trajectory.parent, *([trajectory.parent.parent] if trajectory.parent.name == "agent" else [])]
    return next((path for folder in folders if (path := folder / "result.json").is_file()), None)


def read_result(path: Path) -> TrialResult:
    """Decode a trial's result.

    Raises:
        TraceError: it cannot be read or is none.
    """
    with InputFile(path, path.name) as file:
        return decode_document(_decode_result, file.document(_MAX_RESULT_BYTES), file.label)


class HarborTrialReader:
    """Harbor trials without a trajectory, by their ``result.json``.

    ============  ===============================================================================
    run           a ``result.json`` with a ``trial_name`` that has no trajectory beside it or in ``agent/``; where it
                  has one, the run is read from that (format ``atif``). The ``result.json`` of a whole job holds no run
    step          none: the trial broke off before it began. A trial that was judged took steps, which are unknown
                  without its trajectory, and is refused
    error         none
    outcome       as in the format ``atif``
    censoring     as in the format ``atif``
    task, trial   ``task_name``, ``trial_name``
    model         ``agent_info.model_info``
    started       ``started_at``
    trace_id      ``<file>``
    ============  ===============================================================================
    """

    name = "harbor-trial"
    description = "Harbor result.json: the outcome of a trial; its steps are read from the trajectory.json"

    def detect(self, file: InputFile) -> bool:
        """The result of a trial or of a job."""
        seen = shape(file.head)
        return seen.kind == "object" and ({"task_name", "trial_name"} <= seen.keys or _is_job(file))

    def companions(self, file: InputFile) -> Sequence[Path]:
        """The trial's trajectory."""
        return [] if file.path is None else _trajectories(file.path)

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The run of a trial without a trajectory."""
        location = Location(path=file.label)
        if _is_job(file):
            log.note(Problem(location=location, message="the summary of a job holds no run"))
            return
        if file.path is not None and _trajectories(file.path):
            return

        def convert(_: Record, document: Any) -> Trace:
            result = msgspec.convert(document, TrialResult)
            verdict, reason, is_cut = result.judgement()
            outcome, termination = ending(verdict, reason, is_cut=is_cut)
            if outcome is not Outcome.CENSORED:
                message = "the trial was judged, but it has no trajectory.json: nobody can say what steps it took"
                raise RecordError(message, hint="have the agent write one, or leave the trial out")
            return Trace(
                trace_id=file.stem,
                outcome=outcome,
                termination=termination,
                task_id=result.task_name,
                trial=result.trial_name,
                model=result.model,
                source=file.label,
                attributes=started(instant(result.started_at)),
            )

        yield from convert_records([Record(file.document(), file.label, 0)], convert, file, log)


def _is_job(file: InputFile) -> bool:
    return {"n_total_trials", "stats"} <= shape(file.head).keys


def _trajectories(result: Path) -> list[Path]:
    return [path for name in TRAJECTORY_NAMES if (path := result.parent / name).is_file()]
