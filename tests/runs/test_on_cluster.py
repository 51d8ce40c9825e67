"""The main pipelines on a real cluster: a master, two workers, a server for members' SQL and one for our own steps.

`make cluster-test` runs these; `make test` runs pipelines on this machine's own Spark.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from headgate.kit.db import Database
from tests.runs.conftest import Plant
from tests.support import cluster
from tests.support.spark import SharedSpark
from tests.workbench.conftest import opened

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("spark")]

CSV = "id,shop,amount\n" + "\n".join(f"{number},{number % 3},{number}.50" for number in range(1000))


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    """The company, whose Spark is a cluster."""
    folder = tmp_path_factory.mktemp("far")
    spark = SharedSpark(folder)
    with cluster.started(folder, spark.doorway.catalog_url, platform=True) as running:
        spark.use(running)
        own = {
            "spark": {"member_url": running.url, "platform_url": running.platform_url},
            "outgoing": {"allow": ["127.0.0.1"]},
        }
        with opened(spark, Database(f"sqlite:///{folder}/headgate.db"), folder, **own) as found:
            one = Plant(found.millrace, found.spark, found.address, folder)
            with one.running():
                yield one
        spark.close()


def ran(far: Plant, name: str, **definition: Any) -> dict[str, Any]:
    """A run that succeeded, of a pipeline that is made for it."""
    run = far.ran("Tess", far.make("Tess", name, **definition))
    assert run["state"] == "succeeded", (run, far.log("Tess", run["id"]))
    return run


def test_files_of_a_volume_land(far: Plant) -> None:
    tess = far.millrace.as_("Tess")
    volume = tess.post("/api/volumes", {"name": "landing", "layer": "raw"}).json()["id"]
    put = tess.request("PUT", f"/api/volumes/{volume}/files/sold.csv", content=CSV.encode())
    assert put.status_code == 200, put.text
    stream = {"name": "*.csv", "table": "sold"}
    run = ran(far, "Sold", kind="source", volume="raw.landing", output_layer="raw", streams=[stream])
    assert (run["rows_out"], run["rejected"]) == (1000, 0)
    assert far.rows("Tess", "SELECT count(*), sum(amount) FROM raw.sold") == [[1000, 500000.0]]


def test_a_table_of_a_database_lands_in_parts(far: Plant, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.bought AS SELECT g AS id, g % 7 AS kind FROM generate_series(1, 5000) g")
    parts = urlsplit(postgres_url)
    place = {"kind": "postgresql", "host": "127.0.0.1", "port": parts.port, "tls": "off"}
    place |= {"database": parts.path[1:], "user": parts.username}
    body = {"name": "Far shop", "space": "Sales data", "place": place, "secrets": {"password": "none"}}
    made = far.millrace.as_("Tess").post("/api/connections", body)
    assert made.status_code == 200, made.text
    stream = {"name": "shop.bought", "table": "bought", "in_parts": {"column": "id", "parts": 3}}
    definition = {"connection": made.json()["id"], "output_layer": "raw", "streams": [stream]}
    run = ran(far, "Bought", kind="source", **definition)
    assert run["rows_out"] == 5000
    assert far.rows("Tess", "SELECT count(*), count(DISTINCT id), max(kind) FROM raw.bought") == [[5000, 5000, 6]]


def test_a_query_and_its_expectations(far: Plant) -> None:
    far.rows("Tess", "CREATE TABLE raw.orders_far AS SELECT id, id % 4 AS shop FROM range(0, 4000, 1, 8)")
    check = {"table": "trusted.by_shop_far", "check": "unique", "columns": ["shop"]}
    sql = "SELECT shop, count(*) AS orders FROM raw.orders_far GROUP BY shop"
    run = ran(far, "By shop", kind="query", sql=sql, output="trusted.by_shop_far", expectations=[check])
    assert [one["kind"] for one in run["steps"]] == ["refine", "check"]
    assert far.rows("Tess", "SELECT shop, orders FROM trusted.by_shop_far ORDER BY shop") == [
        [shop, 1000] for shop in range(4)
    ]


def test_a_history_follows(far: Plant) -> None:
    far.rows("Tess", "CREATE TABLE raw.customers_far AS SELECT id, 'a' AS region FROM range(100)")
    definition = {"table": "raw.customers_far", "output": "trusted.versions_far", "keys": ["id"]}
    pipeline = far.make("Tess", "Versions", kind="history", **definition)
    assert far.ran("Tess", pipeline)["state"] == "succeeded"
    far.rows("Tess", "UPDATE raw.customers_far SET region = 'b' WHERE id < 10")
    run = far.ran("Tess", pipeline)
    assert run["state"] == "succeeded", (run, far.log("Tess", run["id"]))
    sql = "SELECT _is_current, region, count(*) FROM trusted.versions_far GROUP BY ALL ORDER BY 1, 2"
    assert far.rows("Tess", sql) == [[False, "a", 10], [True, "a", 90], [True, "b", 10]]
