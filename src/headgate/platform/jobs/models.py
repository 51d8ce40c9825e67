"""The columns that every kind of job has, the states of a job, and the workers that run jobs."""

from typing import Any

from sqlalchemy import JSON, Boolean, Column, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, Name, UtcDateTime, Word, text_type

WAITING, RUNNING, CANCELLING = "queued", "running", "cancelling"
HELD = (RUNNING, CANCELLING)
ACTIVE = (WAITING, *HELD)
ENDED = ("succeeded", "failed", "cancelled", "blocked", "skipped")


def job_columns() -> tuple[Column[Any], ...]:
    """The columns used by the queue. Each kind of job has them in its own table.

    `fence` counts the claims, `losses` the workers and Spark servers that died during the job; `isolated` means that it
    runs on its own Spark server from now on. It is not claimed before `not_before`.
    """
    return (
        Column("state", Word, nullable=False),
        Column("fence", Integer, nullable=False, server_default="0"),
        Column("losses", Integer, nullable=False, server_default="0"),
        Column("isolated", Boolean, nullable=False, server_default="0"),
        Column("worker_id", Id),
        Column("lease_until", UtcDateTime),
        Column("queued_at", UtcDateTime),
        Column("not_before", UtcDateTime),
        Column("started_at", UtcDateTime),
        Column("ended_at", UtcDateTime),
        Column("cancelled_at", UtcDateTime),
        Column("error_code", text_type(120)),
        Column("error", Text),
        Column("progress", JSON),
    )


worker_table = Table(
    "workers",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("version", Word, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("state", JSON, nullable=False),
)
"""A worker, its last heartbeat, and the state of its Spark servers."""
