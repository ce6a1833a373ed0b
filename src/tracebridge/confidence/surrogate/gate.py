"""What to do with the confidence in a call: carry it out or escalate it, or tell the agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Carries out calls whose confidence is at least the threshold; escalates others, and those without confidence.

    Attributes:
        threshold: in the units of the confidence.
        coverage: the share of calls that it is to carry out.
    """

    threshold: float
    coverage: float

    @classmethod
    def at_coverage(cls, confidence: ArrayLike, coverage: float = 0.5) -> Gate:
        """The gate that carries out this share of the calibration calls; all of those that tie at the threshold.

        Raises:
            UsageError: a coverage outside (0, 1], or no confidence at all.
        """
        if not 0 < coverage <= 1:
            raise UsageError(f"a coverage lies above 0 and is at most 1, not {coverage}")
        values = np.asarray(confidence, dtype=np.float64)
        known = np.sort(values[~np.isnan(values)])[::-1]
        if not len(known):
            raise UsageError("no calibration call has a confidence")
        # of all calls, those without a confidence included: these are never carried out
        wanted = min(len(known), max(1, int(np.ceil(coverage * len(values) - 1e-9))))
        return cls(threshold=float(known[wanted - 1]), coverage=coverage)

    def accepts(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """Whether to carry out each call."""
        return np.asarray(np.asarray(confidence, dtype=np.float64) >= self.threshold)


def feedback_message(result: str, confidence: float) -> dict[str, Any]:
    """What the agent is told in feedback mode: the tool's result and how trustworthy its call looked.

    Raises:
        UsageError: a confidence outside [0, 1]; undefined (NaN) is told as null.
    """
    if not (np.isnan(confidence) or 0 <= confidence <= 1):
        raise UsageError(f"a confidence lies between 0 and 1, not at {confidence}")
    return {"result": result, "call_confidence": None if np.isnan(confidence) else round(confidence, 4)}
