"""Numbers and masks on their way to Storm and back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.checking.storm_worker.protocol import (
    WorkerError,
    pack_mask,
    pack_rational,
    unpack_doubles,
    unpack_mask,
    unpack_rational,
)


@given(st.fractions())
def test_rationals_round_trip(value: Fraction) -> None:
    assert unpack_rational(pack_rational(value)) == value


def test_rationals_have_no_limit_on_digits() -> None:
    value = Fraction(3**20_000, 2**30_000)
    assert unpack_rational(pack_rational(value)) == value


@given(st.lists(st.booleans(), min_size=1))
def test_masks_round_trip(mask: list[bool]) -> None:
    assert unpack_mask(pack_mask(np.array(mask)), len(mask)).tolist() == mask
    with pytest.raises(WorkerError, match="does not fit"):
        unpack_mask(pack_mask(np.array(mask)), len(mask) + 8)


def test_doubles_are_whole_bytes() -> None:
    assert unpack_doubles(np.array([0.5, np.inf]).tobytes()).tolist() == [0.5, np.inf]
    for broken in (b"1234567", ["1/2"]):
        with pytest.raises(WorkerError, match="no array of doubles"):
            unpack_doubles(broken)
