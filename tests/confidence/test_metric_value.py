"""A metric without a denominator is undefined with a reason, never zero."""

from __future__ import annotations

import json
import math

import pytest

from tracebridge.confidence.metric_value import MetricValue, ratio
from tracebridge.errors import UsageError


def test_a_ratio_carries_its_denominator() -> None:
    value = ratio("CRA", 4_795, 9_467, "selected valid blocks", n_dropped=3)
    assert value.value == 4_795 / 9_467
    assert (value.numerator, value.denominator, value.n_dropped, value.status) == (4_795.0, 9_467.0, 3, "ok")


def test_an_empty_denominator_is_undefined() -> None:
    value = ratio("CTR", 0, 0, "correct-wrong pairs")
    assert math.isnan(value.value)
    assert (value.status, value.reason) == ("undefined", "there are no correct-wrong pairs")


def test_a_document_has_no_number_that_json_lacks() -> None:
    document = json.loads(json.dumps(ratio("CTR", 0, 0, "pairs").to_dict(), allow_nan=False))
    assert document["value"] == "NaN"
    assert document["denominator"] == 0.0


def test_an_interval_keeps_the_reason() -> None:
    value = MetricValue.undefined("PSIR", "no pairs diverged", denominator=0, denominator_name="divergent pairs")
    value = value.with_interval(math.nan, math.nan, level=0.95, method="m", remark="interval undefined")
    assert value.reason == "no pairs diverged; interval undefined"
    assert value.status == "undefined"


@pytest.mark.parametrize(
    ("value", "status", "reason"), [(0.0, "undefined", "why"), (math.nan, "ok", ""), (math.nan, "undefined", "")]
)
def test_a_status_that_contradicts_the_value_is_refused(value: float, status: str, reason: str) -> None:
    with pytest.raises(UsageError, match="the metric X"):
        MetricValue(
            name="X", value=value, numerator=0, denominator=1, denominator_name="n", status=status, reason=reason
        )
