"""Plan the scan of another catalog's table: all files, those with newer cursor values, or those of newer snapshots."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.io import FileIO
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

SNAPSHOT = "snapshot"
"""The type of a state that tells up to which snapshot a table was read."""

REFRESH = "run a full refresh once"


@dataclass(frozen=True)
class SnapshotRange:
    """The snapshot to read; with `after`, only the changes since that snapshot."""

    upto: int | None
    after: int | None = None

    @property
    def state(self) -> dict[str, Any] | None:
        """The state for the next run."""
        return {"type": SNAPSHOT, "cursor": str(self.upto)} if self.upto is not None else None


def span(metadata: "TableMetadata", state: dict[str, Any] | None, *, by_snapshot: bool, merges: bool) -> SnapshotRange:
    """The snapshots to read now; StepFailed if the new rows cannot be determined."""
    current = metadata.current_snapshot()
    upto = current.snapshot_id if current else None
    if not by_snapshot or state is None or state.get("type") != SNAPSHOT:
        return SnapshotRange(upto)
    after = int(state["cursor"])
    for snapshot in newer(metadata, SnapshotRange(upto, after)):
        operation = snapshot.summary.operation.value if snapshot.summary else "overwrite"
        if operation in {"append", "replace"} or (operation == "overwrite" and merges):
            continue
        told = f"Rows of the table were {'deleted' if operation == 'delete' else 'rewritten'} since the last run, "
        raise StepFailed(
            "NOT_APPENDED", f"{told}so its files do not show which rows are new; {REFRESH}, or set a cursor"
        )
    return SnapshotRange(upto, after)


def newer(metadata: "TableMetadata", wanted: SnapshotRange) -> list["Snapshot"]:
    """The snapshots after the last one that was read, newest first."""
    snapshots: list[Snapshot] = []
    at = wanted.upto
    while at != wanted.after:
        snapshot = metadata.snapshot_by_id(at) if at is not None else None
        if snapshot is None:
            told = "The snapshot of the last run is not an ancestor of the table's current snapshot: it "
            raise StepFailed("SNAPSHOT_GONE", f"{told}expired, or the table was rolled back or recreated; {REFRESH}")
        snapshots.append(snapshot)
        at = snapshot.parent_snapshot_id
    return snapshots


def tasks(
    metadata: "TableMetadata", io: "FileIO", wanted: SnapshotRange, condition: "BooleanExpression"
) -> list["FileScanTask"]:
    """The data files to read, with their delete files."""
    from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
    from pyiceberg.table import ManifestGroupPlanner

    if wanted.upto is None:
        return []
    planner = ManifestGroupPlanner(metadata, io, condition, options={})
    if wanted.after is None:
        snapshot = metadata.snapshot_by_id(wanted.upto)
        if snapshot is None:
            raise StepFailed(
                "SNAPSHOT_GONE", "The table changed while it was read; run the pipeline again", passing=True
            )
        return list(planner.plan_files(snapshot.manifests(io)))
    # Files that were only packed together anew hold no new rows.
    fresh = [
        snapshot
        for snapshot in newer(metadata, wanted)
        if snapshot.summary is None or snapshot.summary.operation.value != "replace"
    ]
    ids = {snapshot.snapshot_id for snapshot in fresh}
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in fresh
        for manifest in snapshot.manifests(io)
        if manifest.content == ManifestContent.DATA and manifest.added_snapshot_id in ids
    }
    added = ManifestEntryStatus.ADDED
    result = planner.plan_files(
        list(manifests.values()), lambda entry: entry.snapshot_id in ids and entry.status == added
    )
    return list(result)


def condition(
    metadata: "TableMetadata", column: str | None, value: str, look_back: timedelta | None
) -> "BooleanExpression":
    """The filter that a column has at least a value; none if the table cannot evaluate it."""
    from pyiceberg.expressions import AlwaysTrue, GreaterThanOrEqual

    try:
        kind = str(metadata.schema().find_field(column or "").field_type)
        at_least: Any = GreaterThanOrEqual
        return cast("BooleanExpression", at_least(column or "", _literal(kind, value, look_back)))
    except (ValueError, ArithmeticError):
        return AlwaysTrue()


def _literal(kind: str, value: str, look_back: timedelta | None) -> Any:
    """A value as PyIceberg expects it; ValueError if the column cannot hold it."""
    if kind.startswith("timestamp"):
        moment = datetime.fromisoformat(value)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - (look_back or timedelta())
        return moment.isoformat() if "tz" in kind else moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    if kind == "date":
        return (datetime.combine(date.fromisoformat(value), time()) - (look_back or timedelta())).date().isoformat()
    if look_back is not None:
        raise ValueError(kind)
    if kind in {"int", "long"}:
        return int(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "string":
        return value
    raise ValueError(kind)
