"""Errands on a worker: claimed one poll after the other, each answered in a thread of its own.

An errand takes seconds, needs no Spark, and keeps nothing: what it got to see is gone when it is over.
"""

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import httpx2 as httpx

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.execution.connection_checks.checks import CheckRequest, Streams
from headgate.execution.steps.context import StepFailed
from headgate.execution.worker.server_link import POLL_SECONDS, BadSecret, Dropped, Link
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

SLOTS = 4
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 4.0
FAULT = "This is a fault of ours; the worker's log says more under the errand's id"
_KINDS = frozenset({"postgresql", "mysql", "http", "object_store", "folder", "iceberg"})
_log = get_logger("headgate.worker")


def answer(
    kind: str,
    endpoint: Endpoint,
    question: dict[str, Any],
    settings: Settings,
    *,
    seconds: float = 60.0,
    writes: bool = False,
) -> dict[str, Any]:
    """Answer an errand, `test` or `discover`, about a place; StepFailed says what is wrong and what to do."""
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


@dataclass(frozen=True, slots=True)
class ErrandJob:
    """An errand that this worker was given."""

    id: str
    fence: int
    errand: str
    question: dict[str, Any]
    writes: bool
    endpoint: Endpoint = field(repr=False)
    seconds: float
    max_bytes: int


class Errands:
    """Answers errands of one server, a few at a time: a part of a worker."""

    def __init__(self, link: Link, settings: Settings) -> None:
        self._link, self._settings = link, settings
        self._stopping = threading.Event()
        self._lock = threading.Condition()
        self._running: dict[str, ErrandJob] = {}

    def start(self) -> None:
        """Begin, in a thread."""
        threading.Thread(target=self._claim, name="errands", daemon=True).start()

    def _claim(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                for job in self._claimed(self._free()):
                    self._begin(job)
                pause = FIRST_PAUSE
            except BadSecret:
                # The worker's own claim meets the same answer, and ends it.
                return
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
                _log.debug("cannot claim errands right now", error=type(error).__name__)
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def stop(self) -> None:
        """Begin no other, and give back what runs, so that another worker begins it again."""
        self._stopping.set()
        with self._lock:
            running = list(self._running.values())
            self._running.clear()
            self._lock.notify_all()
        for job in running:
            self._tell(job, "returned")

    def _claimed(self, slots: int) -> list[ErrandJob]:
        """Errands for so many free slots; waits for some."""
        body = {"worker": self._link.worker, "slots": slots}
        result = self._link.ask("POST", "/api/worker/errands/claim", json=body, params={"wait": POLL_SECONDS})
        limits = {"seconds": result["seconds"], "max_bytes": result["max_bytes"]}
        return [ErrandJob(**{**value, **limits, "endpoint": Endpoint(**value["endpoint"])}) for value in result["jobs"]]

    def _free(self) -> int:
        with self._lock:
            self._lock.wait_for(lambda: len(self._running) < SLOTS or self._stopping.is_set())
            return max(SLOTS - len(self._running), 1)

    def _begin(self, job: ErrandJob) -> None:
        with self._lock:
            self._running[job.id] = job
        if self._stopping.is_set():
            self._ended(job, "returned")
            return
        threading.Thread(target=self._work, args=(job,), name=job.id, daemon=True).start()

    def _work(self, job: ErrandJob) -> None:
        try:
            values = answer(
                job.errand, job.endpoint, job.question, self._settings, seconds=job.seconds, writes=job.writes
            )
            self._ended(job, "succeeded", result=fitting(values, job.max_bytes))
        except StepFailed as failure:
            self._ended(job, "failed", error_code=failure.code, error=failure.message)
        except Exception:  # noqa: BLE001 - whatever it is, the member is told, and the worker goes on
            _log.exception("an errand failed by a fault of ours", errand=job.id)
            self._ended(job, "failed", error_code="INTERNAL", error=FAULT)

    def _ended(self, job: ErrandJob, state: str, **told: Any) -> None:
        with self._lock:
            is_ours = self._running.pop(job.id, None) is not None
            self._lock.notify_all()
        if is_ours:
            self._tell(job, state, **told)

    def _tell(self, job: ErrandJob, state: str, **told: Any) -> None:
        body = {"worker": self._link.worker, "fence": job.fence, "state": state, **told}
        with suppress(Dropped, BadSecret):
            self._link.surely("POST", f"/api/worker/errands/{job.id}/finish", waits=True, json=body)
