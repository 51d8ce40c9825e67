"""API tokens, hashed, and what they are narrowed to."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Name, UtcDateTime, text_type


class Token(Base):
    """A bearer token: acts as its creator does now, never with more than it is narrowed to."""

    __tablename__ = "tokens"
    __table_args__ = (Index("ix_tokens_member_id", "member_id"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    member_id: Mapped[str] = mapped_column(Id, ForeignKey("members.id"))
    name: Mapped[str] = mapped_column(Name)
    digest: Mapped[str] = mapped_column(text_type(64), unique=True)
    read_only: Mapped[bool] = mapped_column(default=False)
    listed: Mapped[bool] = mapped_column(default=False)
    """Whether it reaches only what its token_reach rows list."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class TokenReach(Base):
    """A layer, table or volume that a narrowed token reaches."""

    __tablename__ = "token_reach"

    token_id: Mapped[str] = mapped_column(Id, ForeignKey("tokens.id", ondelete="CASCADE"), primary_key=True)
    resource_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
