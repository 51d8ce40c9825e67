"""The current time, always aware and in UTC."""

from datetime import UTC, datetime


def now() -> datetime:
    """The present instant."""
    return datetime.now(UTC)


def iso(instant: datetime) -> str:
    """An instant as RFC 3339 text in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def in_utc(instant: datetime) -> datetime:
    """An aware instant in UTC; ValueError for one that UTC has no year for."""
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is outside the years 1 to 9999") from None
