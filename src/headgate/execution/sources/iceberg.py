"""A table of another Iceberg catalog: brought here as Parquet by this process, and read by Spark from there."""

import shutil
from pathlib import Path

from headgate.contracts.external_systems.kinds import Iceberg
from headgate.execution.sources.fetch import scans, tables
from headgate.execution.sources.fetch.catalog import Catalog, Files
from headgate.execution.sources.fetch.downloads import Downloads, Terms
from headgate.execution.sources.readers import Read, ReadOptions
from headgate.execution.spark.step_session import Step
from headgate.outgoing.client import Outgoing
from headgate.settings.outgoing import OutgoingSettings


def read(asked: ReadOptions, step: Step) -> Read | None:
    """The rows of the table, or the newer ones; `more` tells which snapshots, as the worker found them."""
    span = scans.SnapshotRange(asked.more["upto"], asked.more["after"])
    if span.after is not None and span.after == span.upto:
        return None
    tables.bound_memory()
    written = fetched(asked, step, span)
    rows = step.spark.read.parquet(*(str(written_parquet.path) for written_parquet in written))
    return Read(rows, again=True, bytes=sum(written_parquet.size for written_parquet in written))


def fetched(asked: ReadOptions, step: Step, span: scans.SnapshotRange) -> list[tables.WrittenParquet]:
    """The table as files on this machine."""
    more, name = asked.more, asked.stream.name
    outgoing = Outgoing(OutgoingSettings.model_validate(more["outgoing"]))
    try:
        catalog = Catalog(Iceberg.model_validate(asked.config), asked.secrets, outgoing)
        loaded = catalog.load(name)
        metadata = loaded.metadata
        folder, copies = Path(asked.folder, "table"), Path(asked.folder, "copies")
        for path in (folder, copies):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
        terms = Terms(more["max_bytes"], more["seconds"], step.log)
        files = Files(catalog, lambda: catalog.load(name), loaded)
        here = tables.Fetched(files, Downloads(outgoing, terms), copies, name)
        since = asked.since
        wanted = scans.condition(
            metadata,
            asked.stream.cursor if since else None,
            since.value if since else "",
            since.look_back if since else None,
        )
        with tables.reading():
            tasks = scans.tasks(metadata, here.io(), span, wanted)
        step.log(
            f"Reading {len(tasks):,} files of {name} ({sum(task.file.file_size_in_bytes for task in tasks):,} bytes)"
        )
        return tables.write(metadata, metadata.schema(), tasks, here, folder, terms.max_bytes)
    finally:
        outgoing.close()
