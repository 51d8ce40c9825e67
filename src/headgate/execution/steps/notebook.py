"""Runs a notebook in processes of its own, in a sandbox with a Spark of its own; what it saves is staged."""

import json
import time
from pathlib import Path
from typing import Any

from headgate.contracts.pipelines.staged import Manifest
from headgate.contracts.pipelines.steps import RunNotebook
from headgate.execution.notebooks import messages, volumes, wheels
from headgate.execution.notebooks.outputs import Outputs
from headgate.execution.notebooks.processes import Notebook, NotebookProcesses, remove
from headgate.execution.notebooks.staging import Staging
from headgate.execution.sandbox import bubblewrap
from headgate.execution.spark import guard_jar, jars, java, versions
from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.steps.context import Context, Result, StepFailed
from headgate.kit.call_errors import CallRefused as AddressRefused
from headgate.kit.call_errors import OutgoingError
from headgate.kit.log import get_logger
from headgate.kit.untrusted_files import NotRegularFile, content
from headgate.outgoing.sockets import dial

LOOK_SECONDS = 0.5
HOST_SECONDS = 10.0
DONE = "done.json"
_log = get_logger("headgate.worker")


def run(step: RunNotebook, context: Context) -> Result:
    """Run a notebook to its end; StepFailed says which cell failed, or which limit it exceeded."""
    context.check_stopped()
    _refuse_where_it_cannot_run(context)
    folder, staging = context.folder / "notebook", Staging.begin(context)
    remove(folder)
    folder.mkdir(parents=True, mode=0o700)
    try:
        volumes.lay_out(step, context, folder / "volumes")
        wheels.lay_out(step, context, folder / "wheels")
        manifest, outputs = _run(step, context, folder, staging)
    except BaseException:
        staging.drop()
        raise
    finally:
        remove(folder)
    return Result(
        rows_in=0,
        bytes=sum(table.bytes for table in manifest.tables.values()) + sum(file.size for file in manifest.files),
        detail={
            "cells": outputs.brief(),
            "artifacts": [artifact.name for artifact in outputs.artifacts()],
            "tables": {
                str(output): len(manifest.tables[output.id].files)
                for output in step.outputs
                if output.id in manifest.tables
            },
            "files": len(manifest.files),
        },
    )


def _refuse_where_it_cannot_run(context: Context) -> None:
    if context.settings.notebooks.mode == "trusted":
        return
    lacking = bubblewrap.missing(context.settings.spark.sandbox_uid)
    if lacking is not None:
        _log.error("cannot run notebooks on this worker", why=lacking)
        raise StepFailed(
            "NO_SANDBOX",
            "Notebooks require a sandbox, which this worker's machine does not support; `headgate doctor` says "
            "what is missing. An operator who trusts every author of notebooks can set `notebooks.mode` to "
            '"trusted"',
        )
    if not context.settings.warehouse_url.startswith("file:"):
        raise StepFailed(
            "NO_NOTEBOOKS_ON_A_BUCKET",
            "Notebooks require a warehouse in a folder: to read a bucket, the sandbox would need network access. "
            'An operator who trusts every author of notebooks can set `notebooks.mode` to "trusted"',
        )


def _run(step: RunNotebook, context: Context, folder: Path, staging: Staging) -> tuple[Manifest, Outputs]:
    secrets = _secrets(step, context)
    notebook = Notebook(
        folder=folder,
        staging=staging.saved,
        job=_job(step, context),
        tables=tuple(entry.id for entry in step.inputs),
        hosts=_hosts(step, context),
        time_zone=context.job.time_zone,
        seconds=context.job.seconds,
        token=context.job.reading_token,
        secrets=secrets,
    )
    processes = NotebookProcesses(context.settings, context.catalog_url, _jars(context), notebook)
    code = sum(cell.kind == "code" for cell in step.cells)
    try:
        with context.on_stop(processes.kill):
            processes.start()
            _follow(processes, folder / "cells", code, context)
        why = processes.why()
    finally:
        end = processes.end()
    most = context.settings.notebooks.output_bytes
    outputs = Outputs(folder / "cells", most, [*secrets.values(), context.job.reading_token])
    for artifact in outputs.artifacts():
        context.keep(artifact.name, artifact.media_type, artifact.content)
    context.check_stopped()
    if end.offence is not None:
        _log.warning("killed a notebook", run=context.job.id, kind=end.offence.kind, held=end.offence.held)
        raise messages.limit_failure(end.offence)
    _refuse_failure(outputs, folder / "cells", end.status, why, context)
    return staging.accept(step, context), outputs


def _follow(processes: NotebookProcesses, cells: Path, count: int, context: Context) -> None:
    """Wait for the end, and tell which cells have ended meanwhile."""
    told, began = 0, time.monotonic()
    while True:
        is_over = processes.wait(LOOK_SECONDS)
        ended = min(sum(1 for _ in cells.glob("cell-*.json")), count)
        if ended > told:
            told = ended
            context.log(f"{ended} of {count} cells have run, after {time.monotonic() - began:.0f} s")
        if is_over:
            return


def _refuse_failure(outputs: Outputs, cells: Path, status: int, why: str, context: Context) -> None:
    """Raise if it did not come to its end, or said that a cell failed."""
    failed = outputs.failed
    if failed is not None:
        raise StepFailed("CELL_FAILED", f"Cell {failed['number']} failed: {failed['error']['message']}")
    try:
        told: Any = json.loads(content(cells / DONE, 1000))
    except (NotRegularFile, ValueError, RecursionError):
        told = None
    is_well = isinstance(told, dict) and told.get("ok") is True and status == 0
    if is_well:
        return
    _log.warning("a notebook ended unexpectedly", run=context.job.id, status=status, said=why)
    if isinstance(told, dict) and told.get("spark") is False:
        raise StepFailed(
            "SPARK_DID_NOT_START", "The notebook's Spark did not start; run the pipeline again", passing=True
        )
    after = f"after cell {outputs.cells[-1]['number']}" if outputs.cells else "before its first cell"
    raise StepFailed(
        "NOTEBOOK_ENDED", f"The notebook's process ended unexpectedly, {after}: it was killed, or called exit"
    )


def _job(step: RunNotebook, context: Context) -> dict[str, Any]:
    return {
        "code": [{"kind": cell.kind, "source": cell.source} for cell in step.cells],
        "inputs": {str(entry): entry.sql for entry in step.inputs},
        "outputs": {str(item): str(number) for number, item in enumerate(step.outputs)},
        "volume_names": {str(volume): str(volume) for volume in step.volumes},
        "output_volumes": {str(item): str(number) for number, item in enumerate(step.output_volumes)},
        "secret_names": {secret.name: secret.name for secret in step.secrets},
        "parameters": {**step.parameters, **context.job.parameters},
    }


def _secrets(step: RunNotebook, context: Context) -> dict[str, str]:
    result = {}
    for secret in step.secrets:
        endpoint = context.job.endpoints.get(secret.connection)
        value = endpoint.secrets.get(secret.field) if endpoint else None
        if value is None:
            raise StepFailed(
                "NO_SECRET",
                f"The connection of the secret {secret.name!r} has no {secret.field!r} any more; update the "
                "secrets of the pipeline",
            )
        result[secret.name] = value
    return result


def _hosts(step: RunNotebook, context: Context) -> tuple[tuple[str, int], ...]:
    """The hosts that it may reach, judged once before it starts, so that a refusal is told in words."""
    result = []
    for text in step.hosts:
        host, _, port = text.rpartition(":")
        if not 1 <= int(port) <= 65535:
            raise StepFailed("HOST_REFUSED", f"{text}: the port must be a number from 1 to 65535")
        try:
            dial(host, int(port), context.settings.outgoing, time.monotonic() + HOST_SECONDS)
        except OutgoingError as error:
            passing = not isinstance(error, AddressRefused)
            raise StepFailed(
                "HOST_REFUSED", f"The notebook is not allowed to reach {text}: {error}", passing=passing
            ) from None
        result.append((host, int(port)))
    return tuple(result)


def _jars(context: Context) -> jars.Jars:
    complaints = versions.complaints()
    if complaints:
        raise SparkUnavailable("; ".join(complaints))
    settings = context.settings
    try:
        return jars.ensure(offline=settings.spark.jars_dir, s3=settings.warehouse_url.startswith("s3://"))
    except (jars.BadJar, guard_jar.BadBuild, java.NoJava) as error:
        raise SparkUnavailable(str(error)) from None
