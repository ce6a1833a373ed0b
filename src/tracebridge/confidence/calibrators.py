"""Maps from stated to calibrated confidence: temperature, Platt, beta and isotonic, and how each is fitted.

A map that cannot be fitted (a single class) is the identity and says so; nothing is fitted silently to what it is not.

Guo et al. (2017), ICML (temperature); Platt (1999), Advances in Large Margin Classifiers; Kull, Silva Filho and Flach
(2017), AISTATS (beta); Zadrozny and Elkan (2002), KDD (isotonic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit, logit

from tracebridge.confidence.logistic import logistic_fit
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.confidence.rated_answers import RatedAnswers

Floats: TypeAlias = NDArray[np.float64]

#: The calibrators by name; ``identity`` leaves confidence as it was stated.
CalibratorName = Literal["identity", "temperature", "platt", "beta", "isotonic"]

#: Half a step of whole-number scores up to 100: how far from 0 and 1 confidence is kept before its logit is taken.
DEFAULT_CLIP = 0.005

TEMPERATURES = (0.05, 50.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrator:
    """A fitted map.

    Attributes:
        name: what it was to be.
        status: ``ok``; ``at bound``: the temperature is a bound of its range; ``undefined``: it could not be fitted and
            is the identity.
        reason: for the latter two.
        parameters: temperature: T; platt: slope and intercept on the logit; beta: a, b, c of
            ``a log p - b log(1 - p) + c``; isotonic: none.
        clip: how far from 0 and 1 confidence is kept.
        knots: isotonic: confidences and values between which it is linear, shape (2, knots).
        n: answers it was fitted to.
    """

    name: CalibratorName
    status: Literal["ok", "at bound", "undefined"] = "ok"
    reason: str = ""
    parameters: tuple[float, ...] = ()
    clip: float = DEFAULT_CLIP
    knots: Floats | None = None
    n: int = 0

    def __call__(self, confidence: Floats) -> Floats:
        """Calibrated confidence, in [0, 1], of the same shape; NaN stays NaN."""
        stated = np.asarray(confidence, dtype=np.float64)
        if self.status == "undefined" or self.name == "identity":
            return stated
        if self.name == "isotonic":
            assert self.knots is not None  # noqa: S101 - every fitted isotonic map has them
            return np.asarray(np.interp(stated, self.knots[0], self.knots[1]))
        clipped = np.clip(stated, self.clip, 1 - self.clip)
        if self.name == "temperature":
            return np.asarray(expit(logit(clipped) / self.parameters[0]))
        if self.name == "platt":
            slope, intercept = self.parameters
            return np.asarray(expit(slope * logit(clipped) + intercept))
        a, b, c = self.parameters
        return np.asarray(expit(a * np.log(clipped) - b * np.log1p(-clipped) + c))

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "name": self.name,
            "status": self.status,
            "reason": self.reason,
            "parameters": list(self.parameters),
            "clip": self.clip,
            "knots": None if self.knots is None else self.knots.tolist(),
            "n": self.n,
        }


def fit_calibrator(name: CalibratorName, answers: RatedAnswers, *, clip: float = DEFAULT_CLIP) -> Calibrator:
    """The map of one kind fitted to some answers.

    Args:
        clip: how far from 0 and 1 confidence is kept before its logit is taken, in (0, .5).

    Raises:
        UsageError: an unknown name, a clip out of range.
    """
    if name not in get_args(CalibratorName):
        raise UsageError(f"a calibrator is one of {', '.join(get_args(CalibratorName))}, not {name!r}")
    if not 0 < clip < 0.5:
        raise UsageError(f"confidence is clipped by more than 0 and less than .5, not {clip!r}")
    if name == "identity":
        return Calibrator(name=name, clip=clip, n=answers.n)
    if answers.one_class:
        reason = "the answers are all correct or all wrong" if answers.n else "there are no answers"
        return Calibrator(name=name, status="undefined", reason=reason, clip=clip, n=answers.n)
    if name == "isotonic":
        return _isotonic(answers, clip)
    clipped = np.clip(answers.confidence, clip, 1 - clip)
    if name == "temperature":
        return _temperature(logit(clipped), answers.correct, clip)
    if name == "platt":
        return _platt(logit(clipped), answers.correct, clip)
    return _beta(clipped, answers.correct, clip)


def best_temperature(logits: Floats, correct: Floats) -> float:
    """The T in [0.05, 50] that minimises the mean log-loss of ``sigmoid(logits / T)``.

    The loss is convex in 1/T, so that its derivative has at most one zero; without one the better end is the answer.
    """

    def derivative(log_temperature: float) -> float:
        return float(np.mean((expit(logits / math.exp(log_temperature)) - correct) * logits))

    low, high = (math.log(T) for T in TEMPERATURES)
    if derivative(low) <= 0:
        return TEMPERATURES[0]
    if derivative(high) >= 0:
        return TEMPERATURES[1]
    return math.exp(brentq(derivative, low, high, xtol=1e-12))


def _temperature(logits: Floats, correct: Floats, clip: float) -> Calibrator:
    T = best_temperature(logits, correct)
    bound = T in TEMPERATURES
    return Calibrator(
        name="temperature",
        status="at bound" if bound else "ok",
        reason=f"the best temperature is not inside {list(TEMPERATURES)}" if bound else "",
        parameters=(T,),
        clip=clip,
        n=len(logits),
    )


def _soft_targets(correct: Floats) -> Floats:
    """Platt's targets, which keep the fit finite on separable answers: (n1 + 1) / (n1 + 2) and 1 / (n0 + 2)."""
    positives = float(correct.sum())
    negatives = len(correct) - positives
    return np.where(correct > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def _platt(logits: Floats, correct: Floats, clip: float) -> Calibrator:
    X = np.column_stack([logits, np.ones(len(logits))])
    beta, _ = logistic_fit(X, _soft_targets(correct))
    return Calibrator(name="platt", parameters=tuple(beta.tolist()), clip=clip, n=len(logits))


def _beta(clipped: Floats, correct: Floats, clip: float) -> Calibrator:
    """With a and b at least 0, so that the map does not decrease: one that comes out negative is left out (Kull)."""
    columns = np.column_stack([np.log(clipped), -np.log1p(-clipped), np.ones(len(clipped))])
    targets = _soft_targets(correct)
    kept = [0, 1, 2]
    while True:
        beta = np.zeros(3)
        beta[kept] = logistic_fit(columns[:, kept], targets)[0]
        negative = [j for j in (0, 1) if beta[j] < 0]
        if not negative:
            return Calibrator(name="beta", parameters=tuple(beta.tolist()), clip=clip, n=len(clipped))
        kept.remove(min(negative, key=lambda j: beta[j]))


def _isotonic(answers: RatedAnswers, clip: float) -> Calibrator:
    """The increasing means of least squares at the distinct confidences; linear between them, level beyond them."""
    distinct, group = answers.by_confidence()
    count = np.bincount(group).astype(np.float64)
    means = isotonic_regression(np.bincount(group, answers.correct) / count, weights=count).x
    level = np.concatenate([[True], np.diff(means) != 0, [True]])
    ends = level[:-1] | level[1:]  # the first and last confidence of every level say it all
    return Calibrator(name="isotonic", knots=np.array([distinct[ends], means[ends]]), clip=clip, n=answers.n)
