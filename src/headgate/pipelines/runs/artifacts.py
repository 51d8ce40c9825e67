"""Artifacts: files kept with a run, such as the output and plots of a notebook."""

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select

from headgate.kit.database import Database
from headgate.kit.rows import columns_of, fetch_one
from headgate.pipelines.runs.models import run_artifact_table, run_table
from headgate.warehouse.store import Store

FOLDER = "runs"
_AT_ONCE = 200
_artifacts = run_artifact_table.c


@dataclass(frozen=True, slots=True)
class RunArtifact:
    """A file kept with a run, and its path in the warehouse."""

    name: str
    media_type: str
    size: int
    place: str


def artifact(connection: Connection, run: str, name: str) -> RunArtifact | None:
    """The artifact of a run with this name."""
    query = select(*columns_of(run_artifact_table, RunArtifact))
    return fetch_one(connection, query.where(_artifacts.run_id == run, _artifacts.name == name), RunArtifact)


def keep(connection: Connection, run: str, kept: RunArtifact) -> None:
    """Store an artifact of a run and replace any of the same name."""
    connection.execute(delete(run_artifact_table).where(_artifacts.run_id == run, _artifacts.name == kept.name))
    connection.execute(insert(run_artifact_table).values(run_id=run, **asdict(kept)))


def drop_left(database: Database, store: Store) -> int:
    """Remove artifacts of runs that no longer exist in the database; returns the number of such runs."""
    listed = sorted({entry.path.split("/")[1] for entry in store.files(FOLDER)})
    left = set(listed)
    with database.read() as connection:
        for begin in range(0, len(listed), _AT_ONCE):
            there = select(run_table.c.id).where(run_table.c.id.in_(listed[begin : begin + _AT_ONCE]))
            left -= set(connection.execute(there).scalars())
    for run in sorted(left):
        store.delete_folder(f"{FOLDER}/{run}")
    return len(left)
