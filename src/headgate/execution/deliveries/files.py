"""Rows into files, of a folder or a bucket: put aside first, and then into place whole.

Each run has a folder of its own below TARGET/PIPELINE, with a file `_SUCCESS` that tells what is in it, and comes last.
A run that is begun again finds it there, or not; what is there without it was left by a dead run, and goes. Where one
run replaces another, `_LATEST.json` beside the runs' folders is what `_SUCCESS` says of the one that counts: it changes
in one step, from the one to the other, before the other goes.

What is to go is looked for before the server is asked whether the run still goes on. A worker that slept meanwhile can
so remove nothing that a later run brought.
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
"""By the folder of each run: what of it there is to remove, in this order."""


class RunFolder(Protocol):
    """Where the files of one run go: a folder of its own, beside those of the pipeline's other runs."""

    def left(self) -> Found:
        """What dead runs and earlier tries left, which is not in place."""

    def others(self) -> Found:
        """What other runs of this pipeline have in place."""

    def remove(self, result: Found) -> None:
        """Remove what was found."""

    def manifest(self) -> bytes | None:
        """What is in place of this run; None if nothing is."""

    def put(self, exported: Exported, suffix: str) -> list[dict[str, Any]]:
        """Put the files aside; the names and sizes that they will have."""

    def appear(self, manifest: bytes) -> bool:
        """Have the files be there, with this to tell of them; False if an earlier try of the same run is there."""

    def point(self, manifest: bytes | None) -> None:
        """Have `_LATEST.json` say this; without it, no such file is there."""

    def give_up(self) -> None:
        """Remove what this try has put aside."""


def deliver(rows: SnapshotRows, endpoint: Endpoint) -> Result:
    """Deliver files; once, however often it is begun."""
    with _opened(rows, endpoint) as shelf:
        left = shelf.left()
        if left:
            rows.remember()
            shelf.remove(left)
            rows.context.log(f"Removed what {_runs(left)} left unfinished")
        known = shelf.manifest()
        if known is None:
            known = _delivered(rows, shelf)
        else:
            rows.context.log("An earlier try of this run has delivered its files already")
        _settle(rows, shelf, known)
    told = json.loads(known)
    size = sum(value["bytes"] for value in told["files"])
    detail = {**rows.detail, "place": told["place"], "files": len(told["files"])}
    return Result(rows_in=told["rows"], rows_out=told["rows"], bytes=size, detail=detail)


def _runs(result: Found) -> str:
    return "an earlier run or try" if len(result) == 1 else f"{len(result)} earlier runs or tries"


def _opened(rows: SnapshotRows, endpoint: Endpoint) -> AbstractContextManager[RunFolder]:
    parts = (*folder_of(rows.step.sending.target), rows.context.job.pipeline)
    own, fence = f"{rows.context.job.id}-{rows.number}", rows.context.job.fence
    kind: Callable[..., AbstractContextManager[RunFolder]] = (
        folder.opened if endpoint.kind == "folder" else bucket.opened
    )
    return kind(rows.context, endpoint, parts, own, fence)


def _delivered(rows: SnapshotRows, shelf: RunFolder) -> bytes:
    """Put the files in place; what tells of them."""
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
            told = "Another try of this run is about to deliver the same; try again"
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
    """Have the new files be those that count, and the others go, if they are to be replaced."""
    replaces = rows.step.sending.write == "overwrite"
    others = shelf.others() if replaces else {}
    rows.remember()
    shelf.point(manifest if replaces else None)
    crash_point("delivery: files count")
    if others:
        shelf.remove(others)
        rows.context.log(f"Removed what {_runs(others)} had delivered there")
    crash_point("delivery: earlier files removed")
