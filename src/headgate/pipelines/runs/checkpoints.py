"""Metadata checkpoints of finished steps. Maintenance keeps their files while the run is active or can be resumed."""

from datetime import datetime

from sqlalchemy import Connection, func, null, select, update

from headgate.pipelines.runs.models import run_step_table, run_table

LIVE = ("queued", "running", "cancelling")
RESUMABLE = ("failed", "cancelled")
_runs, _steps = run_table.c, run_step_table.c


def oldest_start(connection: Connection) -> datetime | None:
    """The start time of the oldest active run."""
    start: datetime | None = connection.execute(
        select(func.min(_runs.started_at)).where(_runs.state.in_(LIVE))
    ).scalar()
    return start


def metadata_files(connection: Connection, table_id: str) -> set[tuple[str, str]]:
    """Metadata files, with checksums, that finished steps left for a table, of runs that are active or can be
    resumed.
    """
    joined = run_step_table.join(run_table, _runs.id == _steps.run_id)
    query = select(_steps.pointers).select_from(joined).where(_runs.state.in_((*LIVE, *RESUMABLE)))
    rows = connection.execute(query.where(_steps.pointers.is_not(None))).scalars()
    own = (pointer for pointers in rows for pointer in pointers or () if pointer["table_id"] == table_id)
    return {(pointer["metadata_file"], pointer["metadata_sha256"]) for pointer in own}


def forget_before(connection: Connection, moment: datetime) -> int:
    """Drop the checkpoints of runs that ended unpublished before `moment`. If resumed, such a run starts from its first
    step.
    """
    joined = run_step_table.join(run_table, _runs.id == _steps.run_id)
    over = (_runs.state.in_(RESUMABLE), _runs.ended_at < moment, _steps.pointers.is_not(None))
    query = select(_steps.run_id, _steps.number, _steps.pointers).select_from(joined).where(*over)
    gone = [row for row in connection.execute(query) if row.pointers]
    for row in gone:
        place = (_steps.run_id == row.run_id, _steps.number == row.number)
        connection.execute(update(run_step_table).where(*place).values(pointers=null()))
    return len(gone)
