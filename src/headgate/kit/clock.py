"""The time, always aware and in UTC."""

from datetime import UTC, datetime


def now() -> datetime:
    """The present instant."""
    return datetime.now(UTC)


def iso(instant: datetime) -> str:
    """An instant as RFC 3339 text in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
