"""What MARGIN is compared with: five calibrators that learn from the same outcomes, each model by itself.

The published comparison does not name its baselines; these are the standard ones.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import expit, logit

from tracebridge.confidence.calibrators import DEFAULT_CLIP, Calibrator, fit_calibrator
from tracebridge.confidence.margin import Margin
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracebridge.confidence.online import OnlineCalibrator

DEFAULT_WINDOW = 200


@dataclass(slots=True, kw_only=True)
class _Window:
    outcomes: deque[tuple[float, bool]]
    fitted: Calibrator = field(default_factory=lambda: Calibrator(name="identity"))
    since: int = 0


class WindowedCalibrator:
    """A temperature or isotonic map fitted to each model's last outcomes, anew after every so many.

    Until there are ``refit_every`` of them, and while they are of a single class, confidence stays as it was stated.

    Args:
        name: of the map. window: how many outcomes are kept. refit_every: after how many new ones to fit again.

    Raises:
        UsageError: a window without outcomes, a map that is never fitted.
    """

    def __init__(
        self, name: Literal["temperature", "isotonic"], *, window: int = DEFAULT_WINDOW, refit_every: int = 10
    ) -> None:
        if window < 1 or refit_every < 1:
            raise UsageError(f"a window of {window} outcomes, fitted again after {refit_every}, learns nothing")
        self.name, self.refit_every = name, refit_every
        self._windows: defaultdict[str, _Window] = defaultdict(lambda: _Window(outcomes=deque(maxlen=window)))

    def corrected(self, model: str, confidence: float) -> float:
        """See `OnlineCalibrator`."""
        known = self._windows.get(model)
        return confidence if known is None else float(known.fitted(np.array([confidence]))[0])

    def observe(self, model: str, confidence: float, correct: bool) -> None:
        """See `OnlineCalibrator`."""
        _require_confidence(confidence)
        window = self._windows[model]
        window.outcomes.append((confidence, correct))
        window.since += 1
        if window.since >= self.refit_every:
            stated, labels = zip(*window.outcomes, strict=True)
            window.fitted = fit_calibrator(self.name, RatedAnswers.of(np.array(stated), np.array(labels)))
            window.since = 0


class OnlinePlatt:
    """``sigmoid(a logit(s) + b)`` for each model, a and b moved down the gradient of the log-loss by every outcome.

    Args:
        step: of the descent, from a = 1 and b = 0.

    Raises:
        UsageError: a step that is not above 0.
    """

    def __init__(self, *, step: float = 0.05) -> None:
        if not 0 < step < math.inf:
            raise UsageError(f"the step of a descent is above 0, not {step!r}")
        self.step = step
        self._lines: dict[str, tuple[float, float]] = {}

    def corrected(self, model: str, confidence: float) -> float:
        """See `OnlineCalibrator`."""
        if model not in self._lines:
            return confidence
        slope, intercept = self._lines[model]
        return float(expit(slope * _clipped_logit(confidence) + intercept))

    def observe(self, model: str, confidence: float, correct: bool) -> None:
        """See `OnlineCalibrator`."""
        slope, intercept = self._lines.get(model, (1.0, 0.0))
        x = _clipped_logit(confidence)
        error = float(expit(slope * x + intercept)) - correct
        self._lines[model] = (slope - self.step * error * x, intercept - self.step * error)


class ForgettingBins:
    """The share of correct outcomes in each of a model's bins, old ones forgotten, with a prior at stated confidence.

    Args:
        n_bins: of equal width. memory: by which the counts of a bin shrink with each of its outcomes, in (0, 1].
        prior: how many outcomes the stated confidence weighs.

    Raises:
        UsageError: a number out of range.
    """

    def __init__(self, *, n_bins: int = 10, memory: float = 0.98, prior: float = 5.0) -> None:
        if n_bins < 1 or not 0 < memory <= 1 or not 0 < prior < math.inf:
            raise UsageError(f"no bins with memory: {n_bins!r} bins, memory {memory!r}, prior {prior!r}")
        self.n_bins, self.memory, self.prior = n_bins, memory, prior
        self._counts: dict[tuple[str, int], tuple[float, float]] = {}

    def corrected(self, model: str, confidence: float) -> float:
        """See `OnlineCalibrator`."""
        right, total = self._counts.get((model, self._bin(confidence)), (0.0, 0.0))
        return (self.prior * confidence + right) / (self.prior + total)

    def observe(self, model: str, confidence: float, correct: bool) -> None:
        """See `OnlineCalibrator`."""
        _require_confidence(confidence)
        place = model, self._bin(confidence)
        right, total = self._counts.get(place, (0.0, 0.0))
        self._counts[place] = (self.memory * right + correct, self.memory * total + 1)

    def _bin(self, confidence: float) -> int:
        return min(self.n_bins - 1, math.floor(round(confidence * self.n_bins, 9)))


class StatedConfidence:
    """No correction."""

    def corrected(self, model: str, confidence: float) -> float:  # noqa: ARG002 - an OnlineCalibrator takes the model
        """The confidence as stated."""
        return confidence

    def observe(self, model: str, confidence: float, correct: bool) -> None:
        """Nothing is learnt."""


#: MARGIN (with the advised shrinkage of 10), its five baselines and no correction; called, each knows nothing yet.
ONLINE_CALIBRATORS: dict[str, Callable[[], OnlineCalibrator]] = {
    "stated": StatedConfidence,
    "margin": lambda: Margin(model_shrinkage=10),
    "windowed temperature": lambda: WindowedCalibrator("temperature"),
    "online Platt": OnlinePlatt,
    "windowed isotonic": lambda: WindowedCalibrator("isotonic"),
    "forgetting bins": ForgettingBins,
    "model ratio": lambda: Margin(n_bands=1, model_shrinkage=10),
}


def _clipped_logit(confidence: float) -> float:
    _require_confidence(confidence)
    return float(logit(min(max(confidence, DEFAULT_CLIP), 1 - DEFAULT_CLIP)))


def _require_confidence(confidence: float) -> None:
    if not 0 <= confidence <= 1:
        raise InputError(f"a confidence lies in [0, 1], not {confidence!r}")
