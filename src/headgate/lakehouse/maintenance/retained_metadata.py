"""The metadata that protects files of a table: its own, that of runs, and recent metadata."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import Connection, func, or_, select

from headgate.lakehouse.catalog.models import commit_table, run_pointer_table, staged_table, table_pointer_table
from headgate.lakehouse.catalog.run_outputs import is_held
from headgate.lakehouse.sql.models import statement_table

_pointers, _own, _staged, _commits = table_pointer_table.c, run_pointer_table.c, staged_table.c, commit_table.c
_statements = statement_table.c


@dataclass(frozen=True, slots=True)
class MetadataRoots:
    """Metadata files of one table: current ones with checksums, and earlier ones since a given time."""

    pointed: frozenset[tuple[str, str]]
    past: tuple[str, ...]


class RunCheckpoints(Protocol):
    """Checkpoints that runs keep of tables. The scheduler passes the implementation in, because runs are in another
    package.
    """

    def oldest_start(self, connection: Connection) -> datetime | None:
        """The start time of the oldest active run."""

    def metadata_files(self, connection: Connection, table_id: str) -> set[tuple[str, str]]:
        """The metadata files of a table, with checksums, from which a run continues or can be resumed."""

    def forget_before(self, connection: Connection, moment: datetime) -> int:
        """Drop the checkpoints of runs that ended before `moment`; returns their number."""


def oldest_needed(connection: Connection, runs: RunCheckpoints, now: datetime, age: timedelta) -> datetime:
    """The age limit of files to keep: `age`, extended to the start of every active run and statement."""
    statements = select(func.min(_statements.started_at)).where(_statements.state.in_(("running", "cancelling")))
    starts = (runs.oldest_start(connection), connection.execute(statements).scalar())
    return min([now - age, *(start for start in starts if start is not None)])


def skip_reason(connection: Connection, table_id: str) -> str | None:
    """Why a table is skipped in this pass, or None."""
    if is_held(connection, table_id):
        return "a run is writing it"
    if connection.execute(select(_staged.id).where(_staged.id == table_id)).first() is not None:
        return "it is being created"
    return None


def roots(connection: Connection, runs: RunCheckpoints, table_id: str, since: datetime) -> MetadataRoots:
    """The metadata that protects a table's files now. Metadata since `since` counts too, because readers may still use
    it.
    """
    published = select(_pointers.metadata_file, _pointers.metadata_sha256).where(_pointers.table_id == table_id)
    own = select(_own.metadata_file, _own.metadata_sha256).where(_own.table_id == table_id)
    pointed = {(file, sha256) for query in (published, own) for file, sha256 in connection.execute(query)}
    pointed |= runs.metadata_files(connection, table_id)
    before = select(func.max(_commits.version)).where(_commits.table_id == table_id, _commits.at < since)
    recent = or_(_commits.at >= since, _commits.version == before.scalar_subquery())
    past = select(_commits.metadata_file).where(_commits.table_id == table_id, recent).order_by(_commits.version)
    return MetadataRoots(frozenset(pointed), tuple(connection.execute(past).scalars()))
