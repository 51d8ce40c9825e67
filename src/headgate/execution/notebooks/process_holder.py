"""What a launcher does beside for a notebook: hands it secrets, leads it to the catalog and its hosts, and holds it.

handed   whether standard input begins with a line of JSON: the token, and the content of handles by their numbers.
         So nothing of it is on the disk, in an argument or in an environment
catalog  [socket, URL]               a socket by which tables can be read; see catalog_proxy.py
hosts    [[socket, host, port], …]   sockets that lead to hosts that a member named, under the rules of `allow`
limits   see watch.py; the tree is ended when it exceeds one, and nothing of it is left behind
end      the file that then says how it ended
"""

import base64
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headgate.execution.notebooks.catalog_proxy import CatalogProxy
from headgate.execution.sandbox import cgroup, relay
from headgate.execution.sandbox.processes import below
from headgate.execution.sandbox.watchdog import LimitExceeded, Limits, ProcessTreeWatchdog

DIAL_SECONDS = 10
END_SECONDS = 20
MOST_HANDLES = 8192
_NICE, _FIRST_TO_GO = 10, "800"
_PR_SET_CHILD_SUBREAPER = 36


class ProcessHolder:
    """Applies what a launcher plan asks for: secrets, sockets, limits."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._limits = Limits(**plan["limits"]) if plan.get("limits") else None
        told = json.loads(sys.stdin.buffer.readline() or b"{}") if plan.get("handed") else {}
        self._token: str = told.get("token", "")
        self._handles = {int(number): _in_memory(content) for number, content in told.get("files", {}).items()}
        self._group: cgroup.Group | None = None
        self._watch: ProcessTreeWatchdog | None = None
        if self._limits is not None:
            name = f"headgate-notebook-{os.getpid()}"
            self._group = cgroup.make(name, self._limits.memory, self._limits.processes)
            self._watch = ProcessTreeWatchdog(
                os.getpid(), self._limits, self._group.held if self._group else lambda: None
            )
            # So that what a child leaves behind stays below this process.
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._offence: LimitExceeded | None = None

    def tie(self) -> None:
        """In the child process: receive the secrets, and set the resource limits of the kernel."""
        for number, handle in self._handles.items():
            os.dup2(handle, number)
        if self._limits is None:
            return
        if self._group is not None:
            self._group.join()
        os.nice(_NICE)
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)
        for what, most in (
            (resource.RLIMIT_DATA, self._limits.memory),
            (resource.RLIMIT_FSIZE, self._limits.disk),
            (resource.RLIMIT_NOFILE, MOST_HANDLES),
            (resource.RLIMIT_CORE, 0),
        ):
            hard = resource.getrlimit(what)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (least, least))

    def hold(self, end: Callable[[], None]) -> None:
        """Open the sockets and start the watchdog; `end` is called when a limit is exceeded."""
        for handle in self._handles.values():
            os.close(handle)
        if self._plan.get("catalog"):
            path, url = self._plan["catalog"]
            CatalogProxy(url, self._token).serve(relay.listen_unix(path))
        for path, host, port in self._plan.get("hosts", ()):
            relay.relay(relay.listen_unix(path), _judged(host, port, self._plan["allow"]))
        if self._watch is not None:
            for looking in (self._watch.processes_and_time, self._watch.memory_and_disk):
                threading.Thread(target=self._look, args=(looking, end), daemon=True).start()

    def let_go(self, status: int) -> None:
        """After the program has exited: kill its remaining processes, and write how it ended."""
        if self._limits is None or self._watch is None:
            return
        self._watch.over.set()
        _end_all()
        ran_out = False
        if self._group is not None:
            ran_out = self._group.ran_out_of_memory()
            self._group.remove()
        if ran_out and status != 0 and self._offence is None:
            self._offence = LimitExceeded("memory", self._limits.memory, self._limits.memory)
        told = {"status": status, "offence": asdict(self._offence) if self._offence else None}
        Path(self._plan["end"]).write_text(json.dumps(told), encoding="utf-8")

    def _look(self, looking: Callable[[], LimitExceeded | None], end: Callable[[], None]) -> None:
        try:
            limit_exceeded = looking()
        except Exception as error:  # noqa: BLE001 - what cannot be watched does not run on
            limit_exceeded = LimitExceeded("unwatched")
            sys.stderr.write(f"a notebook could not be watched: {error!r}\n")
        if limit_exceeded is not None:
            self._offence = self._offence or limit_exceeded
            end()
            _kill_all()


def _in_memory(content: str) -> int:
    handle = os.memfd_create("handed")
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(base64.b64decode(content))
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _judged(host: str, port: int, allow: list[str]) -> relay.Dial:
    """Connects to an allowed host, after checking its address."""
    from headgate.kit.call_errors import OutgoingError  # noqa: PLC0415 - most need no hosts
    from headgate.outgoing.sockets import dial  # noqa: PLC0415
    from headgate.settings.outgoing import OutgoingSettings  # noqa: PLC0415

    def connect() -> socket.socket:
        deadline = time.monotonic() + DIAL_SECONDS
        try:
            return dial(host, port, OutgoingSettings(allow=allow), deadline).connect(deadline)
        except OutgoingError as error:
            raise ConnectionRefusedError(str(error)) from None

    return connect


def _kill_all() -> None:
    for pid in below(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _end_all() -> None:
    """Kill every descendant process, and wait until none is left."""
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        _kill_all()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not below(os.getpid()):
            return
        time.sleep(0.02)
