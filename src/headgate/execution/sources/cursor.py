"""Where a stream's next run begins: the highest value of its cursor column, kept as a text with its type."""

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
    """Where to begin, by the state that the last run left; None for the beginning."""
    if state is None or state.get("type") not in {*_KINDS.values(), "decimal"}:
        return None
    return CursorPosition(state["cursor"], state["type"], look_back if merges else None, including=True)


def kind_of(column: str, kind: "DataType") -> str:
    """The type of a cursor column, as a state tells it; StepFailed for one that has no order in time."""
    name = kind.simpleString()
    result = "decimal" if name.startswith("decimal") else _KINDS.get(name)
    if result is None:
        raise StepFailed("CURSOR_TYPE", f"{column} is {name}, which cannot be a cursor; choose a number, date or time")
    return result


def highest(column: "Column", kind: str) -> "Column":
    """The highest value of a column, as it is told out of Spark."""
    from pyspark.sql import functions as f

    return f.max(f.unix_micros(column)) if kind == "timestamp" else f.max(column).cast("string")


def text(told: Any, kind: str) -> str | None:
    """What `highest` told, as a state has it."""
    if told is None:
        return None
    if kind == "timestamp":
        moment = _EPOCH + timedelta(microseconds=int(told))
        return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if kind == "timestamp_ntz":
        return datetime.fromisoformat(str(told)).isoformat(timespec="microseconds")
    return str(told)


def after(state: dict[str, Any] | None, value: str | None, kind: str) -> dict[str, Any] | None:
    """The state after a batch: the higher of what was and what came. Rows that went away do not turn it back."""
    if value is None:
        return state
    if state is None or state.get("type") != kind or comparable(state["cursor"], kind) <= comparable(value, kind):
        return {"cursor": value, "type": kind}
    return state


def comparable(value: str, kind: str) -> Any:
    """A value of a state, so that two of a kind can be compared."""
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
    """The value from which on rows are read: the last one, or so much before it; StepFailed if there is no before."""
    value = comparable(cursor_position.value, cursor_position.type)
    if cursor_position.look_back is None:
        return value
    if cursor_position.type not in TIMES:
        told = f"look_back is a length of time, and the cursor column holds {cursor_position.type}; leave look_back out"
        raise StepFailed("NO_LOOK_BACK", told)
    return value - cursor_position.look_back


def literal(value: Any, kind: str) -> "Column":
    """A value for a comparison in Spark."""
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
