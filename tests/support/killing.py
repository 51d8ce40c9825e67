"""An installation to be killed: run as a user runs it, with its processes to be found and points to die at."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx

from headgate.execution.sandbox.processes import below, descendants, java_below, started
from tests.support.installation import Installation, eventually, installed

ENDED = {"succeeded", "failed", "cancelled", "blocked", "skipped"}
LEASE_SECONDS = 5
STATEMENTS = "/api/sql/statements"
KINDS = ("server", "worker", "scheduler", "member spark", "platform spark", "step", "sandbox")
"""What can be killed."""


class Works:
    """The installation, as Tess uses it."""

    def __init__(self, one: Installation, token: str) -> None:
        self.one, self._points = one, one.folder / "points"
        self._http = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        self.address = one.up()

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    # What Tess does

    def get(self, path: str, **parameters: Any) -> Any:
        """What the server says; a dead one is waited for."""
        deadline = time.monotonic() + 60
        while True:
            with suppress(httpx.TransportError):
                answer = self._http.get(self.address + path, params=parameters)
                if answer.status_code == 200:
                    return answer.json()
                assert answer.status_code >= 500, answer.text
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def send(self, method: str, path: str, **more: Any) -> Any:
        """What comes of a request, which is made once."""
        eventually(self._is_ready, 60)
        answer = self._http.request(method, self.address + path, **more)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def _is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return bool(self._http.get(f"{self.address}/readyz").is_success)
        return False

    def rows(self, sql: str, seconds: float = 120) -> list[list[Any]]:
        """The rows of a statement."""
        found = self._done(self.send("POST", STATEMENTS, json={"sql": sql})["id"], seconds)
        return list(found["data"] or [])

    def _done(self, statement: str, seconds: float = 120) -> Any:
        deadline = time.monotonic() + seconds
        while (found := self.get(f"{STATEMENTS}/{statement}", wait=5))["state"] not in ENDED:
            assert time.monotonic() < deadline, found
        assert found["state"] == "succeeded", found
        return found

    def make(self, name: str, **definition: Any) -> str:
        """A pipeline that is saved; its id."""
        found = self.send("POST", "/api/pipelines", json={"name": name, "definition": definition})
        return str(found["id"] if found["state"] == "saved" else self._done(found["statement"])["saved_query"])

    def volume(self, name: str, **files: str) -> str:
        """A volume of raw with these CSV files; its id."""
        found = self.send("POST", "/api/volumes", json={"name": name, "layer": "raw"})["id"]
        for file, text in files.items():
            self.send("PUT", f"/api/volumes/{found}/files/{file}.csv", content=text.encode())
        return str(found)

    def files(self, volume: str) -> dict[str, int]:
        """The files of a volume, and their sizes."""
        return {one["path"]: one["size"] for one in self.get(f"/api/volumes/{volume}/files")["items"]}

    def start(self, pipeline: str) -> str:
        """A run that waits; its id."""
        return str(self.send("POST", f"/api/pipelines/{pipeline}/runs", json={})["id"])

    def show(self, run: str) -> Any:
        return self.get(f"/api/runs/{run}")

    def ended(self, run: str, seconds: float = 180) -> Any:
        """A run when it is over."""
        deadline = time.monotonic() + seconds
        while (found := self.show(run))["state"] not in ENDED:
            assert time.monotonic() < deadline, (found, self.said)
            time.sleep(0.1)
        return found

    def log(self, run: str) -> str:
        """What a run said."""
        return "\n".join(line["text"] for line in self.get(f"/api/runs/{run}/log")["items"])

    def fence(self, run: str) -> int:
        """How often a run was begun."""
        with sqlite3.connect(f"file:{self.one.folder}/headgate.db?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT fence FROM runs WHERE id = ?", [run]).fetchone()[0])

    @property
    def said(self) -> str:
        """The end of what its processes said, but for requests."""
        lines = self.one.log.read_text(encoding="utf-8").splitlines()
        return "\n".join([line for line in lines if '"event": "request"' not in line][-40:])

    # What dies

    def die_at(self, *points: str) -> None:
        """Have processes die at these points, one after the other."""
        part = self._points.with_suffix(".part")
        part.write_text("\n".join(points), encoding="utf-8")
        part.replace(self._points)

    @property
    def points_left(self) -> str:
        """The points that nothing has died at yet."""
        return self._points.read_text(encoding="utf-8") if self._points.exists() else ""

    def pids(self, kind: str) -> list[int]:
        """The processes of a kind; empty if there is none now."""
        match kind:
            case "server":
                found = [self._child("server 1")]
            case "worker" | "scheduler":
                found = [self._child(kind)]
            case "member spark" | "platform spark":
                found = [java_below(one) for one in self._launchers(kind.partition(" ")[0])]
            case "sandbox":
                found = [pid for one in self._launchers("notebook") for pid in descendants(one)]
            case _:
                found = [one for one in below(self._child("worker") or 0) if b"spark.step_process" in _command(one)]
        return [pid for pid in found if pid and started(pid)]

    def kill(self, kind: str) -> list[int]:
        """Kill all processes of a kind; which that were."""
        found = self.pids(kind)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return found

    def kill_all(self) -> None:
        """Kill the supervisor, whose children end with it, and start anew."""
        children = self.one.children()
        self.one.kill()
        eventually(lambda: not any(map(started, children)), 60)
        self.address = self.one.up()

    def _child(self, name: str) -> int | None:
        """A process of the supervisor's, as its log says."""
        found = None
        for line in self.one.log.read_text(encoding="utf-8").splitlines():
            if '"started"' in line and f'"process": "{name}"' in line:
                found = int(json.loads(line)["pid"])
        return found

    def _launchers(self, kind: str) -> list[int]:
        found = []
        for record in (self.one.folder / "spark").glob(f"{kind}-*/processes.json"):
            with suppress(OSError, ValueError):
                pid, began = json.loads(record.read_text(encoding="utf-8"))["processes"][0]
                found += [pid] if started(pid) == began else []
        return found


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextmanager
def works(folder: Path, **settings: Any) -> Iterator[Works]:
    """The company's installation with its worker and Spark; stopped at the end, and nothing of it is left."""
    own: dict[str, Any] = {
        "HEADGATE_CRASH_AT": f"@{folder}/points",
        "HEADGATE_LOG__FORMAT": "json",
        "HEADGATE_RUNS__LEASE_SECONDS": str(LEASE_SECONDS),
        # What dies on purpose, and often, is not kept waiting for it.
        "HEADGATE_SERVER__RESTART_SECONDS": "0.4",
        "HEADGATE_SPARK__MEMORY": "1g",
        "HEADGATE_SPARK__PREWARM": "true",
        "HEADGATE_NOTEBOOKS__MEMORY": "3g",
    }
    with installed(folder, **own, **settings) as one:
        one.fill()
        found = Works(one, one.token("Tess"))
        try:
            yield found
        finally:
            found.close()
            with suppress(subprocess.TimeoutExpired):
                one.stop()
