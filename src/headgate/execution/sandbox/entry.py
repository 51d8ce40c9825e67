"""Prepares a process for bubblewrap: `entry.py PLAN bwrap …`. Only the standard library.

    user   the user id outside the sandbox that the program inside runs as; null if this process is not root's
    calls  the seccomp filter (seccomp.py) in base 64; null for an unsupported architecture

The process leaves the keyring of the user who started it. For root, it enters a user namespace that maps only root and
that user: bubblewrap sets up the sandbox as root, and the first program inside becomes that user (relay.py).
"""

import base64
import ctypes
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INSIDE = 1000
"""The user id of all programs inside a sandbox."""

Ids = Sequence[tuple[int, int]]
"""Pairs of an id inside a user namespace and the id outside."""

_NEW_USER = 0x10000000
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1


def main(plan: dict[str, Any], command: list[str]) -> None:
    """Prepare the process and exec bubblewrap."""
    _leave_keys()
    if plan["user"] is not None:
        ids = [(0, 0), (INSIDE, plan["user"])]
        enter_namespace(ids, ids)
    name, *arguments = command
    if plan["calls"] is not None:
        arguments = ["--seccomp", str(_in_memory(base64.b64decode(plan["calls"]))), *arguments]
    os.execvp(name, [name, *arguments])  # noqa: S606 - our own command


def enter_namespace(users: Ids, groups: Ids, more: int = 0) -> None:
    """Move this process into a new user namespace, and into others by flags; it has all capabilities there.

    Only root may map more than its own id. A process that stays outside writes the maps.
    """
    ready, go = os.pipe()
    parent = os.getpid()
    writer = os.fork()
    if writer == 0:
        os.close(go)
        os._exit(_write_maps(parent, ready, users, groups))
    os.close(ready)
    failed = 0
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER | more) == 0:
        os.write(go, b"x")
    else:
        failed = ctypes.get_errno()
    os.close(go)
    failed = failed or os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1])
    if failed:
        raise OSError(failed, f"cannot create a user namespace: {os.strerror(failed)}")


def _write_maps(pid: int, ready: int, users: Ids, groups: Ids) -> int:
    """Returns the errno; 0 on success."""
    try:
        if os.read(ready, 1):
            if os.geteuid() != 0:
                Path(f"/proc/{pid}/setgroups").write_text("deny", encoding="ascii")
            Path(f"/proc/{pid}/gid_map").write_text(_lines(groups), encoding="ascii")
            Path(f"/proc/{pid}/uid_map").write_text(_lines(users), encoding="ascii")
    except OSError as error:
        return error.errno or 1
    return 0


def _lines(ids: Ids) -> str:
    return "".join(f"{inside} {outside} 1\n" for inside, outside in ids)


def _leave_keys() -> None:
    """Join a new, empty session keyring. A kernel without keyrings refuses and has none to leak."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _JOIN_SESSION_KEYRING, None)


def _in_memory(content: bytes) -> int:
    handle = os.memfd_create("calls", 0)
    os.write(handle, content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]), sys.argv[2:])
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
