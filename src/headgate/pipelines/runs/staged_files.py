"""Files that a notebook saved for volumes. They are moved into the volumes after the run is published, with the
member's rights.

Each step is idempotent and survives a crash: a file gets its id before it is moved, its bytes are written atomically,
one transaction stores its row, and only then are the staged bytes deleted.
"""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

from sqlalchemy import Connection, select
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines.staged import MANIFEST, Manifest, StagedFile
from headgate.kit.clock import now
from headgate.kit.crash_points import crash_point
from headgate.kit.database import Database, is_full
from headgate.kit.errors import DiskFull, Problem
from headgate.kit.log import get_logger
from headgate.lakehouse.files import repository as files_repository
from headgate.lakehouse.files.media_types import media_type
from headgate.lakehouse.files.service import NewFile, ReplaceCondition, discard, place
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.runs.steps import forget_pointers
from headgate.platform.unit_of_work.call import Call, Caller
from headgate.platform.unit_of_work.services import Services
from headgate.warehouse.locations import staging_root, volume_file
from headgate.warehouse.store import Missing, PathTaken, Store

SUCCEEDED = "succeeded"
LIVE = ("queued", "running", "cancelling")
AT_ONCE = 500
_PIECE = 1 << 20
_runs = run_table.c
_log = get_logger("headgate.runs")


def move_outputs(services: Services, run_id: str) -> list[str]:
    """Move the staged files of a published run into their volumes; returns a message for each file that could not be
    moved.

    Call it after the publish, and again after a crash; it is idempotent. All staged files of the run are deleted,
    unless one still has to be moved.
    """
    store, database = services.store, services.database
    run = _run(database, run_id)
    if run is None or run["state"] != SUCCEEDED:
        return []
    results = _manifest(store, run_id)
    told: list[str] = []
    for file in results[1].files if results else ():
        try:
            _move(services, run, f"{results[0]}/{file.file}" if results else "", file)
        except (Problem, OSError) as problem:
            why = problem.detail if isinstance(problem, Problem) else _in_words(problem)
            _log.warning("could not move a file of a run to its volume", run=run_id, file=file.id, why=why)
            told.append(f"{file.path}: {why}")
    if not told:
        store.delete_folder(staging_root(run_id))
    return told


def _in_words(error: OSError) -> str:
    if is_full(error):
        return f"{DiskFull.title}. The file is moved once there is space"
    return f"{error.strerror or 'the object store rejected it'}; it is retried"


def unmoved(database: Database, store: Store, before: datetime | None = None) -> list[str]:
    """Runs published before `before` that still have staged files, because `move_outputs` was not called or was
    interrupted.
    """
    with database.read() as connection:
        left = [run for run, state in _staged(connection, store).items() if state == SUCCEEDED]
        if before is None:
            return left
        late = select(_runs.id).where(_runs.id.in_(left[:AT_ONCE]), _runs.ended_at < before)
        return list(connection.execute(late).scalars())


def drop_staged(database: Database, store: Store, before: datetime) -> int:
    """Delete the staged files of runs that ended unpublished before `before` or no longer exist; returns the number of
    runs.

    Until then the runs can be resumed. A run that is resumed later starts from its first step.
    """
    with database.read() as connection:
        over = [run for run, state in _staged(connection, store).items() if state not in (*LIVE, SUCCEEDED)]
    count = 0
    for run in over:
        fence = database.write(lambda connection, run=run: _given_up(connection, run, before))  # type: ignore[misc]
        # A higher fence belongs to a worker that has claimed the run again.
        if fence is not None and all(entry <= fence for entry in _fences(store, run)):
            store.delete_folder(staging_root(run))
            count += 1
    return count


def _given_up(connection: Connection, run: str, before: datetime) -> float | None:
    """The highest fence whose staged files are obsolete; None if the run can still use them."""
    query = select(_runs.state, _runs.ended_at, _runs.fence).where(_runs.id == run)
    row = connection.execute(query).one_or_none()
    if row is None:
        return math.inf
    if row.state in (*LIVE, SUCCEEDED) or row.ended_at >= before:
        return None
    forget_pointers(connection, run)
    return float(row.fence)


def _fences(store: Store, run: str) -> set[int]:
    root = staging_root(run)
    results = {entry.path.removeprefix(f"{root}/").split("/")[0] for entry in store.files(root)}
    return {int(value) for value in results if value.isdecimal()}


def _staged(connection: Connection, store: Store) -> dict[str, str | None]:
    """The runs that have staged files, with their states; None for a run that no longer exists."""
    listed = sorted({entry.path.split("/")[1] for entry in store.files("staging")})
    values: dict[str, str | None] = dict.fromkeys(listed)
    for begin in range(0, len(listed), AT_ONCE):
        query = select(_runs.id, _runs.state).where(_runs.id.in_(listed[begin : begin + AT_ONCE]))
        values |= {row.id: row.state for row in connection.execute(query)}
    return values


def _run(database: Database, run_id: str) -> RowMapping | None:
    with database.read() as connection:
        return connection.execute(select(run_table).where(_runs.id == run_id)).mappings().one_or_none()


def _manifest(store: Store, run_id: str) -> tuple[str, Manifest] | None:
    """The manifest of the run's last successful notebook execution, and its path."""
    root = staging_root(run_id)
    parts = (entry.path.removeprefix(f"{root}/").split("/") for entry in store.files(root))
    fences = [int(part[0]) for part in parts if part[1:] == [MANIFEST] and part[0].isdecimal()]
    if not fences:
        return None
    folder = f"{root}/{max(fences)}"
    return folder, Manifest.read(store.read(f"{folder}/{MANIFEST}"))


def _move(services: Services, run: RowMapping, staged: str, file: StagedFile) -> None:
    store, volume = services.store, file.volume
    try:
        with store.open(staged) as source:
            _write(store, volume_file(volume, file.id), source)
    except Missing:
        return
    crash_point("server: file written")
    new = NewFile(file.id, volume, file.path, file.size, file.sha256, media_type(None, file.path))
    try:
        old = services.database.write(lambda connection: _place(services, connection, run, new))
    except Problem:
        discard(store, volume, file.id)
        raise
    crash_point("server: file placed")
    discard(store, volume, old)
    store.delete(staged)
    crash_point("server: file moved")


def _place(services: Services, connection: Connection, run: RowMapping, new: NewFile) -> str | None:
    """Store the row of the file; returns the id of a file whose bytes are no longer needed, or None."""
    there: Any = files_repository.alike(connection, new.volume, new.path)
    if there is not None and there["id"] == new.id:
        return None
    if there is not None and there["path"] == new.path and there["created_at"] > run["ended_at"]:
        # A newer file has replaced this one.
        return new.id
    call = Call(connection, now(), Caller(run["acts_for_id"]), services)
    return place(call, new, ReplaceCondition(overwrite=True))


def _write(store: Store, path: str, source: BinaryIO) -> None:
    try:
        store.write(path, _pieces(source))
    except PathTaken:
        return


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := source.read(_PIECE):
        yield piece
