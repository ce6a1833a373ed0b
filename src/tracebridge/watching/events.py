"""What a reader of a stream is told, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.checking.result import number_to_json
from tracebridge.inference.uncertainty import PropertyUncertainty
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement
    from tracebridge.inference.online.drift import DriftMonitor, DriftReading
    from tracebridge.inference.online.drift_causes import DriftCause
    from tracebridge.states.features import FeatureVector
    from tracebridge.watching.followed_files import FileEvent

EventKind = Literal["verdict", "drift", "unseen", "certificate", "chain", "file", "problem"]

#: Said beside every drift alarm.
WHAT_DRIFT_MEANS = "Other tasks and other behaviour look alike here: look at which tasks these runs are"

_MOST_NAMED = 3  # rows in the text of an alarm
_LIKELY = 0.5  # the probability of having changed from which on a row is named
_CHANCE = 2.0  # standard deviations of a count that are not worth a word
_LEAST_SHOWN = 1e-6  # the smallest p-value that is shown by its digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that a reader of the stream is told.

    Attributes:
        kind: ``verdict`` and ``certificate`` for one that changed, ``drift`` and ``unseen`` for alarms, ``chain`` where
            no chain can be fitted or properties do not fit it, ``file`` and ``problem`` for what happened to the files
            and their records.
        run: how many runs there were. text: one line. data: the numbers, as JSON values.
    """

    kind: EventKind
    run: int
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_alarm(self) -> bool:
        """Whether runs are not as they were."""
        return self.kind in ("drift", "unseen")

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"event": self.kind, "run": self.run, "text": self.text, **self.data}


def drift_event(monitor: DriftMonitor, reading: DriftReading) -> Event:
    """The alarm of a reading, with the rows that speak for it."""
    causes = monitor.causes(recent=not reading.newly)
    where = _what_was_seen(causes)
    if reading.newly:
        rate = f"a false alarm ever has a probability of at most {monitor.alpha:.6g}"
        p = f"p = {reading.p:.2g}" if reading.p >= _LEAST_SHOWN else f"p < {_LEAST_SHOWN:.0e}"
        text = f"drift: runs no longer fit the baseline ({p}; {rate})"
    else:
        rate = f"false alarms are at least {monitor.run_length:,.0f} runs apart on average"
        text = f"drift: recent runs do not fit the baseline ({rate})"
    return Event(
        kind="drift",
        run=reading.runs,
        text=f"{text}: {where}. {WHAT_DRIFT_MEANS}",
        data={
            "alarm": "ever" if reading.newly else "window",
            "p": reading.p,
            "log_e": reading.log_e,
            "detector": number_to_json(reading.detector),
            "causes": [cause.to_dict() for cause in causes],
        },
    )


def verdict_event(
    run: int, before: str | None, verdict: str, agreement: Agreement, effective_runs: float | None
) -> Event:
    """A verdict that changed, with its number and interval."""
    name = agreement.property.name or agreement.property.text
    uncertainty = agreement.uncertainty
    interval = point = None
    if isinstance(uncertainty, PropertyUncertainty):
        interval, point = uncertainty.interval, uncertainty.point
    number = "" if point is None else f": {point:.4g}"
    if interval is not None:
        number += f" [{interval.lower:.4g}, {interval.upper:.4g}]"
    was = "" if before is None else f", was {before}"
    return Event(
        kind="verdict",
        run=run,
        text=f"{name} {verdict}{was}{number}",
        data={
            "property": name,
            "verdict": verdict,
            "before": before,
            "value": None if point is None else number_to_json(point),
            "interval": None if interval is None else interval.to_dict(),
            "effective_runs": effective_runs,
        },
    )


def certificate_event(run: int, n_runs: int, before: str | None, verdict: str, reasons: Sequence[str]) -> Event:
    """A verdict of the certificate that changed."""
    why = f": {'; '.join(reasons)}" if reasons else ""
    return Event(
        kind="certificate",
        run=run,
        text=f"certificate of the last {counted(n_runs, 'run')}: {verdict}{why}",
        data={"verdict": verdict, "before": before, "reasons": list(reasons)},
    )


def file_event(found: FileEvent, run: int) -> Event:
    """What happened to a file."""
    return Event(kind="file", run=run, text=found.text, data={"path": found.path})


def repeated_event(places: Sequence[str], run: int) -> Event:
    """Runs whose trace_id was counted before."""
    told = "1 run was" if len(places) == 1 else f"{len(places)} runs were"
    text = f"{told} counted before, by trace_id, and not again; the first is {places[0]}"
    return Event(kind="problem", run=run, text=text)


def unseen_event(vector: FeatureVector, run: int) -> Event:
    """The alarm of a kind of step that the baseline does not have."""
    return Event(
        kind="unseen",
        run=run,
        text=f"unseen state: no run of the baseline has the step {vector}",
        data={"step": {name: getattr(vector, name) for name in vector._fields}},
    )


def _what_was_seen(causes: Sequence[DriftCause]) -> str:
    """The rows that likely changed, in counts: smaller evidence is what chance makes of rows that did not."""
    likely = [cause for cause in causes if cause.probability >= _LIKELY][:_MOST_NAMED]
    return "; ".join(map(_cause_text, likely)) or "no row stands out by itself"


def _cause_text(cause: DriftCause) -> str:
    first, *others = cause.transitions
    told = [first, *(each for each in others if abs(each.observed - each.expected) > _CHANCE * each.expected**0.5)]
    changes = ", ".join(f"{each.target} {each.observed:.3g} times ({each.expected:.3g} expected)" for each in told[:2])
    return f"after {cause.state} came {changes}"
