"""Statements that try to break the server rather than to read: they end, and the server goes on."""

import time

import pytest

from tests.lakehouse.sql.support import STATEMENTS
from tests.security.conftest import World, none

pytestmark = [pytest.mark.spark, pytest.mark.alone]

DEEP = (
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "SELECT " + "NOT " * 20_000 + "true",
    "SELECT " + "-" * 3 + " 1",
    "SELECT 1" + " + 1" * 20_000,
    "SELECT " + "array(" * 10_000 + ")" * 10_000,
    "SELECT 1 WHERE " + " OR ".join(f"id = {n}" for n in range(6000)),
    "SELECT " + "CASE WHEN true THEN " * 4000 + "1" + " END" * 4000,
    "SELECT * FROM " + "(SELECT * FROM " * 4000 + "service.revenue" + ")" * 4000,
    "WITH " + ", ".join(f"c{n} AS (SELECT 1)" for n in range(3000)) + " SELECT 1",
    "SELECT 1" + " UNION ALL SELECT 1" * 4000,
    "SELECT CAST(NULL AS " + "ARRAY<" * 3000 + "INT" + ">" * 3000 + ")",
    "SELECT '" + "x" * 99_000 + "'",
    "SELECT " + "a." * 20_000 + "b",
    "SELECT * FROM " + ".".join(["service"] * 5000),
    "/*" * 45_000,
    "(" * 90_000,
    "`" * 90_001,
    "'" * 90_001,
    "\n" * 90_000,
    "EXPLAIN " * 5000 + "SELECT 1",
)


def test_long_and_deep_statements_end(alive: World) -> None:
    began = time.monotonic()
    attempts = alive.attack("Bea", DEEP)
    # Brackets and comments by the thousand would keep Spark's parser busy for minutes, each.
    assert time.monotonic() - began < 120
    none(f"{one.sql[:60]!r}: {one.told[:200]}" for one in attempts if one.code in {"ENGINE_DOWN", "INTERNAL", "STUCK"})
    none(leak[:500] for one in attempts for leak in one.leaks() + one.insides())


def test_a_text_that_is_too_long_or_empty_is_refused_at_the_door(alive: World) -> None:
    bea = alive.millrace.as_("Bea")
    for sql in ("", "SELECT 1 /* \u0000 */", "x" * 100_001, None, 1, ["SELECT 1"], {"sql": 1}):
        answer = bea.post(STATEMENTS, {"sql": sql})
        assert answer.status_code == 422, sql
    assert bea.request("POST", STATEMENTS, content=b'{"sql": "SELECT \\ud800"}', headers={"content-type": "application/json"}).status_code < 500  # fmt: skip


def test_rows_that_are_too_many_end(alive: World) -> None:
    for sql in ("SELECT id FROM range(100000000)", "SELECT explode(sequence(1, 1000000)) AS a, repeat('y', 500) AS b"):
        found = alive.run("Bea", sql, max_rows=10)
        assert (found["state"], found["rows"], found["truncated"]) == ("succeeded", 10, True), found["error"]
