"""What the columns of a query are made of, as the guard reads it off Spark's own plan."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from tests.spark_guard import server

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

KEY = "headgate.origins"


@pytest.fixture(scope="module")
def session(guarded: server.Server) -> Iterator[Any]:
    """A session that asks for origins, and tables to query."""
    made = SparkSession.builder.remote(guarded.url).create()
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.origin").collect()
    made.sql("CREATE TABLE origin.sold (id BIGINT, shop STRING, amount DOUBLE, tags ARRAY<STRING>)").collect()
    made.sql("CREATE TABLE origin.shops (shop STRING, owner STRUCT<name: STRING>, boss STRING)").collect()
    made.conf.set(KEY, "true")
    yield made
    made.stop()


def found(session: Any, sql: str) -> dict[str, list[str]]:
    """Of each column, what it is made of."""
    told = {}
    for one in session.sql(sql).schema.fields:
        flat = one.metadata.get(KEY, [])
        pairs = zip(flat[::2], flat[1::2], strict=True)
        told[one.name] = [f"{table.removeprefix('origin.')}.{name}" for table, name in pairs]
    return told


QUERIES = {
    "SELECT id, shop AS s, 1 AS one FROM origin.sold": {"id": ["sold.id"], "s": ["sold.shop"], "one": []},
    "SELECT * FROM origin.shops": {
        "shop": ["shops.shop"],
        "owner": ["shops.owner"],
        "boss": ["shops.boss"],
    },
    "SELECT shop, sum(amount) / count(*) AS mean, count(*) AS n FROM origin.sold WHERE id > 3 GROUP BY shop": {
        "shop": ["sold.shop"],
        "mean": ["sold.amount"],
        "n": [],
    },
    "SELECT upper(owner.name) AS who, a.id + b.id AS x FROM origin.sold a JOIN origin.sold b USING (id) "
    "JOIN origin.shops s ON s.shop = a.shop": {"who": ["shops.owner"], "x": ["sold.id"]},
    "WITH a AS (SELECT shop, max(amount) AS top FROM origin.sold GROUP BY shop), b AS (SELECT top AS t FROM a) "
    "SELECT a.shop, b.t FROM a CROSS JOIN b": {"shop": ["sold.shop"], "t": ["sold.amount"]},
    "SELECT id AS v FROM origin.sold UNION ALL SELECT length(boss) FROM origin.shops": {"v": ["shops.boss", "sold.id"]},
    "SELECT shop FROM origin.sold EXCEPT SELECT shop FROM origin.shops": {"shop": ["sold.shop"]},
    "SELECT id, tag FROM origin.sold LATERAL VIEW explode(tags) t AS tag": {"id": ["sold.id"], "tag": ["sold.tags"]},
    "SELECT id, sum(amount) OVER (PARTITION BY shop ORDER BY id) AS run FROM origin.sold": {
        "id": ["sold.id"],
        "run": ["sold.amount", "sold.id", "sold.shop"],
    },
    "SELECT id, (SELECT max(boss) FROM origin.shops s WHERE s.shop = o.shop) AS boss FROM origin.sold o": {
        "id": ["sold.id"],
        "boss": ["shops.boss"],
    },
    "SELECT id, EXISTS (SELECT 1 FROM origin.shops) AS some FROM origin.sold": {"id": ["sold.id"], "some": []},
    "SELECT id, l.x FROM origin.sold o, LATERAL (SELECT concat(o.shop, s.boss) AS x FROM origin.shops s) l": {
        "id": ["sold.id"],
        "x": ["shops.boss", "sold.shop"],
    },
    "SELECT shop, id, sum(amount) AS total FROM origin.sold GROUP BY GROUPING SETS ((shop), (id))": {
        "shop": ["sold.shop"],
        "id": ["sold.id"],
        "total": ["sold.amount"],
    },
    "SELECT * FROM (SELECT shop, amount FROM origin.sold) PIVOT (sum(amount) FOR shop IN ('a' AS a, 'b' AS b))": {
        "a": ["sold.amount", "sold.shop"],
        "b": ["sold.amount", "sold.shop"],
    },
    "SELECT * FROM (SELECT id, shop, boss FROM origin.sold JOIN origin.shops USING (shop)) "
    "UNPIVOT (v FOR k IN (shop, boss))": {"id": ["sold.id"], "k": [], "v": ["shops.boss", "sold.shop"]},
    "WITH RECURSIVE r(n, m) AS (SELECT id, 0L FROM origin.sold UNION ALL SELECT n + 1, n FROM r WHERE n < 3) "
    "SELECT n, m FROM r": {"n": ["sold.id"], "m": ["sold.id"]},
    "FROM origin.sold |> WHERE id > 1 |> EXTEND amount * 2 AS twice |> SELECT twice": {"twice": ["sold.amount"]},
    "SELECT id, id FROM origin.sold ORDER BY amount LIMIT 3": {"id": ["sold.id"]},
    "SELECT snapshot_id FROM origin.sold.snapshots": {"snapshot_id": []},
    "SELECT transform(tags, t -> concat(t, shop)) AS x FROM origin.sold": {"x": ["sold.shop", "sold.tags"]},
    "SELECT CASE WHEN id > 1 THEN shop ELSE 'sold.boss#1' END AS x FROM origin.sold": {"x": ["sold.id", "sold.shop"]},
    "SELECT id FROM origin.sold WHERE shop IN (SELECT shop FROM origin.shops)": {"id": ["sold.id"]},
    "VALUES (1)": {"col1": []},
}


@pytest.mark.parametrize("sql", QUERIES)
def test_columns_say_what_they_are_made_of(session: Any, sql: str) -> None:
    assert found(session, sql) == QUERIES[sql]


def test_parameters_are_values(session: Any) -> None:
    sql = "SELECT id, :since AS since, amount + :more AS x FROM origin.sold"
    schema = session.sql(sql, args={"since": 1, "more": 2}).schema
    assert [one.metadata.get(KEY) for one in schema.fields] == [
        ["origin.sold", "id"],
        [],
        ["origin.sold", "amount"],
    ]


def test_subqueries_in_one_another_cost_no_more_than_they_are(session: Any) -> None:
    sql = "(SELECT max(amount) FROM origin.sold)"
    for _ in range(25):
        sql = f"(SELECT max(amount) + {sql} FROM origin.sold)"
    assert found(session, f"SELECT {sql} AS x") == {"x": ["sold.amount"]}


def test_statements_run_the_same_with_and_without(session: Any, spark: Any) -> None:
    session.sql("INSERT INTO origin.sold VALUES (1, 'a', 2.5, array('x', 'y'))").collect()
    sql = "SELECT shop, tag, amount FROM origin.sold LATERAL VIEW explode(tags) t AS tag ORDER BY tag"
    assert session.sql(sql).collect() == spark.sql(sql).collect()
    assert all(KEY not in one.metadata for one in spark.sql(sql).schema.fields)


def test_no_sql_asks_for_them(spark: Any) -> None:
    with pytest.raises(Exception, match="HEADGATE_REFUSED"):
        spark.sql(f"SET {KEY}=true").collect()
