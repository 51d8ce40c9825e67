"""Files that a notebook saved for volumes: put there once its run has been published, each as its member may.

Every part can be done again after a death in between: a file has its id before it is put there, its bytes are written
whole or not at all, one transaction lets a row name them, and only then are the staged bytes removed.
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
    """Put the files that a published run's notebook saved into their volumes; what could not be put there, and why.

    To be called after the publish, and again for whatever a death left; nothing is done twice. All that was staged for
    the run is removed, unless a file is still to be put into its volume.
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
    """Runs published before then that still have something staged: `move_outputs` was not called, or could not end."""
    with database.read() as connection:
        left = [run for run, state in _staged(connection, store).items() if state == SUCCEEDED]
        if before is None:
            return left
        late = select(_runs.id).where(_runs.id.in_(left[:AT_ONCE]), _runs.ended_at < before)
        return list(connection.execute(late).scalars())


def drop_staged(database: Database, store: Store, before: datetime) -> int:
    """Remove what was staged for runs that ended unpublished before then, or are gone; for how many.

    Until then they can be resumed; whoever resumes one later has it begin anew.
    """
    with database.read() as connection:
        over = [run for run, state in _staged(connection, store).items() if state not in (*LIVE, SUCCEEDED)]
    count = 0
    for run in over:
        fence = database.write(lambda connection, run=run: _given_up(connection, run, before))  # type: ignore[misc]
        # A later one is of a worker that has the run again by now.
        if fence is not None and all(entry <= fence for entry in _fences(store, run)):
            store.delete_folder(staging_root(run))
            count += 1
    return count


def _given_up(connection: Connection, run: str, before: datetime) -> float | None:
    """The fence up to which what was staged is of no more use; None if the run can go on with it."""
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
    """The runs that have something staged, and their states; None for one that is gone."""
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
    """What the run's notebook saved when it ended well for the last time, and where."""
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
    """Let a row name the file; the id of the one whose bytes nobody needs then, or None."""
    there: Any = files_repository.alike(connection, new.volume, new.path)
    if there is not None and there["id"] == new.id:
        return None
    if there is not None and there["path"] == new.path and there["created_at"] > run["ended_at"]:
        # Somebody has put another one there since; it is the newer.
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
