"""The supervisor: starts and watches the child processes, and stops them on a signal. It is single-threaded."""

import fcntl
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headgate.kit.log import get_logger
from headgate.platform.http.logs import configure
from headgate.settings.settings import Settings
from headgate.supervisor.preflight import NotReady, check, opened
from headgate.supervisor.processes import SupervisedProcess, fork, stop

WORKER_SECONDS = 20.0
_log = get_logger("headgate.supervisor")


def up(settings: Settings, started: Callable[[str], int] | None = None) -> int:
    """Run until SIGTERM or SIGINT; the exit status. `started` is called in a process of its own.

    If that gives another status than 0, all ends with it.
    """
    configure(settings.log)
    check(settings)
    lock = hold(settings.data_dir)
    listener = _listen(settings)
    _prepare_metrics(settings.data_dir)
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stopping.append(received))
    children = _children(settings, listener)
    address = _address(listener)
    link = _first_owner(settings, address)
    try:
        for child in children:
            child.start()
        print(f"Headgate is running at {address}", flush=True)  # noqa: T201 - the terminal's answer
        if link is not None:
            text = f"This installation has no owner yet. Open this link once to become the owner:\n  {link}"
            print(text, flush=True)  # noqa: T201 - the terminal's answer
        helper = fork(lambda: started(address)) if started else None
        return _watch(children, stopping, helper)
    finally:
        # The worker first: it gives back what it runs to a server that still answers.
        stop(children[:1], WORKER_SECONDS)
        stop(children[1:], settings.server.shutdown_seconds + 5)
        listener.close()
        os.close(lock)
        _log.info("stopped")


def _watch(children: list[SupervisedProcess], stopping: list[int], helper: int | None) -> int:
    while not stopping:
        time.sleep(0.1)
        for child in children if not stopping else ():
            if child.check() is not None:
                _log.error("cannot start; see the message above", process=child.name)
                return 1
        if helper and (ended := os.waitpid(helper, os.WNOHANG))[0]:
            helper = None
            if ended[1] and not stopping:
                return 1
    return 0


def _children(settings: Settings, listener: socket.socket) -> list[SupervisedProcess]:
    """The processes; what they need is loaded here, once, and not before the folder is known to be ours."""
    from headgate.supervisor.work import schedule, serve, work  # noqa: PLC0415

    child = partial(SupervisedProcess, longest=settings.server.restart_seconds)
    servers = [child(f"server {n + 1}", partial(serve, settings, listener)) for n in range(settings.server.processes)]
    worker = child("worker", partial(_apart, listener, partial(work, settings, _address(listener))))
    return [worker, *servers, child("scheduler", partial(_apart, listener, partial(schedule, settings)))]


def _apart(listener: socket.socket, work: Callable[[], None]) -> None:
    """Work in a process that answers no request. As long as one held the socket, callers would wait for an answer."""
    listener.close()
    work()


def _first_owner(settings: Settings, address: str) -> str | None:
    """A one-time link for whoever is to own a new installation; None if somebody does."""
    from headgate.kit.clock import now  # noqa: PLC0415
    from headgate.organization.invitations.service import has_owner  # noqa: PLC0415
    from headgate.organization.members.first_owner import invite_owner  # noqa: PLC0415

    if settings.server.public_url is None:
        server = settings.server.model_copy(update={"public_url": address})
        settings = settings.model_copy(update={"server": server})
    database = opened(settings)
    try:
        with database.read() as connection:
            if has_owner(connection):
                return None
        return database.write(lambda connection: invite_owner(connection, settings, now()))
    finally:
        database.close()


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - a comparison
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def hold(data_dir: Path) -> int:
    """Lock the data folder for one supervisor, with a kernel lock that ends with the process."""
    handle = os.open(data_dir / "up.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(handle, 20).decode(errors="replace").strip()
        os.close(handle)
        raise NotReady(f"Headgate is already running with {data_dir} (pid {pid or 'unknown'})") from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def _listen(settings: Settings) -> socket.socket:
    host, port = settings.server.host, settings.server.port
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        raise NotReady(
            f"Cannot listen on {host}:{port}: {error.strerror}; set `server.host` or `server.port`"
        ) from None
    return listener


def _prepare_metrics(data_dir: Path) -> None:
    """A fresh folder for what the processes count; the numbers of a killed predecessor do not live on."""
    folder = (data_dir / "metrics").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def main_or_exit(settings: Settings, started: Callable[[str], int] | None = None) -> int:
    """Run; print a message if the start fails."""
    try:
        return up(settings, started)
    except NotReady as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the terminal's answer
        return 2
