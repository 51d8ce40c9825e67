"""Cron texts by the clocks of time zones: over daylight saving, against a slow reading of the same rule, and hostile."""

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.kit.cron import MAX_LENGTH, NAMED, BadCron, Schedule, check

MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def dues(text: str, zone: str, begin: str, end: str) -> list[str]:
    found = Schedule(text, zone).between(utc(begin), utc(end), 10_000)
    return [one.strftime("%d %H:%M") for one in found]


@pytest.mark.parametrize(
    ("zone", "text", "begin", "end", "expected"),
    [
        # Clocks go forward: a time that they skip is due at the first moment after, once.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28", "2026-03-30T12:00", ["28 01:30", "29 01:00", "30 00:30"]),
        ("Europe/Berlin", "0,15,30 2 * * *", "2026-03-29", "2026-03-29T12:00", ["29 01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-29T01:00", "2026-03-29T12:00", ["29 01:00"]),
        ("Europe/Berlin", "30 1,2,3 * * *", "2026-03-29", "2026-03-29T12:00", ["29 00:30", "29 01:00", "29 01:30"]),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-29", "2026-03-29T12:00", ["29 01:00"]),
        ("Europe/Berlin", "*/20 2 * * *", "2026-03-29", "2026-03-29T12:00", ["29 01:00"]),
        ("America/New_York", "30 2 * * *", "2026-03-07T12:00", "2026-03-09T12:00", ["08 07:00", "09 06:30"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03", "2026-10-05", ["03 15:30", "04 15:15"]),
        ("Africa/Cairo", "0 0 * * *", "2026-04-22", "2026-04-25", ["22 22:00", "23 22:00", "24 21:00"]),
        # Clocks go back: a time that they show twice is due the first time alone.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24", "2026-10-26T12:00", ["24 00:30", "25 00:30", "26 01:30"]),
        ("Europe/Berlin", "*/20 2 * * *", "2026-10-25", "2026-10-25T12:00", ["25 00:00", "25 00:20", "25 00:40"]),
        ("Europe/Berlin", "0 */2 * * *", "2026-10-24T22:00", "2026-10-25T05:00", ["24 22:00", "25 00:00", "25 03:00", "25 05:00"]),
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00", "2026-11-02T12:00", ["01 05:30", "02 06:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-03T12:00", "2026-04-05T20:00", ["03 14:45", "04 14:45", "05 15:15"]),
        # Every hour counts hours as they pass, by the minutes that clocks show.
        ("Europe/Berlin", "0 * * * *", "2026-03-29", "2026-03-29T03:00", ["29 00:00", "29 01:00", "29 02:00", "29 03:00"]),
        ("Europe/Berlin", "30 * * * *", "2026-10-25", "2026-10-25T03:00", ["25 00:30", "25 01:30", "25 02:30"]),
        ("America/New_York", "*/30 * * * *", "2026-11-01T05:00", "2026-11-01T06:59", ["01 05:00", "01 05:30", "01 06:00", "01 06:30"]),
        ("Australia/Lord_Howe", "45 * * * *", "2026-04-04T14:00", "2026-04-04T16:20", ["04 14:45", "04 15:15", "04 16:15"]),
        # No daylight saving, no exceptions.
        ("UTC", "30 2 * * *", "2026-03-28", "2026-03-30", ["28 02:30", "29 02:30"]),
        ("Asia/Kolkata", "0 0 * * *", "2026-01-01", "2026-01-02", ["01 18:30"]),
    ],
)  # fmt: skip
def test_times_over_daylight_saving(zone: str, text: str, begin: str, end: str, expected: list[str]) -> None:
    assert dues(text, zone, begin, end) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 6 * * 1-5", ["02 06:00", "05 06:00"]),
        ("0 0 L * *", ["31 00:00"]),
        ("0 12 1 * MON", ["01 12:00", "05 12:00", "12 12:00", "19 12:00", "26 12:00"]),
        ("0 12 */7 * MON", []),
        ("@weekly", ["04 00:00", "11 00:00", "18 00:00", "25 00:00"]),
    ],
)  # fmt: skip
def test_days(text: str, expected: list[str]) -> None:
    found = dues(check(text), "UTC", "2026-01-01T06:01", "2026-01-31T23:59")
    assert found[: len(expected) or None] == expected


# A second, slow reading of the rule


def matches(day: date, days: set[int] | None, weekdays: set[int] | None) -> bool:
    by_day = days is None or day.day in days
    by_weekday = weekdays is None or day.isoweekday() % 7 in weekdays
    return (by_day and by_weekday) if days is None or weekdays is None else (by_day or by_weekday)


def slow(
    minutes: set[int],
    hours: set[int] | None,
    days: set[int] | None,
    weekdays: set[int] | None,
    zone: str,
    near: datetime,
) -> list[datetime]:
    """All that is due within two days of an instant. Where hours are named, a time is due once clocks show it or later."""
    begin = near - timedelta(days=3)
    instants = [begin + n * MINUTE for n in range(6 * 24 * 60)]
    shown = [one.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for one in instants]
    if hours is None:
        found = {
            instant
            for instant, clock in zip(instants, shown, strict=True)
            if clock.minute in minutes and matches(clock.date(), days, weekdays)
        }
    else:
        latest = list(accumulate(shown, max))
        first = shown[0].date() + timedelta(days=1)
        wanted = [
            datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - what clocks show
            for day in (first + timedelta(days=n) for n in range(5))
            if matches(day, days, weekdays)
            for hour in hours
            for minute in minutes
        ]
        places = (bisect_left(latest, one) for one in wanted)
        found = {instants[place] for place in places if place < len(instants)}
    return sorted(one for one in found if abs(one - near) <= timedelta(days=1, hours=12))


CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "Australia/Lord_Howe": ("2026-10-03T15:30", "2026-04-04T15:00"),
    "Africa/Cairo": ("2026-04-23T22:00", "2026-10-29T21:00"),
    "America/Havana": ("2026-03-08T05:00", "2026-11-01T05:00"),
    "Asia/Tehran": ("2026-03-21T20:30", "2026-09-21T19:30"),
    "UTC": ("2026-03-01T00:00", "2026-10-25T01:00"),
}
minute_sets = st.sets(st.integers(0, 59), min_size=1, max_size=4)
hour_sets = st.none() | st.sets(st.integers(0, 23), min_size=1, max_size=4) | st.just({0, 1, 2, 3})
day_sets = st.none() | st.sets(st.integers(1, 28), min_size=1, max_size=10)
weekday_sets = st.none() | st.sets(st.integers(0, 6), min_size=1, max_size=6)
changes = st.sampled_from([(zone, when) for zone, both in CHANGES.items() for when in both])


def field(values: set[int] | None) -> str:
    return "*" if values is None else ",".join(map(str, sorted(values)))


@pytest.mark.slow
@given(minute_sets, hour_sets, day_sets, weekday_sets, changes, st.integers(-1500, 1500), st.integers(0, 59))
@example({30}, {2}, None, None, ("Europe/Berlin", "2026-10-25T01:00"), 15, 0)
@example({0}, {0}, None, None, ("Africa/Cairo", "2026-04-23T22:00"), 0, 0)
@settings(max_examples=150, deadline=None)
def test_next_is_strictly_after_and_there_is_none_between(
    minutes: set[int],
    hours: set[int] | None,
    days: set[int] | None,
    weekdays: set[int] | None,
    change: tuple[str, str],
    off: int,
    seconds: int,
) -> None:
    zone, when = change
    near = utc(when)
    start = near + timedelta(minutes=off, seconds=seconds)
    text = f"{field(minutes)} {field(hours)} {field(days)} * {field(weekdays)}"
    expected = slow(minutes, hours, days, weekdays, zone, near)
    edge = near + timedelta(days=1, hours=12)
    following = [one for one in expected if one > start]
    found = Schedule(text, zone).after(start)
    assert found is not None
    assert found > start
    assert found == following[0] if following else found > edge
    assert Schedule(text, zone).between(start, edge, 10_000) == [one for one in expected if one >= start]


@given(
    st.integers(1, 100), st.integers(0, 40_000), st.sampled_from(["* * * * *", "7 */3 * * *", "0 6 1 * *", "@yearly"])
)
@settings(max_examples=60, deadline=None)
def test_between_gives_the_newest(most: int, hours: int, text: str) -> None:
    last = utc("2026-06-15T10:20")
    first = last - timedelta(hours=hours)
    schedule = Schedule(text, "Europe/Berlin")
    found = schedule.between(first, last, most)
    assert found == sorted(found)
    assert len(found) <= most
    assert all(first <= one <= last for one in found)
    if found:
        assert (schedule.after(found[-1]) or last) > last
        assert all(schedule.after(one) == two for one, two in pairwise(found))
    else:
        assert (schedule.after(first - MINUTE) or last + MINUTE) > last or first > last


# Hostile texts


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 0 30 2 *", "never matches: none of its months has that day"),
        ("0 0 31 2,4,6,9,11 *", "never matches: none of its months has that day"),
        ("0 0 */20 * MON#2", "never matches: no day of the next 50 years"),
        ("60 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * 13 *", "bad month"),
        ("* * * * 8", "bad day-of-week"),
        ("5-1 * * * *", "bad minute"),
        ("*/0 * * * *", "bad minute"),
        ("* * * *", "minute, hour, day of the month"),
        ("0 * * * * *", "minute, hour, day of the month"),
        ("", "minute, hour, day of the month"),
        ("every day", "minute, hour, day of the month"),
        ("@reboot", "@hourly"),
        ("@", "@hourly"),
        ("٣ * * * *", "minute, hour, day of the month"),
        ("* * * * *\0", "minute, hour, day of the month"),
        ("1" * (MAX_LENGTH + 1), f"at most {MAX_LENGTH} characters"),
        ("1," * 90 + "1 * * * *", None),
        ("9" * 150 + " * * * *", "bad minute"),
        ("- - - - -", "bad"),
        (", , , , ,", "bad"),
        ("/ / / / /", "bad"),
        ("# # # # #", "bad"),
        ("L L L L L", "bad"),
    ],
)
def test_texts_that_are_none_are_refused_with_what_to_write(text: str, says: str | None) -> None:
    if says is None:
        assert check(text)
    else:
        with pytest.raises(BadCron, match=says):
            check(text)


@given(st.text(alphabet="0123456789*,-/#LWAMONSU @\t\n", max_size=MAX_LENGTH) | st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_is_a_schedule_or_refused(text: str) -> None:
    try:
        found = check(text)
    except BadCron:
        return
    schedule = Schedule(found, "Australia/Lord_Howe")
    assert schedule.says()
    first = schedule.after(utc("2026-01-01"))
    assert first is not None
    assert schedule.after(first) != first


def test_names_are_texts_too() -> None:
    for name in NAMED:
        assert check(name.upper()) == name.upper()
    assert Schedule("@Daily", "Europe/Berlin").after(utc("2026-06-01")) == utc("2026-06-01T22:00")


def test_spaces_do_not_matter() -> None:
    assert check("  0\t6 *  * 1-5\n") == "0 6 * * 1-5"
