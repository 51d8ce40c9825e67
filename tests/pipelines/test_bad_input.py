"""What can be known to be wrong is said before a run, when a pipeline is tried and when it is saved, with what to do.

What only a run can know is in tests of the steps: tests/execution/sources, tests/execution/sources/rest, tests/execution/sources/fetch and
tests/execution/worker/delivering; what a connection's test says, in tests/execution/connection_checks.
"""

import sqlite3
from typing import Any

import pytest
from sqlalchemy import event

from headgate.contracts.pipelines.streams import Stream
from headgate.pipelines.source_reads import check_stream
from tests.lakehouse.sql.support import STATEMENTS, Hand
from tests.pipelines.pipeline_company import PipelineCompany, history, notebook, source
from tests.pipelines.test_code_secrets import allow, secret_of
from tests.support.company import Company


def allowed_secret(firm: PipelineCompany) -> dict[str, str]:
    """The password of a connection whose owner lets code read it."""
    allow(firm, firm.database, on=True)
    return secret_of(firm.database)


PLAN = "/api/pipelines/plan"
HTTP = {"kind": "http", "base_url": "https://api.example.com", "auth": {"style": "bearer"}}


@pytest.fixture
def firm(works_on_sqlite: PipelineCompany) -> PipelineCompany:
    """The mill; what is said is the same on both kinds of database."""
    return works_on_sqlite


def streams(firm: PipelineCompany, place: str | None = None, **stream: Any) -> dict[str, Any]:
    """A source of one stream."""
    found = source(connection=place, grain=True)
    return {**found, "streams": [{"name": "public.grain", "table": "grain", **stream}]}


CASES: dict[str, tuple[Any, str]] = {
    "an encoding that there is not": (
        lambda firm: streams(firm, files={"encoding": "nothing"}),
        "unknown encoding 'nothing'; write one such as UTF-8",
    ),
    "an encoding that is none of text": (
        lambda firm: streams(firm, files={"encoding": "zlib"}),
        "unknown encoding 'zlib'",
    ),
    "a read of what is new by nothing": (
        lambda firm: streams(firm, firm.database, read="incremental", write="append"),
        "definition.streams.0.cursor: required for an incremental load from a database",
    ),
    "a host that is a private address": (
        lambda firm: notebook((), ("mill.bread",), hosts=["10.0.0.1:5432"]),
        "definition.hosts.0: 10.0.0.1 is a private address",
    ),
    "a host that is this machine": (
        lambda firm: notebook((), ("mill.bread",), hosts=["localhost:80"]),
        "outgoing.allow",
    ),
    "a host that is the cloud's own": (
        lambda firm: notebook((), ("mill.bread",), hosts=["169.254.169.254:80"]),
        "metadata",
    ),
    "a port that there is not": (
        lambda firm: notebook((), ("mill.bread",), hosts=["api.example.com:99999"]),
        "the port must be a number from 1 to 65535",
    ),
    "a secret that the connection has not": (
        lambda firm: notebook((), ("mill.bread",), secrets=[{**allowed_secret(firm), "field": "token"}]),
        "definition.secrets.0.field: the connection has no secret 'token'; it has password",
    ),
    "a time zone that there is not": (
        lambda firm: history(time_zone="Mars/Base"),
        "write one as Europe/Berlin",
    ),
    "a length of time that is none": (lambda firm: history(timeout="soon"), "write it as '90 seconds'"),
    "a table without its layer": (lambda firm: history("grain"), "write layer.table"),
}


@pytest.mark.parametrize("what", CASES)
@pytest.mark.parametrize("path", [PLAN, "/api/pipelines"])
def test_it_is_said_before_anything_is_saved(firm: PipelineCompany, path: str, what: str) -> None:
    definition, says = CASES[what][0](firm), CASES[what][1]
    body = {"definition": definition} | ({} if path == PLAN else {"name": "Mine"})
    answer = firm.as_("Adam").post(path, body)
    assert answer.status_code == 422, answer.text
    assert says in answer.json()["detail"]


@pytest.mark.parametrize(
    ("kind", "stream", "says"),
    [
        ("http", {"name": "https://evil.example.com/x"}, "write only the path below the connection's address"),
        ("http", {"name": "//evil.example.com/x"}, "write only the path below the connection's address"),
        ("http", {"name": "/a/../b"}, "contains . or .. as a path segment"),
        (
            "http",
            {"name": "/v1/orders", "read": "incremental", "write": "append"},
            "cursor: required for an incremental load from an",
        ),
        ("http", {"name": "files/*.csv", "of": "files"}, "add a stream for each file"),
        (
            "mysql",
            {"name": "shop.orders", "read": "incremental", "write": "append"},
            "cursor: required for an incremental load from a",
        ),
        ("iceberg", {"name": "orders"}, "write namespace.table"),
        ("iceberg", {"name": "shop..orders"}, "write namespace.table"),
    ],
)
def test_what_a_kind_of_connection_does_not_give(kind: str, stream: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r"name: |cursor: ") as refused:
        check_stream(Stream(table="t", **stream), kind)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "stream"),
    [
        ("http", {"name": "/v1/orders?page=1"}),
        ("http", {"name": "files/a.csv", "of": "files", "read": "incremental", "write": "append"}),
        ("postgresql", {"name": "orders"}),
        ("iceberg", {"name": "shop.orders", "read": "incremental", "write": "append"}),
        ("object_store", {"name": "**/*.csv", "read": "incremental", "write": "append"}),
        ("folder", {"name": "*.csv"}),
    ],
)
def test_what_it_gives(kind: str, stream: dict[str, Any]) -> None:
    check_stream(Stream(table="t", **stream), kind)


def test_a_wheel_that_is_not_there_is_said_in_a_dry_run(firm: PipelineCompany) -> None:
    wanted = notebook((), ("mill.bread",), wheels=[{"volume": "land.crates", "path": "wheels/a-1-py3-none-any.whl"}])
    says = "land.crates has no file wheels/a-1-py3-none-any.whl; upload the wheel, or remove it from the dependencies"
    assert says in firm.ok(firm.as_("Adam").post(PLAN, {"definition": wanted}))["problems"]
    plan = f"/api/pipelines/{firm.made('Adam', wanted)}/plan"
    assert says in firm.ok(firm.as_("Adam").get(plan))["problems"]
    place = f"/api/volumes/{firm.company.id('volume', 'land.crates')}/files/wheels/a-1-py3-none-any.whl"
    firm.ok(firm.as_("Adam").request("PUT", place, content=b"PK"))
    found = firm.ok(firm.as_("Adam").get(plan))
    assert (found["problems"], found["may_start"]) == ([], True)


def probed(firm: PipelineCompany, code: str, error: str) -> dict[str, Any]:
    """The statement that was to save a query whose SQL Spark refused with these words."""
    body = {"name": "Loaves", "definition": {"kind": "query", "sql": "SELECT FROM", "output": "mill.loaves"}}
    statement = firm.ok(firm.as_("Adam").post("/api/pipelines", body))["statement"]
    hand = Hand(firm.company)
    (job,) = hand.claim()
    assert job["id"] == statement
    assert hand.finish(job, "failed", error_code=code, error=error).status_code == 200
    return dict(firm.ok(firm.as_("Adam").get(f"{STATEMENTS}/{statement}")))


def test_a_wrong_query_is_not_saved_and_its_author_reads_why(firm: PipelineCompany) -> None:
    found = probed(firm, "PARSE_SYNTAX_ERROR", "Syntax error at or near 'FROM'")
    assert (found["state"], found["saved_query"]) == ("failed", None)
    assert "Syntax error" in found["error"]["message"]
    assert firm.as_("Adam").get("/api/pipelines", prefix="Loaves").json()["items"] == []
    assert firm.as_("Adam").get("/api/tables", prefix="mill.loaves").json()["items"] == []


def test_a_query_on_a_missing_table_is_saved_and_says_what_it_waits_for(firm: PipelineCompany) -> None:
    found = probed(firm, "TABLE_OR_VIEW_NOT_FOUND", "There is no table mill.dough that you may see")
    shown = firm.shown("Adam", found["saved_query"])
    assert "mill.dough" in shown["unresolved"]
    refused = firm.as_("Adam").post(f"/api/pipelines/{found['saved_query']}/runs", {})
    assert (refused.status_code, "Save the pipeline again" in refused.json()["detail"]) == (409, True)


def test_a_full_disk_of_the_server_is_said_and_nothing_is_half_written(millrace_on_sqlite: Company) -> None:
    engine, tess = millrace_on_sqlite.database.engine, millrace_on_sqlite.as_("Tess")
    before = tess.get("/api/pipelines").json()
    room = [0]

    def bound(connection: sqlite3.Connection, *_: Any) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {room[0] or pages}")

    event.listen(engine, "checkout", bound)
    body = {"name": "Large", "definition": notebook((), ("raw.orders",), cells=[{"source": "x" * 900_000}])}
    answer = tess.post("/api/pipelines", body)
    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full"), answer.text
    assert "disk of this installation is full; the operator must free space" in answer.json()["detail"]
    room[0] = 2**30
    assert tess.get("/api/pipelines").json() == before
    assert tess.post("/api/pipelines", body).status_code == 200
