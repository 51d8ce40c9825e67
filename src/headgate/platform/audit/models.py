"""The audit log: rows are added and sealed, never changed or removed, which the database enforces."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, Index, Integer, Table

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word, text_type

audit_event_table = Table(
    "audit_events",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("event", Word, nullable=False),
    Column("actor_id", Id),
    Column("token_id", Id),
    Column("request_id", text_type(64)),
    Column("action", Word),
    Column("kind", Word),
    Column("resource_id", Id),
    Column("allowed", Boolean, nullable=False),
    Column("via", JSON, nullable=False),
    Column("before", JSON),
    Column("after", JSON),
    Column("mark", text_type(80)),
    Column("seal_number", BigInteger),
    Column("seal", text_type(64)),
    Index("uq_audit_events_seal_number", "seal_number", unique=True),
    Index("ix_audit_events_at", "at"),
    Index("ix_audit_events_actor_id", "actor_id", "at"),
    Index("ix_audit_events_resource_id", "resource_id", "at"),
    Index("ix_audit_events_token_id", "token_id", "at"),
    sqlite_autoincrement=True,
)
"""A decision or change. `mark` proves that this installation wrote it; `seal` chains it to the previously
sealed row.
"""
