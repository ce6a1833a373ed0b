"""Several readouts as one confidence: the mean of their ranks, or of their calibrated probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracebridge.confidence.calibrators import Calibrator, fit_calibrator
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.errors import UsageError

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadoutEnsemble:
    """What readouts were on a calibration set, to place those of other calls among them.

    Each readout becomes its mid-rank among the calibration calls, in [0, 1], and where these have labels the isotonic
    probability of that rank. The ensemble is the mean over the readouts that are defined; NaN where none is.

    Attributes:
        sorted_scores: by readout, the calibration calls' scores that are defined, ascending.
        calibrators: by readout, fitted to mid-ranks; None without labels.
    """

    sorted_scores: Mapping[str, Floats]
    calibrators: Mapping[str, Calibrator] | None

    @classmethod
    def fit(cls, scores: Mapping[str, ArrayLike], correct: ArrayLike | None = None) -> ReadoutEnsemble:
        """From the scores of calibration calls by readout, each of shape (n,), NaN where undefined.

        Args:
            correct: shape (n,), 1, 0 or ``UNKNOWN``.

        Raises:
            UsageError: no readout, shapes that differ, or a readout that is defined nowhere.
        """
        columns = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
        if not columns or len({values.shape for values in columns.values()}) > 1:
            raise UsageError("an ensemble needs readouts of one number of calls")
        ordered = {name: np.sort(values[~np.isnan(values)]) for name, values in columns.items()}
        for name, values in ordered.items():
            if not len(values):
                raise UsageError(f"the readout {name!r} is defined for no calibration call; leave it out")
        ensemble = cls(sorted_scores=ordered, calibrators=None)
        if correct is None:
            return ensemble
        labels = np.asarray(correct)
        calibrators = {
            name: fit_calibrator("isotonic", RatedAnswers.of(mid_ranks(values, ordered[name]), labels))
            for name, values in columns.items()
        }
        return cls(sorted_scores=ordered, calibrators=calibrators)

    def confidence(self, scores: Mapping[str, ArrayLike]) -> Floats:
        """The confidence of other calls, shape (n,), in [0, 1].

        Raises:
            UsageError: for other readouts than it was fitted to.
        """
        if set(scores) != set(self.sorted_scores):
            raise UsageError(
                f"the ensemble is of {', '.join(sorted(self.sorted_scores))}, not {', '.join(sorted(scores))}"
            )
        columns = []
        for name, values in self.sorted_scores.items():
            ranks = mid_ranks(np.asarray(scores[name], dtype=np.float64), values)
            columns.append(ranks if self.calibrators is None else self.calibrators[name](ranks))
        table = np.stack(columns, axis=-1)
        defined = ~np.isnan(table)
        total = np.where(defined, table, 0.0).sum(axis=-1)
        return np.where(defined.any(axis=-1), total / np.maximum(defined.sum(axis=-1), 1), np.nan)


def mid_ranks(values: Floats, ordered: Floats) -> Floats:
    """The share of ``ordered`` (ascending) below each value, plus half the share that equals it; NaN stays NaN."""
    below, through = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.where(np.isnan(values), np.nan, (below + through) / (2 * len(ordered)))
