"""The bins of a step clock, by families: which numbers of earlier steps a state tells apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import FitError, Location, Problem
from tracebridge.states.model_form import MAX_BINS, ClockFamily, ModelForm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.run_paths import RunPaths

#: The families that are compared where the bins are to be chosen.
FAMILIES: tuple[ClockFamily, ...] = ("log", "quantiles", "steps", "unrolled")

#: Clocks go on to the length that this share of the runs does not exceed: beyond it too few runs are left to count.
LONGEST_SHARE = 0.9

#: A clock that tells all steps apart is for chains with no more states than this.
MAX_UNROLLED_STATES = 1_000

_QUANTILES = np.arange(1, 8) / 8


def clock_bins(family: ClockFamily, paths: RunPaths, *, bounded: bool = True) -> tuple[int, ...]:
    """The first numbers of earlier steps of each bin, ascending from 0, for runs with a step.

    ``log``: 0, 1, 2, 4, 8 and so on up to the length that 90 % of the runs do not exceed. ``quantiles``: the octiles of
    the runs' lengths, where runs end. ``steps``: the octiles of the numbers of earlier steps, so that the bins hold
    equally many steps. ``unrolled``: every step up to the length that 90 % of the runs do not exceed is a bin.

    Args:
        bounded: refuse large chains. Parts of a corpus may go beyond the bound that the whole keeps.

    Raises:
        FitError: for ``unrolled``, if the chain had more than `MAX_UNROLLED_STATES` states; for ``chosen``, and for
            runs without a step, which no family is for.
    """
    lengths = paths.lengths[paths.lengths > 0]
    if not len(lengths) or family not in FAMILIES:
        raise FitError(f"clock:{family} has no bins on {len(lengths)} runs with a step")
    longest = int(_quantile(lengths, np.array([LONGEST_SHARE]))[0])
    if family == "log":
        return (0, *(2**i for i in range(longest.bit_length()) if 2**i < longest))
    if family == "quantiles":
        return _from_zero(_quantile(lengths - 1, _QUANTILES))
    if family == "steps":
        earlier = np.arange(paths.n_steps) - np.repeat(paths.offsets[:-1], paths.lengths)
        return _from_zero(_quantile(earlier, _QUANTILES))
    if bounded and longest * len(paths.states) > MAX_UNROLLED_STATES:
        raise FitError(
            Problem(
                location=Location(),
                message=f"clock:unrolled tells {longest} steps of {len(paths.states)} states apart, more than "
                f"{MAX_UNROLLED_STATES} in all",
                hint="take clock, which chooses coarser bins, or give them, as in clock:0,1,2,4,8",
            )
        )
    return tuple(range(min(longest, MAX_BINS)))


def with_bins(form: ModelForm, paths: RunPaths, *, bounded: bool = True) -> ModelForm:
    """The form with the bins of its clock from these runs, where it names a family; see `clock_bins`."""
    return form.with_clock(clock_bins(form.clock, paths, bounded=bounded)) if isinstance(form.clock, str) else form


def possible_families(paths: RunPaths) -> list[ClockFamily]:
    """The families that have bins on these runs."""
    lengths = paths.lengths[paths.lengths > 0]
    if not len(lengths):
        return []
    longest = int(_quantile(lengths, np.array([LONGEST_SHARE]))[0])
    fits = longest * len(paths.states) <= MAX_UNROLLED_STATES
    return [family for family in FAMILIES if fits or family != "unrolled"]


def _quantile(values: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """The least values that these shares of all do not exceed."""
    result: NDArray[np.int64] = np.quantile(values, shares, method="inverted_cdf").astype(np.int64)
    return result


def _from_zero(starts: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(sorted({0, *starts.tolist()}))
