"""A part of the worker: releases what dead workers of the same data folder held, before their leases run out."""

import threading
from pathlib import Path

import httpx2 as httpx

from headgate.execution.worker.server_link import BadSecret, Link
from headgate.execution.worker.worker_files import WorkerRecords
from headgate.kit.log import get_logger

PAUSE, LONGEST_PAUSE = 0.1, 2.0
_log = get_logger("headgate.worker")


class Replacing:
    """Looks once, when the worker starts, and asks until the server has answered."""

    def __init__(self, link: Link, folder: Path) -> None:
        self._link, self._records = link, WorkerRecords(folder, link.worker)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="replace", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what this worker holds is given back by its other parts."""
        self._stopping.set()
        self._thread.join(timeout=2)
        self._records.close()

    def _work(self) -> None:
        dead, pause = self._records.dead(), PAUSE
        while dead and not self._stopping.is_set():
            try:
                result = self._link.ask("POST", "/api/worker/replace", json={**self._link.about, "dead": dead})
            except (httpx.HTTPError, BadSecret, ValueError) as error:
                _log.debug("cannot replace dead workers right now", error=repr(error))
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            _log.info("replaces dead workers", workers=dead, released=result.get("released"))
            self._records.forget()
            return
