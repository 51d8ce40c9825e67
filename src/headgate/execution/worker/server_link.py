"""The worker's connection to the server. What must arrive is sent until it does, or until it is of no use any more."""

import threading
import time
from contextlib import suppress
from typing import Any

import httpx2 as httpx

from headgate import __version__
from headgate.contracts.jobs import LEAVING, Claims, InstructionsOut, JobOut
from headgate.kit.errors import DiskFull, Problem
from headgate.kit.log import get_logger

PATIENCE = 60.0
"""How long the server may be away before a finished statement is given up; its lease is long over by then."""
JOBS = "/api/worker/jobs"
ANSWER_SECONDS = 30.0
POLL_SECONDS = 25.0
_LONGEST_PAUSE = 2.0
_log = get_logger("headgate.worker")


class Dropped(Exception):
    """The statement is no longer this worker's, or the server was away for too long."""


class ServerFull(Dropped):
    """The server cannot write anything down: a disk of its own is full."""


class BadSecret(Problem):
    """The server does not know this worker."""

    status, code, title = 401, "bad_worker_token", "The server does not take this worker's token"


class Link:
    """The server, as one worker calls it."""

    def __init__(self, server: str, secret: str, worker: str, name: str) -> None:
        self.server = server
        self.worker, self.about = worker, {"worker": worker, "name": name, "version": __version__}
        headers = {"Authorization": f"Bearer {secret}"}
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        self._http = httpx.Client(base_url=server, headers=headers, timeout=ANSWER_SECONDS, limits=limits)
        self.stopping = threading.Event()
        self.is_full = False
        """Whether the last answer was that a disk of the server is full."""

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def claim(self, kind: str, slots: int, total: int, state: dict[str, Any]) -> list[JobOut]:
        """Claim jobs of one kind for so many free slots; waits for some."""
        body = {**self.about, "state": state, "slots": slots, "total": total}
        answer = self.ask("POST", f"{JOBS}/{kind}/claim", json=body, params={"wait": POLL_SECONDS})
        return Claims.model_validate(answer).jobs

    def beat(self, running: list[dict[str, Any]], state: dict[str, Any], wait: float) -> InstructionsOut:
        """Renew the leases of jobs; which to interrupt, and which are no longer held."""
        body = {**self.about, "state": state, "running": running}
        return InstructionsOut.model_validate(self.ask("POST", f"{JOBS}/heartbeat", json=body, params={"wait": wait}))

    def finish(
        self, kind: str, job: JobOut, state: str, code: str | None, message: str | None, result: dict[str, Any]
    ) -> str:
        """Report the outcome of a job; its state then. Dropped if the job is no longer held."""
        body = {"worker": self.worker, "fence": job.fence, "state": state, "error_code": code, "error": message}
        answer = self.surely("POST", f"{JOBS}/{kind}/{job.id}/finish", waits=True, json={**body, "result": result})
        return str(answer["state"])

    def leave(self) -> None:
        """Say that this worker stops, so that a claim under way gets nothing. A server that is away need not know."""
        with suppress(httpx.HTTPError, BadSecret):
            body = {**self.about, "state": {LEAVING: True}, "running": []}
            self.ask("POST", f"{JOBS}/heartbeat", json=body, timeout=2)

    def upload(self, job: JobOut, number: int, page: bytes) -> None:
        """Store a page; Dropped if the statement is not ours any more."""
        self.surely(
            "PUT",
            f"/api/worker/statements/{job.id}/pages/{number}",
            content=page,
            params={"worker": self.worker, "fence": job.fence},
            headers={"Content-Type": "application/octet-stream"},
        )

    def analysed(self, job: JobOut, **told: Any) -> None:
        """Say what the SQL of a probe would give. Dropped if it is not ours any more."""
        body = {"worker": self.worker, "fence": job.fence, **told}
        self.surely("POST", f"/api/worker/statements/{job.id}/analysed", json=body)

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Ask once."""
        response = self._http.request(method, path, **more)
        if response.status_code == 401:
            raise BadSecret
        response.raise_for_status()
        return response.json()

    def surely(self, method: str, path: str, *, waits: bool = False, **more: Any) -> Any:
        """Ask until there is an answer. What the server refuses is not asked again.

        While a disk of the server is full, nobody can take the work over: what `waits` is asked until there is room.
        """
        began, pause = time.monotonic(), 0.1
        while True:
            is_full = False
            try:
                answer = self.ask(method, path, **more)
                self.is_full = False
                return answer
            except httpx.HTTPStatusError as error:
                is_full = error.response.status_code == DiskFull.status
                if error.response.status_code < 500:
                    if error.response.status_code != 409:
                        _log.error("the server refused", path=path, answer=error.response.text[:1000])
                    raise Dropped from None
            except httpx.TransportError as error:
                _log.debug("the server does not answer", error=repr(error))
            # What other threads hear meanwhile says nothing of this call.
            self.is_full = is_full
            if waits and is_full and not self.stopping.is_set():
                began = time.monotonic()
            patience = 2.0 if self.stopping.is_set() else PATIENCE
            if time.monotonic() - began > patience:
                raise ServerFull if is_full else Dropped
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
