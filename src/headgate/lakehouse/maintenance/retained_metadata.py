"""By which metadata the files of a table are kept: the table's own, that of runs, and that of a while ago."""

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
    """Metadata files of one table: those that pointers have now, with their sums, and those that it had since."""

    pointed: frozenset[tuple[str, str]]
    past: tuple[str, ...]


class RunCheckpoints(Protocol):
    """What runs keep of tables between their steps. Runs belong to another room, so the scheduler passes this in."""

    def oldest_start(self, connection: Connection) -> datetime | None:
        """When the oldest run that has not ended was started."""

    def metadata_files(self, connection: Connection, table_id: str) -> set[tuple[str, str]]:
        """The metadata files of a table, with their sums, from which a run goes on or can be resumed."""

    def forget_before(self, connection: Connection, moment: datetime) -> int:
        """Drop the checkpoints of runs that ended before then; how many there were."""


def oldest_needed(connection: Connection, runs: RunCheckpoints, now: datetime, age: timedelta) -> datetime:
    """What is younger than this is kept: so old, and older than every run and statement that has not ended."""
    statements = select(func.min(_statements.started_at)).where(_statements.state.in_(("running", "cancelling")))
    starts = (runs.oldest_start(connection), connection.execute(statements).scalar())
    return min([now - age, *(start for start in starts if start is not None)])


def skip_reason(connection: Connection, table_id: str) -> str | None:
    """Why a table is left alone in this pass; None if it is not."""
    if is_held(connection, table_id):
        return "a run is writing it"
    if connection.execute(select(_staged.id).where(_staged.id == table_id)).first() is not None:
        return "it is being created"
    return None


def roots(connection: Connection, runs: RunCheckpoints, table_id: str, since: datetime) -> MetadataRoots:
    """What keeps files of a table now. What it had at any time since then counts too: someone may read it still."""
    published = select(_pointers.metadata_file, _pointers.metadata_sha256).where(_pointers.table_id == table_id)
    own = select(_own.metadata_file, _own.metadata_sha256).where(_own.table_id == table_id)
    pointed = {(file, sha256) for query in (published, own) for file, sha256 in connection.execute(query)}
    pointed |= runs.metadata_files(connection, table_id)
    before = select(func.max(_commits.version)).where(_commits.table_id == table_id, _commits.at < since)
    recent = or_(_commits.at >= since, _commits.version == before.scalar_subquery())
    past = select(_commits.metadata_file).where(_commits.table_id == table_id, recent).order_by(_commits.version)
    return MetadataRoots(frozenset(pointed), tuple(connection.execute(past).scalars()))
