"""The state of an incremental load: the highest value of its cursor column, stored as text with its type."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headgate.execution.sources.readers import CursorPosition
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {
    "int": "bigint",
    "bigint": "bigint",
    "float": "double",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
}
TIMES = ("date", "timestamp", "timestamp_ntz")


def since(state: dict[str, Any] | None, look_back: timedelta | None, *, merges: bool) -> CursorPosition | None:
    """The cursor position in the state of the last run; None for a first run."""
    if state is None or state.get("type") not in {*_KINDS.values(), "decimal"}:
        return None
    return CursorPosition(state["cursor"], state["type"], look_back if merges else None, including=True)


def kind_of(column: str, kind: "DataType") -> str:
    """The type name of a cursor column; StepFailed for a type that cannot be a cursor."""
    name = kind.simpleString()
    result = "decimal" if name.startswith("decimal") else _KINDS.get(name)
    if result is None:
        raise StepFailed(
            "CURSOR_TYPE", f"{column} is {name}, which cannot be a cursor; use a number, date or timestamp"
        )
    return result


def highest(column: "Column", kind: str) -> "Column":
    """The highest value of a column, in a form that leaves Spark without loss."""
    from pyspark.sql import functions as f

    return f.max(f.unix_micros(column)) if kind == "timestamp" else f.max(column).cast("string")


def text(told: Any, kind: str) -> str | None:
    """The result of `highest` as stored in a state."""
    if told is None:
        return None
    if kind == "timestamp":
        moment = _EPOCH + timedelta(microseconds=int(told))
        return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if kind == "timestamp_ntz":
        return datetime.fromisoformat(str(told)).isoformat(timespec="microseconds")
    return str(told)


def after(state: dict[str, Any] | None, value: str | None, kind: str) -> dict[str, Any] | None:
    """The state after a batch: the maximum of the old and new values. Deleted rows do not lower it."""
    if value is None:
        return state
    if state is None or state.get("type") != kind or comparable(state["cursor"], kind) <= comparable(value, kind):
        return {"cursor": value, "type": kind}
    return state


def comparable(value: str, kind: str) -> Any:
    """A stored value in a form that can be compared with others of its type."""
    match kind:
        case "bigint" | "decimal":
            return Decimal(value)
        case "double":
            return float(value)
        case "date":
            return date.fromisoformat(value)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(value)
    return value


def begin(cursor_position: CursorPosition) -> Any:
    """The value to read from: the last one, minus look_back; StepFailed if the type cannot be reduced."""
    value = comparable(cursor_position.value, cursor_position.type)
    if cursor_position.look_back is None:
        return value
    if cursor_position.type not in TIMES:
        told = f"look_back is a duration, but the cursor column is {cursor_position.type}; remove look_back"
        raise StepFailed("NO_LOOK_BACK", told)
    return value - cursor_position.look_back


def literal(value: Any, kind: str) -> "Column":
    """A literal for a comparison in Spark."""
    from pyspark.sql import functions as f

    match kind:
        case "timestamp":
            return f.timestamp_micros(f.lit((value - _EPOCH) // timedelta(microseconds=1)))
        case "timestamp_ntz" | "date":
            return f.lit(value.isoformat()).cast(kind)
        case "decimal":
            return f.lit(value)
        case "bigint":
            return f.lit(int(value))
    return f.lit(value)
