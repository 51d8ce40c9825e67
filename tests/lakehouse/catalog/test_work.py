"""Work tokens: the rights of a member, for one statement, probe or run, on the catalog alone, while it runs."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from headgate.kit.clock import now
from headgate.lakehouse.catalog.work_tokens import end_work, loaded, open_work
from headgate.platform.unit_of_work.work import DeclaredTable
from headgate.warehouse.locations import metadata_root, table_root
from tests.lakehouse.catalog.support import ROWS, SCHEMA, Lake, appending, error_of, lake, table_path
from tests.support.company import Api

EVENTS = table_path("events")


@pytest.fixture
def events(served: Lake) -> Lake:
    """A lake in which Tess has made raw.events and trusted.facts, with rows."""
    for name in ("raw.events", "trusted.facts"):
        served.engine("Tess").create_table(name, ROWS.schema).append(ROWS)
    return served


class Worker:
    """Work for a member, by its own token."""

    def __init__(self, found: Lake, member: str, purpose: str = "statement", **more: Any) -> None:
        self.found = found
        identifier = found.company.id("member", member)
        expires = more.pop("expires", now() + timedelta(hours=1))
        self.id, self.secret = found.company.database.write(
            lambda c: open_work(c, now(), purpose=purpose, member=identifier, expires=expires, **more)
        )
        self.api = Api(found.company.client, self.secret)

    def end(self) -> None:
        self.found.company.database.write(lambda c: end_work(c, self.id, now()))

    def loaded(self) -> dict[str, Any]:
        with self.found.company.database.read() as connection:
            return loaded(connection, self.id)


def test_work_has_the_rights_of_its_member_now(events: Lake) -> None:
    work = Worker(events, "Tom")
    assert work.api.get(EVENTS).status_code == 200
    assert error_of(work.api.get(table_path("facts", "trusted"))) == (404, "NoSuchTableException")
    events.api("Adam").change(change="revoke", to="Tom", resource="layer:raw", level="editor").raise_for_status()
    assert error_of(work.api.get(EVENTS)) == (404, "NoSuchTableException")


def test_work_is_told_to_open_files_by_the_guards_own_file_io(events: Lake) -> None:
    table = events.company.id("table", "raw.events")
    answer = Worker(events, "Tom").api.get(EVENTS)
    url = f"file://{events.warehouse}"
    assert answer.json()["config"] == {
        "io-impl": "headgate.guard.TableFileIO",
        "headgate.root": f"{url}/{table_root(table)}",
        "headgate.metadata": f"{url}/{metadata_root(table)}",
    }
    assert answer.headers["etag"] != events.api("Tom").get(EVENTS).headers["etag"]


def test_a_work_token_counts_on_the_catalog_alone(events: Lake) -> None:
    work = Worker(events, "Adam")
    assert work.api.get("/iceberg/v1/config").status_code == 200
    for path in (
        "/api/access/me",
        "/api/tokens",
        "/api/iceberg/",
        "/access/v1/evaluation",
    ):
        assert work.api.get(path).status_code in (401, 404, 405), path
        assert work.api.get(path).status_code != 200
    assert work.api.get("/api/access/me").status_code == 401
    assert work.api.post("/iceberg/v1/oauth/tokens", {}).status_code == 400
    exchanged = events.company.client.post(
        "/iceberg/v1/oauth/tokens", data={"grant_type": "client_credentials", "client_secret": work.secret}
    )
    assert exchanged.status_code == 401


def test_work_that_ended_is_nobody(events: Lake) -> None:
    work = Worker(events, "Tom")
    assert work.api.get(EVENTS).status_code == 200
    work.end()
    assert error_of(work.api.get(EVENTS)) == (401, "NotAuthorizedException")
    assert error_of(Worker(events, "Tom", expires=now()).api.get(EVENTS)) == (401, "NotAuthorizedException")
    other = Worker(events, "Tom")
    events.api("Olga").change(change="remove_member", member="Tom").raise_for_status()
    assert error_of(other.api.get(EVENTS)) == (401, "NotAuthorizedException")


def test_work_lives_while_its_statement_runs(events: Lake) -> None:
    def set_statement(state: str, fence: int) -> None:
        events.company.database.write(
            lambda c: c.execute(text("UPDATE statements SET state = :s, fence = :f"), {"s": state, "f": fence})
        )

    answer = events.api("Tom").post("/api/sql/statements", {"sql": "SELECT 1"})
    statement = answer.json()["id"]
    set_statement("running", 1)
    work = Worker(events, "Tom", statement_id=statement, fence=1)
    assert work.api.get(EVENTS).status_code == 200
    for state, fence in (("cancelling", 1), ("succeeded", 1), ("running", 2), ("queued", 1)):
        set_statement(state, fence)
        assert work.api.get(EVENTS).status_code == 401, (state, fence)


def test_work_stays_within_the_token_by_which_it_was_asked_for(events: Lake) -> None:
    token = events.company.token("Tess", read_only=True, only=[events.company.id("table", "raw.events")])
    [(identifier,)] = events.rows("SELECT id FROM tokens WHERE listed")
    work = Worker(events, "Tess", token_id=identifier)
    body = appending(events.engine("Tess").load_table("raw.events"))
    assert work.api.get(EVENTS).status_code == 200
    assert work.api.get(table_path("facts", "trusted")).status_code == 404
    assert error_of(work.api.post(EVENTS, body)) == (403, "ForbiddenException")
    assert token
    events.api("Tess").request("DELETE", f"/api/tokens/{identifier}").raise_for_status()
    assert work.api.get(EVENTS).status_code == 401


def test_what_work_loads_is_written_down_before_it_is_told(events: Lake) -> None:
    work = Worker(events, "Tom")
    table = events.company.id("table", "raw.events")
    work.api.get(table_path("Events", "RAW"))
    assert work.loaded() == {"raw.events": table}
    for _ in range(2):
        work.api.get(EVENTS)
        work.api.get(table_path("facts", "trusted"))
        work.api.get(table_path("absent"))
        work.api.get("/iceberg/v1/namespaces/raw%1Fevents/tables/snapshots")
    work.api.request("HEAD", table_path("asked"))
    assert work.loaded() == {
        "raw.events": table,
        "trusted.facts": None,
        "raw.absent": None,
    }


def test_a_probe_reads_and_changes_nothing(events: Lake) -> None:
    probe = Worker(events, "Tess", "probe")
    assert probe.api.get(EVENTS).status_code == 200
    body = appending(events.engine("Tess").load_table("raw.events"))
    assert error_of(probe.api.post(EVENTS, body)) == (403, "ForbiddenException")
    assert probe.api.request("DELETE", EVENTS).status_code == 403
    new = {"name": "new", "schema": SCHEMA}
    assert probe.api.post("/iceberg/v1/namespaces/raw/tables", new).status_code == 403
    assert list(probe.loaded()) == ["raw.events"]


def test_work_that_declared_its_tables_reaches_nothing_else(events: Lake) -> None:
    table = events.company.id("table", "raw.events")
    events.engine("Tess").create_table("raw.other", ROWS.schema)
    work = Worker(events, "Tess", reach=[DeclaredTable(table)])
    assert work.api.get(EVENTS).status_code == 200
    assert work.api.get(table_path("other")).status_code == 404
    assert work.api.get("/iceberg/v1/namespaces/trusted").status_code == 404
    tables = work.api.get("/iceberg/v1/namespaces/raw/tables").json()["identifiers"]
    assert [one["name"] for one in tables] == ["events"]
    assert work.api.get("/iceberg/v1/namespaces").json()["namespaces"] == [["raw"]]
    body = appending(events.engine("Tess").load_table("raw.events"))
    assert work.api.post(EVENTS, body).status_code == 403
    writer = Worker(events, "Tess", reach=[DeclaredTable(table), DeclaredTable(table, "write")])
    assert writer.api.post(EVENTS, body).status_code == 200
    nothing = Worker(events, "Adam", reach=[])
    assert nothing.api.get(EVENTS).status_code == 404
    assert nothing.api.get("/iceberg/v1/namespaces").json()["namespaces"] == []


def test_work_loads_from_a_folder_whatever_other_engines_may(database: Any, tmp_path: Any) -> None:
    with lake(database, tmp_path, external_engines="off") as found:
        work = Worker(found, "Tess")
        made = work.api.post("/iceberg/v1/namespaces/raw/tables", {"name": "events", "schema": SCHEMA})
        assert made.status_code == 200
        assert work.api.get(EVENTS).status_code == 200
        answer = found.api("Tess").get(EVENTS)
        assert error_of(answer) == (403, "ForbiddenException")
        assert error_of(found.api("Ana").get(EVENTS)) == (404, "NoSuchTableException")
