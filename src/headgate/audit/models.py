"""The audit log: rows are added and sealed, never changed or removed (the database itself refuses)."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, UtcDateTime, Word, text_type


class AuditEvent(Base):
    """Something that was decided or changed. `seal` chains it to the row sealed before it."""

    __tablename__ = "audit_events"
    __table_args__ = (
        Index("uq_audit_events_seal_number", "seal_number", unique=True),
        Index("ix_audit_events_at", "at"),
        Index("ix_audit_events_actor_id", "actor_id", "at"),
        Index("ix_audit_events_resource_id", "resource_id", "at"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    event: Mapped[str] = mapped_column(Word)
    actor_id: Mapped[str | None] = mapped_column(Id)
    token_id: Mapped[str | None] = mapped_column(Id)
    request_id: Mapped[str | None] = mapped_column(text_type(64))
    action: Mapped[str | None] = mapped_column(Word)
    kind: Mapped[str | None] = mapped_column(Word)
    resource_id: Mapped[str | None] = mapped_column(Id)
    allowed: Mapped[bool]
    via: Mapped[list[str]] = mapped_column(JSON)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    after: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    seal_number: Mapped[int | None] = mapped_column(BigInteger)
    seal: Mapped[str | None] = mapped_column(text_type(64))
