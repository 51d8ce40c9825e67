"""A guarded Spark Connect server for tests: its own process, a Hadoop catalog in a folder, no network."""

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.execution.spark import conf, java
from headgate.execution.spark.jars import Jars

ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
GUARD = "headgate.guard.GuardExtensions"
VARIABLE = "CANARY_OF_THE_TESTS"


@dataclass(frozen=True)
class Server:
    """A running server, and the secrets that nobody may get out of it."""

    url: str
    warehouse: Path
    secret_file: Path
    file_secret: str
    env_secret: str


def settings(warehouse: Path) -> dict[str, str]:
    """What a guarded server needs, and the rest of a small one."""
    return {
        "spark.sql.extensions": f"{ICEBERG},{GUARD}",
        "spark.plugins": "headgate.guard.GuardPlugin",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.variable.substitute": "false",
        "spark.sql.defaultCatalog": "lake",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": warehouse.as_uri(),
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(warehouse.parent / "spark-warehouse"),
        # Small statements, once each: compiling them takes longer than running them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Duser.timezone=UTC",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
    }


def command(jars: str, confs: Mapping[str, str], main: str = conf.CONNECT) -> list[str]:
    """The command line of a server; of ours, or of another class."""
    given = [part for key, value in confs.items() for part in ("--conf", f"{key}={value}")]
    program = str(java.spark_jars().parent / "bin" / "spark-submit")
    start = ["--master", "local[2]", "--driver-memory", "1g", "--jars", jars, *given]
    return [program, *start, "--class", main, "spark-internal"]


def environment(**more: str) -> dict[str, str]:
    """An environment without settings of another Spark."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "JAVA_HOME", "LANG") if key in os.environ}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_USER": "someone", **more}


@contextmanager
def started(jars: Jars, folder: Path, **more: str) -> Iterator[Server]:
    """A server that lives as long as the block; `{warehouse}` in a setting stands for its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    warehouse = folder / "warehouse-of-secrets"
    warehouse.mkdir()
    secret_file = folder / "secret.txt"
    file_secret, env_secret = f"file-{secrets.token_hex(8)}", f"env-{secrets.token_hex(8)}"
    secret_file.write_text(f"{file_secret}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    confs = {**settings(warehouse), "spark.connect.grpc.binding.port": str(port)}
    confs |= {key: value.replace("{warehouse}", str(warehouse)) for key, value in more.items()}
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(str(jars), confs),
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(**{VARIABLE: env_secret}),
            cwd=folder,
            start_new_session=True,
        )
        try:
            _wait(process, port, log)
            yield Server(f"sc://127.0.0.1:{port}", warehouse, secret_file, file_secret, env_secret)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-4000:]}")
