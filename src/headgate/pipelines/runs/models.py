"""Runs, their outputs, steps, log lines and artifacts."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
)

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word, text_type
from headgate.platform.jobs.models import job_columns

run_table = Table(
    "runs",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("parent_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), nullable=False),
    Column("definition", JSON),
    Column("named", JSON),
    Column("plan", JSON),
    Column("started_by_id", Id),
    Column("token_id", Id),
    Column("trigger_id", Id),
    Column("acts_for_id", Id),
    Column("due_at", UtcDateTime),
    Column("full_refresh", Boolean, nullable=False, server_default="0"),
    Column("parameters", JSON),
    Column("depth", Integer, nullable=False, server_default="0"),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("cancelled_by_id", Id),
    Column("rows_in", BigInteger),
    Column("rows_out", BigInteger),
    Column("rejected", BigInteger),
    Column("bytes", BigInteger),
    *job_columns(),
    Index("ix_runs_parent_id", "parent_id", "id"),
    Index("ix_runs_parent_state", "parent_id", "state"),
    Index("ix_runs_state", "state", "id"),
    Index("ix_runs_trigger_id", "trigger_id", "state"),
)
"""A run of a data mart, report or pipeline. Its commits count only while it is running, and only with this fencing
number. `named` holds the items that its pipeline read and wrote when the run was started, as [[item, layer], …]. `plan`
holds the plan that was authorized when the run was claimed.
"""

run_step_table = Table(
    "run_steps",
    METADATA,
    Column("run_id", Id, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", Word, nullable=False),
    Column("title", Text, nullable=False),
    Column("item_id", Id),
    Column("state", Word, nullable=False),
    Column("fence", Integer),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("rows_in", BigInteger),
    Column("rows_out", BigInteger),
    Column("rejected", BigInteger),
    Column("bytes", BigInteger),
    Column("result", JSON),
    Column("pointers", JSON),
    Column("memory", JSON),
)
"""A step of a run. `pointers` are the run's metadata pointers when the step finished; a run that is taken over starts
from them. `memory` is the state that the step reported while it ran, for its next attempt.
"""

run_line_table = Table(
    "run_lines",
    METADATA,
    Column("run_id", Id, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("level", Word, nullable=False),
    Column("text", Text, nullable=False),
)
"""A line of a run's log."""

run_artifact_table = Table(
    "run_artifacts",
    METADATA,
    Column("run_id", Id, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("name", text_type(200), primary_key=True),
    Column("media_type", text_type(100), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("place", text_type(300), nullable=False),
)
"""A file kept with a run, such as notebook output or a plot."""
