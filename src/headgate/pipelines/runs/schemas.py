"""API schemas of runs."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from headgate.contracts.jobs import ProgressOut
from headgate.kit.patterns import TextPattern

ARTIFACT_NAME = TextPattern(
    r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$",
    "must be a file name: at most 100 letters, digits and . _ -, not starting with a dot",
)


class CheckOut(BaseModel):
    """The result of an expectation."""

    passed: bool
    failed_rows: int
    checked_rows: int
    message: str
    sample: list[dict[str, Any]] | None = Field(description="Failed rows; null for callers who may not read the table")


class RunStepOut(BaseModel):
    """A step of a run."""

    number: int
    kind: str = Field(examples=["refine"])
    title: str
    state: str = Field(examples=["succeeded"], description="waiting, running, succeeded or failed")
    started_at: datetime | None
    ended_at: datetime | None
    rows_in: int | None
    rows_out: int | None
    rejected: int | None
    bytes: int | None
    check: CheckOut | None
    detail: dict[str, Any]


class WrittenOut(BaseModel):
    """A table that a run published, and its snapshot."""

    table: str
    name: str | None = Field(description="Null if the caller may not see it")
    snapshot: str | None
    version: int


class ArtifactOut(BaseModel):
    """An artifact of a run."""

    name: str
    media_type: str
    size: int


class RunItem(BaseModel):
    """A run in a list."""

    id: str = Field(examples=["run_01k6x3v9c2m4n8p0q7rs"])
    pipeline: str
    state: str = Field(
        examples=["succeeded"],
        description="queued, running, cancelling; succeeded, failed, cancelled, blocked, skipped",
    )
    started_by: str | None = Field(description="The member who started it; null for a trigger")
    trigger: str | None
    acts_for: str | None
    due_at: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    attempt: int
    full_refresh: bool
    error_code: str | None
    error: str | None
    rows_in: int | None
    rows_out: int | None
    rejected: int | None
    bytes: int | None


class RunOut(RunItem):
    """A run: its steps, progress and published tables."""

    waits_for: str | None = Field(
        examples=["its next attempt, at 2026-11-16 10:30:00 UTC"], description="What a queued run is waiting for"
    )
    progress: ProgressOut | None
    steps: list[RunStepOut]
    written: list[WrittenOut]
    artifacts: list[ArtifactOut]
    definition: dict[str, Any] | None = Field(
        description="Its parameters; null if they name resources that the caller may not see"
    )
    parameters: dict[str, Any]
    lines: int = Field(description="The number of lines in its log")


class RunPage(BaseModel):
    """A page of runs, newest first."""

    items: list[RunItem]
    next_cursor: str | None


class LineOut(BaseModel):
    """A line of a run's log."""

    number: int
    at: datetime
    level: str
    text: str


class LogPage(BaseModel):
    """A page of log lines, in order."""

    items: list[LineOut]
    next: int = Field(description="Pass as `after` to get later lines")
    ended: bool = Field(description="Whether the run has ended and these are its last lines")
