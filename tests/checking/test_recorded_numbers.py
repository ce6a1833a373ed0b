"""Numbers as JSON carries them come back as they were."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.checking.result import number_from_json, number_to_json


@given(st.floats(allow_nan=False) | st.fractions())
def test_what_was_written_is_read(value):
    assert number_from_json(json.loads(json.dumps(number_to_json(value)))) == value


def test_numbers_without_a_json_form_and_of_any_length_are_read():
    assert math.isnan(number_from_json(number_to_json(math.nan)))
    assert number_from_json("-Infinity") == -math.inf
    long = Fraction(7**9_000, 10**8_000 + 1)
    assert number_from_json(number_to_json(long)) == long


@pytest.mark.parametrize("text", ["", "one", "1/", "1/x", "0x1"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError):
        number_from_json(text)
