"""Creates the class data archive (CDS) of Spark with a training server in a separate sandbox."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from headgate.execution.sandbox import bubblewrap
from headgate.execution.spark import class_archive, conf
from headgate.execution.spark.connect import Connection
from headgate.execution.spark.errors import SparkUnavailable, SqlFailed
from headgate.execution.spark.jars import Jars
from headgate.execution.spark.java import NoJava
from headgate.execution.spark.server import LocalServer
from headgate.execution.spark.session import SqlSession
from headgate.settings.settings import Settings

LOCK = ".spark-classes.lock"
SECONDS = 120
"""Maximum time for Java to write the archive."""

MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
"""Spark's own main class, so that a changed guard needs no new archive."""

_WORK = ".classes-"
_NOWHERE = "http://127.0.0.1:64999/iceberg"
_TABLES = "spark.sql.catalog.tried"
_LEARNT = (
    "CREATE TABLE tried.a.b USING iceberg PARTITIONED BY (bucket(2, id)) AS SELECT id, CAST(id AS STRING) AS name, "
    "current_timestamp() AS at, CAST(id AS DECIMAL(12, 2)) AS price FROM range(100)",
    "MERGE INTO tried.a.b t USING (SELECT id FROM range(90, 110)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = 'x' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "SELECT b.name, count(*), sum(b.price), row_number() OVER (ORDER BY b.name) FROM tried.a.b b "
    "JOIN range(50) r ON r.id = b.id WHERE upper(b.name) LIKE '%1%' GROUP BY b.name ORDER BY 2 DESC LIMIT 5",
    "DELETE FROM tried.a.b WHERE id < 10",
    "DESCRIBE TABLE tried.a.b",
)


class _Own(Settings):
    """Settings that ignore the environment and the local installation."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the settings passed to the constructor."""
        return (init_settings,)


def ensure(jars: Jars, say: Callable[[str], None] = lambda _: None) -> Path | None:
    """The archive, created if missing; None with a log entry if that is impossible. Concurrent calls create it once. A
    failure never prevents Spark from starting.
    """
    try:
        kept = class_archive.usable_archive(jars.iceberg)
        if kept is not None:
            return kept
        lacking = bubblewrap.missing(_Own().spark.sandbox_uid)
        if lacking:
            raise SparkUnavailable(lacking)
        with (jars.iceberg.parent / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if class_archive.usable_archive(jars.iceberg) is None:
                say("Creating the class data archive of Spark, once")
                for left in jars.iceberg.parent.glob(f"{_WORK}*"):
                    shutil.rmtree(left, ignore_errors=True)
                _make(jars)
                class_archive.remove_unused(jars.iceberg.parent)
        return class_archive.usable_archive(jars.iceberg)
    except (OSError, SubprocessError, SparkUnavailable, SqlFailed, NoJava) as error:
        say(f"Spark starts without a class data archive: {error}")
        return None


def _make(jars: Jars) -> None:
    with tempfile.TemporaryDirectory(prefix=_WORK, dir=jars.iceberg.parent) as work:
        settings = _Own(data_dir=Path(work), spark={"memory": "1g", "cores": 2})
        made = f"{bubblewrap.SCRATCH}/classes.jsa"
        server = LocalServer(
            "training",
            settings,
            Jars(jars.iceberg),
            conf.for_platform(_NOWHERE),
            sandboxed=True,
            main=MAIN,
            options=(f"-XX:ArchiveClassesAtExit={made}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"),
        )
        try:
            _learn(Connection.to(server.start(lambda: None)))
            if not server.finish(SECONDS):
                raise SparkUnavailable(f"Java did not write the archive within {SECONDS} seconds: {server.why()}")
            _place(server.scratch / "classes.jsa", jars.iceberg)
        finally:
            server.stop()


def _learn(connection: Connection) -> None:
    try:
        session = SqlSession(connection, 1000)
        session.configure(conf.acting("none", "UTC"))
        session.configure(
            {
                _TABLES: "org.apache.iceberg.spark.SparkCatalog",
                f"{_TABLES}.type": "hadoop",
                f"{_TABLES}.warehouse": f"file://{bubblewrap.SCRATCH}/tried",
                "spark.sql.shuffle.partitions": "2",
            }
        )
        # Nobody answers there; the classes needed for the request are loaded anyway.
        with suppress(SqlFailed):
            session.run("SELECT * FROM lake.raw.none")
        for sql in _LEARNT:
            list(session.run(sql).batches)
        session.close()
    finally:
        connection.close()


def _place(made: Path, iceberg: Path) -> None:
    """Move the archive to its path atomically, read-only."""
    with made.open("rb") as file:
        os.fchown(file.fileno(), os.geteuid(), os.getegid())
        os.fchmod(file.fileno(), 0o444)
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
    made.replace(class_archive.archive_path(iceberg, size))
