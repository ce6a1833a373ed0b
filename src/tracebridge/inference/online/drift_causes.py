"""What speaks for drift: which rows of a chain changed, and which of their transitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracebridge.inference.online.drift_evidence import FIRMNESS, BaselineRows, RowEvidence

_MOST_CAUSES = 5
_MOST_TRANSITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTransition:
    """A transition of a row: how often new runs made it, and how often the baseline expects of as many visits.

    Attributes:
        target: the state that follows, or ``success`` or ``failure``. observed: in new runs, recent ones for the
            window, where old ones count less. expected: of as many transitions of the row, by the baseline.
    """

    target: str
    observed: float
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftCause:
    """A row that changed.

    Attributes:
        state: what the row is of; ``start`` for how runs begin.
        probability: that it changed, from the prior share and its ratio of likelihoods.
        log_evidence: the logarithm of that ratio. transitions: those that differ most, the most telling first.
    """

    state: str
    probability: float
    log_evidence: float
    transitions: tuple[ChangedTransition, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "state": self.state,
            "probability": self.probability,
            "log_evidence": self.log_evidence,
            "transitions": [
                {"target": each.target, "observed": each.observed, "expected": each.expected}
                for each in self.transitions
            ],
        }


def causes_of_all(rows: BaselineRows, evidence: Iterable[RowEvidence], share: float) -> list[DriftCause]:
    """The rows in which all new transitions together speak for drift, with a ratio of likelihoods above one.

    Args:
        rows: of the baseline. evidence: of each row, in their order. share: prior probability that a row changed.

    Returns:
        The first few, those with the largest ratio first.
    """
    found = []
    for row, each in enumerate(evidence):
        ratio = float((_log_mean_exp(each.alternative) - np.array(each.null)).min())
        found.append((ratio, row, each, each.new))
    return _causes(rows, found, share)


def causes_of_recent(
    rows: BaselineRows, evidence: Iterable[RowEvidence], share: float, run: int, forgetting: float
) -> list[DriftCause]:
    """The same of recent transitions, which count the less the older they are.

    Args:
        rows, evidence, share: as for `causes_of_all`. run: the number of the last run. forgetting: what is kept of a
            count from run to run.
    """
    found = []
    for row, each in enumerate(evidence):
        kept = forgetting ** (run - each.last_run)
        counts = {j: n * kept for j, n in each.recent.items()}
        found.append((_ratio_of_counts(each, counts), row, each, counts))
    return _causes(rows, found, share)


def _causes(
    rows: BaselineRows, found: Sequence[tuple[float, int, RowEvidence, Mapping[int, float]]], share: float
) -> list[DriftCause]:
    causes = []
    for ratio, row, evidence, counts in found:
        if ratio <= 0:
            continue
        odds = math.log(share) + ratio - math.log1p(-share)
        causes.append(
            DriftCause(
                state=rows.name(row),
                probability=1 / (1 + math.exp(-odds)),
                log_evidence=ratio,
                transitions=_changed(rows, evidence, counts),
            )
        )
    return sorted(causes, key=lambda cause: (-cause.log_evidence, cause.state))[:_MOST_CAUSES]


def _changed(rows: BaselineRows, evidence: RowEvidence, counts: Mapping[int, float]) -> tuple[ChangedTransition, ...]:
    total = sum(counts.values())
    told = []
    for code, name in enumerate(rows.outcomes):
        observed, expected = float(counts.get(code, 0)), total * evidence.mean(code)
        # its part of the divergence of the new row from the old one
        part = (observed * math.log(observed / expected) if observed else 0.0) - observed + expected
        told.append((part, ChangedTransition(target=name, observed=observed, expected=expected)))
    told.sort(key=lambda each: (-each[0], each[1].target))
    return tuple(each for _, each in told[:_MOST_TRANSITIONS])


def _log_mean_exp(logs: Sequence[float]) -> float:
    largest = max(logs)
    return largest + math.log(sum(math.exp(value - largest) for value in logs) / len(logs))


def _ratio_of_counts(evidence: RowEvidence, counts: Mapping[int, float]) -> float:
    """The ratio of likelihoods of counts that need not be whole, against the baseline alone; the least over masses."""
    total = sum(counts.values())

    def marginal(prior: Mapping[int, float], mass: float) -> float:
        found = math.lgamma(mass) - math.lgamma(mass + total)
        return found + sum(math.lgamma(prior[j] + n) - math.lgamma(prior[j]) for j, n in counts.items())

    alternatives = [marginal({j: k * evidence.mean(j) for j in counts}, k) for k in FIRMNESS]
    nulls = [
        marginal({j: evidence.baseline.get(j, 0) + a / evidence.size for j in counts}, evidence.n_baseline + a)
        for a in evidence.masses
    ]
    return _log_mean_exp(alternatives) - max(nulls)
