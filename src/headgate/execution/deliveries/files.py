"""File deliveries to a folder or bucket: files are staged, then published atomically. Each run has its own folder
TARGET/PIPELINE/RUN with the manifest `_SUCCESS`, which is written last. A retried run finds its manifest, or removes
the unfinished files of its earlier attempt. If deliveries replace each other, `_LATEST.json` next to the run folders is
a copy of the current `_SUCCESS`; it is switched atomically before the old folder is removed. Files to remove are listed
before the server confirms that the run may continue, so that a suspended worker never removes files of a later run.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.delivery_targets import folder_of
from headgate.execution.deliveries import bucket, folder
from headgate.execution.deliveries.export import Exported, exported
from headgate.execution.deliveries.rows import SnapshotRows
from headgate.execution.steps.context import Result, RunStopped, StepFailed
from headgate.kit.crash_points import crash_point

Found = dict[str, list[str]]
"""Per run folder: the files to remove, in this order."""


class RunFolder(Protocol):
    """The destination folder of one run, next to those of the pipeline's other runs."""

    def left(self) -> Found:
        """Unfinished files of dead runs and earlier attempts."""

    def others(self) -> Found:
        """The completed files of the pipeline's other runs."""

    def remove(self, result: Found) -> None:
        """Remove these files."""

    def manifest(self) -> bytes | None:
        """The manifest of this run; None if it is not complete."""

    def put(self, exported: Exported, suffix: str) -> list[dict[str, Any]]:
        """Stage the files; return the names and sizes that they will have."""

    def appear(self, manifest: bytes) -> bool:
        """Publish the files with this manifest; False if an earlier attempt of the run has published them."""

    def point(self, manifest: bytes | None) -> None:
        """Write `_LATEST.json`, or remove it if the content is None."""

    def give_up(self) -> None:
        """Remove the files staged by this attempt."""


def deliver(rows: SnapshotRows, endpoint: Endpoint) -> Result:
    """Deliver the files exactly once, however often the run is retried."""
    with _opened(rows, endpoint) as shelf:
        left = shelf.left()
        if left:
            rows.remember()
            shelf.remove(left)
            rows.context.log(f"Removed the unfinished files of {_runs(left)}")
        known = shelf.manifest()
        if known is None:
            known = _delivered(rows, shelf)
        else:
            rows.context.log("An earlier attempt of this run has already delivered its files")
        _settle(rows, shelf, known)
    told = json.loads(known)
    size = sum(value["bytes"] for value in told["files"])
    detail = {**rows.detail, "place": told["place"], "files": len(told["files"])}
    return Result(rows_in=told["rows"], rows_out=told["rows"], bytes=size, detail=detail)


def _runs(result: Found) -> str:
    return "an earlier run or attempt" if len(result) == 1 else f"{len(result)} earlier runs or attempts"


def _opened(rows: SnapshotRows, endpoint: Endpoint) -> AbstractContextManager[RunFolder]:
    parts = (*folder_of(rows.step.sending.target), rows.context.job.pipeline)
    own, fence = f"{rows.context.job.id}-{rows.number}", rows.context.job.fence
    kind: Callable[..., AbstractContextManager[RunFolder]] = (
        folder.opened if endpoint.kind == "folder" else bucket.opened
    )
    return kind(rows.context, endpoint, parts, own, fence)


def _delivered(rows: SnapshotRows, shelf: RunFolder) -> bytes:
    """Publish the files; return the manifest."""
    crash_point("delivery: before the export")
    written = exported(rows, rows.step.sending.format)
    crash_point("delivery: rows exported")
    try:
        manifest = _manifest(rows, written, shelf.put(written, rows.step.sending.format))
        # The last question: from here on, what is done is done.
        rows.remember()
    except (StepFailed, RunStopped, OSError):
        with suppress(StepFailed, OSError):
            shelf.give_up()
        raise
    crash_point("delivery: before the files appear")
    if not shelf.appear(manifest):
        other = shelf.manifest()
        if other is None:
            told = "Another attempt of this run is delivering the same files; try again"
            raise StepFailed("BUSY_THERE", told, passing=True)
        return other
    crash_point("delivery: files appeared")
    place, files = _place(rows), len(written.files)
    rows.context.log(f"Delivered {written.rows} rows in {files} {'file' if files == 1 else 'files'} to {place}")
    return manifest


def _place(rows: SnapshotRows) -> str:
    job = rows.context.job
    return "/".join((*folder_of(rows.step.sending.target), job.pipeline, f"{job.id}-{rows.number}"))


def _manifest(rows: SnapshotRows, written: Exported, files: list[dict[str, Any]]) -> bytes:
    told = {
        "run": rows.context.job.id,
        "table": str(rows.step.table),
        "snapshot": rows.snapshot,
        "place": _place(rows),
        "format": rows.step.sending.format,
        "rows": written.rows,
        "files": files,
        "delivered_at": datetime.now(UTC).isoformat(),
    }
    return json.dumps(told, indent=1).encode()


def _settle(rows: SnapshotRows, shelf: RunFolder, manifest: bytes) -> None:
    """If the delivery replaces earlier ones, make the new files current and remove the old ones."""
    replaces = rows.step.sending.write == "overwrite"
    others = shelf.others() if replaces else {}
    rows.remember()
    shelf.point(manifest if replaces else None)
    crash_point("delivery: files count")
    if others:
        shelf.remove(others)
        rows.context.log(f"Removed the files of {_runs(others)}")
    crash_point("delivery: earlier files removed")
