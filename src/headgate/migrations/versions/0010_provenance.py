"""Where credentials come from, and whether somebody else may know them"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, text

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Go to this version. Where the credentials of before come from is unknown, so that they count as tainted."""
    for table in ("sessions", "links", "tokens", "invitations", "statements"):
        _provenance(table)
    _provenance("members", "password_")
    op.add_column("members", column("password_ended_at", TIME, nullable=True))


def _provenance(table: str, prefix: str = "") -> None:
    op.add_column(table, column(f"{prefix}origin_id", text(32), nullable=True))
    op.add_column(table, column(f"{prefix}tainted", sa.Boolean(), server_default=sa.true()))
