"""Lands a stream in its table: gets what its kind needs to this machine, and has the platform's Spark do the rest."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.steps import Land
from headgate.execution.sources.fetch import external
from headgate.execution.sources.fetch.objects import from_objects
from headgate.execution.sources.fetch.web import from_web
from headgate.execution.steps.context import Context, Result, StepFailed
from headgate.execution.steps.files import FetchedFiles, from_folder, from_volume

FUNCTION = "headgate.execution.sources.land:land"


@dataclass(slots=True)
class PreparedSource:
    """What a kind needs: files on this machine, hosts that Spark may reach, and whatever else its reader asks for."""

    got: FetchedFiles = field(default_factory=FetchedFiles)
    hosts: list[tuple[str, int]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


Prepare = Callable[[Land, Endpoint, Context], PreparedSource]


def _volume(step: Land, _: Endpoint, context: Context) -> PreparedSource:
    return PreparedSource(from_volume(step, context, _state(step, context)))


def _folder(step: Land, endpoint: Endpoint, context: Context) -> PreparedSource:
    return PreparedSource(from_folder(step, endpoint.config["path"], context, _state(step, context)))


def _database(step: Land, endpoint: Endpoint, context: Context) -> PreparedSource:
    return PreparedSource(hosts=[(endpoint.config["host"], endpoint.config["port"])])


def _http(step: Land, endpoint: Endpoint, context: Context) -> PreparedSource:
    if step.stream.of == "files":
        return PreparedSource(from_web(step, endpoint, context, _state(step, context)))
    hosts, more = external.api(step, endpoint, context)
    return PreparedSource(hosts=hosts, more=more)


def _object_store(step: Land, endpoint: Endpoint, context: Context) -> PreparedSource:
    return PreparedSource(from_objects(step, endpoint, context, _state(step, context)))


def _iceberg(step: Land, endpoint: Endpoint, context: Context) -> PreparedSource:
    more, state = external.table(step, endpoint, context, _state(step, context))
    return PreparedSource(FetchedFiles(state=state), more=more)


PREPARE: dict[str, Prepare] = {
    "volume": _volume,
    "folder": _folder,
    "postgresql": _database,
    "mysql": _database,
    "http": _http,
    "object_store": _object_store,
    "iceberg": _iceberg,
}
"""By kind of connection, what is done on the worker before its reader (headgate.execution.sources.readers.READERS)."""


def run(step: Land, context: Context) -> Result:
    """Ingest a stream."""
    endpoint = _endpoint(step, context)
    prepared = PREPARE[endpoint.kind](step, endpoint, context)
    state = _state(step, context)
    arguments = {
        "kind": endpoint.kind,
        "stream": step.stream.model_dump(mode="json"),
        "config": endpoint.config,
        "secrets": endpoint.secrets,
        "files": [asdict(file) for file in prepared.got.files],
        "folder": str(context.folder / step.table.id),
        "more": prepared.more,
        "table": [step.table.layer, step.table.name],
        "rejected": [step.rejected.layer, step.rejected.name],
        "schema_changes": step.schema_changes,
        "state": state,
        "full_refresh": context.job.full_refresh,
        "moment": context.job.moment.isoformat(),
    }
    result = context.platform.call(FUNCTION, arguments, context, hosts=prepared.hosts)
    return Result(
        rows_in=result["rows_in"],
        rows_out=result["rows_out"],
        rejected=result["rejected"],
        bytes=result["bytes"],
        state=prepared.got.state or result["state"] or state,
        detail=result["detail"],
    )


def _endpoint(step: Land, context: Context) -> Endpoint:
    if step.volume is not None:
        return Endpoint(step.volume.id, "volume", {})
    endpoint = next(iter(context.job.endpoints.values()), None)
    if endpoint is None or endpoint.kind not in PREPARE:
        raise StepFailed(
            "NO_CONNECTION", "The connection of this pipeline was deleted; choose another one and save the pipeline"
        )
    return endpoint


def _state(step: Land, context: Context) -> dict[str, Any] | None:
    """Where the last run ended; None if all is to be read."""
    if context.job.full_refresh or step.stream.read == "full":
        return None
    return context.job.states.get(step.table.id)
