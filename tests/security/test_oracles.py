"""Errors as oracles: what is said of a hidden table is, byte for byte, what is said of one that does not exist."""

import re
import statistics
from typing import Any

import pytest

from tests.security.conftest import World, none

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FORMS = (
    "SELECT * FROM {table}",
    "SELECT id FROM {table} WHERE secret = 'x'",
    "SELECT (SELECT max(id) FROM {table})",
    "INSERT INTO {table} VALUES (1, 'x')",
    "INSERT INTO {table} SELECT 1, 2, 3, 4",
    "INSERT OVERWRITE {table} VALUES (1, 'x')",
    "UPDATE {table} SET secret = 'x'",
    "DELETE FROM {table}",
    "TRUNCATE TABLE {table}",
    "MERGE INTO {table} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO service.revenue t USING {table} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "DROP TABLE {table}",
    "DROP TABLE IF EXISTS {table}",
    "DROP TABLE {table} PURGE",
    "ALTER TABLE {table} ADD COLUMN x INT",
    "ALTER TABLE {table} ADD COLUMN id INT",
    "ALTER TABLE {table} DROP COLUMN IF EXISTS nothing",
    "ALTER TABLE {table} SET TBLPROPERTIES ('custom.x' = '1')",
    "ALTER TABLE {table} CREATE BRANCH b",
    "ALTER TABLE {table} ADD PARTITION FIELD id",
    "ALTER TABLE {table} WRITE ORDERED BY id",
    "ALTER TABLE {table} SET IDENTIFIER FIELDS id",
    "ALTER TABLE {table} RENAME TO service.other",
    "ALTER TABLE service.revenue RENAME TO {table}",
    "COMMENT ON TABLE {table} IS 'x'",
    "CREATE TABLE {table} (id INT)",
    "CREATE TABLE IF NOT EXISTS {table} (id INT)",
    "CREATE TABLE {table} AS SELECT 1 AS id",
    "CREATE OR REPLACE TABLE {table} AS SELECT 1 AS id",
    "REPLACE TABLE {table} AS SELECT 1 AS id",
    "CREATE VIEW {table} AS SELECT 1 AS id",
    "SELECT * FROM {table} VERSION AS OF 1",
    "SELECT * FROM {table} VERSION AS OF 'main'",
    "SELECT * FROM {table} TIMESTAMP AS OF '2020-01-01'",
    "SELECT * FROM {table}.snapshots",
    "SELECT * FROM {table}.history",
    "SELECT * FROM {table}.files",
    "SELECT * FROM {table}.branch_main",
    "SELECT _file FROM {table}",
    "DESCRIBE {table}",
    "DESCRIBE {table} id",
    "DESCRIBE {table} nothing",
    "SHOW COLUMNS IN {table}",
    "SHOW TBLPROPERTIES {table} ('custom.x')",
    "SHOW TABLES IN {layer}",
    "SHOW TABLES IN {layer} LIKE '{name}'",
    "EXPLAIN SELECT * FROM {table}",
    "EXPLAIN EXTENDED INSERT INTO {table} VALUES (1, 'x')",
    "CALL lake.system.rollback_to_snapshot('{table}', 1)",
    "CALL lake.system.set_current_snapshot('{table}', 1)",
    "DROP NAMESPACE {layer}",
    "CREATE NAMESPACE {layer}",
    "CREATE TABLE {layer}.fresh (id INT)",
)
PAIRS = (
    ("Bea", "service.vault", "service.cabin"),
    ("Bea", "raw.payments", "raw.pastries"),
    ("Bea", "raw.payments", "bin.payments"),
    ("Ana", "raw.payments", "bin.pastries"),
    ("Tom", "service.vault", "service.cabin"),
)


def written(form: str, table: str) -> str:
    layer, _, name = table.partition(".")
    return form.format(table=table, layer=layer, name=name)


def seen(found: dict[str, Any], table: str) -> str:
    """What a member sees of it, with the names taken out and without what counts up."""
    layer, _, name = table.partition(".")
    told = repr((found["state"], found["error"], found["columns"], found["data"]))
    for one, instead in ((name, "NAME"), (layer, "LAYER")):
        told = re.sub(rf"\b{one}\b", instead, told)
    return re.sub(r"#\d+L?", "#", told)


@pytest.mark.parametrize(("member", "hidden", "missing"), PAIRS)
def test_a_hidden_table_and_a_missing_one_get_the_same_answer(
    world: World, member: str, hidden: str, missing: str
) -> None:
    one = world.attack(member, [written(form, hidden) for form in FORMS])
    other = world.attack(member, [written(form, missing) for form in FORMS])
    wrong = []
    for form, a, b in zip(FORMS, one, other, strict=True):
        first, second = seen(a.found, hidden), seen(b.found, missing)
        if first != second:
            wrong.append(f"{form}:\n  hidden:  {first[:300]}\n  missing: {second[:300]}")
    none(wrong)
    none(leak for each in (*one, *other) for leak in each.leaks())


def test_neither_takes_longer(world: World) -> None:
    """Of the same order: a look at the table's files would take many times as long."""

    def seconds(table: str) -> float:
        found = world.run("Bea", f"SELECT * FROM {table}")
        began, ended = found["started_at"], found["finished_at"]
        return float(ended[17:26]) - float(began[17:26]) + (60 if ended[15] != began[15] else 0)

    pairs = [(seconds("service.vault"), seconds("service.cabin")) for _ in range(9)]
    hidden, missing = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert 1 / 4 < hidden / missing < 4


def test_the_catalog_says_the_same_of_both(world: World) -> None:
    bea = world.millrace.as_("Bea")
    for path in ("", "/credentials"):
        place = "/iceberg/v1/namespaces/{}/tables/{}" + path
        hidden, missing = bea.get(place.format("service", "vault")), bea.get(place.format("service", "cabin"))
        assert (hidden.status_code, missing.status_code) == (404, 404)
        assert hidden.text == missing.text.replace("cabin", "vault")
        assert {k: v for k, v in hidden.headers.items() if k not in {"x-request-id", "content-length"}} == {
            k: v for k, v in missing.headers.items() if k not in {"x-request-id", "content-length"}
        }


@pytest.mark.parametrize(
    "path",
    [
        "raw/tables/payments", "RAW/tables/PAYMENTS", "service/tables/vault", "service/tables/VAULT", "service/tables/va%75lt",
        "%73ervice/tables/vault", "service/../raw/tables/payments", "service/%2e%2e/raw/tables/payments", "service/tables/..%2fvault",
        "service/tables/%2e%2e", "service/tables/%2e%2e%2ftables%2fvault", "service%2ftables%2fvault/tables/x", "service/tables/revenue%2f..%2fvault",
        "service%1fvault/tables/snapshots", "service%1F/tables/vault", "service.vault/tables/snapshots", "service/tables/vault.snapshots",
        "service/tables/vault%00", "service/tables/vault%20", "service/tables/%20vault", "service/tables/%60vault%60", "service/tables/'vault'",
        "service/tables/vault%3b--", "service/tables/vault%27%20OR%201%3d1", "service/tables/v%D0%B0ult", "service/tables/vault%E2%80%8B", "%EF%BD%93ervice/tables/vault",
        "service/tables/%252e%252e", "service/tables/vault/", "service//tables/vault", "lake%1Fservice/tables/vault", "service/tables/%%%", "service/tables/%ff%fe",
        "service/views/vault", "service/tables/vault/plan", "service/tables/vault/metrics", "service/tables/" + "v" * 3000,
    ],
)  # fmt: skip
def test_no_spelling_of_a_path_is_a_way_in(world: World, path: str) -> None:
    for method in ("GET", "HEAD", "DELETE"):
        answer = world.millrace.as_("Bea").request(method, f"/iceberg/v1/namespaces/{path}")
        assert 400 <= answer.status_code < 500, (method, answer.status_code)
        for secret in ("metadata-location", str(world.warehouse), "canary", "tbl_"):
            assert secret not in answer.text
    assert world.root("service.vault").exists()
