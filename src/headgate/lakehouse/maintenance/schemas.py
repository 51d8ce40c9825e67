"""API and worker schemas of maintenance."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input

State = Literal["queued", "running", "compacting", "succeeded", "failed"]


class PassIn(Input):
    """A pass to start."""

    table: Annotated[
        str | None, Field(max_length=350, examples=["raw.orders"], description="Only this table, by name or id")
    ] = None
    dry_run: Annotated[bool, Field(description="Only report what would be done")] = False


class SummaryOut(BaseModel):
    """The totals of a pass; for a dry run, the projected totals."""

    skipped: int = Field(description="Tables that were skipped, such as those that a run writes")
    failed: int = Field(description="Tables that could not be processed")
    snapshots_expired: int
    files_removed: int
    bytes_removed: int
    compactions_open: int = Field(description="Tables that are queued for compaction or being compacted")
    compactions_planned: int = Field(description="In a dry run: tables that would be compacted")
    compactions_failed: int
    tables_compacted: int
    files_before: int = Field(description="Files before compaction")
    files_after: int = Field(description="Files after compaction")


class PassOut(BaseModel):
    """A pass of maintenance."""

    id: str = Field(examples=["mnt_01k6x3v9c2m4n8p0q7rs"])
    state: State = Field(description="compacting: all tables were checked, and Spark still compacts some")
    dry_run: bool
    table: str | None = Field(description="The table, if it is a pass over one table")
    asked_by: str | None = Field(description="Null for a scheduled pass")
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    tables: int = Field(description="The number of tables to check")
    looked_at: int
    error: str | None
    summary: SummaryOut


class TableOut(BaseModel):
    """Results of a pass for a table."""

    table: str = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    name: str | None = Field(examples=["raw.orders"], description="Null if it was deleted")
    outcome: Literal["done", "skipped", "failed"]
    note: str | None
    snapshots: int
    files: int
    bytes: int
    small_files: int | None
    compaction: Literal["planned", "queued", "running", "done", "failed"] | None
    files_before: int | None
    files_after: int | None


class PassDetail(PassOut):
    """A pass with its changed tables, at most 1,000."""

    items: list[TableOut]


class PassPage(BaseModel):
    """A page of passes, newest first."""

    items: list[PassOut]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; null on the last")
