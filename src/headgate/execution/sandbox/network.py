"""A network namespace for a process, with sockets that listen on low ports in it. Only the standard library.

Programs in the sandbox may not listen on ports below 1024, but object stores usually use 443. For such ports, the
network namespace is created here before the sandbox, and the listening sockets are passed in.
"""

import fcntl
import os
import socket
import struct
from collections.abc import Sequence

from headgate.execution.sandbox.entry import enter_namespace

LOWEST_FREE = 1024
FIRST_HANDLE = 100
_NEW_NET = 0x40000000
_GET_FLAGS, _SET_FLAGS, _SET_ADDRESS, _UP = 0x8913, 0x8914, 0x8916, 1
_REQUEST = "16sH14x"
_ADDRESS_REQUEST = "16sH2x4s8x"


def enter(addresses: Sequence[tuple[str, int]], user: int | None = None) -> None:
    """Move this process into an empty network namespace and listen there; the sockets are file descriptors from
    FIRST_HANDLE on.

    With `user`, the process can still become that user there; only root may do this.
    """
    more = () if user is None else (user,)
    users, groups = ([(value, value) for value in (own, *more)] for own in (os.getuid(), os.getgid()))
    enter_namespace(users, groups, _NEW_NET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        result = fcntl.ioctl(asked, _GET_FLAGS, struct.pack(_REQUEST, b"lo", 0))
        flags = struct.unpack(_REQUEST, result)[1]
        fcntl.ioctl(asked, _SET_FLAGS, struct.pack(_REQUEST, b"lo", flags | _UP))
        for number, host in enumerate(sorted({host for host, _ in addresses if not host.startswith("127.")})):
            name, place = f"lo:{number}".encode(), socket.inet_aton(host)
            fcntl.ioctl(asked, _SET_ADDRESS, struct.pack(_ADDRESS_REQUEST, name, socket.AF_INET, place))
    for number, (host, port) in enumerate(addresses):
        with socket.create_server((host, port), backlog=128) as listener:
            os.dup2(listener.fileno(), FIRST_HANDLE + number)
