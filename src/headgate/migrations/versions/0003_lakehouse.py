"""The lakehouse: texts, volumes, deleted items, the catalog's pointers and ledger, statements and workers"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import TIME, column, key, text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Go to this version."""
    op.add_column("saved_queries", sa.Column("sql", sa.Text()))
    op.add_column("runs", column("state", text(40), server_default="succeeded"))
    op.add_column("runs", column("fence", sa.Integer(), server_default="0"))
    _lakehouse()
    _catalog()
    _workbench()


def _lakehouse() -> None:
    op.create_table(
        "lake_texts",
        column("resource_id", text(32)),
        column("field_id", sa.Integer(), autoincrement=False),
        column("title", text(200), nullable=True),
        column("description", sa.Text(), nullable=True),
        column("updated_at", TIME),
        column("updated_by_id", text(32), nullable=True),
        key("lake_texts", "resource_id", "resources", ondelete="CASCADE"),
        key("lake_texts", "updated_by_id", "members"),
        sa.PrimaryKeyConstraint("resource_id", "field_id", name="pk_lake_texts"),
    )
    op.create_table(
        "deleted_items",
        column("id", text(32)),
        column("kind", text(40)),
        column("layer_id", text(32)),
        column("name", text(200)),
        column("kept", sa.JSON()),
        column("deleted_at", TIME),
        column("deleted_by_id", text(32), nullable=True),
        column("purge_at", TIME),
        sa.CheckConstraint("kind IN ('layer', 'table', 'volume')", name="ck_deleted_items_ck_deleted_items_kind"),
        key("deleted_items", "deleted_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_deleted_items"),
    )
    op.create_index("ix_deleted_items_layer_id", "deleted_items", ["layer_id"])
    op.create_index("ix_deleted_items_purge_at", "deleted_items", ["purge_at"])
    op.create_table(
        "volume_files",
        column("id", text(32)),
        column("volume_id", text(32)),
        column("path", text(1000)),
        column("path_key", text(64)),
        column("size", sa.BigInteger()),
        column("sha256", text(64)),
        column("media_type", text(200)),
        column("created_at", TIME),
        column("created_by_id", text(32), nullable=True),
        key("volume_files", "volume_id", "lake_items", ondelete="CASCADE"),
        key("volume_files", "created_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_volume_files"),
    )
    op.create_index("uq_volume_files", "volume_files", ["volume_id", "path_key"], unique=True)
    op.create_index("ix_volume_files_path", "volume_files", ["volume_id", "path"])
    op.create_table(
        "uploads",
        column("id", text(32)),
        column("volume_id", text(32)),
        column("path", text(1000)),
        column("media_type", text(200)),
        column("overwrite", sa.Boolean()),
        column("size", sa.BigInteger()),
        column("received", sa.BigInteger()),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("created_by_id", text(32)),
        key("uploads", "volume_id", "lake_items", ondelete="CASCADE"),
        key("uploads", "created_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
    )
    op.create_index("ix_uploads_expires_at", "uploads", ["expires_at"])
    op.create_index("ix_uploads_volume_id", "uploads", ["volume_id"])


def _catalog() -> None:
    op.create_table(
        "table_pointers",
        column("table_id", text(32)),
        column("uuid", text(36)),
        column("version", sa.Integer()),
        column("metadata_file", text(200)),
        column("metadata_sha256", text(64)),
        column("snapshot_id", sa.BigInteger(), nullable=True),
        column("rows", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        column("files", sa.BigInteger(), nullable=True),
        column("committed_at", TIME),
        column("committed_by_id", text(32), nullable=True),
        key("table_pointers", "table_id", "lake_items", ondelete="CASCADE"),
        key("table_pointers", "committed_by_id", "members"),
        sa.PrimaryKeyConstraint("table_id", name="pk_table_pointers"),
    )
    op.create_table(
        "run_pointers",
        column("run_id", text(32)),
        column("fence", sa.Integer(), autoincrement=False),
        column("table_id", text(32)),
        column("layer_id", text(32)),
        column("name", text(200)),
        column("uuid", text(36)),
        column("base_version", sa.Integer(), nullable=True),
        column("version", sa.Integer()),
        column("metadata_file", text(200)),
        column("metadata_sha256", text(64)),
        column("snapshot_id", sa.BigInteger(), nullable=True),
        column("rows", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        column("files", sa.BigInteger(), nullable=True),
        column("committed_at", TIME),
        key("run_pointers", "layer_id", "layers"),
        sa.PrimaryKeyConstraint("run_id", "fence", "table_id", name="pk_run_pointers"),
    )
    op.create_table(
        "commits",
        column("id", text(32)),
        column("group_id", text(32)),
        column("table_id", text(32)),
        column("version", sa.Integer()),
        column("operation", text(40)),
        column("at", TIME),
        column("member_id", text(32), nullable=True),
        column("token_id", text(32), nullable=True),
        column("work_id", text(32), nullable=True),
        column("run_id", text(32), nullable=True),
        column("step", sa.Integer(), nullable=True),
        column("snapshot_id", sa.BigInteger(), nullable=True),
        column("parent_snapshot_id", sa.BigInteger(), nullable=True),
        column("added_rows", sa.BigInteger(), nullable=True),
        column("deleted_rows", sa.BigInteger(), nullable=True),
        column("metadata_file", text(200)),
        key("commits", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_commits"),
    )
    op.create_index("ix_commits_run_id", "commits", ["run_id"])
    op.create_index("ix_commits_work_id", "commits", ["work_id"])
    op.create_index("uq_commits", "commits", ["table_id", "version"], unique=True)
    op.create_table(
        "staged_tables",
        column("id", text(32)),
        column("uuid", text(36)),
        column("layer_id", text(32)),
        column("name", text(200)),
        column("member_id", text(32)),
        column("run_id", text(32), nullable=True),
        column("created_at", TIME),
        key("staged_tables", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_staged_tables"),
    )
    op.create_index("ix_staged_tables_created_at", "staged_tables", ["created_at"])
    op.create_table(
        "work_tokens",
        column("id", text(32)),
        column("digest", text(64)),
        column("purpose", text(40)),
        column("member_id", text(32)),
        column("token_id", text(32), nullable=True),
        column("statement_id", text(32), nullable=True),
        column("run_id", text(32), nullable=True),
        column("fence", sa.Integer(), nullable=True),
        column("listed", sa.Boolean()),
        column("created_at", TIME),
        column("expires_at", TIME),
        column("ended_at", TIME, nullable=True),
        sa.CheckConstraint("purpose IN ('statement', 'probe', 'run')", name="ck_work_tokens_ck_work_tokens_purpose"),
        key("work_tokens", "member_id", "members"),
        key("work_tokens", "token_id", "tokens"),
        sa.PrimaryKeyConstraint("id", name="pk_work_tokens"),
        sa.UniqueConstraint("digest", name="uq_work_tokens_digest"),
    )
    op.create_index("ix_work_tokens_expires_at", "work_tokens", ["expires_at"])
    op.create_index("ix_work_tokens_run_id", "work_tokens", ["run_id"])
    op.create_index("ix_work_tokens_statement_id", "work_tokens", ["statement_id"])
    op.create_table(
        "work_reach",
        column("work_id", text(32)),
        column("table_id", text(32)),
        column("mode", text(40)),
        column("layer_id", text(32), nullable=True),
        column("name", text(200), nullable=True),
        sa.CheckConstraint("mode IN ('read', 'write')", name="ck_work_reach_ck_work_reach_mode"),
        key("work_reach", "work_id", "work_tokens", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("work_id", "table_id", "mode", name="pk_work_reach"),
    )
    op.create_table(
        "work_loads",
        column("work_id", text(32)),
        column("ref", text(300)),
        column("table_id", text(32), nullable=True),
        column("layer_id", text(32), nullable=True),
        key("work_loads", "work_id", "work_tokens", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("work_id", "ref", name="pk_work_loads"),
    )


def _workbench() -> None:
    op.create_table(
        "statements",
        column("id", text(32)),
        column("member_id", text(32)),
        column("token_id", text(32), nullable=True),
        column("purpose", text(40)),
        column("sql", sa.Text()),
        column("state", text(40)),
        column("fence", sa.Integer()),
        column("worker_id", text(32), nullable=True),
        column("lease_until", TIME, nullable=True),
        column("submitted_at", TIME),
        column("started_at", TIME, nullable=True),
        column("finished_at", TIME, nullable=True),
        column("cancelled_at", TIME, nullable=True),
        column("error_code", text(120), nullable=True),
        column("error", sa.Text(), nullable=True),
        column("columns", sa.JSON(), nullable=True),
        column("rows", sa.BigInteger(), nullable=True),
        column("bytes", sa.BigInteger(), nullable=True),
        column("pages", sa.Integer(), nullable=True),
        column("truncated", sa.Boolean(), nullable=True),
        column("max_rows", sa.Integer()),
        column("progress", sa.JSON(), nullable=True),
        column("first_page", sa.LargeBinary(), nullable=True),
        column("results_expire_at", TIME, nullable=True),
        column("save", sa.JSON(), nullable=True),
        column("saved_query_id", text(32), nullable=True),
        column("writes", sa.JSON(), nullable=True),
        sa.CheckConstraint("purpose IN ('statement', 'probe')", name="ck_statements_ck_statements_purpose"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelling', 'cancelled')",
            name="ck_statements_ck_statements_state",
        ),
        key("statements", "member_id", "members"),
        key("statements", "token_id", "tokens"),
        sa.PrimaryKeyConstraint("id", name="pk_statements"),
    )
    op.create_index("ix_statements_member_id", "statements", ["member_id", "id"])
    op.create_index("ix_statements_results_expire_at", "statements", ["results_expire_at"])
    op.create_index("ix_statements_state", "statements", ["state", "id"])
    op.create_table(
        "statement_reads",
        column("statement_id", text(32)),
        column("table_id", text(32)),
        key("statement_reads", "statement_id", "statements", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("statement_id", "table_id", name="pk_statement_reads"),
    )
    op.create_table(
        "workers",
        column("id", text(32)),
        column("name", text(200)),
        column("version", text(40)),
        column("started_at", TIME),
        column("seen_at", TIME),
        column("state", sa.JSON()),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
