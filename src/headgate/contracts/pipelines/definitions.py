"""Pipeline definitions by kind, as members write them and as they are stored.

Typed fields only. Code in them (SQL and notebooks) runs isolated.
"""

from functools import cache
from typing import Annotated, Any, Literal, Self
from zoneinfo import available_timezones

from pydantic import AfterValidator, Discriminator, Field, TypeAdapter, model_validator

from headgate.contracts.pipelines.expectations import Expectation
from headgate.contracts.pipelines.fields import (
    ColumnName,
    Columns,
    ConnectionId,
    DestinationId,
    Duration,
    ItemRef,
    Parameters,
    SqlBody,
    SqlName,
    TableRef,
    Transform,
)
from headgate.contracts.pipelines.streams import Stream
from headgate.kit.patterns import TextPattern
from headgate.kit.request_models import Input

MAX_STREAMS = 500
REJECTED = "_rejected"
"""Suffix of the side table for rejected rows."""


@cache
def _zones() -> frozenset[str]:
    """The time zones of this machine; reading them opens several hundred files."""
    return frozenset(available_timezones())


def _zone(name: str) -> str:
    if name not in _zones():
        raise ValueError(f"{name!r} is not a time zone; write one as Europe/Berlin or UTC")
    return name


TimeZone = Annotated[str, Field(max_length=64, examples=["Europe/Berlin"]), AfterValidator(_zone)]


class Retries(Input):
    """How often and when a failed run is retried."""

    times: Annotated[int, Field(ge=0, le=20)] = 0
    delay: Duration = "1 minute"


class Common(Input):
    """The common fields of all kinds."""

    expectations: Annotated[tuple[Expectation, ...], Field(max_length=100)] = ()
    retries: Retries = Retries()
    timeout: Annotated[Duration | None, Field(description="Timeout of a run, at most `runs.max_hours`")] = None
    time_zone: Annotated[TimeZone, Field(description="Time zone of the Spark session")] = "UTC"

    @model_validator(mode="after")
    def _expects_of_its_own(self) -> Self:
        known = checked(self)
        for expectation in self.expectations:
            if expectation.table not in known:
                raise ValueError(
                    f"expectations: {expectation.table} is not a table that this pipeline writes or delivers"
                )
        return self


class Source(Common):
    """Loads streams of a connection, or files of a volume, into tables of a layer."""

    kind: Literal["source"] = "source"
    connection: Annotated[ConnectionId | None, Field(description="Its id")] = None
    volume: Annotated[ItemRef | None, Field(description="Read files of this volume, instead of a connection")] = None
    output_layer: Annotated[SqlName, Field(examples=["raw"])]
    streams: Annotated[tuple[Stream, ...], Field(min_length=1, max_length=MAX_STREAMS)]
    schema_changes: Annotated[
        Literal["keep", "evolve"],
        Field(description="keep the types of the first run, or evolve: add new columns and widen types"),
    ] = "evolve"

    @model_validator(mode="after")
    def _one_place(self) -> "Source":
        if (self.connection is None) == (self.volume is None):
            raise ValueError("give either a connection or a volume")
        names = [stream.table + end for stream in self.streams for end in ("", REJECTED)]
        if len(set(names)) < len(names):
            raise ValueError(
                "two streams write to the same table; each stream requires its own table, and rejected rows are "
                f"written to a table whose name ends in {REJECTED}"
            )
        if self.volume in {f"{self.output_layer}.{name}" for name in names}:
            raise ValueError(f"{self.volume} is the volume that is read; give the table another name")
        return self


class Query(Common):
    """Writes the result of SQL into a table."""

    kind: Literal["query"] = "query"
    sql: SqlBody
    output: TableRef
    write: Literal["overwrite", "append", "merge", "window"] = "overwrite"
    keys: Columns = ()
    time_column: Annotated[ColumnName | None, Field(description="window: the time column of a row")] = None
    window: Annotated[Duration | None, Field(description="window: how far back rows are rewritten")] = None
    schema_changes: Literal["merge", "strict", "overwrite"] = "merge"
    partition_by: Annotated[tuple[Transform, ...], Field(max_length=10)] = ()
    sort_by: Columns = ()

    @model_validator(mode="after")
    def _whole(self) -> "Query":
        if self.write == "merge" and not self.keys:
            raise ValueError("merge requires keys: the columns that identify a row")
        if self.write == "window" and not (self.time_column and self.window):
            raise ValueError("window requires time_column, and window such as '3 days'")
        if self.schema_changes == "overwrite" and self.write != "overwrite":
            raise ValueError("schema_changes overwrite requires write overwrite, because the table is rewritten")
        return self


class NotebookOutput(Input):
    """A table that a notebook saves."""

    table: TableRef
    write: Literal["overwrite", "append", "merge"] = "overwrite"
    keys: Columns = ()
    schema_changes: Literal["merge", "strict", "overwrite"] = "merge"

    @model_validator(mode="after")
    def _whole(self) -> "NotebookOutput":
        if self.write == "merge" and not self.keys:
            raise ValueError("merge requires keys: the columns that identify a row")
        if self.schema_changes == "overwrite" and self.write != "overwrite":
            raise ValueError("schema_changes overwrite requires write overwrite, because the table is rewritten")
        return self


class Cell(Input):
    """A cell of a notebook."""

    kind: Literal["code", "text"] = "code"
    source: Annotated[str, Field(max_length=1_000_000)]


class Wheel(Input):
    """A dependency: a wheel in a volume declared by the notebook."""

    volume: ItemRef
    path: Annotated[str, Field(max_length=1000, examples=["wheels/phonenumbers-9.0.1-py2.py3-none-any.whl"])]


_SECRET_NAME = TextPattern(
    r"^[a-z_][a-z0-9_]{0,63}$",
    "must be at most 64 lowercase letters, digits and underscores, and not start with a digit, such as api_key",
)
_SECRET_FIELD = TextPattern(
    r"^[a-z_]{1,40}$",
    "must be the name of a secret field of the connection, in lowercase letters and underscores, such as token",
)
_HOST = TextPattern(
    r"^[a-z0-9.-]{1,253}:[0-9]{1,5}$", "must be a host in lowercase letters with a port, such as api.example.com:443"
)


class SecretRef(Input):
    """A secret of a connection that the notebook may read under its own name."""

    name: Annotated[str, _SECRET_NAME, Field(examples=["api_key"])]
    connection: ConnectionId
    field: Annotated[str, _SECRET_FIELD, Field(examples=["token"])]


class Notebook(Common):
    """PySpark code with declared inputs and outputs."""

    kind: Literal["notebook"] = "notebook"
    cells: Annotated[tuple[Cell, ...], Field(min_length=1, max_length=1000)]
    inputs: Annotated[tuple[TableRef, ...], Field(max_length=100)] = ()
    outputs: Annotated[tuple[NotebookOutput, ...], Field(max_length=100)] = ()
    volumes: Annotated[tuple[ItemRef, ...], Field(max_length=20, description="Volumes whose files it reads")] = ()
    output_volumes: Annotated[
        tuple[ItemRef, ...], Field(max_length=20, description="Volumes that it saves files to")
    ] = ()
    parameters: Parameters = Field(default_factory=dict)
    wheels: Annotated[tuple[Wheel, ...], Field(max_length=50)] = ()
    hosts: Annotated[
        tuple[Annotated[str, _HOST, Field(examples=["api.example.com:443"])], ...],
        Field(max_length=20, description="The only hosts that it can connect to"),
    ] = ()
    secrets: Annotated[tuple[SecretRef, ...], Field(max_length=20)] = ()

    @model_validator(mode="after")
    def _each_once(self) -> "Notebook":
        for what, names in (
            ("outputs", [output.table for output in self.outputs]),
            ("secrets", [secret.name for secret in self.secrets]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{what}: a name occurs twice; name each once")
        named = {*self.volumes, *self.output_volumes, *(wheel.volume for wheel in self.wheels)}
        for table in (*self.inputs, *(output.table for output in self.outputs)):
            if table in named:
                raise ValueError(f"{table} is both a volume and a table; names in a layer are unique")
        return self


class History(Common):
    """Keeps every version of a table's rows (slowly changing dimension, type 2)."""

    kind: Literal["history"] = "history"
    table: TableRef
    output: TableRef
    keys: Annotated[Columns, Field(min_length=1)]
    ignore: Annotated[Columns, Field(description="Columns that are not versioned")] = ()
    time_column: Annotated[
        ColumnName | None, Field(description="The time column of changes. Default: the time of the table's snapshot")
    ] = None
    deletions: Annotated[Literal["close", "keep"], Field(description="What to do with versions of deleted rows")] = (
        "close"
    )

    @model_validator(mode="after")
    def _of_another(self) -> "History":
        if self.table == self.output:
            raise ValueError("a table cannot contain its own history; use another output")
        return self


class DeliveryIn(Input):
    """A table to deliver and its target."""

    table: TableRef
    target: Annotated[
        str,
        Field(
            min_length=1,
            max_length=500,
            description="database: schema.table; files: a folder below the destination; HTTP: a path below its address",
            examples=["public.revenue", "exports/revenue", "/v1/rows"],
        ),
    ]
    write: Literal["append", "upsert", "overwrite"] = "append"
    keys: Columns = ()
    format: Annotated[Literal["csv", "json", "parquet"], Field(description="For files")] = "csv"
    formulas: Annotated[
        Literal["escape", "keep"],
        Field(
            description=(
                "For CSV: prefix texts that a spreadsheet would run as a formula (which start with = + - @, a "
                "tab or a line break) with ', or keep them unchanged"
            )
        ),
    ] = "escape"
    batch: Annotated[int, Field(ge=1, le=10_000, description="For HTTP: rows per request")] = 500

    @model_validator(mode="after")
    def _whole(self) -> "DeliveryIn":
        if self.write == "upsert" and not self.keys:
            raise ValueError("upsert requires keys: the columns that identify a row")
        return self


class Delivery(Common):
    """Sends tables to a destination."""

    kind: Literal["delivery"] = "delivery"
    destination: Annotated[DestinationId, Field(description="Its id")]
    tables: Annotated[tuple[DeliveryIn, ...], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _apart(self) -> "Delivery":
        for target in {table.target.strip("/") for table in self.tables}:
            there = [table for table in self.tables if table.target.strip("/") == target]
            if len({delivery.table for delivery in there}) < len(there):
                raise ValueError(f"a table is delivered to {target!r} twice; deliver it once")
            if len(there) > 1 and any(delivery.write != "append" for delivery in there):
                raise ValueError(
                    f"two tables are delivered to {target!r}, and one would overwrite the other; use append"
                )
        return self


AnyDefinition = Source | Query | Notebook | History | Delivery
Definition = Annotated[AnyDefinition, Discriminator("kind")]
_ADAPTER: TypeAdapter[AnyDefinition] = TypeAdapter(Definition)


def parse(value: dict[str, Any]) -> AnyDefinition:
    """Parse a stored definition; raises ValidationError."""
    return _ADAPTER.validate_python(value)


def outputs(definition: AnyDefinition) -> dict[str, bool]:
    """The output tables and volumes by name, and whether each is enabled."""
    match definition:
        case Source():
            return {f"{definition.output_layer}.{stream.table}": stream.enabled for stream in definition.streams}
        case Query() | History():
            return {definition.output: True}
        case Notebook():
            return {output.table: True for output in definition.outputs} | dict.fromkeys(
                definition.output_volumes, True
            )
        case Delivery():
            return {}


def declared_reads(definition: AnyDefinition) -> list[str]:
    """The inputs that the definition declares itself. The inputs of queries and custom checks are probed."""
    results: list[str] = []
    match definition:
        case Source():
            results = [definition.volume] if definition.volume else []
        case Notebook():
            results = [*definition.inputs, *definition.volumes, *(wheel.volume for wheel in definition.wheels)]
        case History():
            results = [definition.table]
        case Delivery():
            results = [table.table for table in definition.tables]
    results += [expectation.other for expectation in definition.expectations if expectation.check == "reference"]
    return list(dict.fromkeys(results))


def volumes(definition: AnyDefinition) -> set[str]:
    """The names that refer to volumes."""
    match definition:
        case Source(volume=str(found)):
            return {found}
        case Notebook():
            return {*definition.volumes, *definition.output_volumes, *(wheel.volume for wheel in definition.wheels)}
    return set()


def checked(definition: Any) -> set[str]:
    """The tables that expectations may check: outputs and delivered tables."""
    if isinstance(definition, Delivery):
        return {table.table for table in definition.tables}
    written = set(outputs(definition))
    return written | ({value + REJECTED for value in written} if isinstance(definition, Source) else set())


def connections(definition: AnyDefinition) -> list[str]:
    """The ids of the connections it uses."""
    match definition:
        case Source(connection=str(found)):
            return [found]
        case Notebook():
            return list(dict.fromkeys(secret.connection for secret in definition.secrets))
    return []


def custom_checks(definition: AnyDefinition) -> list[Expectation]:
    """The expectations with custom SQL, whose inputs only Spark can determine."""
    return [expectation for expectation in definition.expectations if expectation.check == "sql"]
