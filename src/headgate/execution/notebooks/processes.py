"""The processes of one notebook: a sandbox with Python and a Spark of its own in it; started, held and ended.

    /headgate/job.json    what the runner does (headgate.execution.notebooks.program); nothing secret
    /headgate/cells       what the cells print and show; written
    /headgate/staging     what it saves; written
    /headgate/volumes     the files of the volumes that it declared
    /headgate/wheels      its dependencies
    /headgate/secrets     its secrets, in memory alone
    /scratch              its home, and Spark's folder; written

The catalog is reached through a proxy outside the sandbox that adds the token (catalog_proxy.py), and each
declared host through its own socket. The declared tables are mounted read-only.
"""

import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import headgate.execution.notebooks.program
from headgate.execution.sandbox import bubblewrap, leftovers, network
from headgate.execution.sandbox.watchdog import LimitExceeded
from headgate.execution.spark import class_archive, conf, java, jvm, network_access, sizes
from headgate.execution.spark.jars import Jars
from headgate.kit import untrusted_files
from headgate.kit.file_ownership import give
from headgate.settings.settings import Settings
from headgate.warehouse.locations import metadata_root, table_root

CATALOG_PORT = 15003
FIRST_HANDLE = 200
_PROGRAM = "headgate.execution.notebooks.program"
_PARENTS = ("headgate", "headgate/execution", "headgate/execution/notebooks")
"""The packages around the program: empty in the sandbox, which gets nothing else of Headgate."""
_ROOT = Path(headgate.execution.notebooks.program.__file__).resolve().parent
_CERTIFICATES = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted")
_NAMES = ("cells", "staging", "volumes", "wheels", "secrets")


@dataclass(frozen=True)
class Notebook:
    """The inputs of a notebook's processes. `folder` contains volumes/ and wheels/, if there are any."""

    folder: Path
    staging: Path
    job: dict[str, Any]
    tables: tuple[str, ...]
    """The ids of the tables that it may read."""
    hosts: tuple[tuple[str, int], ...]
    time_zone: str
    seconds: float
    token: str = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ProcessExit:
    """The exit of a notebook's processes."""

    status: int
    offence: LimitExceeded | None = None


class NotebookProcesses:
    """They end by themselves, with `end`, or with the process that made them; whatever they started ends with them."""

    def __init__(self, settings: Settings, catalog_url: str, jars: Jars, notebook: Notebook) -> None:
        self._settings, self._url, self._jars, self._notebook = settings, catalog_url, jars, notebook
        self._sandboxed = settings.notebooks.mode == "sandbox"
        self._user = settings.spark.sandbox_uid
        self._memory = sizes.notebook_bytes(settings.notebooks, settings.spark)
        self._place = leftovers.acquire_folder(settings.data_dir.absolute() / "spark", "notebook")
        self._sockets = leftovers.sockets_folder()
        self._private: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.scratch = notebook.folder / "scratch"

    def start(self) -> None:
        """Start the processes."""
        jvm.lay_out(self.scratch)
        for name in ("cells", "volumes", "wheels"):
            (self._notebook.folder / name).mkdir(exist_ok=True, mode=0o700)
        launch, handed = self._sandbox() if self._sandboxed else self._trusted()
        plan = self._place.folder / "plan.json"
        plan.touch(mode=0o600)
        plan.write_text(json.dumps({**self._common(), **launch}), encoding="utf-8")
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "headgate.execution.sandbox.launcher", str(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin  # noqa: S101 - a pipe
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(handed).encode() + b"\n")
            self._process.stdin.flush()

    def wait(self, seconds: float) -> bool:
        """Wait for the exit with a timeout; return whether they have ended."""
        assert self._process  # noqa: S101 - it was started
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> ProcessExit:
        """Kill the processes if they run, delete their private files, and return how they ended."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            if not self.wait(60):
                self._process.kill()
                self._process.wait()
        try:
            told = json.loads((self._place.folder / "end.json").read_text(encoding="utf-8"))
            process_exit = ProcessExit(told["status"], LimitExceeded(**told["offence"]) if told["offence"] else None)
        except (OSError, ValueError, KeyError, TypeError):
            process_exit = ProcessExit(-1)
        for folder in (self._sockets, self.scratch, self._private):
            if folder is not None:
                remove(folder)
        (self._place.folder / leftovers.RECORD).unlink(missing_ok=True)
        self._place.leave()
        return process_exit

    def kill(self) -> None:
        """Kill the processes; callable from any thread."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.close()

    def why(self) -> str:
        """The last log lines of Spark and Python, for an operator."""
        lines: list[str] = []
        for name in ("output.log", "server.log"):
            with contextlib.suppress(OSError, untrusted_files.NotRegularFile):
                lines += _last_lines(self.scratch / name)
        return "\n".join(lines[-15:])

    def _common(self) -> dict[str, Any]:
        folder = self._notebook.folder
        end = self._place.folder / "end.json"
        end.unlink(missing_ok=True)
        inside = [bubblewrap.SCRATCH, *(f"{bubblewrap.HOME}/{name}" for name in ("cells", "staging"))]
        outside = [str(self.scratch), str(folder / "cells"), str(self._notebook.staging)]
        limits = {
            "memory": self._memory,
            "processes": self._settings.notebooks.processes,
            "disk": self._settings.notebooks.disk_bytes,
            "seconds": self._notebook.seconds,
            "folders": outside,
            "inside": inside if self._sandboxed else outside,
        }
        return {
            "folder": str(self.scratch),
            "output": str(self.scratch / "output.log"),
            "network": [],
            "user": bubblewrap.user(self._user),
            "open": [],
            "record": str(self._place.folder / leftovers.RECORD),
            "sockets": str(self._sockets),
            "handed": True,
            "limits": limits,
            "end": str(end),
        }

    def _sandbox(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The plan of a launcher, and what it is handed."""
        home, folder = bubblewrap.HOME, self._notebook.folder
        secrets = {f"{home}/secrets/{name}": value.encode() for name, value in self._notebook.secrets.items()}
        handles = dict(zip(secrets, range(FIRST_HANDLE, FIRST_HANDLE + len(secrets)), strict=True))
        site, program = java.spark_jars().resolve().parents[1], Path(java.java()).resolve()
        jars = {class_archive.sandbox_path(path): str(path.resolve()) for path in self._jars.paths}
        write = {
            bubblewrap.SCRATCH: str(self.scratch),
            f"{home}/cells": str(folder / "cells"),
            f"{home}/staging": str(self._notebook.staging),
        }
        kept = class_archive.usable_archive(self._jars.iceberg, write.values())
        options = class_archive.USE if kept else ()
        hosts = network_access.routes(self._notebook.hosts, keep=True)
        empty = self._file("init.py", "")
        read = {
            **bubblewrap.files(self._place.folder, {r.name: r.inside for r in hosts if r.name}),
            f"{home}/site": str(site),
            f"{home}/lib/{_PROGRAM.replace('.', '/')}": str(_ROOT),
            **{f"{home}/lib/{package}/__init__.py": empty for package in _PARENTS},
            f"{home}/job.json": self._file("job.json", json.dumps(self._job(home))),
            f"{home}/java.args": self._file(
                "java.args", self._java(bubblewrap.SCRATCH, [f"{class_archive.SPARK}/*", *jars], _INSIDE_URL, options)
            ),
            class_archive.SPARK: str(java.spark_jars().resolve()),
            **({class_archive.INSIDE: str(kept)} if kept else {}),
            **jars,
            f"{home}/out": str(self._sockets),
            **{f"{home}/{name}": str(folder / name) for name in ("volumes", "wheels")},
            **self._tables(),
            **({name: name for name in _CERTIFICATES if Path(name).exists()} if hosts else {}),
        }
        places = [("127.0.0.1", CATALOG_PORT), *((route.inside, route.port) for route in hosts)]
        low = any(port < network.LOWEST_FREE or not host.startswith("127.") for host, port in places)
        command = bubblewrap.command(
            program.parents[1],
            bubblewrap.Mounts(read, write, handles),
            _relayed(places, handed=low),
            self._user,
            network=not low,
            environment=_environment(program.parents[1], home, bubblewrap.SCRATCH, [f"{home}/lib"], [f"{home}/site"]),
        )
        give(self._user, self._notebook.folder, self._notebook.staging, self._sockets)
        sockets = [str(self._sockets / str(number)) for number in range(len(places))]
        launch = {
            "command": command,
            "environment": {"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            "network": places if low else [],
            "catalog": [sockets[0], self._url],
            "hosts": [[path, r.host, r.port] for path, r in zip(sockets[1:], hosts, strict=True)],
            "allow": self._settings.outgoing.allow,
        }
        files = {str(handles[path]): base64.b64encode(value).decode() for path, value in secrets.items()}
        return launch, {"token": self._notebook.token, "files": files}

    def _trusted(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The same without a sandbox: the code sees what this process sees."""
        shared = "/dev/shm"  # noqa: S108 - the folder made in it is private
        self._private = Path(tempfile.mkdtemp(prefix="headgate-", dir=shared if Path(shared).is_dir() else None))
        for name, value in self._notebook.secrets.items():
            (self._private / name).write_text(value, encoding="utf-8")
        (self._private / ".token").write_text(self._notebook.token, encoding="utf-8")
        program, scratch = Path(java.java()).resolve(), str(self.scratch)
        classes = [str(path) for path in (java.spark_jars() / "*", *self._jars.paths)]
        arguments = self._file("java.args", self._java(scratch, classes, self._url))
        job = self._job(str(self._notebook.folder))
        job |= {"secrets": str(self._private), "java": [*job["java"][:1], f"@{arguments}"]}
        job |= {"staging": str(self._notebook.staging)}
        own, site = str(_ROOT.parents[3]), str(java.spark_jars().resolve().parents[1])
        environment = {
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": scratch,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            **_environment(program.parents[1], str(self._notebook.folder), scratch, [own], [site]),
            "SPARK_HOME": f"{site}/pyspark",
        }
        command = [*_RUNNER, self._file("job.json", json.dumps(job))]
        return {"command": command, "environment": environment}, {}

    def _job(self, home: str) -> dict[str, Any]:
        java_program = str(Path(java.java()).resolve())
        return {
            **self._notebook.job,
            **{name: f"{home}/{name}" for name in _NAMES},
            "scratch": bubblewrap.SCRATCH if self._sandboxed else str(self.scratch),
            "java": [java_program, f"@{home}/java.args"],
            "output_bytes": self._settings.notebooks.output_bytes,
        }

    def _java(self, scratch: str, classes: list[str], catalog_url: str, options: tuple[str, ...] = ()) -> str:
        heap = sizes.notebook_heap(self._memory)
        confs = {
            **conf.for_notebook(catalog_url),
            conf.TIME_ZONE: self._notebook.time_zone,
            "spark.app.name": "notebook",
            "spark.master": f"local[{sizes.cores(self._settings.spark)}]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.maxResultSize": str(sizes.memory_bytes(heap) // 2),
            "spark.local.dir": f"{scratch}/local",
            "spark.sql.warehouse.dir": f"{scratch}/none",
        }
        return jvm.arguments(
            memory=heap,
            classes=classes,
            conf=confs,
            scratch=scratch,
            main=conf.GATEWAY,
            options=(*options, *self._settings.spark.java_options),
        )

    def _tables(self) -> dict[str, str]:
        """The folders of the tables that it reads, seen where they are."""
        root = Path(unquote(urlsplit(self._settings.warehouse_url).path))
        result = (root / place(table) for table in self._notebook.tables for place in (table_root, metadata_root))
        return {str(folder): str(folder) for folder in result if folder.is_dir() and not folder.is_symlink()}

    def _file(self, name: str, content: str) -> str:
        file = self._notebook.folder / name
        file.unlink(missing_ok=True)
        file.touch(mode=0o600)
        file.write_text(content, encoding="utf-8")
        return str(file)


_REMOVE = ["/bin/rm", "-rf", "--"]
_INSIDE_URL = f"http://127.0.0.1:{CATALOG_PORT}"
_RUNNER = [bubblewrap.python(), "-s", "-P", "-B", "-m", _PROGRAM]


def _environment(java_home: Path, home: str, scratch: str, first: list[str], last: list[str]) -> dict[str, str]:
    return {
        "PYTHONPATH": ":".join((*first, f"{scratch}/wheels", *last)),
        "PYTHONSAFEPATH": "1",
        "PYSPARK_PYTHON": bubblewrap.python(),
        "SPARK_HOME": f"{home}/site/pyspark",
        "JAVA_HOME": str(java_home),
        "TMPDIR": f"{scratch}/tmp",  # noqa: S108 - in a folder of its own
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": f"{scratch}/tmp",  # noqa: S108
    }


def _relayed(places: list[tuple[str, int]], *, handed: bool) -> dict[str, Any]:
    """What runs inside: the relay, and the runner as its child."""
    listens = [("", network.FIRST_HANDLE + n) if handed else place for n, place in enumerate(places)]
    return {
        "listen": [[host, port, f"{bubblewrap.HOME}/out/{n}"] for n, (host, port) in enumerate(listens)],
        "serve": None,
        "command": [*_RUNNER, f"{bubblewrap.HOME}/job.json"],
    }


def _last_lines(file: Path) -> list[str]:
    with untrusted_files.opened(file) as source:
        source.seek(max(os.fstat(source.fileno()).st_size - 65536, 0))
        text = source.read(65536).decode("utf-8", "replace")
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]


def remove(folder: Path) -> None:
    """Remove what a notebook left: deeper than a path is long, and whatever it forbids."""
    for command in (_REMOVE, ["/bin/chmod", "-R", "u+rwX", "--"], _REMOVE):
        if folder.exists():
            subprocess.run([*command, str(folder)], check=False, capture_output=True)  # noqa: S603 - our own words
