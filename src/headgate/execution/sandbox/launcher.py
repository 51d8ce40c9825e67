"""Starts a process tree, and ends it when the requesting process is gone.

Used as `python -m headgate.execution.sandbox.launcher PLAN`. It is a separate process because the kernel ends a child
with the *thread* that started it: here that is the main thread, which lives as long as the tree. The requesting process
holds the other end of standard input, which closes however that process ends.

    command  the program, its environment and its working directory
    network  [[host, port], …]   where inherited sockets listen in a separate network namespace; empty if the sandbox
                                 creates its own
    user     the user that the sandbox is to become; null if this process is not root's
    open     [[socket, host, port], …]   sockets that lead to one address each, for a server in a sandbox
    record   the file that stores the identity of these processes

Notebooks have additional fields; see execution/notebooks/process_holder.py.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from headgate.execution.notebooks.process_holder import ProcessHolder
from headgate.execution.sandbox import network, relay
from headgate.execution.sandbox.processes import identity

_PR_SET_PDEATHSIG = 1


def _child(addresses: list[tuple[str, int]], user: int | None, tether: ProcessHolder) -> None:
    """In the child: end together with this process, and enter a new network namespace if there are addresses."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    tether.tie()
    if addresses:
        network.enter(addresses, user)


def main(plan: dict[str, Any]) -> int:
    """Start the program and wait for it; returns its exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tether = ProcessHolder(plan)
    with Path(plan["output"]).open("ab") as output:
        child = subprocess.Popen(  # noqa: S603 - our own command
            plan["command"],
            env=plan["environment"],
            cwd=plan["folder"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: _child(plan["network"], plan["user"], tether),  # noqa: PLW1509 - no other thread runs yet
            close_fds=False,  # descriptors that are not meant to be inherited close themselves
        )
    _record(Path(plan["record"]), plan, child.pid)
    for path, host, port in plan["open"]:
        relay.relay(relay.listen_unix(path), relay.address(host, port))
    signal.signal(signal.SIGTERM, lambda *_: _end(child.pid))
    threading.Thread(target=_end_when_alone, args=(child.pid,), daemon=True).start()
    tether.hold(lambda: _end(child.pid))
    status = child.wait()
    tether.let_go(status)
    return status


def _record(file: Path, plan: dict[str, Any], child: int) -> None:
    text = json.dumps({"processes": [identity(os.getpid()), identity(child)], "sockets": plan["sockets"]})
    part = file.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def _end_when_alone(child: int) -> None:
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    _end(child)


def _end(child: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))) & 0xFF)
