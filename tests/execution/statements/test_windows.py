"""Windows of time: their bounds by the moment, the zone, and the type of the column."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.execution.statements.windows import back, first_day, window

MOMENT = datetime(2026, 3, 30, 10, 0, tzinfo=UTC)
"""Noon in Berlin, a day after its clocks went forward."""


@pytest.mark.parametrize(
    ("length", "zone", "start"),
    [
        ("2 days", "Europe/Berlin", datetime(2026, 3, 28, 11, 0, tzinfo=UTC)),
        ("1 week", "Europe/Berlin", datetime(2026, 3, 23, 11, 0, tzinfo=UTC)),
        ("48 hours", "Europe/Berlin", datetime(2026, 3, 28, 10, 0, tzinfo=UTC)),
        ("2 days", "UTC", datetime(2026, 3, 28, 10, 0, tzinfo=UTC)),
        ("90 seconds", "Asia/Kolkata", datetime(2026, 3, 30, 9, 58, 30, tzinfo=UTC)),
    ],
)
def test_days_are_those_of_the_zone(length: str, zone: str, start: datetime) -> None:
    assert window(MOMENT, length, zone).start == start == back(MOMENT, length, ZoneInfo(zone))


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        (
            "TIMESTAMP",
            "(c >= TIMESTAMP '2026-03-28 11:00:00+00:00' AND c < TIMESTAMP '2026-03-30 10:00:00+00:00')",
        ),
        ("TIMESTAMP_NTZ", "(c >= TIMESTAMP_NTZ '2026-03-28 12:00:00' AND c < TIMESTAMP_NTZ '2026-03-30 12:00:00')"),
        ("DATE", "(c >= DATE '2026-03-29' AND c < DATE '2026-03-31')"),
    ],
)
def test_bounds_are_of_the_type_of_the_column(kind: str, condition: str) -> None:
    assert window(MOMENT, "2 days", "Europe/Berlin").holds("c", kind) == condition


def test_a_full_window_begins_with_all_time() -> None:
    for zone in ("UTC", "Pacific/Honolulu", "Pacific/Auckland"):
        found = window(MOMENT, "2 days", zone, full=True)
        assert "DATE '0001-01-01'" in found.holds("c", "DATE")
        assert "TIMESTAMP_NTZ '0001-01-01 00:00:00'" in found.holds("c", "TIMESTAMP_NTZ")


@given(st.integers(0, 50_000_000), st.sampled_from(["UTC", "Asia/Kolkata", "America/Lima"]))
def test_windows_that_follow_one_another_leave_no_day_out_and_none_twice(minutes: int, zone: str) -> None:
    there, at = ZoneInfo(zone), datetime(1995, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    first, second = window(at, "1 day", zone), window(at + timedelta(days=1), "1 day", zone)
    assert second.start == first.end
    assert first_day(second.end, there) - first_day(second.start, there) == timedelta(days=1)
