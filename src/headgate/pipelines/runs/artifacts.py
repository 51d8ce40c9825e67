"""The files that runs keep, such as what a notebook printed and plotted."""

from sqlalchemy import select

from headgate.kit.database import Database
from headgate.pipelines.runs.models import run_table
from headgate.warehouse.store import Store

FOLDER = "runs"
_AT_ONCE = 200


def drop_left(database: Database, store: Store) -> int:
    """Remove the files of runs whose record is gone: it was deleted, or its pipeline was; of how many."""
    listed = sorted({entry.path.split("/")[1] for entry in store.files(FOLDER)})
    left = set(listed)
    with database.read() as connection:
        for begin in range(0, len(listed), _AT_ONCE):
            there = select(run_table.c.id).where(run_table.c.id.in_(listed[begin : begin + _AT_ONCE]))
            left -= set(connection.execute(there).scalars())
    for run in sorted(left):
        store.delete_folder(f"{FOLDER}/{run}")
    return len(left)
