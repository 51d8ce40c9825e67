"""Views are tables whose rows a query gives"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, key, text

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "views",
        column("view_id", text(32)),
        column("uuid", text(36)),
        column("version", sa.Integer()),
        column("metadata", sa.JSON()),
        column("reads", sa.JSON()),
        column("saved_at", TIME),
        column("saved_by_id", text(32), nullable=True),
        key("views", "view_id", "lake_items", ondelete="CASCADE"),
        key("views", "saved_by_id", "members"),
        sa.PrimaryKeyConstraint("view_id", name="pk_views"),
    )
