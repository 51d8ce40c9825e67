"""The columns of a history table: those of its source, and the validity interval of each row version."""

from headgate.contracts.tables.types import BOOLEAN, TIMESTAMP, Array, Column, Columns, PrimitiveType, find, key

FROM, TO, CURRENT, SEEN = "_valid_from", "_valid_to", "_is_current", "_seen_at"
RESERVED = (FROM, TO, CURRENT, SEEN)


def columns(source: Columns, time: Column | None) -> Columns:
    """The columns of a history of this source."""
    own = [
        Column(FROM, PrimitiveType(TIMESTAMP)),
        Column(TO, PrimitiveType(TIMESTAMP)),
        Column(CURRENT, PrimitiveType(BOOLEAN)),
    ]
    return (*source, *own, *([Column(SEEN, Array(time.type))] if time else []))


def of_source(history: Columns) -> Columns:
    """The source's columns among those of a history."""
    return tuple(column for column in history if key(column.name) not in RESERVED)


def missing(history: Columns, time: str | None) -> list[str]:
    """The columns that a table lacks to be such a history, or the one too many."""
    wanted = RESERVED if time else RESERVED[:-1]
    return [name for name in RESERVED if (find(history, name) is None) == (name in wanted)]
