"""What each reason for the end of a run makes of its outcome: one table of all formats, and a user's own rules."""

from __future__ import annotations

import difflib
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.corpus import TraceFile
from tracebridge.traces.files import InputFile
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.model import Outcome
from tracebridge.traces.problems import counted, escaped, shown
from tracebridge.traces.readers import harbor_trial, mini_swe_agent, openhands, swe_agent, tau2_bench
from tracebridge.traces.readers.verdict import NO_OUTCOME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracebridge.traces.model import Trace
    from tracebridge.traces.problems import ProblemLog

Treatment = Literal["failure", "censored", "drop"]
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What becomes of the runs of a format that end for a reason.

    Attributes:
        format: the name of the format.
        reason: the termination; ``*`` stands for any that is not listed.
        success: what a verdict of success is then worth.
        failure: what a verdict of failure is then worth.
    """

    format: str
    reason: str
    success: Literal["success", "censored"]
    failure: Literal["failure", "censored"]

    def to_dict(self) -> dict[str, str]:
        """Plain JSON values."""
        return {
            "format": self.format,
            "reason": self.reason,
            "a success is": self.success,
            "a failure is": self.failure,
        }


def known_endings() -> tuple[Ending, ...]:
    """The rules of all formats, made of the tables that the readers themselves go by.

    A reason that is the agent's own doing leaves the verdict as it is. A limit leaves a success that was verified, and
    censors a failure, because the run had not failed yet. Where somebody else broke off, or nobody judged, no verdict
    counts.
    """

    def row(name: str, reason: str, *, success: bool, failure: bool) -> Ending:
        return Ending(
            format=name,
            reason=reason,
            success="success" if success else "censored",
            failure="failure" if failure else "censored",
        )

    def rows(name: str, is_own: Mapping[str, bool]) -> list[Ending]:
        """Of agents whose verdict comes from elsewhere: a verified success counts whatever ended the run."""
        return [row(name, reason, success=True, failure=own) for reason, own in is_own.items()]

    unjudged = {
        "tau-bench": ("step_cap", "harness_crash", "no_reward"),
        "tau2-bench": ("premature", "no_reward"),
        "atif": ("no_reward", NO_OUTCOME),
        "inspect": ("no_score", "invalidated"),
        "claude-code": ("api_error", NO_OUTCOME),
        **dict.fromkeys(("flat", "messages", "otlp", "openhands", "ag2"), (NO_OUTCOME,)),
    }
    return (
        *(
            row("tau2-bench", reason, success=verdict, failure=verdict)
            for reason, verdict in tau2_bench.REWARD_IS_VERDICT.items()
        ),
        *rows("swe-agent", swe_agent.IS_OWN_END),
        row("swe-agent", "*", success=True, failure=False),
        *rows("mini-swe-agent", mini_swe_agent.IS_OWN_END),
        row("mini-swe-agent", "*", success=True, failure=False),
        *rows("atif", harbor_trial.EXCEPTIONS),
        row("atif", "*", success=False, failure=False),
        *(row("openhands", reason, success=True, failure=not is_cut) for _, reason, is_cut in openhands.ENDS),
        row("openhands", "error", success=True, failure=False),
        row("inspect", "*_limit", success=True, failure=False),
        row("inspect", "error", success=True, failure=False),
        *(row(name, reason, success=False, failure=False) for name, reasons in unjudged.items() for reason in reasons),
    )


class EndingRules:
    """A user's own rules: for each termination reason, what a run that ended for it and did not succeed counts as.

    A run that succeeded stays a success. ``failure`` and ``censored`` set the outcome, ``drop`` leaves the run out.

    Attributes:
        rules: termination to treatment.
        touched: how many runs each rule has been applied to, in the latest `apply`.
        files: the file that the rules were read from, with its hash.
    """

    def __init__(self, rules: Mapping[str, Treatment], source: str) -> None:
        self.rules = dict(rules)
        self.touched: Counter[str] = Counter()
        self.files: list[TraceFile] = []
        self._source = source

    def apply(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """The traces under these rules."""
        self.touched = Counter()
        for trace in traces:
            reason = trace.termination
            treatment = None if reason is None or trace.outcome is Outcome.SUCCESS else self.rules.get(reason)
            if reason is None or treatment is None:
                yield trace
                continue
            self.touched[reason] += 1
            if treatment != "drop":
                yield msgspec.structs.replace(trace, outcome=Outcome(treatment))

    def remark(self, log: ProblemLog, touched: Mapping[str, int], reasons: Iterable[str]) -> None:
        """Note in a log how many runs each rule has touched, and for one that touched none what else there was."""
        for reason, treatment in self.rules.items():
            location = Location(path=self._source, field=escaped(reason))
            hint = None
            n_runs = touched.get(reason, 0)
            if not n_runs:
                close = difflib.get_close_matches(reason, sorted({*reasons} - {reason}), n=1)
                hint = f"did you mean {escaped(close[0])}?" if close else None
            message = f"{counted(n_runs, 'run')} by this rule: {_MEANINGS[treatment]}"
            log.note(Problem(location=location, message=message, hint=hint))


_MEANINGS: dict[Treatment, str] = {
    "failure": "counted as failed",
    "censored": "counted as censored",
    "drop": "left out",
}


def read_ending_rules(path: str | Path) -> EndingRules:
    """Read rules from a TOML file with a table ``[endings]`` of lines such as ``max_steps = "failure"``, or as JSON.

    Raises:
        TraceError: the file cannot be read, or a rule is none of failure, censored and drop.
    """
    path = Path(path)
    with InputFile(path, path.name) as file:
        data = file.document(_MAX_BYTES)
        try:
            document: Any = decode_strictly(data) if data.lstrip().startswith(b"{") else tomllib.loads(data.decode())
        except (JsonTextError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise file.damaged(f"neither TOML nor JSON: {error}") from error
        table = document.get("endings")
        if not isinstance(table, dict) or not table or len(document) != 1:
            raise file.damaged('one table [endings] was expected, of lines such as max_steps = "failure"')
        problems = [
            Problem(
                location=Location(path=file.label, field=escaped(reason)),
                message=f"a run that ends so cannot count as {shown(treatment)}",
                hint=f"one of {', '.join(get_args(Treatment))}",
            )
            for reason, treatment in table.items()
            if treatment not in get_args(Treatment)
        ]
        if problems:
            raise TraceError(problems)
        rules = EndingRules(table, file.label)
        sha256 = file.sha256()
        rules.files.append(
            TraceFile(path=file.label, format="endings", sha256=sha256, n_bytes=file.n_bytes, n_records=0)
        )
        return rules
