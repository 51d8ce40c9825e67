"""What a reader is asked, what it gives, and which reader reads a kind of connection.

A reader is a function `read(asked, step) -> Read | None`; `READERS` names one for each kind of connection, and `volume`
for files of a volume. It gives the stream's rows as they are, and knows nothing of the table: names, types, rejecting,
merging and counting are landing's. None means that there is nothing at all, not even columns.

Beside the stream's own columns, a reader's rows may have

    FAULT    why a row cannot be read; such a row is rejected
    RECORD   the row's text, for whoever looks at what was rejected; left out, it is the row as JSON
    FILE     the path by which Spark read the row; `Read.files` says what members call it
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headgate.contracts.pipelines.streams import Stream
from headgate.execution.spark.step_session import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FAULT, RECORD, FILE = "__headgate_fault", "__headgate_record", "__headgate_file"
HIDDEN = (FAULT, RECORD, FILE)
SPOILT = "bytes that are invalid in the file's encoding"
"""How the reason for rejecting a row ends, where it is not in the encoding that the stream says."""


@dataclass(frozen=True)
class CursorPosition:
    """Where an incremental read begins: the highest value that an earlier run saw in the stream's cursor column."""

    value: str
    """As `state` wrote it: a number, a text, a date, or a moment in UTC such as 2026-11-16T00:30:00.000001Z."""

    type: str
    """bigint, decimal, double, date, timestamp or string."""

    look_back: timedelta | None
    including: bool
    """Whether rows with this very value are read again; landing drops those that it has."""


@dataclass(frozen=True)
class File:
    """A file that the worker got: where Spark reads it, what members call it, and its bytes."""

    path: str
    name: str
    size: int


@dataclass(frozen=True)
class ReadOptions:
    """What to read."""

    kind: str
    stream: Stream
    config: dict[str, Any] = field(default_factory=dict)
    """The connection's, as its kind types them (headgate.contracts.external_systems.kinds)."""

    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    files: tuple[File, ...] = ()
    """For kinds whose files the worker gets."""

    folder: str = ""
    """A folder of the run's own, which Spark on this machine sees too."""

    since: CursorPosition | None = None
    known: "StructType | None" = None
    """The table's columns, once it has had rows."""

    more: dict[str, Any] = field(default_factory=dict)
    """Whatever else the kind's preparation on the worker found (headgate.execution.steps.land.PREPARE)."""


@dataclass(frozen=True)
class Read:
    """What was read. Nothing is executed yet."""

    rows: "DataFrame"
    texts: bool = False
    """Whether columns of text hold values of types that are to be found out, as those of CSV do."""

    times: bool = False
    """Whether columns of text may hold dates and times, and nothing else that is to be found out, as those of JSON."""

    again: bool = False
    """Whether reading it again gives the same rows. Otherwise they are kept aside before a second look."""

    since: bool = False
    """Whether rows before `asked.since` are left out already."""

    bytes: int | None = None
    """How many bytes that was; left out, the bytes written count."""

    files: dict[str, str] = field(default_factory=dict)
    """What members call the files, by the path that FILE has."""


Reader = Callable[[ReadOptions, Step], Read | None]

READERS: dict[str, str] = {
    "volume": "headgate.execution.sources.files:read",
    "folder": "headgate.execution.sources.files:read",
    "postgresql": "headgate.execution.sources.jdbc:read",
    "mysql": "headgate.execution.sources.jdbc:read",
    "http": "headgate.execution.sources.api:read",
    "object_store": "headgate.execution.sources.files:read",
    "iceberg": "headgate.execution.sources.iceberg:read",
}
"""By kind of connection, the function that reads it, as `module:name`: loaded when it is needed."""


def reader(kind: str) -> Reader:
    """The reader of a kind."""
    module, _, name = READERS[kind].partition(":")
    result: Reader = getattr(importlib.import_module(module), name)
    return result
