"""A Spark Connect server on this machine: started, monitored and stopped, in the sandbox or on loopback."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from headgate.execution.sandbox import bubblewrap, leftovers, network, relay
from headgate.execution.sandbox.processes import java_below, resident_bytes
from headgate.execution.spark import (
    class_archive,
    conf,
    java,
    jvm,
    network_access,
    platform_environment,
    sizes,
)
from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.spark.jars import Jars
from headgate.kit.file_ownership import give, owned, share
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

START_SECONDS = 120
LOOK_SECONDS = 5
ENDING_SECONDS = 5
PORT_INSIDE = 15002
_URI = f"spark.sql.catalog.{conf.CATALOG}.uri"
_log = get_logger("headgate.engine")


@dataclass(frozen=True)
class Address:
    """The address of a server: a Unix socket, or a localhost port with a key."""

    socket: str | None = None
    port: int | None = None
    token: str | None = None


@dataclass(frozen=True)
class LaunchOptions:
    """The start options of a server."""

    command: list[str]
    network: list[tuple[str, int]] = field(default_factory=list)
    """The addresses to listen on in a separate network namespace; empty if the sandbox creates its own."""

    opened: list[tuple[str, str, int]] = field(default_factory=list)
    """Unix sockets that each lead to one outside address."""


class LocalServer:
    """One server. It ends with `stop`, or with the process that created it."""

    def __init__(
        self,
        kind: str,
        settings: Settings,
        jars: Jars,
        confs: conf.Conf,
        *,
        sandboxed: bool,
        beside: platform_environment.ServerEnvironment | None = None,
        main: str = conf.CONNECT,
        options: tuple[str, ...] = (),
    ) -> None:
        self.kind, self.settings, self.jars, self.sandboxed = kind, settings, jars, sandboxed
        self.confs, self._beside = confs, beside or platform_environment.ServerEnvironment()
        self._main, self._options = main, options
        self.way_out: int | None = None
        """The loopback port of the egress proxy inside, if it uses one."""
        self.memory, self.cores = sizes.memory(settings.spark), sizes.cores(settings.spark)
        self.since = time.time()
        self.ended = threading.Event()
        self.address = Address()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = self._finishing = False
        self._place = leftovers.acquire_folder(settings.data_dir.absolute() / "spark", kind)
        self._sockets = leftovers.sockets_folder()
        self.scratch = self._place.folder / "scratch"

    @property
    def pid(self) -> int | None:
        """The Java process."""
        return java_below(self._process.pid) if self._process and not self.ended.is_set() else None

    @property
    def resident_bytes(self) -> int:
        """The resident memory of the server."""
        return resident_bytes(self.pid or 0)

    def start(self, on_end: Callable[[], None]) -> Address:
        """Start the server and wait until it accepts connections; SparkUnavailable if it ends before."""
        try:
            self._process = self._start()
            if self._stopping:
                self._end(self._process)
                raise SparkUnavailable("Spark was killed while it started")
            watch = threading.Thread(target=self._watch, args=(self._process, on_end), name=f"spark {self.kind}")
            watch.daemon = True
            watch.start()
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self.address

    def stop(self) -> None:
        """Stop the server and all its processes, and delete its files."""
        if self._stopping:
            return
        self._stopping = True
        if self._process is not None:
            self._end(self._process)
        shutil.rmtree(self._sockets, ignore_errors=True)
        shutil.rmtree(self.scratch / "local", ignore_errors=True)
        shutil.rmtree(self.scratch / "tmp", ignore_errors=True)
        (self._place.folder / leftovers.RECORD).unlink(missing_ok=True)
        self._place.leave()

    def kill(self) -> None:
        """Kill its Java process immediately; waiters are notified."""
        pid = self.pid
        if pid is not None:
            _log.warning("killing a Spark server: a task in it did not stop", kind=self.kind, pid=pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def finish(self, seconds: float) -> bool:
        """Ask Java to shut down gracefully; returns whether it did within this time."""
        pid, process = self.pid, self._process
        self._finishing = True
        if pid is None or process is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        return self.ended.wait(seconds) and process.returncode == 128 + signal.SIGTERM

    def ran_out_of_memory(self) -> bool:
        """Whether it has ended, or is ending, because it ran out of memory."""
        return self.ended.wait(ENDING_SECONDS) and jvm.has_out_of_memory_line(self.scratch)

    def why(self) -> str:
        """The end of its output, for operators."""
        text = "".join(jvm.read_tail(self.scratch / name) for name in ("output.log", "server.log"))
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
        return "\n".join(lines[-15:])

    def _start(self) -> "subprocess.Popen[bytes]":
        self._keep_log()
        shutil.rmtree(self.scratch, ignore_errors=True)
        jvm.lay_out(self.scratch)
        token = None if self.sandboxed else secrets.token_urlsafe(32)
        launch = self._sandboxed() if self.sandboxed else self._plain(token)
        environment = {"LANG": "C.UTF-8", "TZ": "UTC", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        environment |= self._beside.environment
        if token is not None:
            environment |= {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token, "SPARK_LOCAL_IP": "127.0.0.1"}
        plan = self._place.folder / "plan.json"
        plan.touch(mode=0o600)
        plan.write_text(
            json.dumps(
                {
                    "command": launch.command,
                    "environment": environment,
                    "folder": str(self.scratch),
                    "output": str(self.scratch / "output.log"),
                    "network": launch.network,
                    "user": bubblewrap.user(self.settings.spark.sandbox_uid),
                    "open": launch.opened,
                    "record": str(self._place.folder / leftovers.RECORD),
                    "sockets": str(self._sockets),
                }
            ),
            encoding="utf-8",
        )
        return subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "headgate.execution.sandbox.launcher", str(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _keep_log(self) -> None:
        """Keep the log of the previous server for diagnosis."""
        for name in ("server.log", "output.log", "crash.log"):
            with contextlib.suppress(FileNotFoundError):
                (self.scratch / name).replace(self._place.folder / f"last-{name}")

    def _plain(self, token: str | None) -> LaunchOptions:
        port = _free_port()
        self.address = Address(port=port, token=token)
        classes = [str(path) for path in (java.spark_jars() / "*", *self.jars.paths)]
        file = self._arguments(classes, str(self.scratch), port, {**self.confs, **self._plain_way_out()})
        return LaunchOptions([java.java(), f"@{file}"])

    def _plain_way_out(self) -> conf.Conf:
        if self._beside.egress is None:
            return {}
        listener = relay.listen("127.0.0.1", 0)
        self._beside.egress.serve(listener, platform_environment.is_same_user)
        self.way_out = int(listener.getsockname()[1])
        names = self.scratch / "hosts"
        names.write_text(platform_environment.hosts(self.settings, self.confs[_URI]), encoding="utf-8")
        return platform_environment.proxy_properties(self.way_out, str(names))

    def _inner_way_out(self, folder: Path) -> conf.Conf:
        """In a separate network namespace, only the proxy is reachable."""
        if self._beside.egress is None:
            return {}
        self._beside.egress.serve(relay.listen_unix(str(folder / "0")), taken=relay.taken)
        self.way_out = platform_environment.PORT_INSIDE
        return platform_environment.proxy_properties(self.way_out, "/etc/hosts")

    def _sandboxed(self) -> LaunchOptions:
        catalog = self.confs[_URI]
        routes = network_access.routes(network_access.allowed(self.settings, catalog))
        inner, outer = self._sockets / "in", self._sockets / "out"
        for folder in (inner, outer):
            folder.mkdir(mode=0o700)
        user = self.settings.spark.sandbox_uid
        give(user, inner, outer)
        self.address = Address(socket=str(inner / "connect"))
        names = {class_archive.sandbox_path(path): str(path.resolve()) for path in self.jars.paths}
        confs = {**self.confs, _URI: network_access.sandbox_url(catalog), **self._inner_way_out(outer)}
        write = {
            bubblewrap.SCRATCH: str(self.scratch),
            f"{bubblewrap.HOME}/in": str(inner),
            **self._tables("tables"),
            **{str(folder): str(folder.resolve()) for folder in self._beside.write},
        }
        kept = None if self._options else class_archive.usable_archive(self.jars.iceberg, write.values())
        options = class_archive.USE if kept else self._options
        self._arguments([f"{class_archive.SPARK}/*", *names], bubblewrap.SCRATCH, PORT_INSIDE, confs, options)
        read = {
            **bubblewrap.files(self._place.folder, {r.name: r.inside for r in routes if r.name}),
            class_archive.SPARK: str(java.spark_jars().resolve()),
            **({class_archive.INSIDE: str(kept)} if kept else {}),
            **names,
            f"{bubblewrap.HOME}/out": str(outer),
            **self._tables("metadata"),
            **{str(folder): str(folder.resolve()) for folder in self._beside.read},
        }
        if self.way_out is not None:
            routes = [network_access.Route("127.0.0.1", self.way_out, "127.0.0.1")]
        low = [(r.inside, r.port) for r in routes] if any(r.port < network.LOWEST_FREE for r in routes) else []
        program = Path(java.java()).resolve()
        give(user, self.scratch, *self._beside.write)
        for folder in self._beside.read:
            if self._warehouse is not None and folder.is_relative_to(self._warehouse):
                owned(user, folder)
        command = bubblewrap.command(
            program.parents[1],
            bubblewrap.Mounts(read, write),
            _relayed(program, routes, handed=bool(low), to_proxy=self.way_out is not None),
            user,
            network=not low,
            environment=self._beside.environment,
        )
        if self.way_out is not None:
            # The proxy listens in this process.
            return LaunchOptions(command)
        return LaunchOptions(command, low, [(str(outer / str(n)), r.host, r.port) for n, r in enumerate(routes)])

    @property
    def _warehouse(self) -> Path | None:
        """The folder of the warehouse; None if it is a bucket."""
        parts = urlsplit(self.settings.warehouse_url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    def _tables(self, name: str) -> dict[str, str]:
        """A folder of the warehouse, mounted at its own path; none in a bucket."""
        if self._warehouse is None:
            return {}
        folder = self._warehouse / name
        owned(self.settings.spark.sandbox_uid, folder)
        if name == "tables":
            share(self.settings.spark.sandbox_uid, folder)
        return {str(folder): str(folder.resolve())}

    def _arguments(
        self, classes: list[str], scratch: str, port: int, confs: conf.Conf, options: tuple[str, ...] = ()
    ) -> Path:
        heap = sizes.memory_bytes(self.memory)
        own = conf.local(name=f"headgate-{self.kind}", cores=self.cores, heap=heap, port=port, scratch=scratch)
        text = jvm.arguments(
            memory=self.memory,
            classes=classes,
            conf={**confs, **own},
            scratch=scratch,
            main=self._main,
            options=(*options, *self.settings.spark.java_options),
        )
        file = self.scratch / "java.args"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        return file

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._can_be_dialled():
            if self.ended.is_set():
                raise SparkUnavailable(f"Spark did not start:\n{self.why()}")
            if time.monotonic() > deadline:
                raise SparkUnavailable(f"Spark did not start within {START_SECONDS} seconds:\n{self.why()}")
            time.sleep(0.05)

    def _can_be_dialled(self) -> bool:
        if self.address.socket is not None:
            # A link could lead elsewhere; only a socket is accepted.
            with contextlib.suppress(FileNotFoundError):
                return stat.S_ISSOCK(os.lstat(self.address.socket).st_mode)
            return False
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.address.port or 0), 1):
            return True
        return False

    def _watch(self, process: "subprocess.Popen[bytes]", on_end: Callable[[], None]) -> None:
        status = None
        while status is None:
            try:
                status = process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if jvm.has_stuck_task(self.scratch):
                    self.kill()
        self.ended.set()
        if not self._stopping and not self._finishing:
            _log.warning("a Spark server ended", kind=self.kind, status=status)
        on_end()

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.ended.set()


def _relayed(program: Path, routes: list[network_access.Route], *, handed: bool, to_proxy: bool) -> dict[str, Any]:
    """The plan inside the sandbox: the relay, with Java as its child."""
    places = [("", network.FIRST_HANDLE + n) if handed else (r.inside, r.port) for n, r in enumerate(routes)]
    ways = [[host, port, f"{bubblewrap.HOME}/out/{n}"] for n, (host, port) in enumerate(places)]
    return {
        "listen": [] if to_proxy else ways,
        "hand": ways if to_proxy else [],
        "serve": [f"{bubblewrap.HOME}/in/connect", "127.0.0.1", PORT_INSIDE],
        "command": [str(program), f"@{bubblewrap.SCRATCH}/java.args"],
    }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as connection:
        return int(connection.getsockname()[1])
