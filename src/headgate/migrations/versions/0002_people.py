"""People: addresses, passwords, invitations, sessions, mail, notifications and requests"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

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
    op.add_column("members", sa.Column("email", _text(320)))
    op.add_column("members", sa.Column("email_key", _text(320)))
    op.add_column("members", sa.Column("password", _text(200)))
    op.add_column("members", sa.Column("last_seen_at", _TIME))
    op.create_index("uq_members_email_key", "members", ["email_key"], unique=True)
    op.add_column("tokens", sa.Column("hint", _text(12)))
    _invitations()
    _sessions()
    _mail()
    _notifications()
    _requests()
    _subscribe()


def _invitations() -> None:
    op.create_table(
        "invitations",
        _column("id", _text(32)),
        _column("email", _text(320)),
        _column("email_key", _text(320)),
        _column("role", _text(40)),
        _column("scope", _text(40)),
        _column("digest", _text(64)),
        _column("invited_by_id", _text(32), nullable=True),
        _column("created_at", _TIME),
        _column("expires_at", _TIME),
        _column("accepted_at", _TIME, nullable=True),
        _column("revoked_at", _TIME, nullable=True),
        _column("member_id", _text(32), nullable=True),
        sa.CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="ck_invitations_role"),
        sa.CheckConstraint("scope IN ('entire', 'selected')", name="ck_invitations_scope"),
        _key("invitations", "invited_by_id", "members"),
        _key("invitations", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("digest", name="uq_invitations_digest"),
    )
    op.create_index("ix_invitations_email_key", "invitations", ["email_key"])
    op.create_index("ix_invitations_invited_by_id", "invitations", ["invited_by_id"])
    op.create_table(
        "invitation_contexts",
        _column("invitation_id", _text(32)),
        _column("context_id", _text(32)),
        _key("invitation_contexts", "invitation_id", "invitations", ondelete="CASCADE"),
        _key("invitation_contexts", "context_id", "contexts"),
        sa.PrimaryKeyConstraint("invitation_id", "context_id", name="pk_invitation_contexts"),
    )
    op.create_index("ix_invitation_contexts_context_id", "invitation_contexts", ["context_id"])


def _sessions() -> None:
    op.create_table(
        "sessions",
        _column("id", _text(32)),
        _column("member_id", _text(32)),
        _column("digest", _text(64)),
        _column("method", _text(40)),
        _column("created_at", _TIME),
        _column("last_seen_at", _TIME),
        _column("expires_at", _TIME),
        _column("ended_at", _TIME, nullable=True),
        _column("agent", _text(200)),
        _column("address", _text(64)),
        sa.CheckConstraint("method IN ('password', 'link', 'invitation')", name="ck_sessions_method"),
        _key("sessions", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("digest", name="uq_sessions_digest"),
    )
    op.create_index("ix_sessions_member_id", "sessions", ["member_id"])
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_table(
        "links",
        _column("id", _text(32)),
        _column("member_id", _text(32)),
        _column("purpose", _text(40)),
        _column("digest", _text(64)),
        _column("created_at", _TIME),
        _column("expires_at", _TIME),
        _column("used_at", _TIME, nullable=True),
        _column("created_by_id", _text(32), nullable=True),
        sa.CheckConstraint("purpose IN ('sign_in', 'password')", name="ck_links_purpose"),
        _key("links", "member_id", "members"),
        _key("links", "created_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.UniqueConstraint("digest", name="uq_links_digest"),
    )
    op.create_index("ix_links_member_id", "links", ["member_id"])
    op.create_index("ix_links_expires_at", "links", ["expires_at"])
    op.create_table(
        "sign_in_failures",
        _column("key", _text(80)),
        _column("since", _TIME),
        _column("count", sa.Integer()),
        sa.PrimaryKeyConstraint("key", name="pk_sign_in_failures"),
    )
    op.create_index("ix_sign_in_failures_since", "sign_in_failures", ["since"])


def _mail() -> None:
    op.create_table(
        "mails",
        _column("id", _text(32)),
        _column("purpose", _text(40)),
        _column("member_id", _text(32), nullable=True),
        _column("recipient", _text(320)),
        _column("subject", _text(200)),
        _column("body", sa.Text(), nullable=True),
        _column("created_at", _TIME),
        _column("expires_at", _TIME),
        _column("due_at", _TIME, nullable=True),
        _column("attempts", sa.Integer()),
        _column("sent_at", _TIME, nullable=True),
        _column("error", _text(400), nullable=True),
        _key("mails", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_mails"),
    )
    op.create_index("ix_mails_due_at", "mails", ["due_at"])


def _notifications() -> None:
    op.create_table(
        "notification_receivers",
        _column("member_id", _text(32)),
        _column("channel", _text(40)),
        _column("by_mail", sa.Boolean()),
        _key("notification_receivers", "member_id", "members"),
        sa.PrimaryKeyConstraint("member_id", "channel", name="pk_notification_receivers"),
    )
    op.create_index("ix_notification_receivers_channel", "notification_receivers", ["channel"])
    op.create_table(
        "notices",
        _column("id", _text(32)),
        _column("channel", _text(40)),
        _column("event", _text(40)),
        _column("actor_id", _text(32), nullable=True),
        _column("member_id", _text(32), nullable=True),
        _column("kind", _text(40), nullable=True),
        _column("resource_id", _text(32), nullable=True),
        _column("needs", _text(40), nullable=True),
        _column("recipients", sa.JSON(), nullable=True),
        _column("facts", sa.JSON()),
        _column("created_at", _TIME),
        _column("told_at", _TIME, nullable=True),
        _key("notices", "actor_id", "members"),
        _key("notices", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_notices"),
    )
    op.create_index("ix_notices_told_at", "notices", ["told_at", "created_at"])
    op.create_table(
        "notifications",
        _column("notice_id", _text(32)),
        _column("member_id", _text(32)),
        _column("created_at", _TIME),
        _column("read_at", _TIME, nullable=True),
        _key("notifications", "notice_id", "notices", ondelete="CASCADE"),
        _key("notifications", "member_id", "members"),
        sa.PrimaryKeyConstraint("notice_id", "member_id", name="pk_notifications"),
    )
    op.create_index("ix_notifications_member_id", "notifications", ["member_id", "notice_id"])


def _requests() -> None:
    op.create_table(
        "access_requests",
        _column("id", _text(32)),
        _column("member_id", _text(32)),
        _column("action", _text(40)),
        _column("kind", _text(40)),
        _column("resource_id", _text(32)),
        _column("reason", sa.Text()),
        _column("state", _text(40)),
        _column("created_at", _TIME),
        _column("answered_at", _TIME, nullable=True),
        _column("answered_by_id", _text(32), nullable=True),
        _column("comment", sa.Text(), nullable=True),
        _column("change", sa.JSON(), nullable=True),
        sa.CheckConstraint("state IN ('open', 'approved', 'declined', 'withdrawn')", name="ck_access_requests_state"),
        _key("access_requests", "member_id", "members"),
        _key("access_requests", "answered_by_id", "members"),
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
