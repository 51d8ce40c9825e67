"""Pipelines of every kind on a real cluster: a master, two workers, a server for members' SQL and one for our own steps.

`make cluster-test` runs these; `make test` runs pipelines on this machine's own Spark. One installation, run by
`headgate up`, does all of it; its settings name the cluster's two servers.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import openpyxl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from headgate.execution.spark import remote as elsewhere
from headgate.execution.spark.platform import PlatformSpark
from headgate.settings.settings import Settings
from tests.support import cluster, mariadb
from tests.support.api import SECRET, Reply, rows, serving
from tests.support.cluster import Cluster
from tests.support.installation import eventually
from tests.support.killing import Works, works
from tests.support.mariadb import MariaDb

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("spark")]

COUNT = 50
NAMED = [(number, f"n{number}") for number in range(COUNT)]


@dataclass
class Far:
    """The company's installation, whose Spark is a cluster."""

    site: Works
    running: Cluster
    folder: Path
    volumes: dict[str, str] = field(default_factory=dict)

    def ran(self, name: str, **definition: Any) -> dict[str, Any]:
        """A run that succeeded, of a pipeline that is made for it."""
        return self.again(self.site.make(name, **definition))

    def again(self, pipeline: str) -> dict[str, Any]:
        """Another run that succeeded."""
        run = self.site.ended(self.site.start(pipeline), 240)
        assert run["state"] == "succeeded", (run, self.site.log(run["id"]), self.site.said)
        return dict(run)

    def put(self, volume: str, name: str, content: bytes) -> None:
        """A file of a volume in raw, which is made if it is not there."""
        if volume not in self.volumes:
            self.volumes[volume] = self.site.volume(volume)
        self.site.send("PUT", f"/api/volumes/{self.volumes[volume]}/files/{name}", content=content)

    def land(self, volume: str, table: str, **stream: Any) -> dict[str, Any]:
        """Land all files of a volume."""
        streams = [{"name": "*", "table": table, **stream}]
        return self.ran(f"Land {table}", kind="source", volume=f"raw.{volume}", output_layer="raw", streams=streams)

    def connection(self, name: str, place: dict[str, Any], **secrets: str) -> str:
        """A connection; its id."""
        body = {"name": name, "space": "Sales data", "place": place, "secrets": secrets}
        return str(self.site.send("POST", "/api/connections", json=body)["id"])

    def delivered(self, name: str, place: dict[str, Any], secrets: dict[str, str], **sending: Any) -> dict[str, Any]:
        """A run that delivered the known rows."""
        body = {"name": name, "place": place, "secrets": secrets}
        to = self.site.send("POST", "/api/destinations", json=body)["id"]
        run = self.ran(f"Send to {name}", kind="delivery", destination=to, tables=[{"table": "raw.known", **sending}])
        assert [(one["kind"], one["rows_out"]) for one in run["steps"]] == [("deliver", COUNT)]
        return run


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    folder, port = tmp_path_factory.mktemp("far"), cluster.free_port()
    (folder / "out").mkdir()
    (folder / "spark").mkdir()
    with cluster.started(folder / "spark", f"http://127.0.0.1:{port}/iceberg", platform=True) as running:
        settings = {
            "HEADGATE_SERVER__PORT": str(port),
            "HEADGATE_SPARK__MEMBER_URL": running.url,
            "HEADGATE_SPARK__PLATFORM_URL": str(running.platform_url),
            "HEADGATE_OUTGOING__ALLOW": '["127.0.0.1"]',
            "HEADGATE_DELIVERIES__FOLDERS": json.dumps([str(folder / "out")]),
            "HEADGATE_MAINTENANCE__COMPACT_MIN_FILES": "5",
        }
        (folder / "headgate").mkdir()
        with works(folder / "headgate", **settings) as site:
            yield Far(site, running, folder)


@pytest.fixture(scope="module")
def known(far: Far) -> Far:
    """A table of raw with some rows, in several files."""
    far.site.rows(f"CREATE TABLE raw.known AS SELECT id, concat('n', id) AS name FROM range(0, {COUNT}, 1, 4)")
    return far


# Operating it


def doctor(far: Far, **settings: str) -> dict[str, list[dict[str, Any]]]:
    """What the doctor says of both servers; none of it is a key."""
    done = far.site.one.headgate("doctor", "--json", **settings)
    assert "token=" not in done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == int(any(one["state"] == "wrong" for one in found)), done.stderr
    return {name: [one for one in found if one["name"] == name] for name in ("spark", "platform")}


def test_the_doctor_finds_both_servers_well(far: Far) -> None:
    found = doctor(far)
    [spark], [platform] = found["spark"], found["platform"]
    assert (spark["state"], platform["state"]) == ("ok", "ok"), found
    assert far.running.url.partition("/;")[0] in spark["detail"]
    assert spark["detail"].endswith("and the guard rejects forbidden statements")


def test_servers_that_were_mistaken_for_each_other_are_told(far: Far) -> None:
    swapped = {"MEMBER_URL": str(far.running.platform_url), "PLATFORM_URL": far.running.url}
    found = doctor(far, **{f"HEADGATE_SPARK__{name}": url for name, url in swapped.items()})
    [spark], [platform] = found["spark"], found["platform"]
    assert (spark["state"], platform["state"]) == ("wrong", "wrong")
    assert "it has the guard for members' SQL" in platform["detail"]


def test_a_folder_that_the_cluster_does_not_share_is_told(far: Far) -> None:
    """The path leads to another place for each process that does not work in the same folder."""
    [found] = doctor(far, HEADGATE_DATA_DIR="/proc/self/cwd")["platform"]
    assert "its machines cannot read and write /proc/self/cwd/work/runs" in found["detail"]


@pytest.mark.parametrize(
    ("module", "says"),
    [("headgate", "has no headgate;"), ("nowhere.at_all", "its executors cannot run Python (")],
)
def test_a_python_that_lacks_something_there_is_told(far: Far, module: str, says: str) -> None:
    folder = far.folder / f"lacks-{module}"
    folder.mkdir()
    settings = Settings(data_dir=folder, spark={"platform_url": far.running.platform_url})
    platform = PlatformSpark(settings, f"{far.site.address}/iceberg")
    arguments = {"folder": str(folder), "modules": [*elsewhere.NEEDED, module]}
    try:
        found = platform.call(elsewhere.FUNCTION, arguments, elsewhere._context(settings, folder, platform))
    finally:
        platform.close()
    [told] = found["wrong"]
    assert says in told
    assert "with pyspark, pandas, pyarrow, python_calamine" in told


# Landing


def avro() -> bytes:
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))
    with TemporaryDirectory() as folder:
        file = Path(folder, "file")
        with AvroOutputFile[Record](PyArrowFileIO().new_output(str(file)), schema, "row") as writer:
            writer.write_block([Record(*row) for row in NAMED])
        return file.read_bytes()


def parquet() -> bytes:
    found = io.BytesIO()
    pq.write_table(pa.table({"id": [row[0] for row in NAMED], "name": [row[1] for row in NAMED]}), found)
    return found.getvalue()


def workbook() -> bytes:
    book, found = openpyxl.Workbook(), io.BytesIO()
    for row in (("id", "name"), *NAMED):
        book.active.append(row)
    book.save(found)
    return found.getvalue()


def texts(line: str, *around: str) -> Callable[[], bytes]:
    """A file of texts: a line for each row, with others before and after."""
    before, after = (*around, "", "")[:2]
    lines = [before, *(line.format(number=number, name=name) for number, name in NAMED), after]
    return "\n".join(lines).strip().encode


FILES: dict[str, tuple[Callable[[], bytes], dict[str, Any]]] = {
    "csv": (texts("{number},{name}", "id,name"), {}),
    "json": (texts('{{"id": {number}, "name": "{name}"}}'), {}),
    "parquet": (parquet, {}),
    "avro": (avro, {}),
    "xml": (texts("<one><id>{number}</id><name>{name}</name></one>", "<all>", "</all>"), {"row_tag": "one"}),
    "excel": (workbook, {}),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_of_a_volume_land(far: Far, kind: str) -> None:
    content, options = FILES[kind]
    for name in ("a", "b"):
        far.put(f"of_{kind}", f"{name}.{kind}", content())
    run = far.land(f"of_{kind}", f"from_{kind}", files={"format": kind, **options})
    assert (run["rows_out"], run["rejected"]) == (2 * COUNT, 0)
    found = far.site.rows(f"SELECT id, name, count(*) FROM raw.from_{kind} GROUP BY id, name ORDER BY id")
    assert found == [[number, name, 2] for number, name in NAMED]


def test_rows_of_an_api_land(far: Far) -> None:
    """Python inside the executors asks for them, without Headgate's own package there."""
    with serving(rows(25)) as api:
        place = {"kind": "http", "base_url": api.url, "auth": {"style": "bearer"}, "per_second": 100}
        connection = far.connection("Far API", place, token=SECRET)
        parts = {"partition_parameter": "region", "partitions": ["north", "south", "east"]}
        stream = {"name": "/region", "table": "from_api", "api": parts}
        run = far.ran("API", kind="source", connection=connection, output_layer="raw", streams=[stream])
        assert {one.headers["authorization"] for one in api.seen} == {f"Bearer {SECRET}"}
    assert (run["rows_out"], run["rejected"]) == (75, 0)
    found = far.site.rows("SELECT region, count(*), sum(amount) FROM raw.from_api GROUP BY region ORDER BY region")
    assert found == [[region, 25, 81.25] for region in ("east", "north", "south")]


def postgresql(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    place = {"kind": "postgresql", "host": "127.0.0.1", "port": parts.port, "tls": "off"}
    return place | {"database": parts.path[1:], "user": parts.username}


def mysql(server: MariaDb) -> dict[str, Any]:
    server.run("CREATE DATABASE IF NOT EXISTS far")
    place = {"kind": "mysql", "host": "127.0.0.1", "port": server.port, "tls": "off"}
    return place | {"database": "far", "user": mariadb.USER}


def test_a_table_of_a_database_lands_in_parts(far: Far, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.bought AS SELECT g AS id, g % 7 AS kind FROM generate_series(1, 5000) g")
    made = far.connection("Far shop", postgresql(postgres_url), password="none")
    stream = {"name": "shop.bought", "table": "bought", "in_parts": {"column": "id", "parts": 3}}
    run = far.ran("Bought", kind="source", connection=made, output_layer="raw", streams=[stream])
    assert run["rows_out"] == 5000
    assert far.site.rows("SELECT count(*), count(DISTINCT id), max(kind) FROM raw.bought") == [[5000, 5000, 6]]


def test_new_rows_of_a_database_are_merged(far: Far, mariadb_server: MariaDb) -> None:
    made = far.connection("Far till", mysql(mariadb_server), password=mariadb.PASSWORD)
    mariadb_server.run(
        "CREATE TABLE far.paid (id INT PRIMARY KEY, at DATETIME, amount DECIMAL(10, 2))",
        "INSERT INTO far.paid VALUES (1, '2026-01-01', 1.50), (2, '2026-01-02', 2.50)",
    )
    stream = {"name": "far.paid", "table": "paid", "read": "incremental", "write": "merge"}
    streams = [stream | {"cursor": "at", "keys": ["id"]}]
    pipeline = far.site.make("Paid", kind="source", connection=made, output_layer="raw", streams=streams)
    assert far.again(pipeline)["rows_out"] == 2
    mariadb_server.run(
        "UPDATE far.paid SET at = '2026-01-03', amount = 9 WHERE id = 1",
        "INSERT INTO far.paid VALUES (3, '2026-01-04', 3.50)",
    )
    far.again(pipeline)
    found = far.site.rows("SELECT id, CAST(amount AS STRING) FROM raw.paid ORDER BY id")
    assert found == [[1, "9.00"], [2, "2.50"], [3, "3.50"]]


# Refining


def test_a_query_and_its_expectations(known: Far) -> None:
    output = "trusted.by_kind"
    expected: list[dict[str, Any]] = [
        {"check": "unique", "columns": ["kind"]},
        {"check": "not_null", "columns": ["rows"]},
        {"check": "range", "columns": ["rows"], "least": 1},
        {"check": "accepted", "columns": ["kind"], "values": [0, 1, 2, 3]},
        {"check": "pattern", "columns": ["name"], "pattern": "n[0-9]+"},
        {"check": "rows", "least": 4, "most": 4},
        {"check": "reference", "columns": ["name"], "other": "raw.known", "other_columns": ["name"]},
        {"check": "sql", "sql": f"SELECT * FROM {output} WHERE rows > {COUNT}"},
    ]
    sql = "SELECT id % 4 AS kind, count(*) AS rows, max(name) AS name FROM raw.known GROUP BY 1"
    checks = [{"table": output, **one} for one in expected]
    run = known.ran("By kind", kind="query", sql=sql, output=output, expectations=checks)
    assert {one["kind"] for one in run["steps"]} == {"refine", "check"}
    assert known.site.rows(f"SELECT kind, rows FROM {output} ORDER BY kind") == [[0, 13], [1, 13], [2, 12], [3, 12]]


def test_what_is_not_as_expected_is_not_published(far: Far) -> None:
    far.site.rows("CREATE TABLE raw.few AS SELECT id FROM range(10)")
    check = {"table": "trusted.few", "check": "rows", "most": 10}
    definition = {"sql": "SELECT id FROM raw.few", "output": "trusted.few", "expectations": [check]}
    pipeline = far.site.make("Few", kind="query", **definition)
    far.again(pipeline)
    far.site.rows("INSERT INTO raw.few VALUES (10)")
    run = far.site.ended(far.site.start(pipeline))
    assert (run["state"], run["error_code"]) == ("failed", "EXPECTATION_FAILED"), run
    assert far.site.rows("SELECT count(*) FROM trusted.few") == [[10]]


def test_a_history_follows(far: Far) -> None:
    far.site.rows("CREATE TABLE raw.customers AS SELECT id, 'a' AS region FROM range(100)")
    definition = {"table": "raw.customers", "output": "trusted.versions", "keys": ["id"]}
    pipeline = far.site.make("Versions", kind="history", **definition)
    far.again(pipeline)
    far.site.rows("UPDATE raw.customers SET region = 'b' WHERE id < 10")
    far.again(pipeline)
    sql = "SELECT _is_current, region, count(*) FROM trusted.versions GROUP BY ALL ORDER BY 1, 2"
    assert far.site.rows(sql) == [[False, "a", 10], [True, "a", 90], [True, "b", 10]]


def test_a_notebook_runs_here_and_what_it_saves_is_written_there(known: Far) -> None:
    volume = known.site.volume("kept")
    cells = """from pyspark.sql import functions as f
print(spark.sparkContext.master)
save(load("raw.known").withColumn("twice", f.udf(lambda one: 2 * one, "bigint")("id")), "trusted.noted")
save_file("raw.kept", "out/note.txt", b"kept")
"""
    definition = {"inputs": ["raw.known"], "outputs": [{"table": "trusted.noted", "write": "merge", "keys": ["id"]}]}
    definition |= {"cells": [{"source": cells}], "output_volumes": ["raw.kept"]}
    pipeline = known.site.make("Note", kind="notebook", **definition)
    for _ in range(2):
        run = known.again(pipeline)
        assert [one["kind"] for one in run["steps"]] == ["notebook", "save_staged"]
    sql = "SELECT count(*), sum(twice) - 2 * sum(id) FROM trusted.noted"
    assert known.site.rows(sql) == [[COUNT, 0]]
    assert known.site.files(volume) == {"out/note.txt": 4}


# Delivering


def test_a_table_is_delivered_to_postgresql(known: Far, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS far CASCADE")
        connection.execute("CREATE SCHEMA far")
        how = {"target": "far.known", "write": "upsert", "keys": ["id"]}
        known.delivered("Far PostgreSQL", postgresql(postgres_url), {}, **how)
        assert connection.execute("SELECT id, name FROM far.known ORDER BY id").fetchall() == NAMED


def test_a_table_is_delivered_to_mariadb(known: Far, mariadb_server: MariaDb) -> None:
    place, password = mysql(mariadb_server), mariadb.PASSWORD
    known.delivered("Far MariaDB", place, {"password": password}, target="far.known", write="overwrite")
    with pymysql.connect(unix_socket=mariadb_server.socket, user="root") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM far.known ORDER BY id")
        assert list(cursor.fetchall()) == NAMED


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_table_is_delivered_as_files(known: Far, kind: str) -> None:
    place = {"kind": "folder", "path": str(known.folder / "out")}
    run = known.delivered(f"Far {kind}", place, {}, target=kind, write="overwrite", format=kind)
    [latest] = (known.folder / "out" / kind).glob("*/_LATEST.json")
    told = json.loads(latest.read_bytes())
    assert (told["run"], told["rows"]) == (run["id"], COUNT)
    found = [row for one in told["files"] for row in read(known.folder / "out" / told["place"] / one["name"], kind)]
    assert sorted(found) == NAMED


def read(file: Path, kind: str) -> list[tuple[int, str]]:
    """The rows of a file."""
    if kind == "parquet":
        return [(row["id"], row["name"]) for row in pq.read_table(file).to_pylist()]
    lines = file.read_text(encoding="utf-8").splitlines()
    return [
        (int(row["id"]), row["name"]) for row in (csv.DictReader(lines) if kind == "csv" else map(json.loads, lines))
    ]


def test_a_table_is_delivered_to_an_address(known: Far) -> None:
    with serving() as api:
        api.on("/v1/known", lambda _: Reply({}, 202))
        place = {"kind": "http", "base_url": api.url, "auth": {"style": "bearer"}}
        known.delivered("Far address", place, {"token": SECRET}, target="/v1/known", batch=20)
        arrived = [row for one in api.seen for row in json.loads(one.body)]
    assert [len(json.loads(one.body)) for one in api.seen] == [20, 20, 10]
    assert sorted((row["id"], row["name"]) for row in arrived) == NAMED


# Maintaining


def test_small_files_are_rewritten(far: Far) -> None:
    far.site.rows("CREATE TABLE raw.many (id bigint)")
    for number in range(6):
        far.site.rows(f"INSERT INTO raw.many VALUES ({number})")
    headers = {"Authorization": f"Bearer {far.site.one.token('Olga')}"}
    with httpx.Client(base_url=far.site.address, headers=headers) as olga:
        asked = olga.post("/api/maintenance/passes", json={"table": "raw.many"})
        assert asked.status_code == 200, asked.text
        path = f"/api/maintenance/passes/{asked.json()['id']}"
        eventually(lambda: olga.get(path).json()["state"] in {"succeeded", "failed"}, 120)
        told = olga.get(path).json()
    [table] = told["items"]
    assert (table["compaction"], table["files_before"], table["files_after"]) == ("done", 6, 1), told
    assert far.site.rows("SELECT id FROM raw.many ORDER BY id") == [[number] for number in range(6)]
