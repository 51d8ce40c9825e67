"""Column types and the column constructor of the migrations."""

from typing import Any

import sqlalchemy as sa

TIME = sa.DateTime(timezone=True)


def text(length: int) -> sa.types.TypeEngine[str]:
    """Text that both databases sort and compare by code point."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


ID, WORD, NAME, NAME_KEY, EMAIL = text(32), text(40), text(200), text(800), text(320)


def column(name: str, kind: Any, *more: Any, nullable: bool = False, **options: Any) -> sa.Column[Any]:
    """A column that is NOT NULL by default."""
    return sa.Column(name, kind, *more, nullable=nullable, **options)


def job_columns() -> tuple[sa.Column[Any], ...]:
    """The columns that every table of jobs has."""
    return (
        column("state", WORD),
        column("fence", sa.Integer(), server_default="0"),
        column("losses", sa.Integer(), server_default="0"),
        column("isolated", sa.Boolean(), server_default="0"),
        column("worker_id", ID, nullable=True),
        column("lease_until", TIME, nullable=True),
        column("queued_at", TIME, nullable=True),
        column("not_before", TIME, nullable=True),
        column("started_at", TIME, nullable=True),
        column("ended_at", TIME, nullable=True),
        column("cancelled_at", TIME, nullable=True),
        column("error_code", text(120), nullable=True),
        column("error", sa.Text(), nullable=True),
        column("progress", sa.JSON(), nullable=True),
    )
