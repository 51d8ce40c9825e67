"""Child processes that are restarted when they die, and that never outlive their parent.

They are forked from the supervisor after it has loaded the application, so that a start costs one import and a restart
none. Nothing but the main thread runs in the supervisor, which is what makes that safe.
"""

import ctypes
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from headgate.kit.log import get_logger

CONFIGURATION_FAULT = 78
"""The exit status by which a child says that starting it again is of no use (EX_CONFIG)."""

MOST_DOUBLINGS = 20
STEADY = 10
"""One that has lived so many times as long as it waited for its start does not fail again and again."""

_PR_SET_PDEATHSIG = 1
_log = get_logger("headgate.supervisor")


def _die_with_parent(parent: int) -> None:
    """In the child: have the kernel kill this process when its parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)


def fork(work: Callable[[], int | None]) -> int:
    """Run a function in a child process; return its pid."""
    parent = os.getpid()
    gc.freeze()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        _die_with_parent(parent)
        status = work() or 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it ends here and not in the supervisor's own code
        with suppress(Exception):
            traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(status)


@dataclass(slots=True)
class SupervisedProcess:
    """A process that is restarted when it dies."""

    name: str
    work: Callable[[], int | None]
    longest: float = 30
    """The seconds that it waits at most before it is started anew."""

    pid: int | None = None
    started: float = 0
    failures: int = 0
    delay: float = 0
    due: float = field(default=0)

    def start(self) -> None:
        """Start the process."""
        self.pid = fork(self.work)
        self.started = time.monotonic()
        _log.info("started", process=self.name, pid=self.pid)

    def check(self) -> int | None:
        """Restart the process if it died, with backoff; return its exit status if a restart is pointless."""
        now = time.monotonic()
        if self.pid is None:
            if now >= self.due:
                self.start()
            return None
        status = self._ended()
        if status is None:
            if self.failures and now - self.started > STEADY * self.delay:
                self.failures = 0
            return None
        if status == CONFIGURATION_FAULT:
            return status
        self.failures += 1
        self.delay = min(0.2 * 2 ** min(self.failures, MOST_DOUBLINGS), self.longest)
        self.due = now + self.delay
        _log.warning("died", process=self.name, status=status, restart_in_seconds=round(self.delay, 1))
        return None

    def _ended(self) -> int | None:
        """The exit status, if it has exited; negative for a signal."""
        if self.pid is None:
            return None
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def signal(self, number: int) -> None:
        """Send a signal, if it is running."""
        if self.pid is not None:
            os.kill(self.pid, number)

    def wait(self, deadline: float) -> bool:
        """Wait for its exit with a timeout; return whether it has exited."""
        while self.pid is not None and self._ended() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True


def stop(children: list[SupervisedProcess], seconds: float) -> None:
    """Terminate all, wait, and kill the remaining ones."""
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + seconds
    for child in children:
        if not child.wait(deadline):
            _log.warning("did not end in time; killed", process=child.name)
            child.signal(signal.SIGKILL)
            child.wait(time.monotonic() + 5)
