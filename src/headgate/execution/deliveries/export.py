"""Export rows to local files: Spark writes them to the run's folder, and the worker verifies their row count."""

from dataclasses import dataclass
from pathlib import Path

from headgate.execution.deliveries.rows import SnapshotRows
from headgate.execution.steps.context import StepFailed

FUNCTION = "headgate.execution.deliveries.spark.files:export"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Exported:
    """The files, in order, and the number of rows in them."""

    rows: int
    files: list[Path]


def exported(rows: SnapshotRows, kind: str) -> Exported:
    """Have Spark write the rows as csv, json, parquet, or `lines`, which is JSON in a deterministic order."""
    context, sending = rows.context, rows.step.sending
    folder = context.folder / f"deliver-{rows.number}"
    arguments = {**rows.arguments(), "folder": str(folder), "format": kind, "formulas": sending.formulas}
    sent = int(context.platform.call(FUNCTION, arguments, context)["rows"])
    files = sorted(folder.glob("part-*"))
    here = sum(_count(file, kind) for file in files)
    if here != sent:
        told = f"Spark wrote {sent} rows, but {folder.parents[2]} on the worker's machine has {here}; nothing was "
        told += "delivered. If Spark runs on other machines, mount the same folder on each of them"
        raise StepFailed("NOT_ALL_ARRIVED", told)
    return Exported(sent, files)


def _count(file: Path, kind: str) -> int:
    """The number of rows in a file."""
    if kind == "parquet":
        from pyarrow import parquet

        return int(parquet.read_metadata(file).num_rows)
    if kind == "csv":
        return max(_records(file) - 1, 0)
    with file.open("rb") as source:
        return sum(block.count(b"\n") for block in iter(lambda: source.read(_BLOCK), b""))


def _records(file: Path) -> int:
    """The number of CSV records, which may contain quoted line breaks."""
    count, is_inside = 0, False
    with file.open("rb") as source:
        while block := source.read(_BLOCK):
            for number, part in enumerate(block.split(b'"')):
                is_inside ^= number > 0
                if not is_inside:
                    count += part.count(b"\n")
    return count
