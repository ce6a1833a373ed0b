"""Smooth calibration error: without bins, and so without a convention for their edges.

Błasiok and Nakkiran, Smooth ECE (ICLR 2024): the differences of confidence and label, smoothed over confidence by a
Gaussian kernel reflected at 0 and 1, integrated without sign. The width of the kernel is the one that equals the error
so found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct
from scipy.optimize import brentq

if TYPE_CHECKING:
    from tracebridge.confidence.rated_answers import RatedAnswers

Floats: TypeAlias = NDArray[np.float64]

_CELLS = 2**14


def smooth_calibration_error(answers: RatedAnswers) -> float:
    """smECE, at least the absolute gap of mean confidence and accuracy; NaN without answers.

    Confidence is taken to 1/16384.
    """
    if answers.n == 0:
        return float("nan")
    cell = np.minimum((answers.confidence * _CELLS).astype(np.int64), _CELLS - 1)
    excess = np.bincount(cell, answers.confidence - answers.correct, minlength=_CELLS) / answers.n
    waves = dct(excess)

    def less_width(width: float) -> float:
        return smoothed_excess(waves, width) - width

    if less_width(0.0) <= 0:
        return 0.0
    return min(float(brentq(less_width, 0.0, 1.0 + 1e-6, xtol=1e-9)), 1.0)  # an error of 1 may come out a bit above


def smoothed_excess(waves: Floats, width: float) -> float:
    """The integral of the absolute smoothed differences.

    Smoothing with a kernel that is reflected at both ends multiplies each cosine wave by a number.

    Args:
        waves: the cosine transform of the differences on a grid over [0, 1].
        width: the standard deviation of the kernel.
    """
    damping = np.exp(-((np.pi * np.arange(len(waves)) * width) ** 2) / 2)
    return float(np.abs(idct(waves * damping)).sum())
