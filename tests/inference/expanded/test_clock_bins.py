"""Bins of clocks, against their definitions on runs whose lengths are known."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import FitError
from tracebridge.inference.expanded.clock_bins import FAMILIES, clock_bins, possible_families, with_bins
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths


def of_lengths(*lengths: int) -> RunPaths:
    return RunPaths.of_names([(["a"] * length, "success") for length in lengths])


def test_bins_of_each_family():
    """Ten runs of 1 to 10 steps: 90 % have at most 9, and the k-th octile of the lengths is the ceil(10 k / 8)-th."""
    paths = of_lengths(*range(1, 11))
    assert clock_bins("log", paths) == (0, 1, 2, 4, 8)
    assert clock_bins("unrolled", paths) == tuple(range(9))
    assert clock_bins("quantiles", paths) == (0, 1, 2, 3, 4, 6, 7, 8)
    # Of 55 steps 10 have no earlier one, 19 at most one, then 27, 34, 40, 45, 49; the octiles are the 7th, 14th, 21st,
    # 28th, 35th, 42nd and 49th of them.
    assert clock_bins("steps", paths) == (0, 1, 2, 3, 4, 5, 6)


def test_one_long_run_does_not_stretch_the_clock():
    paths = of_lengths(*[5] * 19, 100_000)
    assert clock_bins("log", paths) == (0, 1, 2, 4)
    assert clock_bins("unrolled", paths) == (0, 1, 2, 3, 4)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 40), min_size=1).filter(any), st.sampled_from(FAMILIES))
def test_bins_are_those_of_a_clock(lengths, family):
    paths = of_lengths(*lengths)
    bins = clock_bins(family, paths)
    assert with_bins(ModelForm(clock=family), paths) == ModelForm(clock=bins)
    assert bins[-1] < max(lengths)  # no bin without a step
    assert clock_bins(family, of_lengths(*reversed(lengths))) == bins


def test_unrolling_is_bounded():
    states = [f"s{i}" for i in range(101)]
    paths = RunPaths.of_names([(["s0"] * 10, "success")], states=states)
    assert possible_families(paths) == ["log", "quantiles", "steps"]
    with pytest.raises(FitError, match="10 steps of 101 states"):
        clock_bins("unrolled", paths)


def test_without_a_step_there_are_no_bins():
    empty = of_lengths(0)
    assert possible_families(empty) == []
    with pytest.raises(FitError, match="0 runs with a step"):
        clock_bins("log", empty)
    with pytest.raises(FitError, match="chosen"):
        with_bins(parse_model("clock"), of_lengths(3))
