"""Commits in three phases: read the pointers and authorize; without a transaction, validate and write the new metadata;
then, in one transaction, authorize again, swap every pointer, and write ledger and audit.

If a pointer has moved meanwhile, the commit starts over. After the swap, nothing can fail any more. A 4xx means that
nothing was committed; CommitUnknown means that the result is unknown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import Response

from headgate.access.decision import Decision
from headgate.kit.backoff import attempts
from headgate.kit.crash_points import crash_point
from headgate.kit.database import Busy, is_full, is_out_of_reach, may_be_kept
from headgate.kit.errors import Problem
from headgate.lakehouse.catalog import (
    access,
    metadata_files,
    pointers,
    required_rights,
    table_creation,
)
from headgate.lakehouse.catalog.client_config import told_of
from headgate.lakehouse.catalog.commit_requests import TableChange
from headgate.lakehouse.catalog.credentials import vends_credentials
from headgate.lakehouse.catalog.errors import AlreadyExists, CommitFailed, CommitUnknown, Malformed, NotValid
from headgate.lakehouse.catalog.files import Root
from headgate.lakehouse.catalog.manifests import check_snapshots
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.pointers import Author, CatalogEntry, Counts, Move, Pointer
from headgate.lakehouse.catalog.run_outputs import is_held
from headgate.lakehouse.catalog.table_creation import NewTable
from headgate.lakehouse.catalog.table_loading import ALL, etag
from headgate.lakehouse.catalog.updates import EXISTS, Editor, apply, empty, require, without_oldest, without_steps
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.settings.settings import Settings
from headgate.warehouse.store import Store

COMMITTED = "table.committed"
FIRST_PAUSE, LONGEST_PAUSE, RETRY_SECONDS = 0.02, 0.5, 15.0
"""Backoff after a lost swap: bound of the first pause, bound of each pause, and total retry time in seconds."""
MAX_TABLES = 100
_LONG = 2**63


class _Moved(Exception):
    """A pointer has changed since it was read."""


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """One table's part of a commit: its metadata file is written, but no pointer refers to it yet."""

    change: TableChange
    table_id: str
    content: bytes
    to: Pointer
    action: str = "edit"
    move: Move | None = None
    """The pointer move; None if the commit changes nothing."""
    place: NewTable | None = None
    """The layer and id of a new table."""

    @property
    def doing(self) -> str | None:
        """The operation to name in a refusal if the commit needs the right to delete."""
        if self.action != "delete" or self.move is None:
            return None
        return "expire snapshots of" if self.move.operation == "expire" else "roll back"


def commit(stages: Stages, changes: Sequence[TableChange]) -> list[PlannedCommit]:
    """Commit to one or several tables atomically."""
    if len({(change.ident.layer_key, change.ident.table_key) for change in changes}) != len(changes):
        raise Malformed("A commit can name each table only once")
    if len(changes) > MAX_TABLES:
        raise Malformed(f"A commit can change at most {MAX_TABLES} tables")
    for _ in attempts(FIRST_PAUSE, LONGEST_PAUSE, RETRY_SECONDS):
        results = stages.read(lambda call: [_look(call, change) for change in changes])
        try:
            return _make(stages, changes, results)
        except _Moved:
            continue
    names = ", ".join(str(change.ident) for change in changes)
    raise CommitFailed(f"Concurrent commits to {names} won for {RETRY_SECONDS:g} seconds; reload the table, and retry")


def answer(stages: Stages, done: PlannedCommit) -> Response:
    """The table after a commit, with the ETag of a load; without an ETag if each load issues new credentials."""
    location = metadata_files.url(stages.services.store, done.table_id, done.to.metadata_file)
    headers = None
    if stages.who.work is not None or not vends_credentials(stages.services):
        headers = {"ETag": etag(done.to, told_of(stages, done.table_id, writes=True), ALL)}
    return Response(metadata_files.answer(location, done.content, None), headers=headers, media_type="application/json")


def _make(
    stages: Stages, changes: Sequence[TableChange], result: Sequence[CatalogEntry | NewTable]
) -> list[PlannedCommit]:
    store = stages.services.store
    planned = _plan_all(stages, changes, result)
    crash_point("server: metadata written")
    try:
        stages.write(lambda call: _move_all(call, planned))
    except (Problem, Busy, _Moved) as error:
        # It is certain that nothing was committed.
        _discard(store, planned)
        if isinstance(error, Busy):
            raise CommitFailed("The database is busy; retry the commit") from None
        raise
    except Exception as error:
        if is_out_of_reach(error) or may_be_kept(error):
            raise CommitUnknown(
                "Lost the database connection during commit; the commit may or may not have been applied. Check "
                "the table's history"
            ) from error
        if is_full(error):
            _discard(store, planned)
        raise
    crash_point("server: committed")
    return planned


def _plan_all(
    stages: Stages, changes: Sequence[TableChange], result: Sequence[CatalogEntry | NewTable]
) -> list[PlannedCommit]:
    planned: list[PlannedCommit] = []
    store = stages.services.store
    try:
        for change, value in zip(changes, result, strict=True):
            planned.append(_plan(stages.settings, store, change, value, stages.now))
    except BaseException:
        _discard(store, planned)
        raise
    return planned


def _discard(store: Store, planned: Iterable[PlannedCommit]) -> None:
    for planned_commit in planned:
        if planned_commit.move is not None:
            metadata_files.discard(store, planned_commit.table_id, planned_commit.to.metadata_file)


# Phase one: read


def _look(call: Call, change: TableChange) -> CatalogEntry | NewTable:
    access.require_engine(call)
    if change.is_create:
        return _staged(call, change)
    entry = access.find(call, change.ident)
    access.require_table(call, "edit", change.ident, entry)
    return entry


def _staged(call: Call, change: TableChange) -> NewTable:
    """The layer and id of a staged table that the caller may create now."""
    location = next((update.location for update in change.updates if update.action == "set-location"), None)
    try:
        new_table = table_creation.place(call, change.ident)
    except AlreadyExists:
        raise AlreadyExists(f"{EXISTS}: {change.ident}") from None
    row = table_creation.staged(call.connection, change.ident, new_table.layer_id, location or "", call.caller.member)
    if row is None or ((new_table.is_declared or new_table.run) and row["id"] != new_table.table_id):
        raise NotValid(
            f"You have not staged a table {change.ident} at this location; create it with stage-create first"
        )
    return NewTable(row["id"], new_table.layer_id, new_table.name, row["uuid"], new_table.is_declared, new_table.run)


# Phase two: validate and write the new metadata


def _plan(
    settings: Settings, store: Store, change: TableChange, result: CatalogEntry | NewTable, now: datetime
) -> PlannedCommit:
    if isinstance(result, NewTable):
        return _plan_new(store, change, result, now)
    assert result.pointer is not None and result.table_id is not None  # noqa: S101, PT018 - else it was refused
    pointer, table_id = result.pointer, result.table_id
    content = metadata_files.read_metadata(store, table_id, pointer.metadata_file, pointer.metadata_sha256)
    base = metadata_files.parse(content)
    require(change.requirements, base)
    root = Root(store, table_id)
    # CREATE OR REPLACE may request a location, as CREATE may. Any other change of the location is refused.
    ignores = table_creation.ignores_location(settings) and required_rights.is_replace(change.updates)
    editor = Editor(base, root, now, ignores_location=ignores)
    updates = editor.checked(change.updates)
    if not updates:
        return PlannedCommit(change, table_id, content, pointer)
    check_snapshots(root, base, editor.added)
    after = apply(base, updates, metadata_files.url(store, table_id, pointer.metadata_file))
    action, operation = (
        required_rights.action(base, after, change.updates),
        required_rights.operation(base, after, change.updates),
    )
    if result.taken is not None:
        after = without_steps(after, result.taken.snapshot_id)
    kept = without_oldest(after, settings.warehouse.keep_snapshots)
    written, to = write_next(store, table_id, kept, pointer.version + 1)
    return PlannedCommit(change, table_id, written, to, action, move_of(table_id, pointer, to, kept, operation))


def _plan_new(store: Store, change: TableChange, place: NewTable, now: datetime) -> PlannedCommit:
    require(change.requirements, None)
    root = Root(store, place.table_id)
    base = empty(root.url, place.uuid)
    editor = Editor(base, root, now)
    updates = editor.checked(change.updates)
    check_snapshots(root, None, editor.added)
    after = apply(base, updates, None)
    content, to = write_next(store, place.table_id, after, 1)
    move = move_of(place.table_id, None, to, after, "create")
    return PlannedCommit(change, place.table_id, content, to, "create", move, place)


def write_next(store: Store, table_id: str, after: Any, version: int) -> tuple[bytes, Pointer]:
    """Write a table's metadata under a fresh name; returns the content and a pointer that is not stored yet."""
    content, name = metadata_files.dump(after), metadata_files.fresh_name(version)
    metadata_files.write(store, table_id, name, content)
    pointer = Pointer(str(after.table_uuid), version, name, metadata_files.sum_of(content), after.current_snapshot_id)
    return content, pointer


def move_of(table_id: str, base: Pointer | None, to: Pointer, after: Any, operation: str) -> Move:
    """The pointer move, with the values for the ledger and the table's facts."""
    current = after.current_snapshot()
    summary = current.summary.additional_properties if current and current.summary else {}
    is_added = current is not None and (base is None or base.snapshot_id != current.snapshot_id)
    counts = Counts(*(_count(summary, name) for name in ("total-records", "total-files-size", "total-data-files")))
    if current is None:
        counts = Counts(0, 0, 0)
    return Move(
        table_id,
        base,
        to,
        counts,
        operation,
        base.snapshot_id if base else None,
        _count(summary, "added-records") if is_added else None,
        _count(summary, "deleted-records") if is_added else None,
    )


def _count(summary: dict[str, str], name: str) -> int | None:
    value = summary.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


# Phase three: authorize again, swap, record


def _move_all(call: Call, planned: Sequence[PlannedCommit]) -> None:
    work = call.caller.work
    run = work.run if work else None
    access.require_engine(call)
    moved: list[Move] = []
    for planned_commit in planned:
        decision = _move(call, planned_commit, run)
        if planned_commit.move is not None:
            moved.append(planned_commit.move)
            call.record(_event(call, planned_commit, decision))
    if moved and run is None:
        author = Author(call.caller.author, call.caller.token, work.id if work else None)
        pointers.enter(call.connection, moved, call.now, author)


def _move(call: Call, planned_commit: PlannedCommit, run: tuple[str, int] | None) -> Decision | None:
    ident, move = planned_commit.change.ident, planned_commit.move
    if planned_commit.place is not None and move is not None:
        new_table = _staged(call, planned_commit.change)
        if new_table.table_id != planned_commit.table_id:
            raise _Moved
        table_creation.enter(call, ident, planned_commit.place, move)
        table_creation.unstage(call.connection, planned_commit.table_id)
        return None
    now = access.find(call, ident)
    decision = access.require_table(call, planned_commit.action, ident, now, planned_commit.doing)
    if move is None:
        return decision
    if now.table_id != planned_commit.table_id or now.pointer != move.base:
        raise _Moved
    if call.caller.system and is_held(call.connection, planned_commit.table_id):
        raise CommitFailed("A run is writing this table; maintenance skips it until the run ends")
    if not _swapped(call, now, move, ident, run):
        raise _Moved
    return decision


def _swapped(call: Call, now: CatalogEntry, move: Move, ident: Ident, run: tuple[str, int] | None) -> bool:
    if run is None:
        return pointers.swap(call.connection, move, call.now, call.caller.author)
    if not now.is_own:
        pointers.pin(call.connection, run, now, ident.table_key, call.now)
    return pointers.swap_own(call.connection, run, move, call.now)


def _event(call: Call, planned_commit: PlannedCommit, decision: Decision | None) -> Any:
    move, work = planned_commit.move, call.caller.work
    return call.event(
        COMMITTED,
        allowed=True,
        action=planned_commit.action,
        kind="table",
        resource_id=planned_commit.table_id,
        via=list(decision.via) if decision else [],
        after={
            "operation": move.operation if move else None,
            "version": planned_commit.to.version,
            "snapshot": planned_commit.to.snapshot_id,
            "run": work.run_id if work else None,
        },
    )


# Creating without staging


def create(stages: Stages, body: dict[str, Any], levels: tuple[str, ...]) -> Response:
    """Create a table, or stage its creation."""
    ident = table_creation.wanted(body, levels)
    is_staged = body.get("stage-create", False)
    if not isinstance(is_staged, bool):
        raise Malformed("stage-create must be true or false")
    store = stages.services.store
    place = stages.read(lambda call: table_creation.place(call, ident))
    first = table_creation.first_metadata(store, body, place, ignores=table_creation.ignores_location(stages.settings))
    if is_staged:
        return _stage(stages, ident, place, first)
    content, to = write_next(store, place.table_id, first, 1)
    move = move_of(place.table_id, None, to, first, "create")
    planned = PlannedCommit(TableChange(ident, (), ()), place.table_id, content, to, "create", move, place)
    try:
        stages.write(lambda call: _enter(call, planned))
    except Exception as error:
        if isinstance(error, Problem | Busy) or (is_full(error) and not may_be_kept(error)):
            _discard(store, [planned])
        raise
    return _answer(stages, place.table_id, to, content)


def _enter(call: Call, planned: PlannedCommit) -> None:
    place, move = planned.place, planned.move
    assert place is not None and move is not None  # noqa: S101, PT018 - a new table has both
    now = table_creation.place(call, planned.change.ident)
    if (now.layer_id, now.is_declared) != (place.layer_id, place.is_declared):
        raise CommitFailed("The layer was changed concurrently; try again")
    table_creation.enter(call, planned.change.ident, place, move)
    call.record(_event(call, planned, None))
    if place.run is None:
        work = call.caller.work
        author = Author(call.caller.member, call.caller.token, work.id if work else None)
        pointers.enter(call.connection, [move], call.now, author)


def _stage(stages: Stages, ident: Ident, place: NewTable, first: Any) -> Response:
    def work(call: Call) -> None:
        now = table_creation.place(call, ident)
        if (now.layer_id, now.is_declared) != (place.layer_id, place.is_declared):
            raise CommitFailed("The layer was changed concurrently; try again")
        table_creation.stage(call.connection, place, call.caller.member, call.now)

    stages.write(work)
    return _answer(stages, place.table_id, None, metadata_files.dump(first))


def _answer(stages: Stages, table_id: str, pointer: Pointer | None, content: bytes) -> Response:
    """The new table with its ETag; a staged table has none."""
    told = told_of(stages, table_id, writes=True)
    location = metadata_files.url(stages.services.store, table_id, pointer.metadata_file) if pointer else None
    headers = {"ETag": etag(pointer, told, ALL)} if pointer else None
    return Response(metadata_files.answer(location, content, told), headers=headers, media_type="application/json")
