"""The token of a statement: no SQL gives it away, nothing but the catalog takes it, and it dies with its statement."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import update

from headgate.kit.clock import now
from headgate.lakehouse.catalog.work_tokens import open_work
from headgate.lakehouse.sql.models import statement_table
from headgate.organization.tokens.service import revoke
from tests.lakehouse.sql.support import Hand
from tests.security.conftest import CANARY, World, none
from tests.support.company import Api

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

REVENUE = "/iceberg/v1/namespaces/service/tables/revenue"
THEFTS = (
    "SELECT '${spark.sql.catalog.lake.header.Authorization}'",
    "SELECT \"${lake.header.Authorization}\", '${sparkconf:spark.sql.catalog.lake.header.Authorization}'",
    "SELECT '${hivevar:x}${env:SPARK_CONNECT_AUTHENTICATE_TOKEN}${system:sun.java.command}'",
    "SET spark.sql.catalog.lake.header.Authorization",
    "SET -v",
    "RESET spark.sql.catalog.lake.header.Authorization",
    "SELECT current_setting('spark.sql.catalog.lake.header.Authorization')",
    "SHOW TBLPROPERTIES service.revenue ('header.Authorization')",
    "SELECT reflect('org.apache.spark.sql.SparkSession', 'active')",
    "SELECT raise_error(map('Authorization', '${spark.sql.catalog.lake.header.Authorization}'))",
    "SELECT * FROM service.revenue WHERE id = CAST('${spark.sql.catalog.lake.header.Authorization}' AS INT)",
    "CALL lake.system.rollback_to_snapshot('service.revenue', CAST('${spark.app.id}' AS BIGINT))",
    "EXPLAIN EXTENDED SELECT * FROM service.revenue",
    "EXPLAIN EXTENDED CREATE TABLE service.x AS SELECT 1 AS id",
    "SELECT * FROM service.revenue VERSION AS OF 12",
    "SELECT * FROM text.`/proc/self/environ`",
    "SHOW CATALOGS",
    "DESCRIBE NAMESPACE EXTENDED service",
)


def by(world: World, secret: str) -> Api:
    return Api(world.millrace.client, secret)


def test_no_statement_gives_it_away(world: World) -> None:
    attempts = world.attack("Bea", THEFTS)
    none(leak for one in attempts for leak in one.leaks())
    none(one.sql for one in attempts if re.search(r"hg[a-z]_\w{8}", one.told))


def test_only_the_catalog_takes_it(world: World) -> None:
    work, secret = world.work("Bea")
    assert by(world, secret).get(REVENUE).status_code == 200
    claim = {**Hand(world.millrace).about(), "slots": 1}
    for path, body in (
        ("/api/tokens", None),
        ("/api/sql/statements", None),
        ("/api/sql/saved", None),
        ("/api/audit", None),
        ("/api/tokens", {"name": "stolen"}),
        ("/api/sql/statements", {"sql": "SELECT 1"}),
        ("/api/access/explain", {"action": "see", "resource": "table:service.vault"}),
        ("/api/access/changes", {"change": "grant", "to": "Bea", "resource": "table:service.vault", "level": "viewer"}),
        ("/api/worker/jobs/statement/claim", claim),
    ):
        answer = by(world, secret).get(path) if body is None else by(world, secret).post(path, body)
        assert answer.status_code == 401, (path, answer.text)
    assert world.millrace.as_("Bea").get(f"/api/sql/statements/{work}").status_code in {404, 422}


def test_it_sees_what_its_member_sees_and_no_more(world: World) -> None:
    _, secret = world.work("Bea")
    assert by(world, secret).get("/iceberg/v1/namespaces/service/tables/vault").status_code == 404
    listed = by(world, secret).get("/iceberg/v1/namespaces/service/tables").json()["identifiers"]
    assert [one["name"] for one in listed] == ["revenue"]


def test_it_dies_with_its_statement(world: World) -> None:
    """Whoever kept the token of a statement has nothing when the statement is over, was taken over, or never ran."""
    statement = world.run("Bea", "SELECT 1")["id"]
    _, secret = world.work("Bea", statement_id=statement, fence=1)
    assert by(world, secret).get(REVENUE).status_code == 401
    rows = statement_table.c
    running = update(statement_table).where(rows.id == statement)
    world.millrace.database.write(lambda c: c.execute(running.values(state="running", fence=1)))
    try:
        assert by(world, secret).get(REVENUE).status_code == 200
        for other in ({"fence": 2}, {"fence": 1, "state": "cancelling"}, {"state": "queued"}):
            world.millrace.database.write(lambda c, other=other: c.execute(running.values(**other)))
            assert by(world, secret).get(REVENUE).status_code == 401, other
    finally:
        world.millrace.database.write(lambda c: c.execute(running.values(state="succeeded", fence=1)))
    assert by(world, secret).get(REVENUE).status_code == 401


def test_it_dies_with_the_token_by_which_the_statement_was_sent(world: World) -> None:
    api = world.millrace.as_("Bea", read_only=True)
    statement = api.post("/api/sql/statements", {"sql": "SELECT 1"}).json()["id"]
    world.done("Bea", statement)
    [(token,)] = world.millrace.rows(f"SELECT token_id FROM statements WHERE id = '{statement}'")
    who = world.millrace.id("member", "Bea")
    until = now() + timedelta(minutes=5)
    _, secret = world.millrace.database.write(
        lambda c: open_work(c, now(), purpose="statement", member=who, token_id=token, expires=until)
    )
    assert by(world, secret).get(REVENUE).status_code == 200
    assert by(world, secret).post(REVENUE, {"updates": []}).status_code == 403
    world.millrace.database.write(lambda c: revoke(c, token, now(), by=None))
    assert by(world, secret).get(REVENUE).status_code == 401


def test_a_token_of_another_sort_is_no_work_token(world: World) -> None:
    _, secret = world.work("Bea")
    for wrong in (
        secret.replace("hgw_", "hgt_"), secret.replace("hgw_", "hgx_"), secret[:-1] + "!", secret.upper(), secret + "\u0000", "hgw_" + "0" * 38, "hgw_",
    ):  # fmt: skip
        answer = world.millrace.client.get(REVENUE, headers={b"Authorization": f"Bearer {wrong}".encode()})
        assert answer.status_code == 401, wrong
        assert secret[8:30] not in answer.text
    assert CANARY not in answer.text
