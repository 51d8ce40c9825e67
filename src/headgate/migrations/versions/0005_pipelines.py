"""Pipelines: their definitions, triggers, runs, steps and logs"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

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
    op.add_column("commits", _column("pipeline_id", _text(32), nullable=True))
    op.add_column("commits", sa.Column("state", sa.JSON()))
    op.add_column("integrations", sa.Column("description", sa.Text()))
    op.add_column("integrations", _column("token_id", _text(32), nullable=True))
    op.create_index("ix_audit_events_token_id", "audit_events", ["token_id", "at"])
    _pipelines()
    _triggers()
    _runs()
    _parts_of_runs()
    _maintenance()


def _pipelines() -> None:
    op.create_table(
        "pipeline_definitions",
        _column("pipeline_id", _text(32)),
        _column("definition", sa.JSON()),
        _column("version", sa.Integer()),
        _column("description", sa.Text(), nullable=True),
        _column("unresolved", sa.Text(), nullable=True),
        _column("active", sa.Boolean()),
        _column("inactive_because", sa.Text(), nullable=True),
        _column("deactivate_after", sa.Integer(), nullable=True),
        _column("failures", sa.Integer()),
        _column("saved_at", _TIME),
        _column("saved_by_id", _text(32), nullable=True),
        _column("place_versions", sa.JSON()),
        _column("origins", sa.JSON(), nullable=True),
        _key("pipeline_definitions", "pipeline_id", "pipelines", ondelete="CASCADE"),
        _key("pipeline_definitions", "saved_by_id", "members"),
        sa.PrimaryKeyConstraint("pipeline_id", name="pk_pipeline_definitions"),
    )
    op.create_table(
        "probed_schemas",
        _column("table_id", _text(32)),
        _column("pipeline_id", _text(32)),
        _column("columns", sa.JSON()),
        _key("probed_schemas", "table_id", "lake_items", ondelete="CASCADE"),
        _key("probed_schemas", "pipeline_id", "pipelines", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", name="pk_probed_schemas"),
    )
    op.create_index("ix_probed_schemas_pipeline_id", "probed_schemas", ["pipeline_id"])


def _triggers() -> None:
    for column in (
        _column("sort", _text(40), nullable=True),
        _column("spec", sa.JSON(), nullable=True),
        _column("enabled", sa.Boolean(), server_default="1"),
        _column("paused_because", sa.Text(), nullable=True),
        _column("next_at", _TIME, nullable=True),
        _column("saved_at", _TIME, nullable=True),
    ):
        op.add_column("triggers", column)
    op.create_index("ix_triggers_next_at", "triggers", ["next_at"])
    op.create_table(
        "trigger_fires",
        _column("trigger_id", _text(32)),
        _column("due_at", _TIME),
        _column("at", _TIME),
        _column("run_id", _text(32), nullable=True),
        _key("trigger_fires", "trigger_id", "triggers", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trigger_id", "due_at", name="pk_trigger_fires"),
    )
    op.create_table(
        "trigger_sources",
        _column("trigger_id", _text(32)),
        _column("source_id", _text(32)),
        _column("version", sa.Integer(), nullable=True),
        _column("run_id", _text(32), nullable=True),
        _column("depth", sa.Integer(), nullable=True),
        _key("trigger_sources", "trigger_id", "triggers", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trigger_id", "source_id", name="pk_trigger_sources"),
    )
    op.create_index("ix_trigger_sources_source_id", "trigger_sources", ["source_id"])


def _runs() -> None:
    for column in (
        _column("definition", sa.JSON(), nullable=True),
        _column("named", sa.JSON(), nullable=True),
        _column("plan", sa.JSON(), nullable=True),
        _column("started_by_id", _text(32), nullable=True),
        _column("token_id", _text(32), nullable=True),
        _column("trigger_id", _text(32), nullable=True),
        _column("acts_for_id", _text(32), nullable=True),
        _column("due_at", _TIME, nullable=True),
        _column("full_refresh", sa.Boolean(), server_default="0"),
        _column("parameters", sa.JSON(), nullable=True),
        _column("depth", sa.Integer(), server_default="0"),
        _column("attempt", sa.Integer(), server_default="0"),
        _column("losses", sa.Integer(), server_default="0"),
        _column("queued_at", _TIME, nullable=True),
        _column("not_before", _TIME, nullable=True),
        _column("started_at", _TIME, nullable=True),
        _column("ended_at", _TIME, nullable=True),
        _column("worker_id", _text(32), nullable=True),
        _column("lease_until", _TIME, nullable=True),
        _column("cancelled_at", _TIME, nullable=True),
        _column("cancelled_by_id", _text(32), nullable=True),
        _column("error_code", _text(120), nullable=True),
        _column("error", sa.Text(), nullable=True),
        _column("progress", sa.JSON(), nullable=True),
        _column("rows_in", sa.BigInteger(), nullable=True),
        _column("rows_out", sa.BigInteger(), nullable=True),
        _column("rejected", sa.BigInteger(), nullable=True),
        _column("bytes", sa.BigInteger(), nullable=True),
    ):
        op.add_column("runs", column)
    op.drop_index("ix_runs_parent_id", "runs")
    op.create_index("ix_runs_parent_id", "runs", ["parent_id", "id"])
    op.create_index("ix_runs_parent_state", "runs", ["parent_id", "state"])
    op.create_index("ix_runs_state", "runs", ["state", "id"])
    op.create_index("ix_runs_trigger_id", "runs", ["trigger_id", "state"])
    op.create_table(
        "run_outputs",
        _column("run_id", _text(32)),
        _column("item_id", _text(32)),
        _key("run_outputs", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "item_id", name="pk_run_outputs"),
    )
    op.create_index("ix_run_outputs_item_id", "run_outputs", ["item_id"])


def _parts_of_runs() -> None:
    op.create_table(
        "run_steps",
        _column("run_id", _text(32)),
        _column("number", sa.Integer(), autoincrement=False),
        _column("kind", _text(40)),
        _column("title", sa.Text()),
        _column("item_id", _text(32), nullable=True),
        _column("state", _text(40)),
        _column("fence", sa.Integer(), nullable=True),
        _column("started_at", _TIME, nullable=True),
        _column("ended_at", _TIME, nullable=True),
        _column("rows_in", sa.BigInteger(), nullable=True),
        _column("rows_out", sa.BigInteger(), nullable=True),
        _column("rejected", sa.BigInteger(), nullable=True),
        _column("bytes", sa.BigInteger(), nullable=True),
        _column("result", sa.JSON(), nullable=True),
        _column("pointers", sa.JSON(), nullable=True),
        _column("memory", sa.JSON(), nullable=True),
        _key("run_steps", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_run_steps"),
    )
    op.create_table(
        "run_lines",
        _column("run_id", _text(32)),
        _column("number", sa.Integer(), autoincrement=False),
        _column("at", _TIME),
        _column("level", _text(40)),
        _column("text", sa.Text()),
        _key("run_lines", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_run_lines"),
    )
    op.create_table(
        "run_artifacts",
        _column("run_id", _text(32)),
        _column("name", _text(200)),
        _column("media_type", _text(100)),
        _column("size", sa.BigInteger()),
        _column("place", _text(300)),
        _key("run_artifacts", "run_id", "runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_run_artifacts"),
    )


def _maintenance() -> None:
    op.create_table(
        "maintenance_passes",
        _column("id", _text(32)),
        _column("state", _text(40)),
        _column("dry_run", sa.Boolean()),
        _column("table_id", _text(32), nullable=True),
        _column("asked_by_id", _text(32), nullable=True),
        _column("due_at", _TIME, nullable=True),
        _column("asked_at", _TIME),
        _column("started_at", _TIME, nullable=True),
        _column("ended_at", _TIME, nullable=True),
        _column("after_id", _text(32), nullable=True),
        _column("tables", sa.Integer()),
        _column("looked_at", sa.Integer()),
        _column("error", sa.Text(), nullable=True),
        _key("maintenance_passes", "asked_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_maintenance_passes"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'compacting', 'succeeded', 'failed')", name="ck_maintenance_passes_state"
        ),
    )
    op.create_index("uq_maintenance_passes_due_at", "maintenance_passes", ["due_at"], unique=True)
    op.create_index("ix_maintenance_passes_state", "maintenance_passes", ["state", "id"])
    op.create_table(
        "maintenance_tables",
        _column("pass_id", _text(32)),
        _column("table_id", _text(32)),
        _column("outcome", _text(40)),
        _column("note", sa.Text(), nullable=True),
        _column("snapshots", sa.Integer()),
        _column("files", sa.Integer()),
        _column("bytes", sa.BigInteger()),
        _column("compaction", _text(40), nullable=True),
        _column("small_files", sa.Integer(), nullable=True),
        _column("queued_at", _TIME, nullable=True),
        _column("fence", sa.Integer()),
        _column("worker_id", _text(32), nullable=True),
        _column("lease_until", _TIME, nullable=True),
        _column("digest", _text(64), nullable=True),
        _column("files_before", sa.Integer(), nullable=True),
        _column("files_after", sa.Integer(), nullable=True),
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
