"""Held-out recalibration: every answer's confidence is mapped by what was fitted to the other folds.

These are estimates about candidate answers; no router is run again with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracebridge.confidence.bootstrap import DEFAULT_RESAMPLING, Resampling
from tracebridge.confidence.calibration import DEFAULT_BINS, Closed
from tracebridge.confidence.calibrators import DEFAULT_CLIP, Calibrator, CalibratorName, fit_calibrator
from tracebridge.confidence.confidence_quality import ConfidenceQuality, confidence_quality
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

#: A tier of a fold with fewer answers to fit to takes the map of all tiers.
FEWEST_PER_TIER = 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recalibration:
    """Confidence recalibrated across folds.

    Attributes:
        confidence: shape (n,), held out; NaN where none was stated.
        by_fold: what each fold's answers were mapped by, fitted to the other folds.
        by_fold_and_tier: with a map a tier: those that differ from the fold's.
        on_all: fitted to all answers, for use elsewhere; its own answers are not held out.
    """

    confidence: Floats
    by_fold: tuple[Calibrator, ...]
    by_fold_and_tier: Mapping[tuple[int, int], Calibrator]
    on_all: Calibrator

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be known about the fits: a fold with a single class, a temperature at its bound."""
        return tuple(
            f"fold {fold}: {calibrator.status}, {calibrator.reason}"
            for fold, calibrator in enumerate(self.by_fold)
            if calibrator.status != "ok"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON document, without the confidences."""
        return {
            "by_fold": [calibrator.to_dict() for calibrator in self.by_fold],
            "by_fold_and_tier": [
                {"fold": fold, "tier": tier, **calibrator.to_dict()}
                for (fold, tier), calibrator in sorted(self.by_fold_and_tier.items())
            ],
            "on_all": self.on_all.to_dict(),
        }


def recalibrate(
    name: CalibratorName,
    confidence: ArrayLike,
    correct: ArrayLike,
    fold_of_unit: Integers,
    *,
    tier_of_unit: Integers | None = None,
    per_tier: bool = False,
    clip: float = DEFAULT_CLIP,
) -> Recalibration:
    """Cross-fitted confidence; a confidence without a label is mapped too, but nothing is fitted to it.

    One map serves all tiers unless ``per_tier``: maps of tiers bring in the tiers' base rates, and so raise the AUROC
    over all of them by what is no property of the confidence.

    Args:
        confidence, correct: shape (n,), as in `RatedAnswers.of`.
        fold_of_unit: shape (n,), 0..K-1 with K >= 2, as from `tier_stratified_folds`.
        tier_of_unit: shape (n,), needed for ``per_tier``. A tier with fewer than 30 answers in the other folds, or of a
            single class there, takes the map of all tiers.
        clip: as in `fit_calibrator`.

    Raises:
        InputError: as `RatedAnswers.of`. UsageError: folds or tiers of another shape, a single fold, per_tier without
            tiers.
    """
    answers = RatedAnswers.of(confidence, correct)
    stated, folds = np.asarray(confidence, dtype=np.float64), np.asarray(fold_of_unit)
    if folds.shape != stated.shape:
        raise UsageError(f"confidences of shape {stated.shape} and folds of shape {folds.shape}")
    if per_tier and (tier_of_unit is None or np.asarray(tier_of_unit).shape != stated.shape):
        raise UsageError("a map for each tier needs the tier of every answer")
    n_folds = int(folds.max(initial=-1)) + 1
    if len(folds) and n_folds < 2:
        raise UsageError("held-out confidence needs at least two folds")
    fold_of_answer = folds[answers.kept]
    mapped = np.full(stated.shape, np.nan)
    by_fold, by_tier = [], {}
    for fold in range(n_folds):
        others, here = answers[fold_of_answer != fold], folds == fold
        pooled = fit_calibrator(name, others, clip=clip)
        by_fold.append(pooled)
        mapped[here] = pooled(stated[here])
        if per_tier:
            tiers = np.asarray(tier_of_unit)
            for tier in np.unique(tiers[here]).tolist():
                alike = others[tiers[others.kept] == tier]
                if alike.n >= FEWEST_PER_TIER and not alike.one_class:
                    by_tier[fold, tier] = calibrator = fit_calibrator(name, alike, clip=clip)
                    cell = here & (tiers == tier)
                    mapped[cell] = calibrator(stated[cell])
    return Recalibration(
        confidence=mapped,
        by_fold=tuple(by_fold),
        by_fold_and_tier=by_tier,
        on_all=fit_calibrator(name, answers, clip=clip),
    )


def recalibration_table(
    confidence: ArrayLike,
    correct: ArrayLike,
    fold_of_unit: Integers,
    *,
    names: tuple[CalibratorName, ...] = ("identity", "temperature", "platt", "isotonic"),
    cluster_of_unit: Integers | None = None,
    n_clusters: int = 0,
    n_bins: int = DEFAULT_BINS,
    closed: Closed = "left",
    clip: float = DEFAULT_CLIP,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> dict[CalibratorName, tuple[Recalibration, ConfidenceQuality]]:
    """Each calibrator held out, and the quality of its confidence; ``identity`` is confidence as it was stated.

    Intervals are given the fitted maps: the maps are not fitted again in every replicate.

    Raises:
        InputError, UsageError: as `recalibrate` and `confidence_quality`.
    """
    table = {}
    for name in names:
        done = recalibrate(name, confidence, correct, fold_of_unit, clip=clip)
        quality = confidence_quality(
            done.confidence,
            correct,
            cluster_of_unit=cluster_of_unit,
            n_clusters=n_clusters,
            n_bins=n_bins,
            closed=closed,
            resampling=resampling,
        )
        table[name] = (done, quality)
    return table
