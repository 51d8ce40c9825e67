"""Cron texts: five fields, read by the clocks of a time zone, and the instants at which they are due.

A time of day that clocks skip is due at the first moment after; one that they show twice, the first time. A text that
names every hour counts the hours as they pass: it is due in each, also where clocks show one twice or not at all.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MAX_LENGTH = 200
NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
HOW = "write minute, hour, day of the month, month and day of the week, as in '0 6 * * 1-5', or @daily"
_FIELDS = 5
_ALLOWED = re.compile(r"[0-9A-Za-z*,/#\s-]+", re.ASCII)
_SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 - cronsim counts by the clock here
_MOMENT = timedelta(microseconds=1)
_EVERY_HOUR = set(range(24))


class BadCron(ValueError):
    """An invalid cron expression, or one that never matches; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression in a time zone."""

    text: str
    zone: str = "UTC"

    def after(self, instant: datetime) -> datetime | None:
        """The next match after this instant; None if it is too far off to matter."""
        return next(self._all_after(instant), None)

    def following(self, instant: datetime, most: int) -> list[datetime]:
        """The next matches."""
        instants = self._all_after(instant)
        return [due for due, _ in zip(instants, range(most), strict=False)]

    def between(self, first: datetime, last: datetime, most: int) -> list[datetime]:
        """The matches in a closed interval: the newest, up to a limit."""
        window = timedelta(hours=1)
        while True:
            begin = max(first, last - window)
            instants: list[datetime] = []
            for due in self._all_after(begin - _MOMENT):
                if due > last:
                    break
                instants.append(due)
            if len(instants) >= most or begin == first:
                return instants[-most:]
            window *= 24

    def says(self) -> str:
        """The expression in words."""
        return CronSim(_expanded(self.text), _SOME_DAY).explain()

    def _all_after(self, instant: datetime) -> Iterator[datetime]:
        last = instant.astimezone(UTC)
        text, minutes = _by_clock(self.text)
        for moment in CronSim(text, instant.astimezone(ZoneInfo(self.zone))):
            due = moment.astimezone(UTC)
            # Where clocks were set back, those that read them meet times again that were due before.
            if due > last and (minutes is None or moment.minute in minutes):
                last = due
                yield due


def check(text: str) -> str:
    """The expression if it is valid and matches some day; else BadCron."""
    cleaned = " ".join(text.split())
    if len(text) > MAX_LENGTH:
        raise BadCron(f"a cron expression has at most {MAX_LENGTH} characters; this one has {len(text)}")
    expanded = _expanded(cleaned)
    if cleaned.startswith("@") and expanded == cleaned:
        raise BadCron(f"unknown alias {cleaned!r}; the aliases are {', '.join(NAMED)}")
    if not _ALLOWED.fullmatch(expanded) or len(expanded.split()) != _FIELDS:
        raise BadCron(f"{cleaned!r} is not a cron expression; {HOW}")
    try:
        iterator = CronSim(_by_clock(cleaned)[0], _SOME_DAY)
    except CronSimError as error:
        if _is_date_in_no_month(expanded):
            raise BadCron(f"{cleaned!r} never matches: none of its months has that day") from None
        raise BadCron(f"{cleaned!r} is not a cron expression: {str(error).lower()}; {HOW}") from None
    if next(iterator, None) is None:
        raise BadCron(f"{cleaned!r} never matches: no day of the next 50 years satisfies it")
    return cleaned


def _expanded(text: str) -> str:
    return NAMED.get(text.lower(), text)


@lru_cache(maxsize=20_000)
def _by_clock(text: str) -> tuple[str, frozenset[int] | None]:
    """The text so that cronsim reads it as this module says, and the minutes that count of what it finds, if not all.

    To cronsim, stars in the first two fields are intervals. For one minute of every hour it leaps an hour at a time,
    and so past clocks that are set by half an hour; with a second minute, it does not.
    """
    expanded = _expanded(text)
    iterator = CronSim(expanded, _SOME_DAY)
    _, _, *days = expanded.split()
    if iterator.hours != _EVERY_HOUR:
        return " ".join([_listed(iterator.minutes), _listed(iterator.hours), *days]), None
    if len(iterator.minutes) > 1:
        return " ".join([_listed(iterator.minutes), "*", *days]), None
    spare = {(minute + 1) % 60 for minute in iterator.minutes}
    return " ".join([_listed(iterator.minutes | spare), "*", *days]), frozenset(iterator.minutes)


def _listed(numbers: set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _is_date_in_no_month(text: str) -> bool:
    """Whether a text that cannot be read could be, if it were for every month."""
    minute, hour, day, month, weekday = text.split()
    try:
        CronSim(f"{minute} {hour} {day} * {weekday}", _SOME_DAY)
        CronSim(f"{minute} {hour} * {month} {weekday}", _SOME_DAY)
    except CronSimError:
        return False
    return True
