"""The requests to an API: from its connection, the stream, and the state of the last run."""

import base64
import time
from datetime import date, datetime
from pathlib import Path
from urllib.parse import urlsplit

from headgate.contracts.external_systems.kinds import Http
from headgate.execution.sources import cursor
from headgate.execution.sources.fetch.credentials import authorized
from headgate.execution.sources.readers import CursorPosition, ReadOptions
from headgate.execution.sources.rest import requests
from headgate.execution.sources.rest.failures import parse_failure
from headgate.execution.spark.failures import Cause
from headgate.execution.steps.context import StepFailed

TASKS = 8
"""How many partitions of a stream are read at once, if Spark has the cores."""


def request_options(asked: ReadOptions, proxy: str | None) -> requests.RequestOptions:
    """The options of the requests."""
    place, stream, api = Http.model_validate(asked.config), asked.stream, asked.stream.api
    parameters = dict(api.parameters)
    if api.cursor_parameter and asked.since is not None:
        parameters[api.cursor_parameter] = begin(asked.since)
    limits = requests.Limits(
        answer_bytes=asked.more["max_answer_bytes"],
        pages=asked.more["max_pages"],
        attempts=place.retries + 1,
        calls_per_second=place.per_second or 0.0,
    )
    return requests.RequestOptions(
        place.base_url,
        stream.name,
        tuple(place.headers.items()),
        tuple(parameters.items()),
        api.rows,
        requests.Pages(**api.paging.model_dump()),
        authorized(place, asked.secrets),
        limits,
        api.partition_parameter,
        api.partitions,
        tasks=TASKS,
        until=time.time() + asked.more["seconds"],
        # Machines do not share a clock.
        pace_file=str(Path(asked.folder, "pace")) if place.per_second and asked.more["on_this_machine"] else "",
        proxy=proxied(proxy),
    )


def begin(since: CursorPosition) -> str:
    """The cursor value to start from: the last one, minus look_back, in the format of the API."""
    value = cursor.begin(since)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else since.value


def proxied(url: str | None) -> requests.Proxy | None:
    """The egress proxy for Spark, from its URL."""
    if url is None:
        return None
    parts = urlsplit(url)
    ticket = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
    return requests.Proxy(parts.hostname or "", parts.port or 0, f"Basic {ticket}")


def explain_error(cause: Cause) -> StepFailed | None:
    """The API failure behind an error of Spark, if there is one."""
    api_failed = parse_failure(cause.message)
    return StepFailed(api_failed.code, api_failed.message, passing=api_failed.passing) if api_failed else None
