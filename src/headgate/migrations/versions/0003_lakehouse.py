"""The lakehouse: texts, volumes, deleted items, the catalog's pointers and ledger, statements and workers"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

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
    op.add_column("saved_queries", sa.Column("sql", sa.Text()))
    op.add_column("runs", _column("state", _text(40), server_default="succeeded"))
    op.add_column("runs", _column("fence", sa.Integer(), server_default="0"))
    _lakehouse()
    _catalog()
    _workbench()


def _lakehouse() -> None:
    op.create_table(
        "lake_texts",
        _column("resource_id", _text(32)),
        _column("field_id", sa.Integer(), autoincrement=False),
        _column("title", _text(200), nullable=True),
        _column("description", sa.Text(), nullable=True),
        _column("updated_at", _TIME),
        _column("updated_by_id", _text(32), nullable=True),
        _key("lake_texts", "resource_id", "resources", ondelete="CASCADE"),
        _key("lake_texts", "updated_by_id", "members"),
        sa.PrimaryKeyConstraint("resource_id", "field_id", name="pk_lake_texts"),
    )
    op.create_table(
        "deleted_items",
        _column("id", _text(32)),
        _column("kind", _text(40)),
        _column("layer_id", _text(32)),
        _column("name", _text(200)),
        _column("kept", sa.JSON()),
        _column("deleted_at", _TIME),
        _column("deleted_by_id", _text(32), nullable=True),
        _column("purge_at", _TIME),
        sa.CheckConstraint("kind IN ('layer', 'table', 'volume')", name="ck_deleted_items_ck_deleted_items_kind"),
        _key("deleted_items", "deleted_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_deleted_items"),
    )
    op.create_index("ix_deleted_items_layer_id", "deleted_items", ["layer_id"])
    op.create_index("ix_deleted_items_purge_at", "deleted_items", ["purge_at"])
    op.create_table(
        "volume_files",
        _column("id", _text(32)),
        _column("volume_id", _text(32)),
        _column("path", _text(1000)),
        _column("path_key", _text(64)),
        _column("size", sa.BigInteger()),
        _column("sha256", _text(64)),
        _column("media_type", _text(200)),
        _column("created_at", _TIME),
        _column("created_by_id", _text(32), nullable=True),
        _key("volume_files", "volume_id", "lake_items", ondelete="CASCADE"),
        _key("volume_files", "created_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_volume_files"),
    )
    op.create_index("uq_volume_files", "volume_files", ["volume_id", "path_key"], unique=True)
    op.create_index("ix_volume_files_path", "volume_files", ["volume_id", "path"])
    op.create_table(
        "uploads",
        _column("id", _text(32)),
        _column("volume_id", _text(32)),
        _column("path", _text(1000)),
        _column("media_type", _text(200)),
        _column("overwrite", sa.Boolean()),
        _column("size", sa.BigInteger()),
        _column("received", sa.BigInteger()),
        _column("created_at", _TIME),
        _column("expires_at", _TIME),
        _column("created_by_id", _text(32)),
        _key("uploads", "volume_id", "lake_items", ondelete="CASCADE"),
        _key("uploads", "created_by_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
    )
    op.create_index("ix_uploads_expires_at", "uploads", ["expires_at"])
    op.create_index("ix_uploads_volume_id", "uploads", ["volume_id"])


def _catalog() -> None:
    op.create_table(
        "table_pointers",
        _column("table_id", _text(32)),
        _column("uuid", _text(36)),
        _column("version", sa.Integer()),
        _column("metadata_file", _text(200)),
        _column("metadata_sha256", _text(64)),
        _column("snapshot_id", sa.BigInteger(), nullable=True),
        _column("rows", sa.BigInteger(), nullable=True),
        _column("bytes", sa.BigInteger(), nullable=True),
        _column("files", sa.BigInteger(), nullable=True),
        _column("committed_at", _TIME),
        _column("committed_by_id", _text(32), nullable=True),
        _key("table_pointers", "table_id", "lake_items", ondelete="CASCADE"),
        _key("table_pointers", "committed_by_id", "members"),
        sa.PrimaryKeyConstraint("table_id", name="pk_table_pointers"),
    )
    op.create_table(
        "run_pointers",
        _column("run_id", _text(32)),
        _column("fence", sa.Integer(), autoincrement=False),
        _column("table_id", _text(32)),
        _column("layer_id", _text(32)),
        _column("name", _text(200)),
        _column("uuid", _text(36)),
        _column("base_version", sa.Integer(), nullable=True),
        _column("version", sa.Integer()),
        _column("metadata_file", _text(200)),
        _column("metadata_sha256", _text(64)),
        _column("snapshot_id", sa.BigInteger(), nullable=True),
        _column("rows", sa.BigInteger(), nullable=True),
        _column("bytes", sa.BigInteger(), nullable=True),
        _column("files", sa.BigInteger(), nullable=True),
        _column("committed_at", _TIME),
        _key("run_pointers", "layer_id", "layers"),
        sa.PrimaryKeyConstraint("run_id", "fence", "table_id", name="pk_run_pointers"),
    )
    op.create_table(
        "commits",
        _column("id", _text(32)),
        _column("group_id", _text(32)),
        _column("table_id", _text(32)),
        _column("version", sa.Integer()),
        _column("operation", _text(40)),
        _column("at", _TIME),
        _column("member_id", _text(32), nullable=True),
        _column("token_id", _text(32), nullable=True),
        _column("work_id", _text(32), nullable=True),
        _column("run_id", _text(32), nullable=True),
        _column("step", sa.Integer(), nullable=True),
        _column("snapshot_id", sa.BigInteger(), nullable=True),
        _column("parent_snapshot_id", sa.BigInteger(), nullable=True),
        _column("added_rows", sa.BigInteger(), nullable=True),
        _column("deleted_rows", sa.BigInteger(), nullable=True),
        _column("metadata_file", _text(200)),
        _key("commits", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_commits"),
    )
    op.create_index("ix_commits_run_id", "commits", ["run_id"])
    op.create_index("ix_commits_work_id", "commits", ["work_id"])
    op.create_index("uq_commits", "commits", ["table_id", "version"], unique=True)
    op.create_table(
        "staged_tables",
        _column("id", _text(32)),
        _column("uuid", _text(36)),
        _column("layer_id", _text(32)),
        _column("name", _text(200)),
        _column("member_id", _text(32)),
        _column("run_id", _text(32), nullable=True),
        _column("created_at", _TIME),
        _key("staged_tables", "member_id", "members"),
        sa.PrimaryKeyConstraint("id", name="pk_staged_tables"),
    )
    op.create_index("ix_staged_tables_created_at", "staged_tables", ["created_at"])
    op.create_table(
        "work_tokens",
        _column("id", _text(32)),
        _column("digest", _text(64)),
        _column("purpose", _text(40)),
        _column("member_id", _text(32)),
        _column("token_id", _text(32), nullable=True),
        _column("statement_id", _text(32), nullable=True),
        _column("run_id", _text(32), nullable=True),
        _column("fence", sa.Integer(), nullable=True),
        _column("listed", sa.Boolean()),
        _column("created_at", _TIME),
        _column("expires_at", _TIME),
        _column("ended_at", _TIME, nullable=True),
        sa.CheckConstraint("purpose IN ('statement', 'probe', 'run')", name="ck_work_tokens_ck_work_tokens_purpose"),
        _key("work_tokens", "member_id", "members"),
        _key("work_tokens", "token_id", "tokens"),
        sa.PrimaryKeyConstraint("id", name="pk_work_tokens"),
        sa.UniqueConstraint("digest", name="uq_work_tokens_digest"),
    )
    op.create_index("ix_work_tokens_expires_at", "work_tokens", ["expires_at"])
    op.create_index("ix_work_tokens_run_id", "work_tokens", ["run_id"])
    op.create_index("ix_work_tokens_statement_id", "work_tokens", ["statement_id"])
    op.create_table(
        "work_reach",
        _column("work_id", _text(32)),
        _column("table_id", _text(32)),
        _column("mode", _text(40)),
        _column("layer_id", _text(32), nullable=True),
        _column("name", _text(200), nullable=True),
        sa.CheckConstraint("mode IN ('read', 'write')", name="ck_work_reach_ck_work_reach_mode"),
        _key("work_reach", "work_id", "work_tokens", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("work_id", "table_id", "mode", name="pk_work_reach"),
    )
    op.create_table(
        "work_loads",
        _column("work_id", _text(32)),
        _column("ref", _text(300)),
        _column("table_id", _text(32), nullable=True),
        _column("layer_id", _text(32), nullable=True),
        _key("work_loads", "work_id", "work_tokens", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("work_id", "ref", name="pk_work_loads"),
    )


def _workbench() -> None:
    op.create_table(
        "statements",
        _column("id", _text(32)),
        _column("member_id", _text(32)),
        _column("token_id", _text(32), nullable=True),
        _column("purpose", _text(40)),
        _column("sql", sa.Text()),
        _column("state", _text(40)),
        _column("fence", sa.Integer()),
        _column("worker_id", _text(32), nullable=True),
        _column("lease_until", _TIME, nullable=True),
        _column("submitted_at", _TIME),
        _column("started_at", _TIME, nullable=True),
        _column("finished_at", _TIME, nullable=True),
        _column("cancelled_at", _TIME, nullable=True),
        _column("error_code", _text(120), nullable=True),
        _column("error", sa.Text(), nullable=True),
        _column("columns", sa.JSON(), nullable=True),
        _column("rows", sa.BigInteger(), nullable=True),
        _column("bytes", sa.BigInteger(), nullable=True),
        _column("pages", sa.Integer(), nullable=True),
        _column("truncated", sa.Boolean(), nullable=True),
        _column("max_rows", sa.Integer()),
        _column("progress", sa.JSON(), nullable=True),
        _column("first_page", sa.LargeBinary(), nullable=True),
        _column("results_expire_at", _TIME, nullable=True),
        _column("save", sa.JSON(), nullable=True),
        _column("saved_query_id", _text(32), nullable=True),
        _column("writes", sa.JSON(), nullable=True),
        sa.CheckConstraint("purpose IN ('statement', 'probe')", name="ck_statements_ck_statements_purpose"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelling', 'cancelled')",
            name="ck_statements_ck_statements_state",
        ),
        _key("statements", "member_id", "members"),
        _key("statements", "token_id", "tokens"),
        sa.PrimaryKeyConstraint("id", name="pk_statements"),
    )
    op.create_index("ix_statements_member_id", "statements", ["member_id", "id"])
    op.create_index("ix_statements_results_expire_at", "statements", ["results_expire_at"])
    op.create_index("ix_statements_state", "statements", ["state", "id"])
    op.create_table(
        "statement_reads",
        _column("statement_id", _text(32)),
        _column("table_id", _text(32)),
        _key("statement_reads", "statement_id", "statements", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("statement_id", "table_id", name="pk_statement_reads"),
    )
    op.create_table(
        "workers",
        _column("id", _text(32)),
        _column("name", _text(200)),
        _column("version", _text(40)),
        _column("started_at", _TIME),
        _column("seen_at", _TIME),
        _column("state", sa.JSON()),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
