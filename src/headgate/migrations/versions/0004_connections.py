"""Connections and destinations: where they point, their secrets, and errands about them"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, key, text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "places",
        column("id", text(32)),
        column("place_kind", text(40)),
        column("config", sa.JSON()),
        column("version", sa.Integer()),
        column("moved_at", TIME),
        sa.CheckConstraint(
            "place_kind IN ('postgresql', 'mysql', 'http', 'object_store', 'folder', 'iceberg')",
            name="ck_places_ck_places_place_kind",
        ),
        key("places", "id", "resources", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_places"),
    )
    op.create_table(
        "place_secrets",
        column("place_id", text(32)),
        column("name", text(40)),
        column("value", sa.Text()),
        column("set_at", TIME),
        key("place_secrets", "place_id", "places", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("place_id", "name", name="pk_place_secrets"),
    )
    op.create_table(
        "errands",
        column("id", text(32)),
        column("member_id", text(32)),
        column("place_id", text(32)),
        column("place_version", sa.Integer()),
        column("errand", text(40)),
        column("question", sa.JSON()),
        column("state", text(40)),
        column("fence", sa.Integer()),
        column("worker_id", text(32), nullable=True),
        column("lease_until", TIME, nullable=True),
        column("asked_at", TIME),
        column("finished_at", TIME, nullable=True),
        column("result", sa.JSON(), nullable=True),
        column("error_code", text(120), nullable=True),
        column("error", sa.Text(), nullable=True),
        column("expires_at", TIME),
        sa.CheckConstraint("errand IN ('test', 'discover')", name="ck_errands_ck_errands_errand"),
        sa.CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed')", name="ck_errands_ck_errands_state"),
        key("errands", "member_id", "members"),
        key("errands", "place_id", "places", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_errands"),
    )
    op.create_index("ix_errands_expires_at", "errands", ["expires_at"])
    op.create_index("ix_errands_member_id", "errands", ["member_id", "id"])
    op.create_index("ix_errands_place_id", "errands", ["place_id"])
    op.create_index("ix_errands_state", "errands", ["state", "id"])
