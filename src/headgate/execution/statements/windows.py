"""Time windows of the write mode `window`."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from headgate.contracts.pipelines.fields import duration
from headgate.contracts.tables.types import DATE, TIMESTAMP_NTZ

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
"""Where a window begins that has no beginning."""


@dataclass(frozen=True, slots=True)
class Window:
    """A time range, exclusive at its end."""

    start: datetime
    end: datetime
    zone: ZoneInfo

    def holds(self, column: str, kind: str) -> str:
        """The condition that a time of this type is in the window; false for NULL."""
        low, high = (_written(moment, kind, self.zone) for moment in (self.start, self.end))
        return f"({column} >= {low} AND {column} < {high})"


def window(moment: datetime, length: str, zone: str, *, full: bool = False) -> Window:
    """The window that ends at a moment. Days and weeks follow the time zone, including days of 23 or 25 hours."""
    there = ZoneInfo(zone)
    if full:
        return Window(BEGINNING, moment, there)
    return Window(back(moment, length, there), moment, there)


def back(moment: datetime, length: str, zone: ZoneInfo) -> datetime:
    """A moment minus a duration."""
    is_by_calendar = length.rstrip("s").endswith(("day", "week"))
    start = (moment.astimezone(zone) if is_by_calendar else moment.astimezone(UTC)) - duration(length)
    return start.astimezone(UTC)


def timestamp(at: datetime) -> str:
    """A SQL timestamp literal."""
    return f"TIMESTAMP '{at.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}+00:00'"


def first_day(at: datetime, zone: ZoneInfo) -> date:
    """The first day that starts at or after a moment."""
    there = at.astimezone(zone)
    return there.date() if there.time() == time() else there.date() + timedelta(days=1)


def _written(at: datetime, kind: str, zone: ZoneInfo) -> str:
    if at == BEGINNING:
        zone = ZoneInfo("UTC")
    if kind == DATE:
        return f"DATE '{first_day(at, zone).isoformat()}'"
    if kind == TIMESTAMP_NTZ:
        return f"TIMESTAMP_NTZ '{at.astimezone(zone).replace(tzinfo=None).isoformat(sep=' ')}'"
    return timestamp(at)
