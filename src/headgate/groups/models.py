"""Groups and who is in them; the group All is a row to which everyone belongs without being listed."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Name, NameKey, UtcDateTime


class Group(Base):
    """A named set of members, to which grants and space roles can be given."""

    __tablename__ = "groups"

    id: Mapped[str] = mapped_column(Id, ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(Name)
    name_key: Mapped[str] = mapped_column(NameKey, unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class GroupMember(Base):
    """A member of a group."""

    __tablename__ = "group_members"
    __table_args__ = (Index("ix_group_members_member_id", "member_id", "group_id"),)

    group_id: Mapped[str] = mapped_column(Id, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True)
    member_id: Mapped[str] = mapped_column(Id, ForeignKey("members.id"), primary_key=True)
