"""The effect of a commit on a table's history, and the action it requires."""

from typing import Any

_REPLACES = frozenset({"set-current-schema", "set-default-spec", "set-default-sort-order"})
"""The updates that engines always send to replace a table."""


def action(base: Any, after: Any, updates: tuple[Any, ...]) -> str:
    """`edit` for commits that add to the history or replace the table; `delete` for those that expire snapshots or roll
    back.
    """
    kept = {snapshot.snapshot_id for snapshot in after.snapshots}
    if any(snapshot.snapshot_id not in kept for snapshot in base.snapshots):
        return "delete"
    before, now = base.current_snapshot_id, after.current_snapshot_id
    if before == now or (before is not None and _descends(after, now, before)):
        return "edit"
    if now is not None and any(snapshot.snapshot_id == now for snapshot in base.snapshots):
        return "delete"
    return "edit" if before is None or is_replace(updates) else "delete"


def is_replace(updates: tuple[Any, ...]) -> bool:
    """Whether a commit is CREATE OR REPLACE: the table starts over under the same id and keeps its history."""
    return {update.action for update in updates} >= _REPLACES


def _descends(metadata: Any, snapshot: int | None, ancestor: int) -> bool:
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in metadata.snapshots}
    for _ in range(len(parents) + 1):
        if snapshot is None:
            return False
        if snapshot == ancestor:
            return True
        snapshot = parents.get(snapshot)
    return False


def operation(base: Any | None, after: Any, updates: tuple[Any, ...]) -> str:
    """The name of the operation in the ledger."""
    if base is None:
        return "create"
    if is_replace(updates):
        return "replace"
    if after.current_snapshot_id != base.current_snapshot_id:
        current = after.current_snapshot()
        is_added = current is not None and base.snapshot_by_id(current.snapshot_id) is None
        return str(current.summary.operation.value) if is_added and current.summary else "rollback"
    if len(after.snapshots) < len(base.snapshots):
        return "expire"
    return "change"
