"""Access that is taken is gone at once: before a run, during it, between pages, for stored tokens, on a 304, in caches."""

from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.organization.tokens.service import revoke
from tests.lakehouse.sql.support import STATEMENTS
from tests.security.conftest import World

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SLOW = "SELECT id, 'late' AS what FROM range(0, 16000000, 1, 4) WHERE sha2(CAST(id AS STRING), 512) LIKE 'aaaaa%'"
REVENUE = {"resource": "table:service.revenue", "level": "viewer"}
RAW = {"resource": "layer:raw", "level": "editor"}
ICEBERG = "/iceberg/v1/namespaces/service/tables/revenue"


@pytest.fixture
def restored(world: World) -> Any:
    """The world, whose grants are as they were afterwards."""
    yield world
    for member, grant in (("Bea", REVENUE), ("Tom", RAW)):
        if not world.millrace.as_(member).may("execute", grant["resource"].replace("layer:raw", "table:raw.orders")):
            world.change("Tess", "grant", to=member, **grant)


def test_between_submit_and_run(restored: World) -> None:
    world = restored
    with world.busy():
        waiting = [world.submit("Bea", sql) for sql in ("SELECT * FROM service.revenue", "DESCRIBE service.revenue")]
        assert {world.get("Bea", one).json()["state"] for one in waiting} == {"queued"}
        world.change("Tess", "revoke", to="Bea", **REVENUE)
    for one in waiting:
        found = world.done("Bea", one)
        assert (found["state"], found["error"]["code"], found["data"]) == ("failed", "TABLE_OR_VIEW_NOT_FOUND", None)


def test_during_a_write(restored: World) -> None:
    world = restored
    before = world.rows("Tess", "SELECT max(committed_at), count(*) FROM raw.orders.snapshots")
    statement = world.submit("Tom", f"INSERT INTO raw.orders {SLOW}")
    world.begun("Tom", statement)
    world.change("Tess", "revoke", to="Tom", **RAW)
    found = world.done("Tom", statement)
    assert found["state"] == "failed"
    assert found["error"]["code"] in {"TABLE_OR_VIEW_NOT_FOUND", "FORBIDDEN"}
    assert world.rows("Tess", "SELECT max(committed_at), count(*) FROM raw.orders.snapshots") == before
    who = world.millrace.id("member", "Tom")
    assert who in {row[0] for row in world.denials(world.millrace.id("table", "raw.orders"))}


def test_the_token_by_which_a_running_statement_was_sent(restored: World) -> None:
    world = restored
    before = world.rows("Tess", "SELECT count(*) FROM raw.orders.snapshots")
    narrowed = world.millrace.as_("Tom", only=[world.millrace.id("layer", "raw")])
    statement = narrowed.post(STATEMENTS, {"sql": f"INSERT INTO raw.orders {SLOW}"}).json()["id"]
    world.begun("Tom", statement)
    [(token,)] = world.millrace.rows(f"SELECT token_id FROM statements WHERE id = '{statement}'")
    world.millrace.database.write(lambda c: revoke(c, token, now(), by=None))
    assert narrowed.get(f"{STATEMENTS}/{statement}").status_code == 401
    assert world.done("Tom", statement)["state"] == "failed"
    assert world.rows("Tess", "SELECT count(*) FROM raw.orders.snapshots") == before


def test_between_pages_and_downloads(restored: World) -> None:
    world = restored
    found = world.run("Bea", "SELECT r.id FROM service.revenue r CROSS JOIN range(1500)")
    assert found["pages"] > 1
    place = f"{STATEMENTS}/{found['id']}"
    bea = world.millrace.as_("Bea")
    assert bea.get(f"{place}/pages/1").status_code == 200
    world.change("Tess", "revoke", to="Bea", **REVENUE)
    assert bea.get(f"{place}/pages/1").status_code == 404
    assert bea.get(f"{place}/pages/0").status_code == 404
    for form in ("csv", "parquet", "arrow"):
        assert bea.get(f"{place}/download", format=form).status_code in {404, 422}, form
    shown = bea.get(place).json()
    assert (shown["withheld"], shown["data"], shown["columns"]) == (True, None, None)
    assert world.millrace.as_("Ana").get(f"{place}/pages/1").status_code == 404


def test_on_what_a_client_already_knows(restored: World) -> None:
    """A 304 says that the table is still there: it is decided like the table itself."""
    world = restored
    bea = world.millrace.as_("Bea")
    tag = bea.get(ICEBERG).headers["etag"]
    assert bea.request("GET", ICEBERG, headers={"If-None-Match": tag}).status_code == 304
    world.change("Tess", "revoke", to="Bea", **REVENUE)
    for known in (tag, f"W/{tag}", "*", f'"x", {tag}'):
        answer = bea.request("GET", ICEBERG, headers={"If-None-Match": known})
        assert (answer.status_code, "etag" in answer.headers) == (404, False)
    # And another member's tag tells nothing to who never saw it.
    assert world.millrace.as_("Ana").request("GET", ICEBERG, headers={"If-None-Match": tag}).status_code == 404


def test_no_plan_or_result_is_kept_for_the_next(restored: World) -> None:
    """The same text, by one who may, one who may not, and one who might until now."""
    world = restored
    sql = "SELECT count(*), max(secret) FROM service.vault"
    assert world.run("Tess", sql)["state"] == "succeeded"
    assert world.run("Bea", sql)["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"
    own = "SELECT sum(amount) FROM service.revenue"
    for _ in range(2):
        assert world.rows("Bea", own) == [["3.00"]]
    world.change("Tess", "revoke", to="Bea", **REVENUE)
    assert world.run("Bea", own)["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"
    world.change("Tess", "grant", to="Bea", **REVENUE)
    assert world.rows("Bea", own) == [["3.00"]]


def test_old_snapshots_are_read_by_the_rights_of_now(restored: World) -> None:
    """Time travel goes to an old state of the table, not to old rights."""
    world = restored
    [(first,)] = world.rows("Bea", "SELECT min_by(snapshot_id, committed_at) FROM service.revenue.snapshots")
    world.rows("Tess", "INSERT INTO service.revenue VALUES (99, 9.9)")
    travel = f"SELECT count(*) FROM service.revenue VERSION AS OF {first}"
    assert world.rows("Bea", travel) == [[3]]
    world.change("Tess", "revoke", to="Bea", **REVENUE)
    assert world.run("Bea", travel)["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"
    world.rows("Tess", "DELETE FROM service.revenue WHERE id = 99")
    [(vault,)] = world.rows("Tess", "SELECT max(snapshot_id) FROM service.vault.snapshots")
    world.change("Tess", "grant", to="Bea", **REVENUE)
    # A snapshot of another table is none of this one.
    assert world.run("Bea", f"SELECT * FROM service.revenue VERSION AS OF {vault}")["state"] == "failed"
