"""The organization, principals (members and groups alike), members and their security roles."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Name, NameKey, UtcDateTime, Word


class Organization(Base):
    """The one organization of this deployment."""

    __tablename__ = "organization"
    __table_args__ = (
        CheckConstraint("id = 1", name="one_row"),
        CheckConstraint("plan IN ('starter', 'growth', 'custom')", name="plan"),
        CheckConstraint("invites IN ('by-role', 'admins-only')", name="invites"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(Name)
    plan: Mapped[str] = mapped_column(Word)
    invites: Mapped[str] = mapped_column(Word)


class Principal(Base):
    """Whom a grant or a space role can name: a member or a group."""

    __tablename__ = "principals"

    id: Mapped[str] = mapped_column(Id, primary_key=True)


class Member(Base):
    """A person; a removed one stays as a row, so that what they created keeps its record."""

    __tablename__ = "members"
    __table_args__ = (
        CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="role"),
        CheckConstraint("scope IN ('entire', 'selected')", name="scope"),
        Index(
            "uq_members_name_key",
            "name_key",
            unique=True,
            sqlite_where=text("removed_at IS NULL"),
            postgresql_where=text("removed_at IS NULL"),
        ),
        Index("ix_members_role", "role"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("principals.id"), primary_key=True)
    name: Mapped[str] = mapped_column(Name)
    name_key: Mapped[str] = mapped_column(NameKey)
    role: Mapped[str] = mapped_column(Word)
    scope: Mapped[str] = mapped_column(Word)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    removed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class MemberSecurityRole(Base):
    """A security role that a member holds beside their role."""

    __tablename__ = "member_security_roles"
    __table_args__ = (
        CheckConstraint("security_role IN ('tenant_admin', 'data_admin', 'space_creator')", name="security_role"),
    )

    member_id: Mapped[str] = mapped_column(Id, ForeignKey("members.id"), primary_key=True)
    security_role: Mapped[str] = mapped_column(Word, primary_key=True)
