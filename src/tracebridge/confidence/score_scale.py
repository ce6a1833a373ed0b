"""On which scale confidence was stated: read from the file, said by the user, or told from the scores themselves.

A scale is never guessed. Scores that no one scale explains are refused with the places at which they stand; a score
that a known scale does not have makes its poll invalid, and is counted.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.broadcast import StatedScale
from tracebridge.confidence.table import ScoreScale
from tracebridge.errors import InputError, Location, Problem, UsageError
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.confidence.table import Numbers

_MAX_PLACES = 3
_LARGEST_EXACT = 2**53
_SCALE_TEXT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:-|\.\.|to)\s*([0-9]+(?:\.[0-9]+)?)", re.ASCII)
_SAY_IT = "say which scale it is: --scale 0-1, 0-100 or 1-100"


def parse_scale(text: str) -> ScoreScale:
    """A scale as a user writes it: ``0-1``, ``0-100``, ``1-100``; whether its scores are whole is seen from them.

    Raises:
        UsageError: it is no scale, or it has no room.
    """
    match = _SCALE_TEXT.fullmatch(text.strip())
    if match is None or not float(match[1]) < float(match[2]):
        raise UsageError(f"{text!r} is no scale of scores; write its two ends, such as 0-1, 0-100 or 1-100")
    return ScoreScale(minimum=float(match[1]), maximum=float(match[2]), origin="stated by the user")


def parse_score(value: object) -> int | float | None:
    """A score as people write it: a finite number, its text or a percentage; None for what is none (NaN, blank)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        value = value.rstrip().removesuffix("%")
        try:
            value = float(value) if len(value) <= 100 and "_" not in value else math.nan
        except ValueError:
            return None
        if value.is_integer() and abs(value) <= _LARGEST_EXACT:
            return int(value)
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return None
    return value if math.isfinite(value) else None


def is_percentage(value: object) -> bool:
    """Whether a score is written with the sign that says its scale: ``90%`` is 90 of 100, and ``0.5%`` is .5 of 100."""
    return isinstance(value, str) and value.rstrip().endswith("%")


class ScoreSightings:
    """The scores of a corpus that does not say its scale, with the places of the first of each kind.

    Attributes:
        largest: the largest score seen.
        are_whole: no score has a fractional part.
    """

    _KINDS = ("below 0", "strictly between 0 and 1", "0 or 1", "above 1 and at most 100", "above 100")

    def __init__(self) -> None:
        self._n = dict.fromkeys(self._KINDS, 0)
        self._places: dict[str, list[tuple[Location, float]]] = {kind: [] for kind in self._KINDS}
        self._percentage: tuple[Location, float] | None = None
        self.largest = -math.inf
        self.are_whole = True

    def add(self, score: float, place: Location, *, percentage: bool = False) -> None:
        """Take note of one score; that of a ``percentage`` is on the scale 0-100, however small it is."""
        below, fraction, end, above, beyond = self._KINDS
        if percentage and self._percentage is None:
            self._percentage = (place, score)
        if percentage and 0 <= score <= 100:
            kind = above
            self.largest = 100.0
        elif 0 <= score <= 1:
            kind = end if score in (0, 1) else fraction
        elif score < 0:
            kind = below
        else:
            kind = above if score <= 100 else beyond
        self._n[kind] += 1
        if len(self._places[kind]) < _MAX_PLACES:
            self._places[kind].append((place, score))
        self.largest = max(self.largest, score)
        self.are_whole = self.are_whole and score == int(score)

    def on(self, scale: ScoreScale) -> ScoreScale:
        """A scale that the user states; its scores are whole numbers if all that were seen are.

        Raises:
            InputError: there are percentages, and it does not end at 100.
        """
        if self._percentage is not None and scale.maximum != 100:
            place, score = self._percentage
            message = f"{score:g}% is a percentage, and the scale that was stated ends at {scale.maximum:g}"
            raise InputError(Problem(location=place, message=message, hint="percentages are on the scale 0-100"))
        is_whole = scale.integer or (scale.maximum > 1 and self.are_whole and any(self._n.values()))
        return replace(scale, integer=is_whole)

    def scale(self) -> ScoreScale:
        """The one scale that explains every score.

        Scores in [0, 1] are on the scale 0-1. Whole or fractional scores up to more than 10 and at most 100, of which
        none lies strictly between 0 and 1, are on the scale 0-100 (a scale 1-100 gives the same confidences).

        Raises:
            InputError: none does, or several do; with the places.
        """
        below, fraction, _, above, beyond = self._KINDS
        if not any(self._n.values()):
            message = "no score can be read, so that there is no scale"
            hint = "a confidence is a number or a percentage; --map confidence=COLUMN says in which column"
            raise InputError(Problem(location=Location(), message=message, hint=hint))
        if self._n[below] or self._n[beyond]:
            raise InputError(
                self._at(below, "a score is below 0", "no scale of confidence has it; --scale says which it is")
                + self._at(beyond, "a score is above 100", "no scale of confidence has it; --scale says which it is")
            )
        if self._n[above] and self._n[fraction]:
            minority = min(above, fraction, key=lambda kind: self._n[kind])
            message = (
                f"scores of two scales: {self._n[fraction]} {fraction} and {self._n[above]} {above}; this one is of the"
            )
            kind = "fewer" if self._n[above] != self._n[fraction] else "equally many"
            raise InputError(self._at(minority, f"{message} {kind}", _SAY_IT))
        if not self._n[above]:
            return ScoreScale(minimum=0.0, maximum=1.0, origin="inferred from the scores")
        if self.largest <= 10:
            message = f"the largest of the scores is {self.largest:g}: the scale may end at 5, 10 or 100"
            raise InputError(self._at(above, message, _SAY_IT)[:1])
        return ScoreScale(minimum=0.0, maximum=100.0, integer=self.are_whole, origin="inferred from the scores")

    def _at(self, kind: str, message: str, hint: str) -> list[Problem]:
        problems = [
            Problem(location=place, message=f"{message}: {score!r}", hint=hint) for place, score in self._places[kind]
        ]
        if beyond := self._n[kind] - len(problems):
            problems.append(Problem(location=Location(), message=f"and {counted(beyond, 'more score')} like these"))
        return problems


def stated(scale: ScoreScale) -> StatedScale:
    """The scale as a trace carries it."""
    return StatedScale(
        min=scale.minimum,
        max=scale.maximum,
        integer=scale.integer,
        elicitation=scale.elicitation,
        parse_fail_value=scale.parse_fail_value,
        origin="inferred" if scale.origin.startswith("inferred") else "stated",
    )


def confidences(scores: Numbers, scale: ScoreScale) -> Numbers:
    """score / maximum; NaN for what the scale does not have: beyond its ends, or a fraction where it is whole."""
    is_one = (scores >= scale.minimum) & (scores <= scale.maximum)
    if scale.integer:
        is_one &= scores == np.floor(scores)
    return np.where(is_one, scores / scale.maximum, np.nan)


def tied(scores: Numbers, resolution: float) -> Numbers:
    """The scores, with those that round to one multiple of ``resolution`` made equal: each the least of its kind.

    Scores beyond 2^53 multiples are further apart than that, and stay as they are.
    """
    found = np.flatnonzero(np.abs(scores) <= _LARGEST_EXACT * resolution)
    _, kinds = np.unique(np.rint(scores[found] / resolution), return_inverse=True)
    least = np.full(kinds.max(initial=-1) + 1, np.inf)
    np.minimum.at(least, kinds, scores[found])
    result = scores.copy()
    result[found] = least[kinds]
    return result
