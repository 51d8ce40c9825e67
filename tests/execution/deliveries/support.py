"""Deliveries without a Spark: what stands in for it puts rows where Spark would, so that hundreds can be tried and killed.

`on_spark` tests try the same with a real one.
"""

import csv
import json
import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pymysql

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.definitions import DeliveryIn
from headgate.contracts.pipelines.steps import Deliver, LakeItem
from headgate.execution.steps import deliver
from headgate.execution.steps.context import Context, Result, RunJob, StepFailed
from headgate.kit.crash_points import VARIABLE
from headgate.kit.ids import new_id
from headgate.settings.settings import Settings
from tests.support import mariadb, s3
from tests.support.mariadb import MariaDb
from tests.support.s3 import S3Server

PIPELINE = "pip_01k6x3v9c2m4n8p0q7rs"
TABLE = LakeItem("tbl_x", "raw", "orders")
Row = dict[str, Any]
ROWS: list[Row] = [{"id": number, "name": f"n{number}"} for number in range(1, 6)]


def postgresql(url: str, schema: str = "out") -> Endpoint:
    """A destination of its own schema, empty."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        connection.execute(f"CREATE SCHEMA {schema}")
    port = int(url.rpartition(":")[2].partition("/")[0])
    config = {"host": "127.0.0.1", "port": port, "database": "postgres", "user": "headgate", "tls": "off"}
    return Endpoint("dst_pg", "postgresql", {**config, "properties": {}, "tls_ca": None})


def mysql(server: MariaDb, schema: str = "out") -> Endpoint:
    """A destination of its own database, empty."""
    server.run(f"DROP DATABASE IF EXISTS `{schema}`", f"CREATE DATABASE `{schema}`")
    config = {"host": "127.0.0.1", "port": server.port, "database": schema, "user": mariadb.USER, "tls": "off"}
    return Endpoint("dst_my", "mysql", {**config, "properties": {}, "tls_ca": None}, {"password": mariadb.PASSWORD})


def bucket(server: S3Server, prefix: str, **more: Any) -> Endpoint:
    """A destination below a prefix of the bucket."""
    config = {"endpoint": server.endpoint, "bucket": s3.BUCKET, "region": s3.REGION, "prefix": prefix}
    return Endpoint(
        "dst_s3", "object_store", {**config, "path_style": True, "access_key_id": s3.KEY_ID, **more},
        {"secret_key": s3.SECRET},
    )  # fmt: skip


def http(url: str, secrets: dict[str, str] | None = None, **more: Any) -> Endpoint:
    """A destination that is an address."""
    return Endpoint("dst_http", "http", {"base_url": url, **more}, secrets or {})


def asked(endpoint: Endpoint, sql: str, many: list[tuple[Any, ...]] | None = None) -> list[tuple[Any, ...]]:
    """What a database says."""
    config = endpoint.config
    if endpoint.kind == "postgresql":
        place = {"host": config["host"], "port": config["port"], "user": config["user"], "dbname": config["database"]}
        with psycopg.connect(**place, autocommit=True) as one, one.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
            if many is not None:
                cursor.executemany(sql, many)
                return []
            cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []
    place = {"host": config["host"], "port": config["port"], "user": config["user"], "password": mariadb.PASSWORD}
    with pymysql.connect(**place, database=config["database"], autocommit=True) as other, other.cursor() as cursor:
        if many is not None:
            cursor.executemany(sql, many)
            return []
        cursor.execute(sql)
        return list(cursor.fetchall())


def left_over(endpoint: Endpoint, schema: str = "out") -> list[str]:
    """The staging tables that are there."""
    sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'"
    return [name for (name,) in asked(endpoint, sql) if name.startswith("headgate_staging")]


@dataclass
class Answer:
    batches: Iterator[pa.RecordBatch]


class Session:
    """Knows one table."""

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan

    def schema(self, sql: str, args: Any = None) -> pa.Schema:
        assert "`raw`.`orders`" in sql
        return self._plan.table().schema

    def run(self, sql: str, on_progress: Any = None, **_: Any) -> Answer:
        assert ".refs" in sql
        found = [{"snapshot_id": self._plan.snapshot}] if self._plan.snapshot else []
        return Answer(iter(pa.Table.from_pylist(found, pa.schema([("snapshot_id", pa.int64())])).to_batches()))

    def interrupt(self) -> None:
        """There is nothing to stop."""

    def close(self) -> None:
        """There is nothing to free."""


class Platform:
    """Puts the rows of a plan where a function on Spark would."""

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan

    def call(self, function: str, arguments: dict[str, Any], context: Context, *, hosts: Any = ()) -> dict[str, Any]:
        rows = self._plan.rows
        assert arguments["snapshot"] == (str(self._plan.snapshot) if self._plan.snapshot else None)
        if function.endswith("files:export"):
            return _exported(Path(arguments["folder"]), arguments["format"], rows, self._plan.lost)
        assert function.endswith("tables:stage")
        endpoint = self._plan.endpoint
        assert list(hosts) == [(endpoint.config["host"], endpoint.config["port"])]
        quote = '"' if endpoint.kind == "postgresql" else "`"
        names = ", ".join(f"{quote}{one}{quote}" for one in arguments["staged"])
        marks = ", ".join(["%s"] * len(arguments["staged"]))
        given = [tuple(_staged(one) for one in row.values()) for row in rows]
        asked(endpoint, f"INSERT INTO {arguments['staging']} ({names}) VALUES ({marks})", given)
        return {"rows": len(rows) + self._plan.lost}


def _exported(folder: Path, kind: str, rows: list[Row], lost: int) -> dict[str, Any]:
    """Two rows a file."""
    folder.mkdir(parents=True)
    lines = sorted(json.dumps(row, default=str, separators=(",", ":")) for row in rows)
    for number in range(0, max(len(rows), 1), 2):
        file = folder / f"part-{number // 2:05}-x"
        if kind == "csv":
            with file.open("w", newline="") as out:
                writer = csv.DictWriter(out, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows[number : number + 2])
        else:
            file.write_text("".join(f"{line}\n" for line in lines[number : number + 2]))
    return {"rows": len(rows) + lost}


def _staged(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


@dataclass
class Plan:
    """A delivery to make: in this process, or in one that may die at a point."""

    endpoint: Endpoint
    folder: Path
    sending: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=lambda: list(ROWS))
    types: dict[str, pa.DataType] = field(default_factory=dict)
    run: str = field(default_factory=lambda: new_id("run"))
    fence: int = 1
    snapshot: int = 7000000000000000001
    settings: dict[str, Any] = field(default_factory=dict)
    point: str = ""
    lost: int = 0
    """How many rows did not arrive in the staging table, or in the files."""
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return "\n".join(line for _, line in self.lines)

    def table(self) -> pa.Table:
        if self.types:
            return pa.Table.from_pylist(self.rows, pa.schema(list(self.types.items())))
        return pa.Table.from_pylist(self.rows)

    def again(self, **more: Any) -> "Plan":
        """The same run, begun again."""
        return replace(self, **{"fence": self.fence + 1, "point": "", "lines": [], **more})

    def context(self) -> tuple[Deliver, Context]:
        step = Deliver(DeliveryIn(table="raw.orders", **{"target": "out.sent", **self.sending}), TABLE)
        memory = self.folder / f"{self.run}.json"
        known = {0: json.loads(memory.read_text())} if memory.exists() else {}
        job = RunJob(
            id=self.run, fence=self.fence, token="hgw_x", steps=[step], done=0, moment=datetime.now(UTC),
            time_zone="UTC", seconds=120, full_refresh=False, states={}, endpoints={self.endpoint.id: self.endpoint},
            memories=known, pipeline=PIPELINE,
        )  # fmt: skip
        settings = Settings(data_dir=self.folder, **{"outgoing": {"allow": ["127.0.0.1"]}, **self.settings})
        folder = self.folder / self.run / str(self.fence)
        folder.mkdir(parents=True, exist_ok=True)
        context = Context(
            job,
            settings,
            folder,
            open_member=lambda: Session(self),
            platform=Platform(self),
            tell=lambda level, text: self.lines.append((level, text)),
            note=lambda _: None,
        )

        def remember(_: int, told: dict[str, Any]) -> None:
            memory.write_text(json.dumps(told))

        context.remembers = remember
        return step, context

    def deliver(self) -> Result:
        """Here and now."""
        return deliver.run(*self.context())


def killed(plan: Plan, point: str) -> int | None:
    """Deliver in a process that dies at a point; what it ended with: -9 if it died there, 0 if it never came there."""
    process = _FORKS.Process(target=_work, args=(replace(plan, point=point),))
    process.start()
    process.join(60)
    return process.exitcode


def _work(plan: Plan) -> None:
    os.environ[VARIABLE] = plan.point
    plan.deliver()


def failure(plan: Plan) -> StepFailed:
    """Why a delivery fails."""
    try:
        plan.deliver()
    except StepFailed as error:
        return error
    raise AssertionError("it was delivered")


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "tests.execution.deliveries.support",
        "headgate.execution.deliveries.tables",
        "headgate.execution.deliveries.files",
    ]
)
