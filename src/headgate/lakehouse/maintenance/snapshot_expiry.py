"""Snapshot expiry: a commit by the platform that drops snapshots and removes no files.

The files are removed later as orphans, when no reader can use them any more.
"""

from datetime import datetime
from typing import Any

from headgate.kit.crash_points import crash_point
from headgate.kit.database import Busy
from headgate.kit.errors import Problem
from headgate.lakehouse.catalog import metadata_files, pointers
from headgate.lakehouse.catalog.commit import COMMITTED, move_of, write_next
from headgate.lakehouse.catalog.pointers import Author, Move, Pointer
from headgate.lakehouse.catalog.updates import apply, without
from headgate.lakehouse.maintenance.retained_metadata import skip_reason
from headgate.platform.unit_of_work.call import SYSTEM, Call
from headgate.platform.unit_of_work.services import Services
from headgate.settings.maintenance import MaintenanceSettings

MAX_AGE, MIN_SNAPSHOTS = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"
_DAY_MS = 86_400_000


def surplus(table: Any, settings: MaintenanceSettings, now: datetime) -> list[int]:
    """Snapshots to expire: old ones that are not among the newest and not referenced by a branch or tag.

    Table properties can only increase retention, so that a member who may write a table cannot expire its history.
    """
    age = max(int(settings.snapshot_days * _DAY_MS), _number(table.properties.get(MAX_AGE)))
    count = max(settings.keep_snapshots, _number(table.properties.get(MIN_SNAPSHOTS)))
    newest = sorted(table.snapshots, key=lambda value: (value.timestamp_ms, value.sequence_number), reverse=True)[
        :count
    ]
    kept = {value.snapshot_id for value in newest} | {ref.snapshot_id for ref in table.refs.values()}
    oldest = int(now.timestamp() * 1000) - age
    return sorted(
        snapshot.snapshot_id
        for snapshot in table.snapshots
        if snapshot.timestamp_ms < oldest
        and snapshot.snapshot_id not in kept
        and snapshot.snapshot_id != table.current_snapshot_id
    )


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0


def expire(services: Services, table_id: str, pointer: Pointer, table: Any, gone: list[int], now: datetime) -> bool:
    """Remove these snapshots from a table; False, without a change, if it has moved or a run is writing it."""
    store = services.store
    after = without(_applied(table, gone, metadata_files.url(store, table_id, pointer.metadata_file)), table, gone)
    _, to = write_next(store, table_id, after, pointer.version + 1)
    move = move_of(table_id, pointer, to, after, "expire")
    crash_point("maintenance: metadata written")
    try:
        is_done = services.database.write(lambda connection: _move(Call(connection, now, SYSTEM, services), move, gone))
    except (Problem, Busy):
        metadata_files.discard(store, table_id, to.metadata_file)
        raise
    if not is_done:
        metadata_files.discard(store, table_id, to.metadata_file)
    return is_done


def _applied(table: Any, gone: list[int], previous: str) -> Any:
    from pyiceberg.table.update import RemoveSnapshotsUpdate

    return apply(table, [RemoveSnapshotsUpdate(snapshot_ids=gone)], previous)


def _move(call: Call, move: Move, gone: list[int]) -> bool:
    decision = call.require("delete", "table", move.table_id)
    if skip_reason(call.connection, move.table_id) or not pointers.swap(call.connection, move, call.now, None):
        return False
    pointers.enter(call.connection, [move], call.now, Author(None))
    after = {"operation": move.operation, "version": move.to.version, "snapshots": len(gone)}
    about: dict[str, Any] = {"action": "delete", "kind": "table", "resource_id": move.table_id}
    call.record(call.event(COMMITTED, allowed=True, **about, via=list(decision.via), after=after))
    return True
