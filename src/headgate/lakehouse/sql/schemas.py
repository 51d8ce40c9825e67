"""API schemas of statements, results and saved queries."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from headgate.contracts.jobs import ProgressOut
from headgate.contracts.statements import ColumnOut
from headgate.kit.request_models import Input
from headgate.platform.resources.names import NameText

MAX_SQL = 100_000
"""Maximum length of SQL in characters."""

SqlText = Annotated[str, Field(min_length=1, max_length=MAX_SQL, examples=["SELECT * FROM service.revenue"])]


class StatementIn(Input):
    """SQL to run as the caller."""

    sql: SqlText
    max_rows: Annotated[
        int | None,
        Field(ge=1, le=2**31 - 1, description="Keep at most this many rows, up to the setting `sql.max_rows`"),
    ] = None


class StatementError(BaseModel):
    """The error of a failed statement."""

    code: str = Field(examples=["TABLE_OR_VIEW_NOT_FOUND"], description="Spark's error class, or a code of Headgate")
    message: str


class StatementItem(BaseModel):
    """A statement: its SQL, its status and the size of its result."""

    id: str = Field(examples=["stm_01k6x3v9c2m4n8p0q7rs"])
    sql: str
    purpose: str = Field(examples=["statement"], description="`statement`, or `probe` when a query is saved")
    state: str = Field(examples=["succeeded"], description="queued, running, cancelling; succeeded, failed, cancelled")
    submitted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: StatementError | None
    rows: int | None = Field(description="The number of rows of the result")
    bytes: int | None = Field(description="The size of the result as Arrow, in bytes")
    pages: int | None = Field(description="The number of pages of the result, counted from 0")
    truncated: bool | None = Field(description="Whether the result was truncated by `max_rows` or `sql.max_bytes`")
    max_rows: int
    results_expire_at: datetime | None = Field(description="When the result is deleted")
    saved_query: str | None = Field(description="The saved query that this probe saved")


class WriteOut(BaseModel):
    """A commit of a statement, with the row counts written by the engine."""

    table: str | None = Field(examples=["service.revenue"], description="Null if you may no longer see the table")
    operation: str = Field(examples=["append"], description="append, delete, overwrite, replace, create, change …")
    added_rows: int | None = Field(
        description="The number of rows in added files; null if the engine did not report it"
    )
    deleted_rows: int | None = Field(
        description="The number of rows in removed files; an engine may rewrite rows that remain"
    )


class StatementOut(StatementItem):
    """A statement, with its columns and the first page of its rows."""

    progress: ProgressOut | None
    columns: list[ColumnOut] | None
    data: list[list[Any]] | None = Field(
        description="The first page, a list per row. Decimals, times and bytes (base64) are texts; maps are pairs"
    )
    writes: list[WriteOut] = Field(description="Its commits to tables, in order")
    withheld: bool = Field(
        description="True if the rows are kept, but you may no longer read the tables that they come from"
    )


class StatementPage(BaseModel):
    """A page of statements, newest first."""

    items: list[StatementItem]
    next_cursor: str | None


class ResultPage(BaseModel):
    """A page of a result."""

    number: int
    data: list[list[Any]]
    next: int | None = Field(description="The number of the next page; null on the last")


class StatementDeleted(BaseModel):
    """A statement deleted from the history."""

    id: str


class SavedIn(Input):
    """A query to save."""

    name: NameText
    sql: SqlText


class SavedChange(Input):
    """Changes to a saved query; omitted fields stay unchanged."""

    name: NameText | None = None
    sql: SqlText | None = None


class SavedItem(BaseModel):
    """A saved query."""

    id: str = Field(examples=["sq_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Largest orders"])
    sql: str | None
    created_at: datetime
    updated_at: datetime


class SavedOut(SavedItem):
    """A saved query, with those of its tables that its author may see and the author's actions on it."""

    reads: list[str] = Field(examples=[["service.revenue"]])
    allowed: list[str] = Field(examples=[["see", "delete"]])


class SavedPage(BaseModel):
    """Saved queries, by name."""

    items: list[SavedItem]
    next_cursor: str | None


class Saving(BaseModel):
    """A save in progress: a statement analyses the query first, and its status tells the result."""

    statement: str | None = Field(examples=["stm_01k6x3v9c2m4n8p0q7rs"], description="Null if no analysis was needed")
    state: str = Field(examples=["queued"])


class SavedDeleted(BaseModel):
    """A deleted saved query."""

    id: str
    name: str
