"""People: addresses, passwords, invitations, sessions, mail, notifications and requests"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, key, text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Go to this version."""
    op.add_column("members", sa.Column("email", text(320)))
    op.add_column("members", sa.Column("email_key", text(320)))
    op.add_column("members", sa.Column("password", text(200)))
    op.add_column("members", sa.Column("last_seen_at", TIME))
    op.create_index("uq_members_email_key", "members", ["email_key"], unique=True)
    op.add_column("tokens", sa.Column("hint", text(12)))
    _invitations()
    _sessions()
    _mail()
    _notifications()
    _requests()
    _subscribe()


def _invitations() -> None:
    op.create_table(
        "invitations",
        column("id", text(32)),
        column("email", text(320)),
        column("email_key", text(320)),
        column("role", text(40)),
        column("scope", text(40)),
        column("digest", text(64)),
        column("invited_by_id", text(32), nullable=True),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("accepted_at", TIME, nullable=True),
        column("revoked_at", TIME, nullable=True),
        column("member_id", text(32), nullable=True),
        sa.CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="ck_invitations_role"),
        sa.CheckConstraint("scope IN ('entire', 'selected')", name="ck_invitations_scope"),
        key("invitations", "invited_by_id", "members"),
        key("invitations", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("digest", name="uq_invitations_digest"),
    )
    op.create_index("ix_invitations_email_key", "invitations", ["email_key"])
    op.create_index("ix_invitations_invited_by_id", "invitations", ["invited_by_id"])
    op.create_table(
        "invitation_contexts",
        column("invitation_id", text(32)),
        column("context_id", text(32)),
        key("invitation_contexts", "invitation_id", "invitations", ondelete="CASCADE"),
        key("invitation_contexts", "context_id", "contexts"),
        sa.PrimaryKeyConstraint("invitation_id", "context_id", name="pk_invitation_contexts"),
    )
    op.create_index("ix_invitation_contexts_context_id", "invitation_contexts", ["context_id"])


def _sessions() -> None:
    op.create_table(
        "sessions",
        column("id", text(32)),
        column("member_id", text(32)),
        column("digest", text(64)),
        column("method", text(40)),
        column("created_at", TIME),
        column("last_seen_at", TIME),
        column("expires_at", TIME),
        column("ended_at", TIME, nullable=True),
        column("agent", text(200)),
        column("address", text(64)),
        sa.CheckConstraint("method IN ('password', 'link', 'invitation')", name="ck_sessions_method"),
        key("sessions", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("digest", name="uq_sessions_digest"),
    )
    op.create_index("ix_sessions_member_id", "sessions", ["member_id"])
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_table(
        "links",
        column("id", text(32)),
        column("member_id", text(32)),
        column("purpose", text(40)),
        column("digest", text(64)),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("used_at", TIME, nullable=True),
        column("created_by_id", text(32), nullable=True),
        sa.CheckConstraint("purpose IN ('sign_in', 'password')", name="ck_links_purpose"),
        key("links", "member_id", "members"),
        key("links", "created_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.UniqueConstraint("digest", name="uq_links_digest"),
    )
    op.create_index("ix_links_member_id", "links", ["member_id"])
    op.create_index("ix_links_expires_at", "links", ["expires_at"])
    op.create_table(
        "sign_in_failures",
        column("key", text(80)),
        column("since", TIME),
        column("count", sa.Integer()),
        sa.PrimaryKeyConstraint("key", name="pk_sign_in_failures"),
    )
    op.create_index("ix_sign_in_failures_since", "sign_in_failures", ["since"])


def _mail() -> None:
    op.create_table(
        "mails",
        column("id", text(32)),
        column("purpose", text(40)),
        column("member_id", text(32), nullable=True),
        column("recipient", text(320)),
        column("subject", text(200)),
        column("body", sa.Text(), nullable=True),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("due_at", TIME, nullable=True),
        column("attempts", sa.Integer()),
        column("sent_at", TIME, nullable=True),
        column("error", text(400), nullable=True),
        key("mails", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_mails"),
    )
    op.create_index("ix_mails_due_at", "mails", ["due_at"])


def _notifications() -> None:
    op.create_table(
        "notification_receivers",
        column("member_id", text(32)),
        column("channel", text(40)),
        column("by_mail", sa.Boolean()),
        key("notification_receivers", "member_id", "members"),
        sa.PrimaryKeyConstraint("member_id", "channel", name="pk_notification_receivers"),
    )
    op.create_index("ix_notification_receivers_channel", "notification_receivers", ["channel"])
    op.create_table(
        "notices",
        column("id", text(32)),
        column("channel", text(40)),
        column("event", text(40)),
        column("actor_id", text(32), nullable=True),
        column("member_id", text(32), nullable=True),
        column("kind", text(40), nullable=True),
        column("resource_id", text(32), nullable=True),
        column("needs", text(40), nullable=True),
        column("recipients", sa.JSON(), nullable=True),
        column("facts", sa.JSON()),
        column("created_at", TIME),
        column("told_at", TIME, nullable=True),
        key("notices", "actor_id", "members"),
        key("notices", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_notices"),
    )
    op.create_index("ix_notices_told_at", "notices", ["told_at", "created_at"])
    op.create_table(
        "notifications",
        column("notice_id", text(32)),
        column("member_id", text(32)),
        column("created_at", TIME),
        column("read_at", TIME, nullable=True),
        key("notifications", "notice_id", "notices", ondelete="CASCADE"),
        key("notifications", "member_id", "members"),
        sa.PrimaryKeyConstraint("notice_id", "member_id", name="pk_notifications"),
    )
    op.create_index("ix_notifications_member_id", "notifications", ["member_id", "notice_id"])


def _requests() -> None:
    op.create_table(
        "access_requests",
        column("id", text(32)),
        column("member_id", text(32)),
        column("action", text(40)),
        column("kind", text(40)),
        column("resource_id", text(32)),
        column("reason", sa.Text()),
        column("state", text(40)),
        column("created_at", TIME),
        column("answered_at", TIME, nullable=True),
        column("answered_by_id", text(32), nullable=True),
        column("comment", sa.Text(), nullable=True),
        column("change", sa.JSON(), nullable=True),
        sa.CheckConstraint("state IN ('open', 'approved', 'declined', 'withdrawn')", name="ck_access_requests_state"),
        key("access_requests", "member_id", "members"),
        key("access_requests", "answered_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_access_requests"),
    )
    op.create_index("ix_access_requests_member_id", "access_requests", ["member_id"])
    op.create_index("ix_access_requests_resource_id", "access_requests", ["resource_id", "state"])


def _subscribe() -> None:
    """Those who were there before receive what they would have received on joining."""
    op.execute(
        "INSERT INTO notification_receivers (member_id, channel, by_mail) "
        "SELECT m.id, c.channel, TRUE FROM members m CROSS JOIN (SELECT 'runs' AS channel UNION ALL "
        "SELECT 'access' UNION ALL SELECT 'members') c WHERE m.removed_at IS NULL AND m.role <> 'business'"
    )
