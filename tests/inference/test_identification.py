"""Whether runs say what becomes of a run in the end."""

from __future__ import annotations

import numpy as np
import pytest

from tracebridge.chain import LengthCounts
from tracebridge.inference.identification import reliability_bounds
from tracebridge.states.features import OUTCOMES
from tracebridge.traces.model import Outcome


def counted(*runs: tuple[str, int, int]) -> LengthCounts:
    lengths = [length for _, length, number in runs for _ in range(number)]
    outcomes = [OUTCOMES.index(Outcome(outcome)) for outcome, _, number in runs for _ in range(number)]
    return LengthCounts.from_lengths(np.array(lengths, dtype=np.int64), np.array(outcomes, dtype=np.int8))


def test_a_cap_leaves_bounds() -> None:
    """Of ten runs three succeed, five fail, and two are cut at the cap: they may still do either."""
    bounds = reliability_bounds(counted(("success", 2, 3), ("failure", 4, 5), ("censored", 6, 2)))
    assert bounds is not None
    assert (bounds.step, bounds.lower, bounds.upper) == (6, pytest.approx(0.3), pytest.approx(0.5))
    assert "between 0.3 and 0.5" in str(bounds)


def test_runs_that_were_all_seen_to_end_identify_it() -> None:
    assert reliability_bounds(counted(("success", 2, 3), ("failure", 4, 5))) is None
    assert reliability_bounds(counted(("censored", 1, 4), ("success", 2, 3), ("failure", 4, 5))) is None
    assert reliability_bounds(counted()) is None


def test_runs_none_of_which_ended_say_nothing() -> None:
    bounds = reliability_bounds(counted(("censored", 3, 4)))
    assert bounds is not None
    assert (bounds.lower, bounds.upper) == (0, 1)


def test_a_straggler_in_a_thousand_is_not_spoken_of() -> None:
    assert reliability_bounds(counted(("success", 2, 600), ("failure", 3, 399), ("censored", 9, 1))) is None
