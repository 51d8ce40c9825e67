"""Names, lists of names and instants, read so that malformed input can only deny."""

import unicodedata
from datetime import UTC, date, datetime

UNKNOWN = ""  # stands for a malformed name: it is given, yet nothing is ever found under it


def fold(name: str) -> str:
    """Return the form under which names are matched: NFKC, then casefold."""
    return unicodedata.normalize("NFKC", name).casefold()


def optional_name(value: object) -> str | None:
    """Return the folded name, None when it is left out, UNKNOWN when it is malformed."""
    if value is None:
        return None
    if isinstance(value, str):
        return fold(value)
    return UNKNOWN


def names(value: object) -> tuple[str, ...]:
    """Return the folded names of a list that adds rights; what is malformed is dropped."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        return ()
    return tuple(fold(item) for item in value if isinstance(item, str))


def words(value: object) -> frozenset[str]:
    """Return the words of a list, such as space roles, exactly as written."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        return frozenset()
    return frozenset(item for item in value if isinstance(item, str))


def demanded_names(value: object) -> tuple[str, ...]:
    """Return the folded names of a list that asks for rights; what is malformed becomes UNKNOWN."""
    if value is None:
        return ()
    if not isinstance(value, (list, tuple, set, frozenset)):
        return (UNKNOWN,)
    return tuple(fold(item) if isinstance(item, str) else UNKNOWN for item in value)


def instant(value: object) -> datetime:
    """Return the instant meant, for a date its midnight in UTC; raise ValueError when malformed."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise ValueError("neither a date nor an instant")
