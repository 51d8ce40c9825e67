"""Deliveries on a real Spark whose worker is killed, again and again: each row arrives once."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
import pytest

from headgate.execution.spark import conf
from headgate.execution.spark import platform_environment as outfit
from headgate.execution.spark.local import local_server
from headgate.kit.crash_points import VARIABLE
from headgate.kit.database import Database
from headgate.settings.settings import Settings
from tests.lakehouse.sql.conftest import opened
from tests.pipelines.runs.conftest import PipelineBench
from tests.pipelines.runs.support import lose
from tests.support import s3
from tests.support.installation import eventually
from tests.support.s3 import S3Server
from tests.support.spark import SharedSpark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROWS = 1000
TO_A_TABLE = ("delivery: rows staged", "delivery: committed")
TO_A_FOLDER = ("delivery: before the files appear", "delivery: files appeared")
PLACES = {"outgoing": {"allow": ["127.0.0.1"]}}


@dataclass
class DeliveryBench(PipelineBench):
    """The company with no worker but those that a test starts, and the platform's Spark, which outlives them."""

    platform: str

    @contextmanager
    def worker_process(self, *points: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A worker that dies at the first of these points that it meets."""
        file, crashes = self.folder / "plan.json", self.folder / "crashes"
        crashes.write_text("\n".join(points), encoding="utf-8")
        spark = {"platform_url": self.platform}
        settings = {"data_dir": str(self.folder), "warehouse": self.spark.warehouse, "spark": spark, **PLACES}
        plan = {
            "server": self.address,
            "secret": self.millrace.client.app.state.services.worker_secret,  # type: ignore[attr-defined]
            "catalog": self.spark.doorway.catalog_url,
            "folder": str(self.folder / outfit.RUNS),
            "settings": {**settings, "deliveries": {"folders": [str(self.folder / "out")]}},
            "spark": asdict(self.spark.member._server.address),
        }
        file.write_text(json.dumps(plan), encoding="utf-8")
        environment = {**os.environ, VARIABLE: f"@{crashes}"}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.pipelines.runs.mortal_deliverer", str(file)], env=environment
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def killed_at(self, run: str, *points: str) -> dict[str, Any]:
        """A run that loses a worker at each of these points, and is ended by the last."""
        for point in points:
            with self.worker_process(point) as process:
                assert process.wait(120) == -signal.SIGKILL, point
            assert self.show("Tess", run)["state"] == "running", point
            lose(self.millrace)
        with self.worker_process():
            return self.ended("Tess", run)

    def deliver(self, name: str, place: dict[str, Any], secrets: dict[str, str], **sending: Any) -> str:
        """A run of a delivery, which waits."""
        body = {"name": name, "place": place, "secrets": secrets}
        answer = self.millrace.as_("Tess").post("/api/destinations", body)
        assert answer.status_code == 200, answer.text
        tables = [{"table": "raw.goods", **sending}]
        made = self.make("Tess", name, kind="delivery", destination=answer.json()["id"], tables=tables)
        return self.start("Tess", made)


@pytest.fixture(scope="module")
def delivery_bench(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeliveryBench]:
    folder = tmp_path_factory.mktemp("yard")
    (folder / "out").mkdir()
    places = {"deliveries": {"folders": [str(folder / "out")]}, **PLACES}
    catalog = shared_spark.doorway.catalog_url
    settings = Settings(
        data_dir=folder / "platform", warehouse=shared_spark.warehouse, spark={"memory": "1g", "sandbox": "off"}
    )
    (folder / "platform").mkdir()
    with opened(shared_spark, Database(f"sqlite:///{folder}/headgate.db"), folder, **places) as found:
        server = local_server("platform", settings, conf.for_platform(catalog), outfit.ServerEnvironment())
        address = server.start(lambda: None)
        url = f"sc://localhost:{address.port}/;token={address.token}"
        try:
            one = DeliveryBench(found.millrace, found.spark, found.address, folder, url)
            with one.worker():
                one.rows("Tess", f"CREATE TABLE raw.goods AS SELECT id, concat('n', id) AS name FROM range({ROWS})")
                yield one
        finally:
            server.stop()


def test_a_table_gets_to_postgresql_once(delivery_bench: DeliveryBench, postgres_url: str) -> None:
    port = int(postgres_url.rpartition(":")[2].partition("/")[0])
    place = {"kind": "postgresql", "host": "127.0.0.1", "port": port, "database": "postgres", "user": "headgate"}
    with psycopg.connect(postgres_url, autocommit=True) as there:
        there.execute("CREATE SCHEMA killed")
        run = delivery_bench.deliver(
            "Goods to a table", {**place, "tls": "off"}, {"password": "x"}, target="killed.goods"
        )
        found = delivery_bench.killed_at(run, *TO_A_TABLE)
        assert found["state"] == "succeeded", (found, delivery_bench.log("Tess", run))
        counted = there.execute("SELECT count(*), count(DISTINCT id) FROM killed.goods").fetchall()
        assert counted == [(ROWS, ROWS)]
        assert there.execute("SELECT run_id, row_count FROM killed.headgate_deliveries").fetchall() == [(run, ROWS)]
        names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'killed' ORDER BY 1"
        assert there.execute(names).fetchall() == [("goods",), ("headgate_deliveries",)]
        there.execute("DROP SCHEMA killed CASCADE")


def test_files_get_to_a_folder_once(delivery_bench: DeliveryBench) -> None:
    out = delivery_bench.folder / "out"
    run = delivery_bench.deliver(
        "Goods as files", {"kind": "folder", "path": str(out)}, {}, target="goods", format="json"
    )
    found = delivery_bench.killed_at(run, *TO_A_FOLDER)
    assert found["state"] == "succeeded", (found, delivery_bench.log("Tess", run))
    (own,) = (out / "goods").iterdir()
    assert [one.name for one in own.iterdir()] == [f"{run}-0"], "nothing that a dead one left"
    told = json.loads((own / f"{run}-0" / "_SUCCESS").read_bytes())
    files = [(own / f"{run}-0" / one["name"]).read_text() for one in told["files"]]
    rows = [json.loads(line) for one in files for line in one.splitlines()]
    assert sorted(row["id"] for row in rows) == list(range(ROWS))
    assert {one.name for one in (own / f"{run}-0").iterdir()} == {"_SUCCESS", *(one["name"] for one in told["files"])}


def test_files_get_to_a_bucket_once(delivery_bench: DeliveryBench, s3_server: S3Server) -> None:
    place = {"kind": "object_store", "endpoint": s3_server.endpoint, "bucket": s3.BUCKET, "region": s3.REGION}
    access = {"prefix": "killed", "path_style": True, "access_key_id": s3.KEY_ID}
    run = delivery_bench.deliver(
        "Goods to a bucket", {**place, **access}, {"secret_key": s3.SECRET}, target="goods", format="csv"
    )
    found = delivery_bench.killed_at(run, "delivery: before the files appear")
    assert found["state"] == "succeeded", (found, delivery_bench.log("Tess", run))
    (success,) = (s3_server.folder / s3.BUCKET / "killed" / "goods").rglob("_SUCCESS")
    told = json.loads(success.read_bytes())
    assert (told["run"], told["rows"]) == (run, ROWS)
    lines = [line for one in told["files"] for line in (success.parent / one["name"]).read_text().splitlines()[1:]]
    assert sorted(int(line.partition(",")[0].strip('"')) for line in lines) == list(range(ROWS))
    eventually(
        lambda: {one.name for one in success.parent.iterdir()} == {"_SUCCESS", *(f["name"] for f in told["files"])}, 5
    )
