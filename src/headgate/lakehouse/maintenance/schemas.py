"""Maintenance, as the API and workers tell it."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input

State = Literal["queued", "running", "compacting", "succeeded", "failed"]


class PassIn(Input):
    """A pass that is wanted."""

    table: Annotated[
        str | None, Field(max_length=350, examples=["raw.orders"], description="Only this table, by name or id")
    ] = None
    dry_run: Annotated[bool, Field(description="Only find out what there is to do")] = False


class SummaryOut(BaseModel):
    """What a pass did, added up; of a dry run, what it would do."""

    skipped: int = Field(description="Tables that were left alone, such as those that a run writes")
    failed: int = Field(description="Tables that could not be looked at")
    snapshots_expired: int
    files_removed: int
    bytes_removed: int
    compactions_open: int = Field(description="Tables that wait for Spark, or that it rewrites now")
    compactions_planned: int = Field(description="Of a dry run: tables that would be rewritten")
    compactions_failed: int
    tables_compacted: int
    files_before: int = Field(description="Files that were rewritten")
    files_after: int = Field(description="Files that took their place")


class PassOut(BaseModel):
    """A pass of maintenance."""

    id: str = Field(examples=["mnt_01k6x3v9c2m4n8p0q7rs"])
    state: State = Field(description="compacting: all tables were looked at, and Spark still rewrites some")
    dry_run: bool
    table: str | None = Field(description="The one table that it is about; else it is about all")
    asked_by: str | None = Field(description="Null for one by schedule")
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    tables: int = Field(description="How many there are to look at")
    looked_at: int
    error: str | None
    summary: SummaryOut


class TableOut(BaseModel):
    """What a pass did to a table."""

    table: str = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    name: str | None = Field(examples=["raw.orders"], description="Null if it is gone by now")
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
    """A pass, with the tables to which something happened; at most 1,000 of them."""

    items: list[TableOut]


class PassPage(BaseModel):
    """Passes, the newest first."""

    items: list[PassOut]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; null on the last")
