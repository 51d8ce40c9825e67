"""All tables of the first release"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import EMAIL, ID, NAME, NAME_KEY, TIME, WORD, column, job_columns, text

revision = "0001"
down_revision = None
_FIXED = ("id", "at", "event", "actor_id", "token_id", "request_id", "action", "kind", "resource_id", "allowed", "mark")
_TEXTS = ("via", "before", "after")


def upgrade() -> None:
    """Create all tables, their first rows, and the triggers that keep the audit trail append-only."""
    _create_tables()
    _insert_first_rows()
    _make_audit_append_only()


def _insert_first_rows() -> None:
    """Insert the organization, which enforces grants, and the group All."""
    bind = op.get_bind()
    bind.execute(
        sa.text("INSERT INTO organization (id, name, plan, invites) VALUES (1, 'Headgate', 'growth', 'by-role')")
    )
    everyone = {"id": "grp_00000000000000000a11", "now": datetime.now(UTC).replace(tzinfo=None)}
    bind.execute(sa.text("INSERT INTO principals (id) VALUES (:id)"), everyone)
    bind.execute(
        sa.text("INSERT INTO groups (id, name, name_key, created_at) VALUES (:id, 'All', 'all', :now)"), everyone
    )


def _make_audit_append_only() -> None:
    """Let audit events be inserted and, once, sealed; the database refuses every other change."""
    if op.get_bind().dialect.name == "sqlite":
        changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in (*_FIXED, *_TEXTS))
        op.execute(
            "CREATE TRIGGER audit_events_fixed BEFORE UPDATE ON audit_events "
            f"WHEN OLD.seal_number IS NOT NULL OR {changed} "
            "BEGIN SELECT RAISE(ABORT, 'audit events are never changed'); END"
        )
        op.execute(
            "CREATE TRIGGER audit_events_kept BEFORE DELETE ON audit_events "
            "BEGIN SELECT RAISE(ABORT, 'audit events are never removed'); END"
        )
        return
    changed = " OR ".join(f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in _FIXED)
    texts = " OR ".join(f"NEW.{name}::text IS DISTINCT FROM OLD.{name}::text" for name in _TEXTS)
    op.execute(
        "CREATE FUNCTION audit_events_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'audit events are never changed or removed'; END $$"
    )
    for trigger, when in (
        ("fixed BEFORE UPDATE", f"FOR EACH ROW WHEN (OLD.seal_number IS NOT NULL OR {changed} OR {texts})"),
        ("kept BEFORE DELETE", "FOR EACH ROW"),
        ("whole BEFORE TRUNCATE", "FOR EACH STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER audit_events_{trigger} ON audit_events {when} EXECUTE FUNCTION audit_events_refuse()"
        )


def _create_tables() -> None:
    op.create_table(
        "audit_events",
        column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        column("at", TIME),
        column("event", WORD),
        column("actor_id", ID, nullable=True),
        column("token_id", ID, nullable=True),
        column("request_id", text(64), nullable=True),
        column("action", WORD, nullable=True),
        column("kind", WORD, nullable=True),
        column("resource_id", ID, nullable=True),
        column("allowed", sa.Boolean()),
        column("via", sa.JSON()),
        column("before", sa.JSON(), nullable=True),
        column("after", sa.JSON(), nullable=True),
        column("mark", text(80), nullable=True),
        column("seal_number", sa.BigInteger(), nullable=True),
        column("seal", text(64), nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_events_actor_id", "audit_events", ["actor_id", "at"])
    op.create_index("ix_audit_events_at", "audit_events", ["at"])
    op.create_index("ix_audit_events_resource_id", "audit_events", ["resource_id", "at"])
    op.create_index("ix_audit_events_token_id", "audit_events", ["token_id", "at"])
    op.create_index("uq_audit_events_seal_number", "audit_events", ["seal_number"], unique=True)
    op.create_table(
        "contexts",
        column("id", ID, primary_key=True),
        column("name", NAME),
        column("name_key", NAME_KEY),
        column("created_at", TIME),
        sa.UniqueConstraint("name_key"),
    )
    op.create_table(
        "leases",
        column("name", WORD, primary_key=True),
        column("holder", text(80)),
        column("fence", sa.BigInteger()),
        column("expires_at", TIME),
    )
    op.create_table(
        "organization",
        column("id", sa.Integer(), primary_key=True, autoincrement=False),
        column("name", NAME),
        column("plan", WORD),
        column("invites", WORD),
        sa.CheckConstraint("invites IN ('by-role', 'admins-only')", name="invites"),
        sa.CheckConstraint("id = 1", name="one_row"),
        sa.CheckConstraint("plan IN ('starter', 'growth', 'custom')", name="plan"),
    )
    op.create_table(
        "principals",
        column("id", ID, primary_key=True),
    )
    op.create_table(
        "sign_in_failures",
        column("key", text(80), primary_key=True),
        column("since", TIME),
        column("count", sa.Integer()),
    )
    op.create_index("ix_sign_in_failures_since", "sign_in_failures", ["since"])
    op.create_table(
        "workers",
        column("id", ID, primary_key=True),
        column("name", NAME),
        column("version", WORD),
        column("started_at", TIME),
        column("seen_at", TIME),
        column("state", sa.JSON()),
    )
    op.create_table(
        "groups",
        column("id", ID, sa.ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True),
        column("name", NAME),
        column("name_key", NAME_KEY),
        column("created_at", TIME),
        sa.UniqueConstraint("name_key"),
    )
    op.create_table(
        "members",
        column("id", ID, sa.ForeignKey("principals.id"), primary_key=True),
        column("name", NAME),
        column("name_key", NAME_KEY),
        column("role", WORD),
        column("scope", WORD),
        column("created_at", TIME),
        column("removed_at", TIME, nullable=True),
        column("email", EMAIL, nullable=True),
        column("email_key", EMAIL, nullable=True),
        column("password", NAME, nullable=True),
        column("password_origin_id", ID, nullable=True),
        column("password_tainted", sa.Boolean(), server_default=sa.true()),
        column("password_ended_at", TIME, nullable=True),
        column("last_seen_at", TIME, nullable=True),
        sa.CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="role"),
        sa.CheckConstraint("scope IN ('entire', 'selected')", name="scope"),
    )
    op.create_index("ix_members_role", "members", ["role"])
    op.create_index("uq_members_email_key", "members", ["email_key"], unique=True)
    op.create_index("uq_members_name_key", "members", ["name_key"], unique=True)
    op.create_table(
        "access_requests",
        column("id", ID, primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("action", WORD),
        column("kind", WORD),
        column("resource_id", ID),
        column("reason", sa.Text()),
        column("state", WORD),
        column("created_at", TIME),
        column("answered_at", TIME, nullable=True),
        column("answered_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("comment", sa.Text(), nullable=True),
        column("change", sa.JSON(), nullable=True),
        sa.CheckConstraint("state IN ('open', 'approved', 'declined', 'withdrawn')", name="state"),
    )
    op.create_index("ix_access_requests_member_id", "access_requests", ["member_id"])
    op.create_index("ix_access_requests_resource_id", "access_requests", ["resource_id", "state"])
    op.create_table(
        "commits",
        column("id", ID, primary_key=True),
        column("group_id", ID),
        column("table_id", ID),
        column("version", sa.Integer()),
        column("operation", WORD),
        column("at", TIME),
        column("member_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("token_id", ID, nullable=True),
        column("work_id", ID, nullable=True),
        column("run_id", ID, nullable=True),
        column("step", sa.Integer(), nullable=True),
        column("snapshot_id", sa.BigInteger(), nullable=True),
        column("parent_snapshot_id", sa.BigInteger(), nullable=True),
        column("added_rows", sa.BigInteger(), nullable=True),
        column("deleted_rows", sa.BigInteger(), nullable=True),
        column("metadata_file", NAME),
        column("pipeline_id", ID, nullable=True),
        column("state", sa.JSON(), nullable=True),
    )
    op.create_index("ix_commits_run_id", "commits", ["run_id"])
    op.create_index("ix_commits_work_id", "commits", ["work_id"])
    op.create_index("uq_commits", "commits", ["table_id", "version"], unique=True)
    op.create_table(
        "deleted_items",
        column("id", ID, primary_key=True),
        column("kind", WORD),
        column("layer_id", ID),
        column("name", NAME),
        column("kept", sa.JSON()),
        column("deleted_at", TIME),
        column("deleted_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("purge_at", TIME),
        sa.CheckConstraint("kind IN ('layer', 'table', 'volume')", name="kind"),
    )
    op.create_index("ix_deleted_items_layer_id", "deleted_items", ["layer_id"])
    op.create_index("ix_deleted_items_purge_at", "deleted_items", ["purge_at"])
    op.create_table(
        "group_members",
        column("group_id", ID, sa.ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id"), primary_key=True),
    )
    op.create_index("ix_group_members_member_id", "group_members", ["member_id", "group_id"])
    op.create_table(
        "invitations",
        column("id", ID, primary_key=True),
        column("email", EMAIL),
        column("email_key", EMAIL),
        column("role", WORD),
        column("scope", WORD),
        column("digest", text(64)),
        column("invited_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("accepted_at", TIME, nullable=True),
        column("revoked_at", TIME, nullable=True),
        column("member_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("origin_id", ID, nullable=True),
        column("tainted", sa.Boolean(), server_default=sa.true()),
        sa.CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="role"),
        sa.CheckConstraint("scope IN ('entire', 'selected')", name="scope"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_invitations_email_key", "invitations", ["email_key"])
    op.create_index("ix_invitations_invited_by_id", "invitations", ["invited_by_id"])
    op.create_table(
        "links",
        column("id", ID, primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("purpose", WORD),
        column("digest", text(64)),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("used_at", TIME, nullable=True),
        column("created_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("origin_id", ID, nullable=True),
        column("tainted", sa.Boolean(), server_default=sa.true()),
        sa.CheckConstraint("purpose IN ('sign_in', 'password')", name="purpose"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_links_expires_at", "links", ["expires_at"])
    op.create_index("ix_links_member_id", "links", ["member_id"])
    op.create_table(
        "mails",
        column("id", ID, primary_key=True),
        column("purpose", WORD),
        column("member_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("recipient", EMAIL),
        column("subject", NAME),
        column("body", sa.Text(), nullable=True),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("due_at", TIME, nullable=True),
        column("attempts", sa.Integer()),
        column("sent_at", TIME, nullable=True),
        column("error", text(400), nullable=True),
    )
    op.create_index("ix_mails_due_at", "mails", ["due_at"])
    op.create_table(
        "maintenance_passes",
        column("id", ID, primary_key=True),
        column("state", WORD),
        column("dry_run", sa.Boolean()),
        column("table_id", ID, nullable=True),
        column("asked_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("due_at", TIME, nullable=True),
        column("asked_at", TIME),
        column("started_at", TIME, nullable=True),
        column("ended_at", TIME, nullable=True),
        column("after_id", ID, nullable=True),
        column("tables", sa.Integer()),
        column("looked_at", sa.Integer()),
        column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('queued', 'running', 'compacting', 'succeeded', 'failed')", name="state"),
    )
    op.create_index("ix_maintenance_passes_state", "maintenance_passes", ["state", "id"])
    op.create_index("uq_maintenance_passes_due_at", "maintenance_passes", ["due_at"], unique=True)
    op.create_table(
        "member_contexts",
        column("member_id", ID, sa.ForeignKey("members.id"), primary_key=True),
        column("context_id", ID, sa.ForeignKey("contexts.id"), primary_key=True),
    )
    op.create_index("ix_member_contexts_context_id", "member_contexts", ["context_id"])
    op.create_table(
        "member_security_roles",
        column("member_id", ID, sa.ForeignKey("members.id"), primary_key=True),
        column("security_role", WORD, primary_key=True),
        sa.CheckConstraint("security_role IN ('tenant_admin', 'data_admin', 'space_creator')", name="security_role"),
    )
    op.create_table(
        "notices",
        column("id", ID, primary_key=True),
        column("channel", WORD),
        column("event", WORD),
        column("actor_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("member_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("kind", WORD, nullable=True),
        column("resource_id", ID, nullable=True),
        column("needs", WORD, nullable=True),
        column("recipients", sa.JSON(), nullable=True),
        column("facts", sa.JSON()),
        column("created_at", TIME),
        column("told_at", TIME, nullable=True),
    )
    op.create_index("ix_notices_told_at", "notices", ["told_at", "created_at"])
    op.create_table(
        "notification_receivers",
        column("member_id", ID, sa.ForeignKey("members.id"), primary_key=True),
        column("channel", WORD, primary_key=True),
        column("by_mail", sa.Boolean()),
    )
    op.create_index("ix_notification_receivers_channel", "notification_receivers", ["channel"])
    op.create_table(
        "resources",
        column("id", ID, primary_key=True),
        column("kind", WORD),
        column("namespace", WORD),
        column("scope_id", ID),
        column("name", NAME),
        column("name_key", NAME_KEY),
        column("created_at", TIME),
        column("updated_at", TIME),
        column("created_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
    )
    op.create_index("ix_resources_created_by_id", "resources", ["created_by_id"])
    op.create_index("ix_resources_name", "resources", ["namespace", "name_key"])
    op.create_index("uq_resources_name", "resources", ["namespace", "scope_id", "name_key"], unique=True)
    op.create_table(
        "sessions",
        column("id", ID, primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("digest", text(64)),
        column("method", WORD),
        column("created_at", TIME),
        column("last_seen_at", TIME),
        column("expires_at", TIME),
        column("ended_at", TIME, nullable=True),
        column("agent", NAME),
        column("address", text(64)),
        column("origin_id", ID, nullable=True),
        column("tainted", sa.Boolean(), server_default=sa.true()),
        sa.CheckConstraint("method IN ('password', 'link', 'invitation')", name="method"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_index("ix_sessions_member_id", "sessions", ["member_id"])
    op.create_table(
        "staged_tables",
        column("id", ID, primary_key=True),
        column("uuid", text(36)),
        column("layer_id", ID),
        column("name", NAME),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("run_id", ID, nullable=True),
        column("created_at", TIME),
    )
    op.create_index("ix_staged_tables_created_at", "staged_tables", ["created_at"])
    op.create_table(
        "tokens",
        column("id", ID, primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("name", NAME),
        column("digest", text(64)),
        column("hint", text(12), nullable=True),
        column("read_only", sa.Boolean()),
        column("listed", sa.Boolean()),
        column("created_at", TIME),
        column("expires_at", TIME, nullable=True),
        column("last_used_at", TIME, nullable=True),
        column("revoked_at", TIME, nullable=True),
        column("origin_id", ID, nullable=True),
        column("tainted", sa.Boolean(), server_default=sa.true()),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_tokens_member_id", "tokens", ["member_id"])
    op.create_table(
        "webhooks",
        column("id", ID, primary_key=True),
        column("url", sa.Text()),
        column("host", text(300)),
        column("secret", sa.Text()),
        column("set_by_id", ID, sa.ForeignKey("members.id")),
        column("set_at", TIME),
    )
    op.create_table(
        "audience",
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("key", text(80), primary_key=True),
        column("name_key", NAME_KEY),
        column("created_at", TIME),
        column("updated_at", TIME),
        column("creator_key", NAME_KEY),
        column("expires_at", TIME, nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_audience_created", "audience", ["key", "created_at", "resource_id", "expires_at"])
    op.create_index("ix_audience_creator", "audience", ["key", "creator_key", "resource_id", "expires_at"])
    op.create_index("ix_audience_name", "audience", ["key", "name_key", "resource_id", "expires_at"])
    op.create_index("ix_audience_updated", "audience", ["key", "updated_at", "resource_id", "expires_at"])
    op.create_table(
        "destinations",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("shared_for_use", sa.Boolean()),
        column("shared_for_maintenance", sa.Boolean()),
        column("deleted_at", TIME, nullable=True),
    )
    op.create_table(
        "former_owners",
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("ownership", WORD, primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id")),
    )
    op.create_index("ix_former_owners_member_id", "former_owners", ["member_id"])
    op.create_table(
        "grants",
        column("id", ID, primary_key=True),
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE")),
        column("grantee_id", ID, sa.ForeignKey("principals.id", ondelete="CASCADE")),
        column("level", sa.SmallInteger()),
        column("expires_at", TIME, nullable=True),
        column("created_at", TIME),
        column("created_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
        sa.CheckConstraint("level BETWEEN 1 AND 3", name="level"),
    )
    op.create_index("ix_grants_expires_at", "grants", ["expires_at"])
    op.create_index("ix_grants_grantee_id", "grants", ["grantee_id", "resource_id"])
    op.create_index("uq_grants", "grants", ["resource_id", "grantee_id", "level"], unique=True)
    op.create_table(
        "integrations",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("description", sa.Text(), nullable=True),
        column("token_id", ID, nullable=True),
    )
    op.create_table(
        "invitation_contexts",
        column("invitation_id", ID, sa.ForeignKey("invitations.id", ondelete="CASCADE"), primary_key=True),
        column("context_id", ID, sa.ForeignKey("contexts.id"), primary_key=True),
    )
    op.create_index("ix_invitation_contexts_context_id", "invitation_contexts", ["context_id"])
    op.create_table(
        "lake_texts",
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("field_id", sa.Integer(), primary_key=True, autoincrement=False),
        column("title", NAME, nullable=True),
        column("description", sa.Text(), nullable=True),
        column("updated_at", TIME),
        column("updated_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
    )
    op.create_table(
        "layers",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    )
    op.create_table(
        "maintenance_tables",
        column("pass_id", ID, sa.ForeignKey("maintenance_passes.id", ondelete="CASCADE"), primary_key=True),
        column("table_id", ID, primary_key=True),
        column("outcome", WORD),
        column("note", sa.Text(), nullable=True),
        column("snapshots", sa.Integer()),
        column("files", sa.Integer()),
        column("bytes", sa.BigInteger()),
        column("small_files", sa.Integer(), nullable=True),
        column("planned", sa.Boolean()),
        sa.CheckConstraint("outcome IN ('done', 'skipped', 'failed')", name="outcome"),
    )
    op.create_table(
        "table_rewrites",
        column("id", ID, primary_key=True),
        column("pass_id", ID, sa.ForeignKey("maintenance_passes.id", ondelete="CASCADE")),
        column("table_id", ID),
        column("digest", text(64), nullable=True),
        column("files_before", sa.Integer(), nullable=True),
        column("files_after", sa.Integer(), nullable=True),
        *job_columns(),
    )
    op.create_index("uq_table_rewrites_digest", "table_rewrites", ["digest"], unique=True)
    op.create_index("ix_table_rewrites_pass_id", "table_rewrites", ["pass_id", "table_id"])
    op.create_index("ix_table_rewrites_state", "table_rewrites", ["state", "id"])
    op.create_table(
        "notifications",
        column("notice_id", ID, sa.ForeignKey("notices.id", ondelete="CASCADE"), primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id"), primary_key=True),
        column("created_at", TIME),
        column("read_at", TIME, nullable=True),
    )
    op.create_index("ix_notifications_member_id", "notifications", ["member_id", "notice_id"])
    op.create_table(
        "owners",
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id"), primary_key=True),
        column("ownership", WORD, primary_key=True),
        sa.CheckConstraint("ownership IN ('owner', 'technical', 'business')", name="ownership"),
    )
    op.create_index("ix_owners_member_id", "owners", ["member_id"])
    op.create_table(
        "places",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("place_kind", WORD),
        column("config", sa.JSON()),
        column("version", sa.Integer()),
        column("moved_at", TIME),
        sa.CheckConstraint(
            "place_kind IN ('postgresql', 'mysql', 'http', 'object_store', 'folder', 'iceberg')", name="place_kind"
        ),
    )
    op.create_table(
        "resource_contexts",
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("context_id", ID, sa.ForeignKey("contexts.id"), primary_key=True),
    )
    op.create_index("ix_resource_contexts_context_id", "resource_contexts", ["context_id"])
    op.create_table(
        "runs",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("parent_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE")),
        column("definition", sa.JSON(), nullable=True),
        column("named", sa.JSON(), nullable=True),
        column("plan", sa.JSON(), nullable=True),
        column("started_by_id", ID, nullable=True),
        column("token_id", ID, nullable=True),
        column("trigger_id", ID, nullable=True),
        column("acts_for_id", ID, nullable=True),
        column("due_at", TIME, nullable=True),
        column("full_refresh", sa.Boolean(), server_default="0"),
        column("parameters", sa.JSON(), nullable=True),
        column("depth", sa.Integer(), server_default="0"),
        column("attempt", sa.Integer(), server_default="0"),
        column("cancelled_by_id", ID, nullable=True),
        column("rows_in", sa.BigInteger(), nullable=True),
        column("rows_out", sa.BigInteger(), nullable=True),
        column("rejected", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        *job_columns(),
    )
    op.create_index("ix_runs_parent_id", "runs", ["parent_id", "id"])
    op.create_index("ix_runs_parent_state", "runs", ["parent_id", "state"])
    op.create_index("ix_runs_state", "runs", ["state", "id"])
    op.create_index("ix_runs_trigger_id", "runs", ["trigger_id", "state"])
    op.create_table(
        "saved_queries",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("author_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("sql", sa.Text(), nullable=True),
    )
    op.create_index("ix_saved_queries_author_id", "saved_queries", ["author_id"])
    op.create_table(
        "spaces",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("owner_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("personal", sa.Boolean()),
    )
    op.create_index("ix_spaces_owner_id", "spaces", ["owner_id"])
    op.create_table(
        "statements",
        column("id", ID, primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("token_id", ID, sa.ForeignKey("tokens.id"), nullable=True),
        column("purpose", WORD),
        column("sql", sa.Text()),
        column("columns", sa.JSON(), nullable=True),
        column("rows", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        column("pages", sa.Integer(), nullable=True),
        column("truncated", sa.Boolean(), nullable=True),
        column("max_rows", sa.Integer()),
        column("first_page", sa.LargeBinary(), nullable=True),
        column("results_expire_at", TIME, nullable=True),
        column("save", sa.JSON(), nullable=True),
        column("saved_query_id", ID, nullable=True),
        column("writes", sa.JSON(), nullable=True),
        column("origin_id", ID, nullable=True),
        column("tainted", sa.Boolean(), server_default=sa.true()),
        *job_columns(),
        sa.CheckConstraint("purpose IN ('statement', 'probe')", name="purpose"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelling', 'cancelled')", name="state"
        ),
    )
    op.create_index("ix_statements_member_id", "statements", ["member_id", "id"])
    op.create_index("ix_statements_results_expire_at", "statements", ["results_expire_at"])
    op.create_index("ix_statements_state", "statements", ["state", "id"])
    op.create_table(
        "storages",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("shared_for_use", sa.Boolean()),
        column("shared_for_maintenance", sa.Boolean()),
    )
    op.create_table(
        "token_reach",
        column("token_id", ID, sa.ForeignKey("tokens.id", ondelete="CASCADE"), primary_key=True),
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    )
    op.create_table(
        "triggers",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("kind", WORD),
        column("parent_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE")),
        column("author_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("sort", WORD, nullable=True),
        column("spec", sa.JSON(), nullable=True),
        column("enabled", sa.Boolean(), server_default="1"),
        column("paused_because", sa.Text(), nullable=True),
        column("next_at", TIME, nullable=True),
        column("saved_at", TIME, nullable=True),
        sa.CheckConstraint("kind IN ('data_mart_trigger', 'report_trigger', 'pipeline_trigger')", name="kind"),
    )
    op.create_index("ix_triggers_author_id", "triggers", ["author_id"])
    op.create_index("ix_triggers_next_at", "triggers", ["next_at"])
    op.create_index("ix_triggers_parent_id", "triggers", ["parent_id"])
    op.create_table(
        "webhook_deliveries",
        column("notice_id", ID, sa.ForeignKey("notices.id", ondelete="CASCADE"), primary_key=True),
        column("webhook_id", ID, sa.ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True),
        column("created_at", TIME),
        column("due_at", TIME, nullable=True),
        column("expires_at", TIME),
        column("attempts", sa.Integer()),
        column("sent_at", TIME, nullable=True),
        column("error", text(400), nullable=True),
    )
    op.create_index("ix_webhook_deliveries_due_at", "webhook_deliveries", ["due_at"])
    op.create_index("ix_webhook_deliveries_webhook_id", "webhook_deliveries", ["webhook_id", "created_at"])
    op.create_table(
        "work_tokens",
        column("id", ID, primary_key=True),
        column("digest", text(64)),
        column("purpose", WORD),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("token_id", ID, sa.ForeignKey("tokens.id"), nullable=True),
        column("statement_id", ID, nullable=True),
        column("run_id", ID, nullable=True),
        column("fence", sa.Integer(), nullable=True),
        column("listed", sa.Boolean()),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("ended_at", TIME, nullable=True),
        sa.CheckConstraint("purpose IN ('statement', 'probe', 'run')", name="purpose"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_work_tokens_expires_at", "work_tokens", ["expires_at"])
    op.create_index("ix_work_tokens_run_id", "work_tokens", ["run_id"])
    op.create_index("ix_work_tokens_statement_id", "work_tokens", ["statement_id"])
    op.create_table(
        "data_marts",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("shared_for_use", sa.Boolean()),
        column("shared_for_maintenance", sa.Boolean()),
        column("storage_id", ID, sa.ForeignKey("storages.id"), nullable=True),
        column("published", sa.Boolean()),
        column("acts_for_id", ID, sa.ForeignKey("members.id"), nullable=True),
    )
    op.create_index("ix_data_marts_acts_for_id", "data_marts", ["acts_for_id"])
    op.create_index("ix_data_marts_storage_id", "data_marts", ["storage_id"])
    op.create_table(
        "connection_checks",
        column("id", ID, primary_key=True),
        column("member_id", ID, sa.ForeignKey("members.id")),
        column("place_id", ID, sa.ForeignKey("places.id", ondelete="CASCADE")),
        column("place_version", sa.Integer()),
        column("operation", WORD),
        column("question", sa.JSON()),
        column("place", sa.JSON(), nullable=True),
        column("sealed", sa.Text(), nullable=True),
        column("result", sa.JSON(), nullable=True),
        column("expires_at", TIME),
        *job_columns(),
        sa.CheckConstraint("operation IN ('test', 'discover')", name="operation"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')", name="state"
        ),
    )
    op.create_index("ix_connection_checks_expires_at", "connection_checks", ["expires_at"])
    op.create_index("ix_connection_checks_member_id", "connection_checks", ["member_id", "id"])
    op.create_index("ix_connection_checks_place_id", "connection_checks", ["place_id"])
    op.create_index("ix_connection_checks_state", "connection_checks", ["state", "id"])
    op.create_table(
        "gateways",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("space_id", ID, sa.ForeignKey("spaces.id")),
    )
    op.create_index("ix_gateways_space_id", "gateways", ["space_id"])
    op.create_table(
        "integration_tokens",
        column("token_id", ID, primary_key=True),
        column("integration_id", ID, sa.ForeignKey("integrations.id", ondelete="CASCADE")),
    )
    op.create_index("ix_integration_tokens_integration_id", "integration_tokens", ["integration_id"])
    op.create_table(
        "lake_items",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("kind", WORD),
        column("layer_id", ID, sa.ForeignKey("layers.id")),
        sa.CheckConstraint("kind IN ('table', 'volume')", name="kind"),
    )
    op.create_index("ix_lake_items_layer_id", "lake_items", ["layer_id"])
    op.create_table(
        "layer_properties",
        column("layer_id", ID, sa.ForeignKey("layers.id", ondelete="CASCADE"), primary_key=True),
        column("name", text(300), primary_key=True),
        column("value", sa.Text()),
    )
    op.create_table(
        "place_secrets",
        column("place_id", ID, sa.ForeignKey("places.id", ondelete="CASCADE"), primary_key=True),
        column("name", WORD, primary_key=True),
        column("value", sa.Text()),
        column("set_at", TIME),
    )
    op.create_table(
        "run_artifacts",
        column("run_id", ID, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        column("name", NAME, primary_key=True),
        column("media_type", text(100)),
        column("size", sa.BigInteger()),
        column("place", text(300)),
    )
    op.create_table(
        "run_lines",
        column("run_id", ID, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        column("number", sa.Integer(), primary_key=True, autoincrement=False),
        column("at", TIME),
        column("level", WORD),
        column("text", sa.Text()),
    )
    op.create_table(
        "run_outputs",
        column("run_id", ID, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        column("item_id", ID, primary_key=True),
    )
    op.create_index("ix_run_outputs_item_id", "run_outputs", ["item_id"])
    op.create_table(
        "run_pointers",
        column("run_id", ID, primary_key=True),
        column("fence", sa.Integer(), primary_key=True, autoincrement=False),
        column("table_id", ID, primary_key=True),
        column("layer_id", ID, sa.ForeignKey("layers.id")),
        column("name", NAME),
        column("uuid", text(36)),
        column("base_version", sa.Integer(), nullable=True),
        column("version", sa.Integer()),
        column("metadata_file", NAME),
        column("metadata_sha256", text(64)),
        column("snapshot_id", sa.BigInteger(), nullable=True),
        column("rows", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        column("files", sa.BigInteger(), nullable=True),
        column("committed_at", TIME),
    )
    op.create_table(
        "run_steps",
        column("run_id", ID, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        column("number", sa.Integer(), primary_key=True, autoincrement=False),
        column("kind", WORD),
        column("title", sa.Text()),
        column("item_id", ID, nullable=True),
        column("state", WORD),
        column("fence", sa.Integer(), nullable=True),
        column("started_at", TIME, nullable=True),
        column("ended_at", TIME, nullable=True),
        column("rows_in", sa.BigInteger(), nullable=True),
        column("rows_out", sa.BigInteger(), nullable=True),
        column("rejected", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        column("result", sa.JSON(), nullable=True),
        column("pointers", sa.JSON(), nullable=True),
        column("memory", sa.JSON(), nullable=True),
    )
    op.create_table(
        "space_members",
        column("space_id", ID, sa.ForeignKey("spaces.id", ondelete="CASCADE"), primary_key=True),
        column("principal_id", ID, sa.ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True),
        column("space_role", WORD, primary_key=True),
        sa.CheckConstraint(
            "space_role IN ('can_view', 'can_view_data', 'can_consume_data', 'can_manage', 'can_operate', 'can_edit')",
            name="space_role",
        ),
    )
    op.create_index("ix_space_members_principal_id", "space_members", ["principal_id", "space_id"])
    op.create_table(
        "statement_reads",
        column("statement_id", ID, sa.ForeignKey("statements.id", ondelete="CASCADE"), primary_key=True),
        column("table_id", ID, primary_key=True),
    )
    op.create_table(
        "trigger_fires",
        column("trigger_id", ID, sa.ForeignKey("triggers.id", ondelete="CASCADE"), primary_key=True),
        column("due_at", TIME, primary_key=True),
        column("at", TIME),
        column("run_id", ID, nullable=True),
    )
    op.create_table(
        "trigger_sources",
        column("trigger_id", ID, sa.ForeignKey("triggers.id", ondelete="CASCADE"), primary_key=True),
        column("source_id", ID, primary_key=True),
        column("version", sa.Integer(), nullable=True),
        column("run_id", ID, nullable=True),
        column("depth", sa.Integer(), nullable=True),
    )
    op.create_index("ix_trigger_sources_source_id", "trigger_sources", ["source_id"])
    op.create_table(
        "work_loads",
        column("work_id", ID, sa.ForeignKey("work_tokens.id", ondelete="CASCADE"), primary_key=True),
        column("ref", text(300), primary_key=True),
        column("table_id", ID, nullable=True),
        column("layer_id", ID, nullable=True),
    )
    op.create_table(
        "work_reach",
        column("work_id", ID, sa.ForeignKey("work_tokens.id", ondelete="CASCADE"), primary_key=True),
        column("table_id", ID, primary_key=True),
        column("mode", WORD, primary_key=True),
        column("layer_id", ID, nullable=True),
        column("name", NAME, nullable=True),
        sa.CheckConstraint("mode IN ('read', 'write')", name="mode"),
    )
    op.create_table(
        "connections",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("space_id", ID, sa.ForeignKey("spaces.id")),
        column("owner_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("gateway_id", ID, sa.ForeignKey("gateways.id"), nullable=True),
        column("code_allowed_by_id", ID, nullable=True),
    )
    op.create_index("ix_connections_gateway_id", "connections", ["gateway_id"])
    op.create_index("ix_connections_owner_id", "connections", ["owner_id"])
    op.create_index("ix_connections_space_id", "connections", ["space_id"])
    op.create_table(
        "reports",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("data_mart_id", ID, sa.ForeignKey("data_marts.id")),
        column("destination_id", ID, sa.ForeignKey("destinations.id"), nullable=True),
        column("acts_for_id", ID, sa.ForeignKey("members.id"), nullable=True),
    )
    op.create_index("ix_reports_acts_for_id", "reports", ["acts_for_id"])
    op.create_index("ix_reports_data_mart_id", "reports", ["data_mart_id"])
    op.create_index("ix_reports_destination_id", "reports", ["destination_id"])
    op.create_table(
        "table_pointers",
        column("table_id", ID, sa.ForeignKey("lake_items.id", ondelete="CASCADE"), primary_key=True),
        column("uuid", text(36)),
        column("version", sa.Integer()),
        column("metadata_file", NAME),
        column("metadata_sha256", text(64)),
        column("snapshot_id", sa.BigInteger(), nullable=True),
        column("rows", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        column("files", sa.BigInteger(), nullable=True),
        column("committed_at", TIME),
        column("committed_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
    )
    op.create_table(
        "table_refs",
        column("resource_id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("mode", WORD, primary_key=True),
        column("ref", text(300), primary_key=True),
        column("item_id", ID, sa.ForeignKey("lake_items.id", ondelete="SET NULL"), nullable=True),
        column("layer_id", ID, sa.ForeignKey("layers.id", ondelete="SET NULL"), nullable=True),
        column("enabled", sa.Boolean()),
        sa.CheckConstraint("mode IN ('read', 'write')", name="mode"),
    )
    op.create_index("ix_table_refs_item_id", "table_refs", ["item_id"])
    op.create_index("ix_table_refs_layer_id", "table_refs", ["layer_id"])
    op.create_table(
        "uploads",
        column("id", ID, primary_key=True),
        column("volume_id", ID, sa.ForeignKey("lake_items.id", ondelete="CASCADE")),
        column("path", text(1000)),
        column("media_type", NAME),
        column("overwrite", sa.Boolean()),
        column("size", sa.BigInteger()),
        column("received", sa.BigInteger()),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("created_by_id", ID, sa.ForeignKey("members.id")),
    )
    op.create_index("ix_uploads_expires_at", "uploads", ["expires_at"])
    op.create_index("ix_uploads_volume_id", "uploads", ["volume_id"])
    op.create_table(
        "views",
        column("view_id", ID, sa.ForeignKey("lake_items.id", ondelete="CASCADE"), primary_key=True),
        column("uuid", text(36)),
        column("version", sa.Integer()),
        column("metadata", sa.JSON()),
        column("reads", sa.JSON()),
        column("saved_at", TIME),
        column("saved_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
    )
    op.create_table(
        "volume_files",
        column("id", ID, primary_key=True),
        column("volume_id", ID, sa.ForeignKey("lake_items.id", ondelete="CASCADE")),
        column("path", text(1000)),
        column("path_key", text(64)),
        column("size", sa.BigInteger()),
        column("sha256", text(64)),
        column("media_type", NAME),
        column("created_at", TIME),
        column("created_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
    )
    op.create_index("ix_volume_files_path", "volume_files", ["volume_id", "path"])
    op.create_index("uq_volume_files", "volume_files", ["volume_id", "path_key"], unique=True)
    op.create_table(
        "projects",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("space_id", ID, sa.ForeignKey("spaces.id")),
        column("owner_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("target_id", ID, sa.ForeignKey("connections.id"), nullable=True),
    )
    op.create_index("ix_projects_owner_id", "projects", ["owner_id"])
    op.create_index("ix_projects_space_id", "projects", ["space_id"])
    op.create_index("ix_projects_target_id", "projects", ["target_id"])
    op.create_table(
        "pipelines",
        column("id", ID, sa.ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
        column("pipeline_kind", WORD),
        column("project_id", ID, sa.ForeignKey("projects.id"), nullable=True),
        column("output_layer_id", ID, sa.ForeignKey("layers.id"), nullable=True),
        column("destination_id", ID, sa.ForeignKey("destinations.id"), nullable=True),
        column("acts_for_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("owner_id", ID, sa.ForeignKey("members.id"), nullable=True),
        sa.CheckConstraint(
            "pipeline_kind IN ('source', 'query', 'notebook', 'history', 'delivery')", name="pipeline_kind"
        ),
    )
    op.create_index("ix_pipelines_acts_for_id", "pipelines", ["acts_for_id"])
    op.create_index("ix_pipelines_destination_id", "pipelines", ["destination_id"])
    op.create_index("ix_pipelines_output_layer_id", "pipelines", ["output_layer_id"])
    op.create_index("ix_pipelines_project_id", "pipelines", ["project_id"])
    op.create_table(
        "pipeline_connections",
        column("pipeline_id", ID, sa.ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True),
        column("connection_id", ID, sa.ForeignKey("connections.id"), primary_key=True),
    )
    op.create_index("ix_pipeline_connections_connection_id", "pipeline_connections", ["connection_id"])
    op.create_table(
        "pipeline_definitions",
        column("pipeline_id", ID, sa.ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True),
        column("definition", sa.JSON()),
        column("version", sa.Integer()),
        column("description", sa.Text(), nullable=True),
        column("unresolved", sa.Text(), nullable=True),
        column("active", sa.Boolean()),
        column("inactive_because", sa.Text(), nullable=True),
        column("deactivate_after", sa.Integer(), nullable=True),
        column("failures", sa.Integer()),
        column("told_causes", sa.JSON(), nullable=True),
        column("saved_at", TIME),
        column("saved_by_id", ID, sa.ForeignKey("members.id"), nullable=True),
        column("place_versions", sa.JSON()),
        column("origins", sa.JSON(), nullable=True),
    )
    op.create_table(
        "probed_schemas",
        column("table_id", ID, sa.ForeignKey("lake_items.id", ondelete="CASCADE"), primary_key=True),
        column("pipeline_id", ID, sa.ForeignKey("pipelines.id", ondelete="CASCADE")),
        column("columns", sa.JSON()),
    )
    op.create_index("ix_probed_schemas_pipeline_id", "probed_schemas", ["pipeline_id"])
