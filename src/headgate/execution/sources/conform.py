"""Convert source rows to the columns of the table: map columns, cast types, and reject rows that do not fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.execution.sources import cursor as state
from headgate.execution.sources import names, types
from headgate.execution.sources.readers import FAULT, FILE, HIDDEN, RECORD, Read, ReadOptions
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

MAX_RECORD = 100_000
_SHOWN = 60
_NAMED = 20


@dataclass(frozen=True)
class ColumnSource:
    """A column of the table: its type, and the index of its source column, if any."""

    name: str
    type: "DataType"
    place: int | None = None


@dataclass(frozen=True)
class Plan:
    """How the rows of a stream become rows of the table."""

    rows: "DataFrame"
    """The source's columns by their places, c0, c1 …, and those of HIDDEN that it has."""

    source: tuple["DataType", ...]
    cells: tuple[ColumnSource, ...]
    keys: tuple[str, ...]
    cursor: str | None
    cursor_kind: str | None
    warnings: tuple[str, ...]
    read: Read

    @property
    def columns(self) -> "StructType":
        """The columns of the table."""
        from pyspark.sql import types as t

        return t.StructType([t.StructField(cell.name, cell.type) for cell in self.cells])

    @property
    def filled(self) -> list[str]:
        """The columns of the table that the source has."""
        return [cell.name for cell in self.cells if cell.place is not None]


def planned(read: Read, asked: ReadOptions, known: "StructType | None", *, evolves: bool) -> Plan:
    """Map the columns. `known` are the table's columns; None for a new table."""
    fields = [field for field in read.rows.schema.fields if field.name not in HIDDEN]
    hidden = [name for name in HIDDEN if name in read.rows.columns]
    given = [field.name for field in fields]
    called = names.columns(given, known.names if known is not None else ())
    rows = read.rows.select(*_by_place(read.rows, given), *hidden)
    if not read.again and (read.texts or read.times) and _unknown(called, known):
        # Types are found out by a look at all of them, and a second look might see others.
        rows = rows.localCheckpoint()
    kinds = _kinds(rows, read, [field.dataType for field in fields], called, known)
    warnings: list[str] = []
    if known is None:
        cells = [ColumnSource(name, kinds[place], place) for place, name in enumerate(called)]
    else:
        cells = _known_cells(known, called, kinds, evolves=evolves, warnings=warnings)
    find = _finder(asked, given, called)
    keys = tuple(called[find(key, "key")] for key in asked.stream.keys) if asked.stream.write == "merge" else ()
    cursor = called[find(asked.stream.cursor, "cursor")] if asked.stream.cursor else None
    cursor_kind = None
    if cursor is not None:
        cursor_kind = state.kind_of(cursor, next(cell.type for cell in cells if cell.name == cursor))
    source = tuple(field.dataType for field in fields)
    return Plan(rows, source, tuple(cells), keys, cursor, cursor_kind, tuple(warnings), read)


def _by_place(rows: "DataFrame", given: Sequence[str]) -> "list[Column]":
    from pyspark.sql import functions as f

    return [f.col("`" + name.replace("`", "``") + "`").alias(f"c{place}") for place, name in enumerate(given)]


def _unknown(called: Sequence[str], known: "StructType | None") -> bool:
    return known is None or any(name not in known.names for name in called)


def _kinds(
    rows: "DataFrame", read: Read, given: "list[DataType]", called: Sequence[str], known: "StructType | None"
) -> "list[DataType]":
    """The table types for the source's columns."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    data_types = [types.stored(data_type) for data_type in given]
    if read.texts or read.times:
        there = set(known.names) if known is not None else set()
        places = [
            place
            for place, data_type in enumerate(given)
            if isinstance(data_type, t.StringType) and called[place] not in there
        ]
        sound = rows.filter(f.col(FAULT).isNull()) if FAULT in rows.columns else rows
        held = types.inferred(sound, [f"c{place}" for place in places], times=not read.texts)
        for place in places:
            data_types[place] = held[f"c{place}"]
    return data_types


def _known_cells(
    known: "StructType", called: Sequence[str], kinds: "Sequence[DataType]", *, evolves: bool, warnings: list[str]
) -> list[ColumnSource]:
    place_of = {name: place for place, name in enumerate(called)}
    cells = []
    for entry in known.fields:
        place = place_of.get(entry.name)
        kind = types.grown(entry.dataType, kinds[place]) if evolves and place is not None else entry.dataType
        cells.append(ColumnSource(entry.name, kind, place))
    new = [name for name in called if name not in known.names]
    missing = [field.name for field in known.fields if field.name not in place_of]
    if missing:
        warnings.append(f"The source has no {_listed(missing)}; filled with NULL")
    if new and evolves:
        warnings.append(f"The source has new columns, which are added to the table: {_listed(new)}")
        cells += [ColumnSource(name, kinds[place_of[name]], place_of[name]) for name in new]
    elif new:
        warnings.append(f"The source has new columns, which are ignored (schema_changes: keep): {_listed(new)}")
    return cells


def _listed(result: Sequence[str]) -> str:
    more = f" and {len(result) - _NAMED} more" if len(result) > _NAMED else ""
    return ", ".join(result[:_NAMED]) + more


def _finder(asked: ReadOptions, given: Sequence[str], called: Sequence[str]) -> Any:
    def find(wanted: str, what: str) -> int:
        place = names.place_of(wanted, given, called)
        if place is None:
            there = _listed(given) or "none"
            told = f"{asked.stream.name} has no column {wanted!r}, which is the {what} of the stream; it has {there}"
            raise StepFailed("NO_SUCH_COLUMN", told)
        return place

    return find


def conform(plan: Plan, asked: ReadOptions) -> "DataFrame":
    """The table's columns and those of HIDDEN; FAULT is the reason for rejecting a row, or NULL."""
    from pyspark.sql import functions as f

    values, faults = [], [f.col(FAULT)] if FAULT in plan.rows.columns else []
    by_name: dict[str, Column] = {}
    for cell in plan.cells:
        if cell.place is None:
            values.append(f.lit(None).cast(cell.type).alias(cell.name))
            continue
        given = f.col(f"c{cell.place}")
        cast = types.fit(given, plan.source[cell.place], cell.type)
        by_name[cell.name] = cast.value
        values.append(cast.value.alias(cell.name))
        if cast.ok is not None:
            faults.append(_misfit(cell, given, plan.source[cell.place], cast.ok))
    must = [*plan.keys, *([plan.cursor] if plan.cursor and asked.since and not plan.read.since else [])]
    readable = f.col(FAULT).isNull() if FAULT in plan.rows.columns else f.lit(col=True)
    faults += [f.when(readable & by_name[name].isNull(), f.lit(f"{name} is empty")) for name in dict.fromkeys(must)]
    reason = f.nullif(f.concat_ws("; ", *faults), f.lit("")) if faults else f.lit(None).cast("string")
    rows = plan.rows.select(
        *values,
        reason.alias(FAULT),
        *([f.when(reason.isNotNull(), _record(plan)).alias(RECORD)] if faults else []),
        *([f.col(FILE)] if FILE in plan.rows.columns else []),
    )
    return _newer(rows, plan, asked)


def can_fail(rows: "DataFrame") -> bool:
    """Whether any row can be rejected."""
    return RECORD in rows.columns


def _misfit(cell: ColumnSource, given: "Column", old: "DataType", ok: "Column") -> "Column":
    from pyspark.sql import functions as f

    shown = f.substring(types.fit(given, old, _string()).value, 1, _SHOWN)
    bad = given.isNotNull() & ~f.coalesce(ok, f.lit(col=False))
    return f.when(
        bad, f.concat(f.lit(f"{cell.name}: "), shown, f.lit(f" is not a valid {cell.type.simpleString()[:100]}"))
    )


def _string() -> "DataType":
    from pyspark.sql import types as t

    return t.StringType()


def _record(plan: Plan) -> "Column":
    """The text of a row: as it was read, or as JSON with the source's column names."""
    from pyspark.sql import functions as f

    called = {cell.place: cell.name for cell in plan.cells if cell.place is not None}
    parts = [f.col(f"c{place}").alias(called.get(place, f"column_{place + 1}")) for place in range(len(plan.source))]
    row = f.to_json(f.struct(*parts)) if parts else f.lit("")
    told = f.coalesce(f.col(RECORD), row) if RECORD in plan.rows.columns else row
    return f.substring(told, 1, MAX_RECORD)


def _newer(rows: "DataFrame", plan: Plan, asked: ReadOptions) -> "DataFrame":
    """Filter rows before the cursor, for readers that do not filter."""
    from pyspark.sql import functions as f

    if asked.since is None or plan.read.since or plan.cursor is None or plan.cursor_kind is None:
        return rows
    begin = state.literal(state.begin(asked.since), asked.since.type)
    return rows.filter(f.col(FAULT).isNotNull() | (f.col(plan.cursor) >= begin))
