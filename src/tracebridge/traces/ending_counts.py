"""What the rules for endings made of the runs: for each reason, what sources said and what the runs count as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping  # needed at run time: counts are decoded by their types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.traces.model import Outcome
from tracebridge.traces.readers.verdict import VERDICT

if TYPE_CHECKING:
    from tracebridge.traces.model import Trace

MAX_REASONS = 1_000
OTHER_REASONS = "(other reasons)"

_UNKNOWN = "unknown"
_VERDICTS = (Outcome.SUCCESS.value, Outcome.FAILURE.value, _UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingCount:
    """The runs that ended for one reason.

    Attributes:
        n_runs: runs.
        outcomes: what they count as: runs by ``success``, ``failure``, ``censored`` and ``dropped``.
        verified: what their sources say: runs by ``success``, ``failure`` and ``unknown``. A failure that a rule does
            not count, because something cut the run before it had failed, is among the failures.
    """

    n_runs: int
    outcomes: Mapping[str, int]
    verified: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"n_runs": self.n_runs, "outcome_by_rule": dict(self.outcomes), "verified": dict(self.verified)}


class EndingTally:
    """Counts runs by the reason for their end, before and after a user's own rules; those without one are left out.

    Of more than `MAX_REASONS` reasons those that come later are counted together.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, None] = {}  # in the order of first occurrence
        self._verified: Counter[tuple[str, str]] = Counter()
        self._counted: Counter[tuple[str, str]] = Counter()

    def found(self, trace: Trace) -> Trace:
        """Count a run as its source has it, and hand it on."""
        if trace.termination is not None:
            self._verified[self._reason(trace.termination), verified_outcome(trace)] += 1
        return trace

    def counted(self, trace: Trace) -> Trace:
        """Count a run as it was handed out, and hand it on; one that was found and is not counted was dropped."""
        if trace.termination is not None:
            self._counted[self._reason(trace.termination), trace.outcome.value] += 1
        return trace

    def add(self, other: EndingTally) -> None:
        """Add the counts of other runs."""
        for mine, theirs in ((self._verified, other._verified), (self._counted, other._counted)):
            for (reason, what), n in theirs.items():
                mine[self._reason(reason), what] += n

    def counts(self) -> dict[str, EndingCount]:
        """The counts by reason, in the order of first occurrence."""
        found = {}
        for reason in self._reasons:
            verified = {verdict: self._verified[reason, verdict] for verdict in _VERDICTS}
            outcomes = {outcome.value: self._counted[reason, outcome.value] for outcome in Outcome}
            n_runs = sum(verified.values())
            outcomes["dropped"] = n_runs - sum(outcomes.values())
            found[reason] = EndingCount(n_runs=n_runs, outcomes=outcomes, verified=verified)
        return found

    @classmethod
    def of_counts(cls, counts: Mapping[str, EndingCount]) -> EndingTally:
        """The tally that has these counts.

        Raises:
            ValueError: for numbers of runs that do not add up.
        """
        tally = cls()
        for reason, count in counts.items():
            if not sum(count.verified.values()) == sum(count.outcomes.values()) == count.n_runs:
                raise ValueError(f"runs that ended with {reason!r:.80} do not add up")
            tally._reasons[reason] = None
            tally._verified.update({(reason, verdict): count.verified[verdict] for verdict in _VERDICTS})
            tally._counted.update({(reason, outcome.value): count.outcomes[outcome.value] for outcome in Outcome})
        return tally

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, by reason."""
        return {reason: count.to_dict() for reason, count in self.counts().items()}

    def _reason(self, reason: str) -> str:
        if reason not in self._reasons:
            if len(self._reasons) >= MAX_REASONS:
                reason = OTHER_REASONS
            self._reasons[reason] = None
        return reason


def verified_outcome(trace: Trace) -> str:
    """What the source of a run says: ``success``, ``failure``, or ``unknown``, whatever the run counts as."""
    if trace.outcome is not Outcome.CENSORED:
        return trace.outcome.value
    verdict = trace.attributes.get(VERDICT)
    return verdict if verdict in _VERDICTS else _UNKNOWN
