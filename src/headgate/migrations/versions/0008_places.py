"""Connections whose secrets code may read, and tests of places that are not saved"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import column, text

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Go to this version."""
    op.add_column("connections", column("code_allowed_by_id", text(32), nullable=True))
    op.add_column("errands", sa.Column("place", sa.JSON()))
    op.add_column("errands", sa.Column("sealed", sa.Text()))
