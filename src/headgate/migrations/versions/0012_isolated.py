"""Statements and runs that run alone, because Spark was lost under them"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import column

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Go to this version."""
    for table in ("statements", "runs"):
        op.add_column(table, column("isolated", sa.Boolean(), server_default="0"))
