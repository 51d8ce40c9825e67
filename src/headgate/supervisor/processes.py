"""Child processes that are restarted when they die, and that never outlive their parent."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

import structlog

CONFIGURATION_FAULT = 78
"""The exit status by which a child says that starting it again is of no use (EX_CONFIG)."""

_PR_SET_PDEATHSIG = 1
_log = structlog.get_logger("headgate.supervisor")


def die_with_parent() -> None:
    """Have the kernel end this process when its parent dies. Called in the child."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == 1:
            os._exit(1)


@dataclass(slots=True)
class Child:
    """A process to keep alive."""

    name: str
    arguments: list[str]
    pass_fds: tuple[int, ...] = ()
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0
    failures: int = 0
    due: float = field(default=0)

    def start(self) -> None:
        """Start it."""
        command = [sys.executable, "-m", "headgate.supervisor.child", *self.arguments]
        self.process = subprocess.Popen(command, pass_fds=self.pass_fds)  # noqa: S603 - our own module
        self.started = time.monotonic()
        _log.info("started", process=self.name, pid=self.process.pid)

    def check(self) -> int | None:
        """Restart it if it died, later each time; its exit status if starting it again is of no use."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.due:
                self.start()
            return None
        status = self.process.poll()
        if status is None:
            if self.failures and now - self.started > 30:
                self.failures = 0
            return None
        self.process = None
        if status == CONFIGURATION_FAULT:
            return status
        self.failures += 1
        delay = min(0.2 * 2**self.failures, 30)
        self.due = now + delay
        _log.warning("died", process=self.name, status=status, restart_in_seconds=round(delay, 1))
        return None

    def signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


def stop(children: list[Child], seconds: float) -> None:
    """Ask all to end, wait, and end those that do not."""
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + seconds
    for child in children:
        if child.process is None:
            continue
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _log.warning("did not end in time; killed", process=child.name)
            child.process.kill()
            child.process.wait()
