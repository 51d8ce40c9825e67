"""What a delivery sends: the rows of one snapshot, the same for all of it, and for whoever begins it again."""

from dataclasses import dataclass, field
from typing import Any

from headgate.contracts.pipelines.steps import Deliver
from headgate.contracts.tables.types import Columns
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.steps.context import Context, StepFailed
from headgate.execution.steps.lake import Lake, opened

_GONE = "SNAPSHOT_NOT_FOUND"
SNAPSHOT = "snapshot"


@dataclass(slots=True)
class SnapshotRows:
    """A table in one snapshot; None for a table that never had rows."""

    step: Deliver
    context: Context
    snapshot: str | None
    columns: Columns
    memory: dict[str, Any] = field(default_factory=dict)
    """What an earlier try of this step told, of the same snapshot."""

    @property
    def number(self) -> int:
        """Which step of its run this is."""
        return self.context.job.steps.index(self.step)

    @property
    def detail(self) -> dict[str, Any]:
        """What the run keeps of it."""
        return {SNAPSHOT: self.snapshot}

    def remember(self, **more: Any) -> None:
        """Tell the server what whoever begins this step again must know; Stopped if the run is not to go on."""
        self.memory |= more
        self.context.remember(self.step, {SNAPSHOT: self.snapshot, **self.memory})

    def arguments(self) -> dict[str, Any]:
        """What a function on the platform's Spark needs to read them (headgate.execution.deliveries.spark.rows)."""
        return {
            "table": [self.step.table.layer, self.step.table.name],
            "snapshot": self.snapshot,
            "columns": [column.name for column in self.columns],
        }


def found(step: Deliver, context: Context) -> SnapshotRows:
    """The rows to send: of the snapshot that this step began with, or, if it begins now, of the newest.

    The newest is that of when the run was claimed, which its checks have seen: the catalog shows a delivery its tables
    as they were then.
    """
    before = dict(context.remembered(step))
    with opened(context) as lake:
        if SNAPSHOT in before:
            kept = before.pop(SNAPSHOT)
            columns = _columns(lake, step, kept)
            if columns is not None:
                return SnapshotRows(step, context, kept, columns, before)
            context.log(f"The snapshot of {step.table} that this began with has expired; the newest is sent", "warning")
        newest = _newest(lake, step)
        columns = _columns(lake, step, newest)
        if columns is None:
            raise StepFailed("SOURCE", f"{step.table} was changed while it was looked at; try again", passing=True)
    rows = SnapshotRows(step, context, newest, columns)
    rows.remember()
    return rows


def _newest(lake: Lake, step: Deliver) -> str | None:
    if lake.table(step.table) is None:
        raise StepFailed("SOURCE", f"{step.table} does not exist yet; run what writes it first")
    told = lake.rows(f"SELECT snapshot_id FROM {step.table.sql}.refs WHERE name = 'main'")
    return str(told[0]["snapshot_id"]) if told else None


def _columns(lake: Lake, step: Deliver, snapshot: str | None) -> Columns | None:
    try:
        return lake.table(step.table, int(snapshot) if snapshot else None)
    except SqlFailed as error:
        if error.code == _GONE:
            return None
        raise
