"""Connection checks on a worker: each takes seconds, needs no Spark, and keeps nothing of what it saw."""

import json
import time
from importlib import import_module
from typing import Any

from headgate.contracts.connection_checks import CheckPayload
from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.jobs import JobOut
from headgate.execution.connection_checks.checks import CheckRequest, Streams
from headgate.execution.steps.context import StepFailed
from headgate.execution.worker.attempts import Attempt
from headgate.execution.worker.server_link import Link
from headgate.settings.settings import Settings

KIND = "connection_check"
SLOTS = 4
_KINDS = frozenset({"postgresql", "mysql", "http", "object_store", "folder", "iceberg"})


class CheckAttempt(Attempt):
    """One check. It cannot be interrupted: a worker that shuts down gives it back at once."""

    kind = KIND

    def __init__(self, job: JobOut, link: Link, settings: Settings) -> None:
        super().__init__(job, link)
        self._settings, self._payload = settings, CheckPayload.model_validate(job.payload)

    def interrupt(self) -> None:
        if self.is_returning:
            self.finish("returned")

    def work(self) -> None:
        payload, seconds = self._payload, self.job.seconds
        try:
            found = answer(
                payload.check,
                payload.endpoint,
                payload.question,
                self._settings,
                seconds=seconds,
                writes=payload.writes,
            )
        except StepFailed as failure:
            self.finish("failed", failure.code, failure.message)
        else:
            self.finish("succeeded", result=fitting(found, payload.max_bytes))


class CheckHandler:
    """Answers connection checks, a few at a time."""

    kind, slots = KIND, SLOTS

    def __init__(self, link: Link, settings: Settings) -> None:
        self._link, self._settings = link, settings

    def attempt(self, job: JobOut) -> CheckAttempt:
        """An attempt at a check."""
        return CheckAttempt(job, self._link, self._settings)


def answer(
    kind: str,
    endpoint: Endpoint,
    question: dict[str, Any],
    settings: Settings,
    *,
    seconds: float = 60.0,
    writes: bool = False,
) -> dict[str, Any]:
    """Answer a check, `test` or `discover`, about a place; StepFailed says what is wrong and what to do."""
    if endpoint.kind not in _KINDS:
        raise StepFailed("UNKNOWN_KIND", f"This worker knows no place of kind {endpoint.kind!r}; it may be too old")
    began = time.monotonic()
    known = {name: question[name] for name in ("pattern", "path", "limit") if name in question}
    asked = CheckRequest(endpoint, settings, began + seconds, writes=writes, **known)
    place: Any = import_module(f"headgate.execution.connection_checks.{endpoint.kind}")
    streams: Streams | None = None
    if kind == "test":
        detail = place.test(asked)
    else:
        streams = place.discover(asked)
        detail = _counted(endpoint.kind, streams)
    values = {"detail": detail, "milliseconds": int((time.monotonic() - began) * 1000)}
    return values if streams is None else {**values, "streams": streams.found, "truncated": streams.truncated}


def _counted(kind: str, streams: Streams) -> str:
    if kind == "http":
        return "An API does not tell what it has; name its paths as streams, and test one with a path"
    count = f"{len(streams.found)}{' or more' if streams.truncated else ''}"
    noun = "file" if kind in {"object_store", "folder"} else "table or view"
    return f"{count} found; each is a {noun}" if streams.found else f"No {noun} was found"


def fitting(result: dict[str, Any], most: int) -> dict[str, Any]:
    """What was found, without as many of its last streams as do not fit into so many bytes of JSON."""
    streams = result.get("streams") or []
    room = most - len(json.dumps({**result, "streams": []}).encode())
    kept: list[dict[str, Any]] = []
    for stream in streams:
        room -= len(json.dumps(stream).encode()) + 2
        if room < 0:
            return {**result, "streams": kept, "truncated": True}
        kept.append(stream)
    return result
