"""Database tables of the catalog: metadata pointers, work tokens, and the commit ledger."""

from sqlalchemy import JSON, BigInteger, Boolean, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, Name, UtcDateTime, Word, text_type

table_pointer_table = Table(
    "table_pointers",
    METADATA,
    Column("table_id", Id, ForeignKey("lake_items.id", ondelete="CASCADE"), primary_key=True),
    Column("uuid", text_type(36), nullable=False),
    Column("version", Integer, nullable=False),
    Column("metadata_file", text_type(200), nullable=False),
    Column("metadata_sha256", text_type(64), nullable=False),
    Column("snapshot_id", BigInteger),
    Column("rows", BigInteger),
    Column("bytes", BigInteger),
    Column("files", BigInteger),
    Column("committed_at", UtcDateTime, nullable=False),
    Column("committed_by_id", Id, ForeignKey("members.id")),
)
"""The pointer of a table: its current metadata file and the checksum. `version` counts commits."""

view_table = Table(
    "views",
    METADATA,
    Column("view_id", Id, ForeignKey("lake_items.id", ondelete="CASCADE"), primary_key=True),
    Column("uuid", text_type(36), nullable=False),
    Column("version", Integer, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("reads", JSON, nullable=False),
    Column("saved_at", UtcDateTime, nullable=False),
    Column("saved_by_id", Id, ForeignKey("members.id")),
)
"""A view: a table whose rows come from a query. `metadata` is Iceberg's view metadata. `reads` names the tables and
views that the query reads, as layer.table. `version` counts saves.
"""

run_pointer_table = Table(
    "run_pointers",
    METADATA,
    Column("run_id", Id, primary_key=True),
    Column("fence", Integer, primary_key=True, autoincrement=False),
    Column("table_id", Id, primary_key=True),
    Column("layer_id", Id, ForeignKey("layers.id"), nullable=False),
    Column("name", Name, nullable=False),
    Column("uuid", text_type(36), nullable=False),
    Column("base_version", Integer),
    Column("version", Integer, nullable=False),
    Column("metadata_file", text_type(200), nullable=False),
    Column("metadata_sha256", text_type(64), nullable=False),
    Column("snapshot_id", BigInteger),
    Column("rows", BigInteger),
    Column("bytes", BigInteger),
    Column("files", BigInteger),
    Column("committed_at", UtcDateTime, nullable=False),
)
"""A table as a run sees it before it publishes; for a delivery, until it ends. Without a `base_version`, the table
exists only in the run.
"""

layer_property_table = Table(
    "layer_properties",
    METADATA,
    Column("layer_id", Id, ForeignKey("layers.id", ondelete="CASCADE"), primary_key=True),
    Column("name", text_type(300), primary_key=True),
    Column("value", Text, nullable=False),
)
"""Properties that people and engines store on a layer; Headgate does not interpret them."""

commit_table = Table(
    "commits",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("group_id", Id, nullable=False),
    Column("table_id", Id, nullable=False),
    Column("version", Integer, nullable=False),
    Column("operation", Word, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("member_id", Id, ForeignKey("members.id")),
    Column("token_id", Id),
    Column("work_id", Id),
    Column("run_id", Id),
    Column("step", Integer),
    Column("snapshot_id", BigInteger),
    Column("parent_snapshot_id", BigInteger),
    Column("added_rows", BigInteger),
    Column("deleted_rows", BigInteger),
    Column("metadata_file", text_type(200), nullable=False),
    Column("pipeline_id", Id),
    Column("state", JSON),
    Index("uq_commits", "table_id", "version", unique=True),
    Index("ix_commits_run_id", "run_id"),
    Index("ix_commits_work_id", "work_id"),
)
"""The ledger: one row per pointer move, written in the same transaction. The rows of one commit share `group_id`. For a
published run, `state` holds the cursor for the pipeline's next run; it outlives the record of the run.
"""

staged_table = Table(
    "staged_tables",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("uuid", text_type(36), nullable=False),
    Column("layer_id", Id, nullable=False),
    Column("name", Name, nullable=False),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("run_id", Id),
    Column("created_at", UtcDateTime, nullable=False),
    Index("ix_staged_tables_created_at", "created_at"),
)
"""A staged table: it has an id and a root to write to, but only its member or run sees it before the commit."""

work_token_table = Table(
    "work_tokens",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("digest", text_type(64), unique=True, nullable=False),
    Column("purpose", Word, nullable=False),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("token_id", Id, ForeignKey("tokens.id")),
    Column("statement_id", Id),
    Column("run_id", Id),
    Column("fence", Integer),
    Column("listed", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    CheckConstraint("purpose IN ('statement', 'probe', 'run')", name="purpose"),
    Index("ix_work_tokens_statement_id", "statement_id"),
    Index("ix_work_tokens_run_id", "run_id"),
    Index("ix_work_tokens_expires_at", "expires_at"),
)
"""A token for one statement, probe or run, valid on /iceberg only and while the work runs.

It has the member's current rights, limited by the API token that requested the work and, if `listed`, by `work_reach`.
"""

work_reach_table = Table(
    "work_reach",
    METADATA,
    Column("work_id", Id, ForeignKey("work_tokens.id", ondelete="CASCADE"), primary_key=True),
    Column("table_id", Id, primary_key=True),
    Column("mode", Word, primary_key=True),
    Column("layer_id", Id),
    Column("name", Name),
    CheckConstraint("mode IN ('read', 'write')", name="mode"),
)
"""A table that a run declared. An output that does not exist yet has its future id, its layer and its name."""

work_load_table = Table(
    "work_loads",
    METADATA,
    Column("work_id", Id, ForeignKey("work_tokens.id", ondelete="CASCADE"), primary_key=True),
    Column("ref", text_type(300), primary_key=True),
    Column("table_id", Id),
    Column("layer_id", Id),
)
"""A name that a probe or statement loaded. Without a table id, the table does not exist for it, or, with a layer, it is
visible to the member but has no data yet.
"""

probed_schema_table = Table(
    "probed_schemas",
    METADATA,
    Column("table_id", Id, ForeignKey("lake_items.id", ondelete="CASCADE"), primary_key=True),
    Column("pipeline_id", Id, ForeignKey("pipelines.id", ondelete="CASCADE"), nullable=False),
    Column("columns", JSON, nullable=False),
    Index("ix_probed_schemas_pipeline_id", "pipeline_id"),
)
"""The expected columns of an output before its first run, as fields of an Iceberg schema."""

run_output_table = Table(
    "run_outputs",
    METADATA,
    Column("run_id", Id, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("item_id", Id, primary_key=True),
    Index("ix_run_outputs_item_id", "item_id"),
)
"""A table or volume that an active run writes. Runs with a common output are executed one at a time."""
