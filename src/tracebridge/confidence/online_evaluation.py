"""How well confidence that was corrected online does, on responses whose outcomes were not known, and after shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.bootstrap import DEFAULT_RESAMPLING, UNBOUNDED, Bounds, Resampling, ratio_interval
from tracebridge.confidence.confidence_quality import confidence_quality
from tracebridge.confidence.metric_value import MetricValue, ratio
from tracebridge.confidence.online import ResponseStream, prequential_confidence, selected_responses
from tracebridge.confidence.online_baselines import ONLINE_CALIBRATORS
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracebridge.confidence.online import OnlineCalibrator

Floats: TypeAlias = NDArray[np.float64]

DEFAULT_WINDOW = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineQuality:
    """The quality of one calibrator on one stream.

    Attributes:
        name: of the calibrator.
        confidence: (N,) corrected.
        metrics: ECE, Brier, AUROC and AUARC of all responses; ``ECE after shifts``; ``pairwise resolution``: the share
            of pairs of a right and a wrong response of one round that confidence orders rightly, ties one half;
            ``selection accuracy``, and its ``gain over stated confidence``. Intervals are of rounds drawn again, given
            what the calibrator did.
    """

    name: str
    confidence: Floats
    metrics: Mapping[str, MetricValue]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document, without the confidences."""
        return {"name": self.name, "metrics": [metric.to_dict() for metric in self.metrics.values()]}


def online_quality(
    name: str,
    stream: ResponseStream,
    confidence: Floats,
    *,
    shifts: Sequence[int] = (),
    window: int = DEFAULT_WINDOW,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> OnlineQuality:
    """The quality of corrected confidence.

    Args:
        confidence: shape (N,), as from `prequential_confidence`.
        shifts: rounds at which the stream changed. window: how many rounds from each count as after it.

    Raises:
        UsageError: a confidence of another shape, a window without rounds.
    """
    if confidence.shape != stream.confidence.shape:
        raise UsageError(f"{len(stream.confidence)} responses and confidences of shape {confidence.shape}")
    if window < 1:
        raise UsageError(f"a window has one round or more, not {window}")
    T = stream.n_rounds
    quality = confidence_quality(
        confidence, stream.correct, cluster_of_unit=stream.round, n_clusters=T, resampling=resampling
    )
    metrics = {measure: quality[measure] for measure in ("ECE", "Brier", "AUROC", "AUARC")}
    after = np.zeros(len(confidence), dtype=np.bool_)
    for shift in shifts:
        after |= (stream.round >= shift) & (stream.round < shift + window)
    shifted = confidence_quality(
        confidence[after],
        stream.correct[after],
        cluster_of_unit=stream.round[after],
        n_clusters=T,
        resampling=resampling,
    )
    metrics["ECE after shifts"] = shifted["ECE"]
    wins, pairs = _pairs_won(stream, confidence)
    metrics["pairwise resolution"] = _over_rounds(
        "pairwise resolution", wins, pairs, "pairs of a right and a wrong response of one round", resampling
    )
    corrected, stated = (_selected_right(stream, weights) for weights in (confidence, stream.confidence))
    answered = (np.bincount(stream.round, minlength=T) > 0).astype(np.float64)
    rounds = "rounds with a response"
    metrics["selection accuracy"] = _over_rounds("selection accuracy", corrected, answered, rounds, resampling)
    metrics["gain over stated confidence"] = _over_rounds(
        "gain over stated confidence", corrected - stated, answered, rounds, resampling, bounds=UNBOUNDED
    )
    return OnlineQuality(name=name, confidence=confidence, metrics=metrics)


def compare_online(
    stream: ResponseStream,
    *,
    calibrators: Mapping[str, Callable[[], OnlineCalibrator]] | None = None,
    shifts: Sequence[int] = (),
    window: int = DEFAULT_WINDOW,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> tuple[OnlineQuality, ...]:
    """The quality of several calibrators on one stream, each fed the same outcomes at the same time.

    Args:
        calibrators: by name, each called for a new one; all of ``ONLINE_CALIBRATORS`` by default.
        shifts, window, resampling: as in `online_quality`.

    Raises:
        UsageError: as `online_quality`.
    """
    return tuple(
        online_quality(
            name,
            stream,
            prequential_confidence(make(), stream),
            shifts=shifts,
            window=window,
            resampling=resampling,
        )
        for name, make in (ONLINE_CALIBRATORS if calibrators is None else calibrators).items()
    )


def _pairs_won(stream: ResponseStream, confidence: Floats) -> tuple[Floats, Floats]:
    """By round, the pairs of a right and a wrong response that are ordered rightly, and all of them; shape (T,)."""
    T, correct = stream.n_rounds, stream.correct == 1
    order = np.lexsort([confidence, stream.round])
    round_, sorted_confidence = stream.round[order], confidence[order]
    starts = np.concatenate([[True], (np.diff(round_) > 0) | (np.diff(sorted_confidence) > 0)])[: len(order)]
    tie = np.cumsum(starts) - 1
    right, wrong = (np.bincount(tie, labels[order]) for labels in (correct, ~correct))
    round_of_tie = round_[starts]
    rights, wrongs = (np.bincount(round_of_tie, counts, minlength=T) for counts in (right, wrong))
    before = np.cumsum(wrong) - wrong - (np.cumsum(wrongs) - wrongs)[round_of_tie]
    wins = np.bincount(round_of_tie, right * (before + wrong / 2), minlength=T)
    return wins.astype(np.float64), np.asarray(rights * wrongs, dtype=np.float64)


def _selected_right(stream: ResponseStream, confidence: Floats) -> Floats:
    chosen = selected_responses(stream, confidence)
    return np.where(chosen != UNKNOWN, stream.correct[np.maximum(chosen, 0)] == 1, False).astype(np.float64)


def _over_rounds(
    name: str,
    numerator: Floats,
    denominator: Floats,
    denominator_name: str,
    resampling: Resampling,
    *,
    bounds: Bounds = (0.0, 1.0),
) -> MetricValue:
    metric = ratio(name, float(numerator.sum()), float(denominator.sum()), denominator_name)
    rounds = np.arange(len(numerator))
    interval = ratio_interval(numerator, denominator, rounds, len(rounds), resampling=resampling, bounds=bounds)
    return interval.attached_to(metric)
