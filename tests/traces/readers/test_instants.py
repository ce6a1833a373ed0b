from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.traces.readers.instants import (
    first_instant,
    instant,
    instant_of_nanoseconds,
    instant_of_seconds,
    started,
)

OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS)


def in_utc(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@given(time=TIMES, separator=st.sampled_from("T t"), spec=st.sampled_from(["auto", "seconds", "milliseconds"]))
def test_texts_with_an_offset_are_brought_to_utc(time: datetime, separator: str, spec: str) -> None:
    found = instant(time.isoformat(sep=separator, timespec=spec))
    assert found == in_utc(time)
    assert instant(found) == found


@given(time=TIMES)
def test_texts_without_an_offset_are_taken_as_utc(time: datetime) -> None:
    local = time.replace(tzinfo=None)
    written = local.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert instant(local.isoformat()) == instant(f" {local}z") == written


@given(nanoseconds=st.integers(1_000_000_000, 2**64 - 1))
def test_nanoseconds_and_seconds_since_1970(nanoseconds: int) -> None:
    seconds = nanoseconds // 10**9
    assert instant_of_nanoseconds(nanoseconds) == in_utc(datetime.fromtimestamp(seconds, UTC))
    assert instant_of_seconds(seconds) == instant_of_seconds(seconds + 0.5) == instant_of_nanoseconds(nanoseconds)


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            1_767_000_000,
            [],
            {},
            "",
            "soon",
            "1767000000",
            "2026-01-02",
            "20260102T030405Z",
            "2026-W01-1T00:00",
        ),
        *("2026-02-30T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05 Europe/Paris"),
        *("٢٠٢٦-01-02T03:04:05Z", "2026-01-02T03:04:05Z\n2026", "2026-01-02T03:04:05." + "0" * 10_000),
        *("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ],
)
def test_what_is_no_instant_is_unknown(value: object) -> None:
    assert instant(value) is None


@pytest.mark.parametrize("value", [None, "1767000000", True, 0, -1, 0.5, float("nan"), float("inf"), 10**400, 1e300])
def test_what_is_no_number_of_seconds_is_unknown(value: object) -> None:
    assert instant_of_seconds(value) is None


def test_the_first_that_can_be_read_counts() -> None:
    values = [None, "yesterday", "2026-01-02T03:04:05+01:00", "2025-01-01T00:00:00Z"]
    assert started(first_instant(values)) == {"started": "2026-01-02T02:04:05Z"}
    assert started(first_instant(values[:2])) == {}
