"""By which metadata the files of a table are kept: the table's own, that of runs, and that of a while ago."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, null, or_, select, update

from headgate.lakehouse.catalog.models import commit_table, run_pointer_table, staged_table, table_pointer_table
from headgate.lakehouse.sql.models import statement_table
from headgate.pipelines.runs.models import run_step_table, run_table
from headgate.pipelines.runs.outputs import is_held

LIVE = ("queued", "running", "cancelling")
RESUMABLE = ("failed", "cancelled")
_pointers, _own, _staged, _commits = table_pointer_table.c, run_pointer_table.c, staged_table.c, commit_table.c
_runs, _steps, _statements = run_table.c, run_step_table.c, statement_table.c


@dataclass(frozen=True, slots=True)
class MetadataRoots:
    """Metadata files of one table: those that pointers have now, with their sums, and those that it had since."""

    pointed: frozenset[tuple[str, str]]
    past: tuple[str, ...]


def oldest_needed(connection: Connection, now: datetime, age: timedelta) -> datetime:
    """What is younger than this is kept: so old, and older than every run and statement that has not ended."""
    runs = select(func.min(_runs.started_at)).where(_runs.state.in_(LIVE))
    statements = select(func.min(_statements.started_at)).where(_statements.state.in_(("running", "cancelling")))
    moments = [now - age]
    for query in (runs, statements):
        begun: datetime | None = connection.execute(query).scalar()
        moments += [begun] if begun is not None else []
    return min(moments)


def why_not(connection: Connection, table_id: str) -> str | None:
    """Why a table is left alone in this pass; None if it is not."""
    if is_held(connection, table_id):
        return "a run writes it"
    if connection.execute(select(_staged.id).where(_staged.id == table_id)).first() is not None:
        return "it is about to be created"
    return None


def roots(connection: Connection, table_id: str, since: datetime) -> MetadataRoots:
    """What keeps files of a table now. What it had at any time since then counts too: someone may read it still."""
    published = select(_pointers.metadata_file, _pointers.metadata_sha256).where(_pointers.table_id == table_id)
    own = select(_own.metadata_file, _own.metadata_sha256).where(_own.table_id == table_id)
    pointed = {(file, sha256) for query in (published, own) for file, sha256 in connection.execute(query)}
    pointed |= _of_steps(connection, table_id)
    before = select(func.max(_commits.version)).where(_commits.table_id == table_id, _commits.at < since)
    recent = or_(_commits.at >= since, _commits.version == before.scalar_subquery())
    past = select(_commits.metadata_file).where(_commits.table_id == table_id, recent).order_by(_commits.version)
    return MetadataRoots(frozenset(pointed), tuple(connection.execute(past).scalars()))


def _of_steps(connection: Connection, table_id: str) -> set[tuple[str, str]]:
    """What finished steps left, of runs that go on or that can be resumed."""
    joined = run_step_table.join(run_table, _runs.id == _steps.run_id)
    query = select(_steps.pointers).select_from(joined).where(_runs.state.in_((*LIVE, *RESUMABLE)))
    values = connection.execute(query.where(_steps.pointers.is_not(None))).scalars()
    own = (value for pointers in values for value in pointers or () if value["table_id"] == table_id)
    return {(value["metadata_file"], value["metadata_sha256"]) for value in own}


def forget_steps_before(connection: Connection, moment: datetime) -> int:
    """Have runs that ended unpublished before then begin anew if they are ever resumed: what their steps left goes."""
    joined = run_step_table.join(run_table, _runs.id == _steps.run_id)
    over = (_runs.state.in_(RESUMABLE), _runs.ended_at < moment, _steps.pointers.is_not(None))
    query = select(_steps.run_id, _steps.number, _steps.pointers).select_from(joined).where(*over)
    gone = [row for row in connection.execute(query) if row.pointers]
    for row in gone:
        place = (_steps.run_id == row.run_id, _steps.number == row.number)
        connection.execute(update(run_step_table).where(*place).values(pointers=null()))
    return len(gone)
