"""Data spaces, their members, and the projects, connections and gateways in them."""

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Word


class Space(Base):
    """A data space with one owner; a personal one has no members."""

    __tablename__ = "spaces"
    __table_args__ = (Index("ix_spaces_owner_id", "owner_id"),)

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))
    personal: Mapped[bool] = mapped_column(default=False)


class SpaceMember(Base):
    """A role that a member or group holds in a space."""

    __tablename__ = "space_members"
    __table_args__ = (
        CheckConstraint(
            "space_role IN ('can_view', 'can_view_data', 'can_consume_data', 'can_manage', 'can_operate', 'can_edit')",
            name="space_role",
        ),
        Index("ix_space_members_principal_id", "principal_id", "space_id"),
    )

    space_id: Mapped[str] = mapped_column(Id, ForeignKey("spaces.id", ondelete="CASCADE"), primary_key=True)
    principal_id: Mapped[str] = mapped_column(Id, ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True)
    space_role: Mapped[str] = mapped_column(Word, primary_key=True)


class Project(Base):
    """A data project: its tasks run as its owner and write to its target connection."""

    __tablename__ = "projects"
    __table_args__ = (
        Index("ix_projects_space_id", "space_id"),
        Index("ix_projects_owner_id", "owner_id"),
        Index("ix_projects_target_id", "target_id"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    space_id: Mapped[str] = mapped_column(Id, ForeignKey("spaces.id"))
    owner_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))
    target_id: Mapped[str | None] = mapped_column(Id, ForeignKey("connections.id"))


class Connection(Base):
    """A connection to a source or target, edited by its own owner only."""

    __tablename__ = "connections"
    __table_args__ = (
        Index("ix_connections_space_id", "space_id"),
        Index("ix_connections_owner_id", "owner_id"),
        Index("ix_connections_gateway_id", "gateway_id"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    space_id: Mapped[str] = mapped_column(Id, ForeignKey("spaces.id"))
    owner_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))
    gateway_id: Mapped[str | None] = mapped_column(Id, ForeignKey("gateways.id"))


class Gateway(Base):
    """A worker in another network, through which connections can go."""

    __tablename__ = "gateways"
    __table_args__ = (Index("ix_gateways_space_id", "space_id"),)

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    space_id: Mapped[str] = mapped_column(Id, ForeignKey("spaces.id"))
