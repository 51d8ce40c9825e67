"""Pipelines: their definitions, triggers, runs, steps and logs"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, key, text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Go to this version."""
    op.add_column("commits", column("pipeline_id", text(32), nullable=True))
    op.add_column("commits", sa.Column("state", sa.JSON()))
    op.add_column("integrations", sa.Column("description", sa.Text()))
    op.add_column("integrations", column("token_id", text(32), nullable=True))
    op.create_table(
        "integration_tokens",
        column("token_id", text(32)),
        column("integration_id", text(32)),
        key("integration_tokens", "integration_id", "integrations", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_id", name="pk_integration_tokens"),
    )
    op.create_index("ix_integration_tokens_integration_id", "integration_tokens", ["integration_id"])
    op.create_index("ix_audit_events_token_id", "audit_events", ["token_id", "at"])
    _pipelines()
    _triggers()
    _runs()
    _parts_of_runs()
    _maintenance()


def _pipelines() -> None:
    op.create_table(
        "pipeline_definitions",
        column("pipeline_id", text(32)),
        column("definition", sa.JSON()),
        column("version", sa.Integer()),
        column("description", sa.Text(), nullable=True),
        column("unresolved", sa.Text(), nullable=True),
        column("active", sa.Boolean()),
        column("inactive_because", sa.Text(), nullable=True),
        column("deactivate_after", sa.Integer(), nullable=True),
        column("failures", sa.Integer()),
        column("saved_at", TIME),
        column("saved_by_id", text(32), nullable=True),
        column("place_versions", sa.JSON()),
        column("origins", sa.JSON(), nullable=True),
        key("pipeline_definitions", "pipeline_id", "pipelines", ondelete="CASCADE"),
        key("pipeline_definitions", "saved_by_id", "members"),
        sa.PrimaryKeyConstraint("pipeline_id", name="pk_pipeline_definitions"),
    )
    op.create_table(
        "probed_schemas",
        column("table_id", text(32)),
        column("pipeline_id", text(32)),
        column("columns", sa.JSON()),
        key("probed_schemas", "table_id", "lake_items", ondelete="CASCADE"),
        key("probed_schemas", "pipeline_id", "pipelines", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", name="pk_probed_schemas"),
    )
    op.create_index("ix_probed_schemas_pipeline_id", "probed_schemas", ["pipeline_id"])


def _triggers() -> None:
    for one in (
        column("sort", text(40), nullable=True),
        column("spec", sa.JSON(), nullable=True),
        column("enabled", sa.Boolean(), server_default="1"),
        column("paused_because", sa.Text(), nullable=True),
        column("next_at", TIME, nullable=True),
        column("saved_at", TIME, nullable=True),
    ):
        op.add_column("triggers", one)
    op.create_index("ix_triggers_next_at", "triggers", ["next_at"])
    op.create_table(
        "trigger_fires",
        column("trigger_id", text(32)),
        column("due_at", TIME),
        column("at", TIME),
        column("run_id", text(32), nullable=True),
        key("trigger_fires", "trigger_id", "triggers", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trigger_id", "due_at", name="pk_trigger_fires"),
    )
    op.create_table(
        "trigger_sources",
        column("trigger_id", text(32)),
        column("source_id", text(32)),
        column("version", sa.Integer(), nullable=True),
        column("run_id", text(32), nullable=True),
        column("depth", sa.Integer(), nullable=True),
        key("trigger_sources", "trigger_id", "triggers", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trigger_id", "source_id", name="pk_trigger_sources"),
    )
    op.create_index("ix_trigger_sources_source_id", "trigger_sources", ["source_id"])


def _runs() -> None:
    for one in (
        column("definition", sa.JSON(), nullable=True),
        column("named", sa.JSON(), nullable=True),
        column("plan", sa.JSON(), nullable=True),
        column("started_by_id", text(32), nullable=True),
        column("token_id", text(32), nullable=True),
        column("trigger_id", text(32), nullable=True),
        column("acts_for_id", text(32), nullable=True),
        column("due_at", TIME, nullable=True),
        column("full_refresh", sa.Boolean(), server_default="0"),
        column("parameters", sa.JSON(), nullable=True),
        column("depth", sa.Integer(), server_default="0"),
        column("attempt", sa.Integer(), server_default="0"),
        column("losses", sa.Integer(), server_default="0"),
        column("queued_at", TIME, nullable=True),
        column("not_before", TIME, nullable=True),
        column("started_at", TIME, nullable=True),
        column("ended_at", TIME, nullable=True),
        column("worker_id", text(32), nullable=True),
        column("lease_until", TIME, nullable=True),
        column("cancelled_at", TIME, nullable=True),
        column("cancelled_by_id", text(32), nullable=True),
        column("error_code", text(120), nullable=True),
        column("error", sa.Text(), nullable=True),
        column("progress", sa.JSON(), nullable=True),
        column("rows_in", sa.BigInteger(), nullable=True),
        column("rows_out", sa.BigInteger(), nullable=True),
        column("rejected", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
    ):
        op.add_column("runs", one)
    op.drop_index("ix_runs_parent_id", "runs")
    op.create_index("ix_runs_parent_id", "runs", ["parent_id", "id"])
    op.create_index("ix_runs_parent_state", "runs", ["parent_id", "state"])
    op.create_index("ix_runs_state", "runs", ["state", "id"])
    op.create_index("ix_runs_trigger_id", "runs", ["trigger_id", "state"])
    op.create_table(
        "run_outputs",
        column("run_id", text(32)),
        column("item_id", text(32)),
        key("run_outputs", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "item_id", name="pk_run_outputs"),
    )
    op.create_index("ix_run_outputs_item_id", "run_outputs", ["item_id"])


def _parts_of_runs() -> None:
    op.create_table(
        "run_steps",
        column("run_id", text(32)),
        column("number", sa.Integer(), autoincrement=False),
        column("kind", text(40)),
        column("title", sa.Text()),
        column("item_id", text(32), nullable=True),
        column("state", text(40)),
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
        key("run_steps", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_run_steps"),
    )
    op.create_table(
        "run_lines",
        column("run_id", text(32)),
        column("number", sa.Integer(), autoincrement=False),
        column("at", TIME),
        column("level", text(40)),
        column("text", sa.Text()),
        key("run_lines", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_run_lines"),
    )
    op.create_table(
        "run_artifacts",
        column("run_id", text(32)),
        column("name", text(200)),
        column("media_type", text(100)),
        column("size", sa.BigInteger()),
        column("place", text(300)),
        key("run_artifacts", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_run_artifacts"),
    )


def _maintenance() -> None:
    op.create_table(
        "maintenance_passes",
        column("id", text(32)),
        column("state", text(40)),
        column("dry_run", sa.Boolean()),
        column("table_id", text(32), nullable=True),
        column("asked_by_id", text(32), nullable=True),
        column("due_at", TIME, nullable=True),
        column("asked_at", TIME),
        column("started_at", TIME, nullable=True),
        column("ended_at", TIME, nullable=True),
        column("after_id", text(32), nullable=True),
        column("tables", sa.Integer()),
        column("looked_at", sa.Integer()),
        column("error", sa.Text(), nullable=True),
        key("maintenance_passes", "asked_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_maintenance_passes"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'compacting', 'succeeded', 'failed')", name="ck_maintenance_passes_state"
        ),
    )
    op.create_index("uq_maintenance_passes_due_at", "maintenance_passes", ["due_at"], unique=True)
    op.create_index("ix_maintenance_passes_state", "maintenance_passes", ["state", "id"])
    op.create_table(
        "maintenance_tables",
        column("pass_id", text(32)),
        column("table_id", text(32)),
        column("outcome", text(40)),
        column("note", sa.Text(), nullable=True),
        column("snapshots", sa.Integer()),
        column("files", sa.Integer()),
        column("bytes", sa.BigInteger()),
        column("compaction", text(40), nullable=True),
        column("small_files", sa.Integer(), nullable=True),
        column("queued_at", TIME, nullable=True),
        column("fence", sa.Integer()),
        column("worker_id", text(32), nullable=True),
        column("lease_until", TIME, nullable=True),
        column("digest", text(64), nullable=True),
        column("files_before", sa.Integer(), nullable=True),
        column("files_after", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["pass_id"],
            ["maintenance_passes.id"],
            name="fk_maintenance_tables_pass_id_maintenance_passes",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pass_id", "table_id", name="pk_maintenance_tables"),
        sa.CheckConstraint("outcome IN ('done', 'skipped', 'failed')", name="ck_maintenance_tables_outcome"),
        sa.CheckConstraint(
            "compaction IN ('planned', 'queued', 'running', 'done', 'failed')", name="ck_maintenance_tables_compaction"
        ),
    )
    op.create_index("uq_maintenance_tables_digest", "maintenance_tables", ["digest"], unique=True)
    op.create_index("ix_maintenance_tables_compaction", "maintenance_tables", ["compaction"])
