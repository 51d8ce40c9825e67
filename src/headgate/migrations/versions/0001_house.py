"""The house: everything that access needs to know"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, text

revision = "0001"
down_revision = None

_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "audit_events",
        column("id", _COUNTER, autoincrement=True),
        column("at", TIME),
        column("event", text(40)),
        column("actor_id", text(32), nullable=True),
        column("token_id", text(32), nullable=True),
        column("request_id", text(64), nullable=True),
        column("action", text(40), nullable=True),
        column("kind", text(40), nullable=True),
        column("resource_id", text(32), nullable=True),
        column("allowed", sa.Boolean()),
        column("via", sa.JSON()),
        column("before", sa.JSON(), nullable=True),
        column("after", sa.JSON(), nullable=True),
        column("seal_number", sa.BigInteger(), nullable=True),
        column("seal", text(64), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_events_actor_id", "audit_events", ["actor_id", "at"])
    op.create_index("ix_audit_events_at", "audit_events", ["at"])
    op.create_index("ix_audit_events_resource_id", "audit_events", ["resource_id", "at"])
    op.create_index("uq_audit_events_seal_number", "audit_events", ["seal_number"], unique=True)

    op.create_table(
        "contexts",
        column("id", text(32)),
        column("name", text(200)),
        column("name_key", text(800)),
        column("created_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_contexts"),
        sa.UniqueConstraint("name_key", name="uq_contexts_name_key"),
    )
    op.create_table(
        "leases",
        column("name", text(40)),
        column("holder", text(80)),
        column("fence", sa.BigInteger()),
        column("expires_at", TIME),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "organization",
        column("id", sa.Integer(), autoincrement=False),
        column("name", text(200)),
        column("plan", text(40)),
        column("invites", text(40)),
        sa.CheckConstraint("invites IN ('by-role', 'admins-only')", name="ck_organization_invites"),
        sa.CheckConstraint("plan IN ('starter', 'growth', 'custom')", name="ck_organization_plan"),
        sa.CheckConstraint("id = 1", name="ck_organization_one_row"),
        sa.PrimaryKeyConstraint("id", name="pk_organization"),
    )
    op.create_table("principals", column("id", text(32)), sa.PrimaryKeyConstraint("id", name="pk_principals"))
    op.create_table(
        "groups",
        column("id", text(32)),
        column("name", text(200)),
        column("name_key", text(800)),
        column("created_at", TIME),
        sa.ForeignKeyConstraint(["id"], ["principals.id"], name="fk_groups_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
        sa.UniqueConstraint("name_key", name="uq_groups_name_key"),
    )
    op.create_table(
        "members",
        column("id", text(32)),
        column("name", text(200)),
        column("name_key", text(800)),
        column("role", text(40)),
        column("scope", text(40)),
        column("created_at", TIME),
        column("removed_at", TIME, nullable=True),
        sa.CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="ck_members_role"),
        sa.CheckConstraint("scope IN ('entire', 'selected')", name="ck_members_scope"),
        sa.ForeignKeyConstraint(["id"], ["principals.id"], name="fk_members_id"),
        sa.PrimaryKeyConstraint("id", name="pk_members"),
    )
    op.create_index("ix_members_role", "members", ["role"])
    op.create_index("uq_members_name_key", "members", ["name_key"], unique=True)

    op.create_table(
        "group_members",
        column("group_id", text(32)),
        column("member_id", text(32)),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], name="fk_group_members_group_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["member_id"], ["members.id"], name="fk_group_members_member_id"),
        sa.PrimaryKeyConstraint("group_id", "member_id", name="pk_group_members"),
    )
    op.create_index("ix_group_members_member_id", "group_members", ["member_id", "group_id"])

    op.create_table(
        "member_contexts",
        column("member_id", text(32)),
        column("context_id", text(32)),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name="fk_member_contexts_context_id"),
        sa.ForeignKeyConstraint(["member_id"], ["members.id"], name="fk_member_contexts_member_id"),
        sa.PrimaryKeyConstraint("member_id", "context_id", name="pk_member_contexts"),
    )
    op.create_index("ix_member_contexts_context_id", "member_contexts", ["context_id"])

    op.create_table(
        "member_security_roles",
        column("member_id", text(32)),
        column("security_role", text(40)),
        sa.CheckConstraint(
            "security_role IN ('tenant_admin', 'data_admin', 'space_creator')",
            name="ck_member_security_roles_security_role",
        ),
        sa.ForeignKeyConstraint(["member_id"], ["members.id"], name="fk_member_security_roles_member_id"),
        sa.PrimaryKeyConstraint("member_id", "security_role", name="pk_member_security_roles"),
    )
    op.create_table(
        "resources",
        column("id", text(32)),
        column("kind", text(40)),
        column("namespace", text(40)),
        column("scope_id", text(32)),
        column("name", text(200)),
        column("name_key", text(800)),
        column("created_at", TIME),
        column("updated_at", TIME),
        column("created_by_id", text(32), nullable=True),
        sa.ForeignKeyConstraint(["created_by_id"], ["members.id"], name="fk_resources_created_by_id"),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
    )
    op.create_index("ix_resources_created_by_id", "resources", ["created_by_id"])
    op.create_index("uq_resources_name", "resources", ["namespace", "scope_id", "name_key"], unique=True)

    op.create_table(
        "tokens",
        column("id", text(32)),
        column("member_id", text(32)),
        column("name", text(200)),
        column("digest", text(64)),
        column("read_only", sa.Boolean()),
        column("listed", sa.Boolean()),
        column("created_at", TIME),
        column("expires_at", TIME, nullable=True),
        column("last_used_at", TIME, nullable=True),
        column("revoked_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["member_id"], ["members.id"], name="fk_tokens_member_id"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    op.create_index("ix_tokens_member_id", "tokens", ["member_id"])

    op.create_table(
        "audience",
        column("resource_id", text(32)),
        column("key", text(80)),
        column("name_key", text(800)),
        column("created_at", TIME),
        column("updated_at", TIME),
        column("creator_key", text(800)),
        column("expires_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_audience_resource_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("resource_id", "key", name="pk_audience"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_audience_created", "audience", ["key", "created_at", "resource_id", "expires_at"])
    op.create_index("ix_audience_creator", "audience", ["key", "creator_key", "resource_id", "expires_at"])
    op.create_index("ix_audience_name", "audience", ["key", "name_key", "resource_id", "expires_at"])
    op.create_index("ix_audience_updated", "audience", ["key", "updated_at", "resource_id", "expires_at"])

    op.create_table(
        "destinations",
        column("id", text(32)),
        column("deleted_at", TIME, nullable=True),
        column("shared_for_use", sa.Boolean()),
        column("shared_for_maintenance", sa.Boolean()),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_destinations_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_destinations"),
    )
    op.create_table(
        "grants",
        column("id", text(32)),
        column("resource_id", text(32)),
        column("grantee_id", text(32)),
        column("level", sa.SmallInteger()),
        column("expires_at", TIME, nullable=True),
        column("created_at", TIME),
        column("created_by_id", text(32), nullable=True),
        sa.CheckConstraint("level BETWEEN 1 AND 3", name="ck_grants_level"),
        sa.ForeignKeyConstraint(["created_by_id"], ["members.id"], name="fk_grants_created_by_id"),
        sa.ForeignKeyConstraint(["grantee_id"], ["principals.id"], name="fk_grants_grantee_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_grants_resource_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
    )
    op.create_index("ix_grants_expires_at", "grants", ["expires_at"])
    op.create_index("ix_grants_grantee_id", "grants", ["grantee_id", "resource_id"])
    op.create_index("uq_grants", "grants", ["resource_id", "grantee_id", "level"], unique=True)

    op.create_table(
        "integrations",
        column("id", text(32)),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_integrations_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_integrations"),
    )
    op.create_table(
        "layers",
        column("id", text(32)),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_layers_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_layers"),
    )
    op.create_table(
        "owners",
        column("resource_id", text(32)),
        column("member_id", text(32)),
        column("ownership", text(40)),
        sa.CheckConstraint("ownership IN ('owner', 'technical', 'business')", name="ck_owners_ownership"),
        sa.ForeignKeyConstraint(["member_id"], ["members.id"], name="fk_owners_member_id"),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_owners_resource_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("resource_id", "member_id", "ownership", name="pk_owners"),
    )
    op.create_index("ix_owners_member_id", "owners", ["member_id"])

    op.create_table(
        "resource_contexts",
        column("resource_id", text(32)),
        column("context_id", text(32)),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name="fk_resource_contexts_context_id"),
        sa.ForeignKeyConstraint(
            ["resource_id"], ["resources.id"], name="fk_resource_contexts_resource_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("resource_id", "context_id", name="pk_resource_contexts"),
    )
    op.create_index("ix_resource_contexts_context_id", "resource_contexts", ["context_id"])

    op.create_table(
        "runs",
        column("id", text(32)),
        column("parent_id", text(32)),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_runs_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["parent_id"], ["resources.id"], name="fk_runs_parent_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_parent_id", "runs", ["parent_id"])

    op.create_table(
        "saved_queries",
        column("id", text(32)),
        column("author_id", text(32), nullable=True),
        sa.ForeignKeyConstraint(["author_id"], ["members.id"], name="fk_saved_queries_author_id"),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_saved_queries_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_saved_queries"),
    )
    op.create_index("ix_saved_queries_author_id", "saved_queries", ["author_id"])

    op.create_table(
        "spaces",
        column("id", text(32)),
        column("owner_id", text(32), nullable=True),
        column("personal", sa.Boolean()),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_spaces_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["owner_id"], ["members.id"], name="fk_spaces_owner_id"),
        sa.PrimaryKeyConstraint("id", name="pk_spaces"),
    )
    op.create_index("ix_spaces_owner_id", "spaces", ["owner_id"])

    op.create_table(
        "storages",
        column("id", text(32)),
        column("shared_for_use", sa.Boolean()),
        column("shared_for_maintenance", sa.Boolean()),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_storages_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_storages"),
    )
    op.create_table(
        "token_reach",
        column("token_id", text(32)),
        column("resource_id", text(32)),
        sa.ForeignKeyConstraint(
            ["resource_id"], ["resources.id"], name="fk_token_reach_resource_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="fk_token_reach_token_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_id", "resource_id", name="pk_token_reach"),
    )
    op.create_table(
        "triggers",
        column("id", text(32)),
        column("kind", text(40)),
        column("parent_id", text(32)),
        column("author_id", text(32), nullable=True),
        sa.CheckConstraint(
            "kind IN ('data_mart_trigger', 'report_trigger', 'pipeline_trigger')", name="ck_triggers_kind"
        ),
        sa.ForeignKeyConstraint(["author_id"], ["members.id"], name="fk_triggers_author_id"),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_triggers_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["parent_id"], ["resources.id"], name="fk_triggers_parent_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_triggers"),
    )
    op.create_index("ix_triggers_author_id", "triggers", ["author_id"])
    op.create_index("ix_triggers_parent_id", "triggers", ["parent_id"])

    op.create_table(
        "data_marts",
        column("id", text(32)),
        column("storage_id", text(32), nullable=True),
        column("published", sa.Boolean()),
        column("acts_for_id", text(32), nullable=True),
        column("shared_for_use", sa.Boolean()),
        column("shared_for_maintenance", sa.Boolean()),
        sa.ForeignKeyConstraint(["acts_for_id"], ["members.id"], name="fk_data_marts_acts_for_id"),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_data_marts_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["storage_id"], ["storages.id"], name="fk_data_marts_storage_id"),
        sa.PrimaryKeyConstraint("id", name="pk_data_marts"),
    )
    op.create_index("ix_data_marts_acts_for_id", "data_marts", ["acts_for_id"])
    op.create_index("ix_data_marts_storage_id", "data_marts", ["storage_id"])

    op.create_table(
        "gateways",
        column("id", text(32)),
        column("space_id", text(32)),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_gateways_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_gateways_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_gateways"),
    )
    op.create_index("ix_gateways_space_id", "gateways", ["space_id"])

    op.create_table(
        "lake_items",
        column("id", text(32)),
        column("kind", text(40)),
        column("layer_id", text(32)),
        sa.CheckConstraint("kind IN ('table', 'volume')", name="ck_lake_items_kind"),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_lake_items_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["layer_id"], ["layers.id"], name="fk_lake_items_layer_id"),
        sa.PrimaryKeyConstraint("id", name="pk_lake_items"),
    )
    op.create_index("ix_lake_items_layer_id", "lake_items", ["layer_id"])

    op.create_table(
        "space_members",
        column("space_id", text(32)),
        column("principal_id", text(32)),
        column("space_role", text(40)),
        sa.CheckConstraint(
            "space_role IN ('can_view', 'can_view_data', 'can_consume_data', 'can_manage', 'can_operate', 'can_edit')",
            name="ck_space_members_space_role",
        ),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principals.id"], name="fk_space_members_principal_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_space_members_space_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("space_id", "principal_id", "space_role", name="pk_space_members"),
    )
    op.create_index("ix_space_members_principal_id", "space_members", ["principal_id", "space_id"])

    op.create_table(
        "connections",
        column("id", text(32)),
        column("space_id", text(32)),
        column("owner_id", text(32), nullable=True),
        column("gateway_id", text(32), nullable=True),
        sa.ForeignKeyConstraint(["gateway_id"], ["gateways.id"], name="fk_connections_gateway_id"),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_connections_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["owner_id"], ["members.id"], name="fk_connections_owner_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_connections_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_connections"),
    )
    op.create_index("ix_connections_gateway_id", "connections", ["gateway_id"])
    op.create_index("ix_connections_owner_id", "connections", ["owner_id"])
    op.create_index("ix_connections_space_id", "connections", ["space_id"])

    op.create_table(
        "reports",
        column("id", text(32)),
        column("data_mart_id", text(32)),
        column("destination_id", text(32), nullable=True),
        column("acts_for_id", text(32), nullable=True),
        sa.ForeignKeyConstraint(["acts_for_id"], ["members.id"], name="fk_reports_acts_for_id"),
        sa.ForeignKeyConstraint(["data_mart_id"], ["data_marts.id"], name="fk_reports_data_mart_id"),
        sa.ForeignKeyConstraint(["destination_id"], ["destinations.id"], name="fk_reports_destination_id"),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_reports_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_reports"),
    )
    op.create_index("ix_reports_acts_for_id", "reports", ["acts_for_id"])
    op.create_index("ix_reports_data_mart_id", "reports", ["data_mart_id"])
    op.create_index("ix_reports_destination_id", "reports", ["destination_id"])

    op.create_table(
        "table_refs",
        column("resource_id", text(32)),
        column("mode", text(40)),
        column("ref", text(300)),
        column("item_id", text(32), nullable=True),
        column("layer_id", text(32), nullable=True),
        column("enabled", sa.Boolean()),
        sa.CheckConstraint("mode IN ('read', 'write')", name="ck_table_refs_mode"),
        sa.ForeignKeyConstraint(["item_id"], ["lake_items.id"], name="fk_table_refs_item_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["layer_id"], ["layers.id"], name="fk_table_refs_layer_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["resource_id"], ["resources.id"], name="fk_table_refs_resource_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("resource_id", "mode", "ref", name="pk_table_refs"),
    )
    op.create_index("ix_table_refs_item_id", "table_refs", ["item_id"])
    op.create_index("ix_table_refs_layer_id", "table_refs", ["layer_id"])

    op.create_table(
        "projects",
        column("id", text(32)),
        column("space_id", text(32)),
        column("owner_id", text(32), nullable=True),
        column("target_id", text(32), nullable=True),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_projects_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["owner_id"], ["members.id"], name="fk_projects_owner_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_projects_space_id"),
        sa.ForeignKeyConstraint(["target_id"], ["connections.id"], name="fk_projects_target_id"),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
    )
    op.create_index("ix_projects_owner_id", "projects", ["owner_id"])
    op.create_index("ix_projects_space_id", "projects", ["space_id"])
    op.create_index("ix_projects_target_id", "projects", ["target_id"])

    op.create_table(
        "pipelines",
        column("id", text(32)),
        column("pipeline_kind", text(40)),
        column("project_id", text(32), nullable=True),
        column("output_layer_id", text(32), nullable=True),
        column("destination_id", text(32), nullable=True),
        column("acts_for_id", text(32), nullable=True),
        column("owner_id", text(32), nullable=True),
        sa.CheckConstraint(
            "pipeline_kind IN ('source', 'query', 'notebook', 'history', 'delivery')", name="ck_pipelines_pipeline_kind"
        ),
        sa.ForeignKeyConstraint(["acts_for_id"], ["members.id"], name="fk_pipelines_acts_for_id"),
        sa.ForeignKeyConstraint(["destination_id"], ["destinations.id"], name="fk_pipelines_destination_id"),
        sa.ForeignKeyConstraint(["id"], ["resources.id"], name="fk_pipelines_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["output_layer_id"], ["layers.id"], name="fk_pipelines_output_layer_id"),
        sa.ForeignKeyConstraint(["owner_id"], ["members.id"], name="fk_pipelines_owner_id"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_pipelines_project_id"),
        sa.PrimaryKeyConstraint("id", name="pk_pipelines"),
    )
    op.create_index("ix_pipelines_acts_for_id", "pipelines", ["acts_for_id"])
    op.create_index("ix_pipelines_destination_id", "pipelines", ["destination_id"])
    op.create_index("ix_pipelines_output_layer_id", "pipelines", ["output_layer_id"])
    op.create_index("ix_pipelines_project_id", "pipelines", ["project_id"])

    op.create_table(
        "pipeline_connections",
        column("pipeline_id", text(32)),
        column("connection_id", text(32)),
        sa.ForeignKeyConstraint(["connection_id"], ["connections.id"], name="fk_pipeline_connections_connection_id"),
        sa.ForeignKeyConstraint(
            ["pipeline_id"], ["pipelines.id"], name="fk_pipeline_connections_pipeline_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("pipeline_id", "connection_id", name="pk_pipeline_connections"),
    )
    op.create_index("ix_pipeline_connections_connection_id", "pipeline_connections", ["connection_id"])

    _first_rows()
    _append_only()


def _first_rows() -> None:
    """One organization, which enforces grants, and the group All."""
    bind = op.get_bind()
    bind.execute(
        sa.text("INSERT INTO organization (id, name, plan, invites) VALUES (1, 'Headgate', 'growth', 'by-role')")
    )
    everyone = {"id": "grp_00000000000000000a11", "now": datetime.now(UTC).replace(tzinfo=None)}
    bind.execute(sa.text("INSERT INTO principals (id) VALUES (:id)"), everyone)
    bind.execute(
        sa.text("INSERT INTO groups (id, name, name_key, created_at) VALUES (:id, 'All', 'all', :now)"), everyone
    )


def _append_only() -> None:
    """Audit events are added and, once, sealed; the database refuses everything else."""
    fixed = ("id", "at", "event", "actor_id", "token_id", "request_id", "action", "kind", "resource_id", "allowed")
    if op.get_bind().dialect.name == "sqlite":
        changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in (*fixed, "via", "before", "after"))
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
    changed = " OR ".join(f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in fixed)
    texts = " OR ".join(f"NEW.{name}::text IS DISTINCT FROM OLD.{name}::text" for name in ("via", "before", "after"))
    op.execute(
        "CREATE FUNCTION audit_events_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'audit events are never changed or removed'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_events_fixed BEFORE UPDATE ON audit_events FOR EACH ROW "
        f"WHEN (OLD.seal_number IS NOT NULL OR {changed} OR {texts}) EXECUTE FUNCTION audit_events_refuse()"
    )
    op.execute(
        "CREATE TRIGGER audit_events_kept BEFORE DELETE ON audit_events FOR EACH ROW "
        "EXECUTE FUNCTION audit_events_refuse()"
    )
    op.execute(
        "CREATE TRIGGER audit_events_whole BEFORE TRUNCATE ON audit_events FOR EACH STATEMENT "
        "EXECUTE FUNCTION audit_events_refuse()"
    )
