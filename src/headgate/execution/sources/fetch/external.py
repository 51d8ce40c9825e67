"""Prepare external streams on the worker: hosts to allow for Spark, or files to download."""

from typing import Any
from urllib.parse import urlsplit

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.external_systems.kinds import Http, Iceberg, OAuthAuth
from headgate.contracts.pipelines.steps import Land
from headgate.execution.sources.fetch import scans
from headgate.execution.sources.fetch.catalog import Catalog
from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.http_calls import below
from headgate.execution.sources.rest.wire import origin
from headgate.execution.steps.context import Context, StepFailed
from headgate.outgoing.client import Outgoing


def api(step: Land, endpoint: Endpoint, context: Context) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """The hosts of an API and the limits of its read; StepFailed for an invalid stream."""
    place, stream = Http.model_validate(endpoint.config), step.stream
    if stream.read == "incremental" and stream.cursor is None:
        told = "An incremental load from an API requires cursor: the column that identifies new rows"
        raise StepFailed("NO_CURSOR", told)
    try:
        below(place.base_url, stream.name)
    except ApiFailed as error:
        raise StepFailed(error.code, error.message) from None
    urls = [place.base_url, *([place.auth.token_url] if isinstance(place.auth, OAuthAuth) else [])]
    sources = context.settings.sources
    more = {
        "max_answer_bytes": sources.max_answer_bytes,
        "max_pages": sources.max_pages,
        "seconds": context.job.seconds,
        "on_this_machine": context.settings.spark.platform_url is None,
    }
    return list(dict.fromkeys(origin(urlsplit(url))[1:] for url in urls)), more


def table(
    step: Land, endpoint: Endpoint, context: Context, state: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The snapshots to read from another catalog's table, and the state after them."""
    outgoing = Outgoing(context.settings.outgoing)
    stream = step.stream
    by_snapshot = stream.read == "incremental" and stream.cursor is None
    try:
        catalog = Catalog(Iceberg.model_validate(endpoint.config), endpoint.secrets, outgoing)
        metadata = catalog.load(stream.name).metadata
    finally:
        outgoing.close()
    span = scans.span(metadata, state, by_snapshot=by_snapshot, merges=stream.write == "merge")
    if span.after is not None and span.after == span.upto:
        context.log(f"{stream.name} has not changed since the last run")
    more = {
        "upto": span.upto,
        "after": span.after,
        "outgoing": context.settings.outgoing.model_dump(mode="json"),
        "max_bytes": context.settings.sources.max_bytes,
        "seconds": context.job.seconds,
    }
    return more, span.state if by_snapshot else None
