"""The rows of a delivery: one snapshot, which all attempts of the step share."""

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
    """A table at one snapshot; the snapshot is None for a table without commits."""

    step: Deliver
    context: Context
    snapshot: str | None
    columns: Columns
    memory: dict[str, Any] = field(default_factory=dict)
    """The checkpoint of an earlier attempt of this step, for the same snapshot."""

    @property
    def number(self) -> int:
        """The number of the step in its run."""
        return self.context.job.steps.index(self.step)

    @property
    def detail(self) -> dict[str, Any]:
        """The details that are stored with the run."""
        return {SNAPSHOT: self.snapshot}

    def remember(self, **more: Any) -> None:
        """Store a checkpoint for later attempts of this step; Stopped if the run was cancelled."""
        self.memory |= more
        self.context.remember(self.step, {SNAPSHOT: self.snapshot, **self.memory})

    def arguments(self) -> dict[str, Any]:
        """The arguments of the Spark function that reads the rows (headgate.execution.deliveries.spark.rows)."""
        return {
            "table": [self.step.table.layer, self.step.table.name],
            "snapshot": self.snapshot,
            "columns": [column.name for column in self.columns],
        }


def snapshot_rows(step: Deliver, context: Context) -> SnapshotRows:
    """The rows to send: of the snapshot that the step started with, or of the newest if it starts now. "Newest" means
    when the run was claimed: the catalog shows a delivery its tables as of then.
    """
    before = dict(context.remembered(step))
    with opened(context) as lake:
        if SNAPSHOT in before:
            kept = before.pop(SNAPSHOT)
            columns = _columns(lake, step, kept)
            if columns is not None:
                return SnapshotRows(step, context, kept, columns, before)
            context.log(
                f"The snapshot of {step.table} that the step started with has expired; sending the newest one",
                "warning",
            )
        newest = _newest(lake, step)
        columns = _columns(lake, step, newest)
        if columns is None:
            raise StepFailed("SOURCE", f"{step.table} changed while it was read; try again", passing=True)
    rows = SnapshotRows(step, context, newest, columns)
    rows.remember()
    return rows


def _newest(lake: Lake, step: Deliver) -> str | None:
    if lake.table(step.table) is None:
        raise StepFailed("SOURCE", f"{step.table} does not exist yet; first run the pipeline that writes it")
    told = lake.rows(f"SELECT snapshot_id FROM {step.table.sql}.refs WHERE name = 'main'")
    return str(told[0]["snapshot_id"]) if told else None


def _columns(lake: Lake, step: Deliver, snapshot: str | None) -> Columns | None:
    try:
        return lake.table(step.table, int(snapshot) if snapshot else None)
    except SqlFailed as error:
        if error.code == _GONE:
            return None
        raise
