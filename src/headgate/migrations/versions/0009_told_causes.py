"""Causes of failures that were told, and the organization's webhook"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, key, text

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Go to this version."""
    op.add_column("pipeline_definitions", sa.Column("told_causes", sa.JSON()))
    op.create_table(
        "webhooks",
        column("id", text(32)),
        column("url", sa.Text()),
        column("host", text(300)),
        column("secret", sa.Text()),
        column("set_by_id", text(32)),
        column("set_at", TIME),
        key("webhooks", "set_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_table(
        "webhook_deliveries",
        column("notice_id", text(32)),
        column("webhook_id", text(32)),
        column("created_at", TIME),
        column("due_at", TIME, nullable=True),
        column("expires_at", TIME),
        column("attempts", sa.Integer()),
        column("sent_at", TIME, nullable=True),
        column("error", text(400), nullable=True),
        key("webhook_deliveries", "notice_id", "notices", ondelete="CASCADE"),
        key("webhook_deliveries", "webhook_id", "webhooks", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("notice_id", "webhook_id", name="pk_webhook_deliveries"),
    )
    op.create_index("ix_webhook_deliveries_due_at", "webhook_deliveries", ["due_at"])
    op.create_index("ix_webhook_deliveries_webhook_id", "webhook_deliveries", ["webhook_id", "created_at"])
