"""Relays connections between addresses and Unix sockets. Only the standard library: it also runs in the sandbox.

In the sandbox it is the first process and the parent of Spark: `relay.py PLAN`, with a plan in JSON:

    listen   [[host, port, socket], …]   what the sandbox may reach: connections to an address leave through a socket;
                                         without a host, the port is the file descriptor of a listening socket
    hand     [[host, port, socket], …]   the same, but the connections themselves are handed over instead of copying
                                         data: the listener of the socket receives them
    serve    [socket, host, port]        incoming connections: the socket is created once something listens at the
                                         address; null for none
    command  the program to run; the relay ends with it
    folder   its working directory
    user     the user to become first, without any capabilities; null to stay the same
"""

import ctypes
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

CHUNK = 1 << 18
DIAL_SECONDS = 10
MOST_CONNECTIONS = 400
Dial = Callable[[], socket.socket]
_CLOSED = (errno.EBADF, errno.EINVAL)
_PAUSE = 0.1
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION = 0x20080522


def address(host: str, port: int) -> Dial:
    """Connects to an address."""
    return lambda: socket.create_connection((host, port), DIAL_SECONDS)


def unix(path: str) -> Dial:
    """Connects to a Unix socket."""

    def dial() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(DIAL_SECONDS)
        connection.connect(path)
        return connection

    return dial


def listen_unix(path: str) -> socket.socket:
    """A Unix socket that only its owner can connect to; if root creates it, it belongs to the folder's owner."""
    connection = socket.socket(socket.AF_UNIX)
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - paths are text here
    mask = os.umask(0o177)
    try:
        connection.bind(path)
    finally:
        os.umask(mask)
    if os.geteuid() == 0:
        about = os.stat(os.path.dirname(path))  # noqa: PTH116, PTH120 - paths are text here
        os.chown(path, about.st_uid, about.st_gid)
    connection.listen(128)
    return connection


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket."""
    return socket.create_server((host, port), backlog=128)


def relay(listener: socket.socket, dial: Dial, most: int = MOST_CONNECTIONS) -> None:
    """Relay every connection from now on, in separate threads; at most `most` at a time."""
    threading.Thread(target=_accept, args=(listener, dial, threading.Semaphore(most)), daemon=True).start()


def accepted(listener: socket.socket) -> socket.socket | None:
    """The next connection; None after the listener is closed. Waits when file descriptors or memory run out."""
    while True:
        try:
            return listener.accept()[0]
        except OSError as error:
            if error.errno in _CLOSED:
                return None
            time.sleep(_PAUSE)


def _accept(listener: socket.socket, dial: Dial, room: threading.Semaphore) -> None:
    while True:
        room.acquire()
        near = accepted(listener)
        if near is None:
            return
        threading.Thread(target=_pass_on, args=(near, dial, room), daemon=True).start()


def hand_over(listener: socket.socket, path: str) -> None:
    """Hand over every connection from now on to the listener of a Unix socket."""
    threading.Thread(target=_hand_over, args=(listener, unix(path)), daemon=True).start()


def _hand_over(listener: socket.socket, dial: Dial) -> None:
    while (near := accepted(listener)) is not None:
        with near, suppress(OSError), dial() as taker:
            socket.send_fds(taker, [b"\0"], [near.fileno()])


def taken(giver: socket.socket) -> socket.socket:
    """The connection that was handed over; OSError if the message contains none."""
    handles = socket.recv_fds(giver, 1, 1, socket.MSG_CMSG_CLOEXEC)[1]
    if not handles:
        raise OSError("no file descriptor was passed")
    try:
        connection = socket.socket(fileno=handles[0])
    except OSError:
        os.close(handles[0])
        raise
    if connection.family != socket.AF_INET or connection.type != socket.SOCK_STREAM:
        connection.close()
        raise OSError("the file descriptor is not a socket")
    return connection


def _pass_on(near: socket.socket, dial: Dial, room: threading.Semaphore) -> None:
    try:
        _connect(near, dial)
    finally:
        room.release()


def _connect(near: socket.socket, dial: Dial) -> None:
    with near:
        try:
            far = dial()
        except OSError:
            return
        with far:
            for end in (near, far):
                end.settimeout(None)
                if end.family != socket.AF_UNIX:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_copy, args=(far, near), daemon=True)
            back.start()
            _copy(near, far)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        source.shutdown(socket.SHUT_RD)


def _serve_when_ready(path: str, host: str, port: int) -> None:
    while True:
        with suppress(OSError), socket.create_connection((host, port), 1):
            break
        time.sleep(0.05)
    part = f"{path}.new"
    relay(listen_unix(part), address(host, port))
    os.rename(part, path)  # noqa: PTH104 - whoever sees the socket can dial it


def become(user: int) -> None:
    """Become a user without any capabilities; PermissionError if any remain."""
    library = ctypes.CDLL(None, use_errno=True)
    right = 0
    while library.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0) == 0:
        right += 1
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    library.capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24))
    with open("/proc/self/status", encoding="utf-8") as status:  # noqa: PTH123 - paths are text here
        rights = [line.split()[1] for line in status if line.startswith("Cap")]
    if any(int(right, 16) for right in rights) or set(os.getresuid() + os.getresgid()) != {user}:
        raise PermissionError(f"the user {user} still has capabilities of root")


def main(plan: dict[str, Any]) -> int:
    """Run the plan; returns the exit status of its command."""
    if plan.get("user") is not None:
        become(plan["user"])
    os.chdir(plan["folder"])
    for host, port, path in plan["listen"]:
        relay(listen(host, port) if host else socket.socket(fileno=port), unix(path))
    for host, port, path in plan.get("hand", ()):
        hand_over(listen(host, port), path)
    with subprocess.Popen(plan["command"]) as child:  # noqa: S603 - our own command
        signal.signal(signal.SIGTERM, lambda *_: child.kill())
        if plan["serve"]:
            threading.Thread(target=_serve_when_ready, args=plan["serve"], daemon=True).start()
        return child.wait()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
