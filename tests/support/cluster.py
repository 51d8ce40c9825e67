"""A real Spark cluster on loopback: a master, two workers, and Connect servers, from pyspark's own jars.

It is started as docs/how-to/use-external-spark.md tells an operator to do it, with what `headgate spark conf` prints.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.execution.sandbox.processes import descendants
from headgate.execution.spark import conf, java
from tests.support.installation import Installation

VARIABLE = "CLUSTER"


def wanted() -> bool:
    """Whether the engine is to be tested on a cluster."""
    return os.environ.get(VARIABLE) == "1"


@dataclass
class Cluster:
    """A running cluster."""

    url: str
    """By which members' SQL is sent there."""

    processes: list["subprocess.Popen[bytes]"]
    platform_url: str | None = None
    """By which the platform's own steps are sent there, if it has a server for them."""

    def pids(self) -> list[int]:
        """All its processes."""
        return [pid for one in self.processes for pid in (one.pid, *descendants(one.pid))]


@contextmanager
def started(folder: Path, catalog_url: str, *, platform: bool = False) -> Iterator[Cluster]:
    """Start all of it; `platform` adds a server for the platform's own steps."""
    running: list[subprocess.Popen[bytes]] = []
    master, token = free_port(), secrets.token_urlsafe(24)
    try:
        deploy = "org.apache.spark.deploy"
        listens = ["--host", "127.0.0.1", "--port", str(master), "--webui-port", "0"]
        running.append(_run(folder, "master", [f"{deploy}.master.Master", *listens]))
        _listens(master, running)
        for number in (1, 2):
            size = ["--cores", "2", "--memory", "2g"] if platform else ["--cores", "1", "--memory", "1g"]
            own = ["--host", "127.0.0.1", *size, "--webui-port", "0"]
            own += ["--work-dir", str(folder / f"work-{number}"), f"spark://127.0.0.1:{master}"]
            running.append(_run(folder, f"worker-{number}", [f"{deploy}.worker.Worker", *own]))
        kinds = ["member", *(["platform"] if platform else [])]
        ports = [free_port() for _ in kinds]
        for kind, port in zip(kinds, ports, strict=True):
            command = _connect(f"spark://127.0.0.1:{master}", port, _properties(folder, kind, catalog_url))
            running.append(_run(folder, f"connect-{kind}", command, token=token))
        for port in ports:
            _listens(port, running)
        urls = [f"sc://localhost:{port}/;token={token}" for port in ports]
        yield Cluster(urls[0], running, urls[1] if platform else None)
    finally:
        for process in reversed(running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _properties(folder: Path, kind: str, catalog_url: str) -> Path:
    """The file that `headgate spark conf` prints."""
    more = ("--platform",) if kind == "platform" else ()
    done = Installation(folder).headgate("spark", "conf", "--catalog-url", catalog_url, *more)
    assert done.returncode == 0, done.stderr
    found = folder / f"{kind}.conf"
    found.write_text(done.stdout, encoding="utf-8")
    return found


def _connect(master: str, port: int, properties: Path) -> list[str]:
    """As an operator starts one: spark-submit, with those settings and what belongs to this cluster."""
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        # As beside Hadoop: a path without a scheme is none of this disk.
        "spark.hadoop.fs.defaultFS": "hdfs://nowhere.invalid:8020",
    }
    settings = [part for key, value in own.items() for part in ("--conf", f"{key}={value}")]
    submit = ["org.apache.spark.deploy.SparkSubmit", "--master", master, "--properties-file", str(properties)]
    return [*submit, "--driver-memory", "1g", *settings, "--class", conf.CONNECT, "spark-internal"]


def _python(folder: Path) -> Path:
    """A Python as the machines of a cluster have one: with pyspark and what it needs, but without Headgate."""
    found = folder / "python"
    site = java.spark_jars().parents[1]
    found.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec {sys.executable} -S "$@"\n', encoding="utf-8")
    found.chmod(0o755)
    return found


def _run(folder: Path, name: str, command: list[str], *, token: str | None = None) -> "subprocess.Popen[bytes]":
    home = java.spark_jars().parent
    environment = {
        "PATH": os.environ["PATH"],
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": str(_python(folder)),
        "TZ": "UTC",
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
        **({"SPARK_CONNECT_AUTHENTICATE_TOKEN": token} if token else {}),
    }
    log = (folder / f"{name}.log").open("ab")
    with log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _listens(port: int, running: list["subprocess.Popen[bytes]"], seconds: float = 90) -> None:
    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    _until(answers, running, seconds)


def _until(check: Callable[[], bool], running: list["subprocess.Popen[bytes]"], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert all(process.poll() is None for process in running), "a part of the cluster ended; see its log"
        assert time.monotonic() < deadline, "the cluster did not start in time"
        time.sleep(0.1)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
