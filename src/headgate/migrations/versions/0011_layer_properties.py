"""Layers have properties, which people and engines note"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import column, key, text

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "layer_properties",
        column("layer_id", text(32)),
        column("name", text(300)),
        column("value", sa.Text()),
        key("layer_properties", "layer_id", "layers", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("layer_id", "name", name="pk_layer_properties"),
    )
