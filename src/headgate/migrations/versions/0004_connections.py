"""Connections and destinations: where they point, their secrets, and errands about them"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_TIME = sa.DateTime(timezone=True)


def _text(length: int) -> sa.types.TypeEngine[str]:
    """Text that both databases sort and compare by code point."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _column(name: str, kind: Any, *more: Any, nullable: bool = False, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *more, nullable=nullable, **options)


def _key(table: str, column: str, target: str, **options: Any) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{table}_{column}_{target}", **options)


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "places",
        _column("id", _text(32)),
        _column("place_kind", _text(40)),
        _column("config", sa.JSON()),
        _column("version", sa.Integer()),
        _column("moved_at", _TIME),
        sa.CheckConstraint(
            "place_kind IN ('postgresql', 'mysql', 'http', 'object_store', 'folder', 'iceberg')",
            name="ck_places_ck_places_place_kind",
        ),
        _key("places", "id", "resources", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_places"),
    )
    op.create_table(
        "place_secrets",
        _column("place_id", _text(32)),
        _column("name", _text(40)),
        _column("value", sa.Text()),
        _column("set_at", _TIME),
        _key("place_secrets", "place_id", "places", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("place_id", "name", name="pk_place_secrets"),
    )
    op.create_table(
        "errands",
        _column("id", _text(32)),
        _column("member_id", _text(32)),
        _column("place_id", _text(32)),
        _column("place_version", sa.Integer()),
        _column("errand", _text(40)),
        _column("question", sa.JSON()),
        _column("state", _text(40)),
        _column("fence", sa.Integer()),
        _column("worker_id", _text(32), nullable=True),
        _column("lease_until", _TIME, nullable=True),
        _column("asked_at", _TIME),
        _column("finished_at", _TIME, nullable=True),
        _column("result", sa.JSON(), nullable=True),
        _column("error_code", _text(120), nullable=True),
        _column("error", sa.Text(), nullable=True),
        _column("expires_at", _TIME),
        sa.CheckConstraint("errand IN ('test', 'discover')", name="ck_errands_ck_errands_errand"),
        sa.CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed')", name="ck_errands_ck_errands_state"),
        _key("errands", "member_id", "members"),
        _key("errands", "place_id", "places", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_errands"),
    )
    op.create_index("ix_errands_expires_at", "errands", ["expires_at"])
    op.create_index("ix_errands_member_id", "errands", ["member_id", "id"])
    op.create_index("ix_errands_place_id", "errands", ["place_id"])
    op.create_index("ix_errands_state", "errands", ["state", "id"])
