"""Connections over HTTP: who adds, sees, edits and deletes them, and what becomes of their secrets."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from headgate.platform.external_systems.repository import place_of
from tests.spaces.connections.support import PLACE, SECRET, add, added, patch, secrets_of
from tests.support.company import Company


def test_whoever_adds_a_connection_owns_it_and_nobody_reads_its_secret(millrace: Company) -> None:
    found = added(millrace)
    assert found["owner"]["name"] == found["created_by"]["name"] == "Tess"
    assert found["space"]["name"] == "Sales data"
    assert found["place"]["config"] == {
        "host": "db.example.com", "port": 5432, "database": "shop", "user": "reader",
        "tls": "verify", "tls_ca": None, "properties": {},
    }  # fmt: skip
    assert secrets_of(found) == {"password"}
    everything = [
        json.dumps(found),
        millrace.as_("Olga").get(f"/api/connections/{found['id']}").text,
        millrace.as_("Tess").get("/api/connections").text,
        millrace.as_("Olga").get("/api/audit").text,
        *(str(row) for row in millrace.rows("SELECT * FROM place_secrets")),
    ]
    assert not [one for one in everything if SECRET in one]


def test_adding_needs_can_manage_in_the_space(millrace: Company) -> None:
    for member, status in {"Tom": 403, "Bea": 403, "Ben": 403, "Dora": 403, "Adam": 200, "Tess": 200}.items():
        answer = add(millrace.as_(member), name=f"of {member}")
        assert answer.status_code == status, (member, answer.text)
        if status == 403:
            assert answer.json()["ways"]
    hidden = add(millrace.as_("Tess"), space="Tom's own")
    missing = add(millrace.as_("Tess"), space="Nobody's")
    assert (hidden.status_code, missing.status_code) == (404, 404)
    same = {"request_id": "", "detail": hidden.json()["detail"].replace("Tom's own", "Nobody's")}
    assert {**hidden.json(), **same} == {**missing.json(), "request_id": ""}


def test_where_it_points_is_for_who_may_reach_or_edit_it(millrace: Company) -> None:
    found = added(millrace)
    path = f"/api/connections/{found['id']}"
    shown = {
        member: millrace.as_(member).get(path).json()["place"] is not None
        for member in ("Olga", "Adam", "Tess", "Tom", "Bea", "Ben", "Dora")
    }
    assert shown == {
        "Olga": True, "Adam": True, "Tess": True, "Tom": True, "Bea": False, "Ben": False, "Dora": False,
    }  # fmt: skip
    items = millrace.as_("Bea").get("/api/connections").json()["items"]
    assert {one["name"]: one["place_kind"] for one in items} == {"Shop": "postgresql", "Shop database": None}


def test_its_own_owner_alone_edits_it(millrace: Company) -> None:
    found = added(millrace)
    for member in ("Olga", "Adam", "Tom", "Dora"):
        assert patch(millrace.as_(member), found["id"], name="Taken").status_code == 403, member
    assert patch(millrace.as_("Tess"), found["id"], name="Mine").json()["name"] == "Mine"
    taken = millrace.as_("Adam").change(change="change_owner", resource=found["id"], owner="Adam")
    assert taken.status_code == 200
    assert patch(millrace.as_("Tess"), found["id"], name="Lost").status_code == 403
    assert patch(millrace.as_("Adam"), found["id"], name="Adam's").status_code == 200


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ({"host": "other.example.com"}, True),
        ({"port": 5433}, True),
        ({"database": "other"}, True),
        ({"tls": "require"}, True),
        ({"user": "other"}, False),
        ({"properties": {"socketTimeout": "9"}}, False),
        ({}, False),
    ],
)
def test_pointing_it_elsewhere_clears_its_secrets(millrace: Company, change: dict[str, Any], moves: bool) -> None:
    found = added(millrace)
    after = patch(millrace.as_("Tess"), found["id"], place={**PLACE, **change}).json()
    assert secrets_of(after) == (set() if moves else {"password"})
    assert after["place"]["version"] == (2 if moves else 1)
    with millrace.database.read() as connection:
        pointing = place_of(connection, found["id"])
    assert pointing is not None
    assert pointing.version == after["place"]["version"]


def test_secrets_that_come_with_the_new_place_are_kept(millrace: Company) -> None:
    found, tess = added(millrace), millrace.as_("Tess")
    moved = patch(tess, found["id"], place={**PLACE, "port": 1}, secrets={"password": "new"}).json()
    assert secrets_of(moved) == {"password"}
    assert secrets_of(patch(tess, found["id"], secrets={"password": None}).json()) == set()
    other = patch(tess, found["id"], place={"kind": "http", "base_url": "https://api.example.com"})
    assert other.status_code == 409
    assert "The kind postgresql cannot change" in other.json()["detail"]


def test_another_style_of_credentials_forgets_what_it_does_not_take(millrace: Company) -> None:
    http = {"kind": "http", "base_url": "https://api.example.com"}
    bearer, basic = {"style": "bearer"}, {"style": "basic", "user": "u"}
    found = added(millrace, place={**http, "auth": bearer}, secrets={"token": "t"})
    assert secrets_of(found) == {"token"}
    after = patch(millrace.as_("Tess"), found["id"], place={**http, "auth": basic}, secrets={"password": "p"}).json()
    assert secrets_of(after) == {"password"}
    assert millrace.rows("SELECT name FROM place_secrets") == [("password",)]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"place": {**PLACE, "host": "127.0.0.1"}}, "loopback address"),
        ({"place": {**PLACE, "host": "10.1.2.3"}}, "outgoing.allow"),
        ({"place": {**PLACE, "host": "0x7f.1"}}, "loopback address"),
        ({"place": {**PLACE, "host": "::1"}}, "loopback address"),
        ({"place": {**PLACE, "host": "localhost"}}, "outgoing.allow"),
        ({"place": {**PLACE, "host": "db.example.com:5432"}}, "is not a host name"),
        ({"place": {**PLACE, "host": "/var/run/postgresql"}}, "is not a host name"),
        ({"place": {**PLACE, "host": "a b"}}, "neither a name"),
        ({"place": {**PLACE, "database": "a\nb"}}, "control characters"),
        ({"place": {**PLACE, "properties": {"sslfactory": "x"}}}, "cannot be set"),
        ({"place": {**PLACE, "properties": {"socketTimeout": "1&a=b"}}}, "takes a number"),
        ({"place": {**PLACE, "tls_ca": "is not a certificate"}}, "PEM"),
        ({"place": {**PLACE, "schema": "x"}}, "is an unknown field"),
        ({"place": {"kind": "http", "base_url": "http://169.254.169.254/latest"}}, "metadata"),
        ({"place": {"kind": "http", "base_url": "ftp://example.com"}}, "http://"),
        ({"place": {"kind": "http", "base_url": "https://u:p@example.com"}}, "user name"),
        ({"place": {"kind": "http", "base_url": "https://a.com", "headers": {"Authorization": "x"}}}, "secrets"),
        (
            {"place": {"kind": "http", "base_url": "https://a.com", "auth": {"style": "oauth2", "client_id": "c", "token_url": "http://localhost/t"}}},
            "outgoing.allow",
        ),
        ({"place": {"kind": "object_store", "endpoint": "http://192.168.0.1:9000", "bucket": "abc"}}, "private"),
        ({"place": {"kind": "object_store", "bucket": "../x"}}, "not a valid bucket name"),
        ({"place": {"kind": "folder", "path": "/etc"}}, "sources.folders"),
        ({"place": {"kind": "folder", "path": "relative"}}, "an absolute path"),
        ({"place": {"kind": "iceberg", "uri": "http://127.0.0.1:8420/iceberg"}}, "loopback"),
        ({"place": {"kind": "oracle"}}, "unknown kind 'oracle'"),
        ({"place": {}}, "kind: is required"),
        ({"secrets": {"token": "x"}}, "takes password"),
        ({"secrets": {"pin": "x"}}, "is an unknown field"),
        ({"secrets": {"password": ""}}, "password"),
        ({"name": "  "}, "empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_what_to_do(
    millrace_on_sqlite: Company, body: dict[str, Any], says: str
) -> None:
    tess = millrace_on_sqlite.as_("Tess")
    answer = add(tess, **body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert SECRET not in answer.text
    assert millrace_on_sqlite.rows("SELECT count(*) FROM places") == [(0,)]


def test_a_name_is_used_once_in_a_space(millrace: Company) -> None:
    found = added(millrace)
    assert add(millrace.as_("Tess"), name=" SHOP ").status_code == 409
    assert add(millrace.as_("Tom"), space="Tom's own").status_code == 200
    other = added(millrace, name="Other")
    assert patch(millrace.as_("Tess"), other["id"], name="shop").status_code == 409
    assert patch(millrace.as_("Tess"), found["id"], name="SHOP").status_code == 200
    assert patch(millrace.as_("Tess"), found["id"]).status_code == 422


def test_one_that_is_in_use_is_not_deleted_by_anyone(millrace: Company) -> None:
    used = millrace.id("connection", "Shop database")
    answer = millrace.as_("Olga").request("DELETE", f"/api/connections/{used}")
    assert answer.status_code == 409
    assert "a pipeline uses it" in answer.json()["detail"]
    millrace.database.write(lambda c: c.execute(text("DELETE FROM pipeline_connections")))
    assert "a data project uses it" in millrace.as_("Olga").request("DELETE", f"/api/connections/{used}").text


def test_deleting_takes_the_secrets_with_it(millrace: Company) -> None:
    found = added(millrace)
    path = f"/api/connections/{found['id']}"
    assert millrace.as_("Tom").request("DELETE", path).status_code == 403
    assert millrace.as_("Dora").request("DELETE", path).json() == {"id": found["id"], "name": "Shop"}
    assert millrace.as_("Tess").get(path).status_code == 404
    for table in ("places", "place_secrets"):
        assert millrace.rows(f"SELECT count(*) FROM {table}") == [(0,)]
    assert not millrace.rows(f"SELECT 1 FROM audience WHERE resource_id = '{found['id']}'")


def test_every_change_is_told_to_the_audit_log_without_secrets(millrace: Company) -> None:
    found = added(millrace)
    patch(millrace.as_("Tess"), found["id"], place={**PLACE, "port": 99}, secrets={"password": "another one"})
    millrace.as_("Tess").request("DELETE", f"/api/connections/{found['id']}")
    events = millrace.as_("Olga").get("/api/audit", resource=found["id"]).json()["items"]
    told = {one["after"]["change"]: one["after"] for one in events if one["resource"] == found["id"]}
    assert set(told) == {"add_connection", "change_connection", "delete_connection"}
    assert told["add_connection"]["secrets"] == ["password"]
    assert told["change_connection"]["moved"]
    assert told["change_connection"]["place"]["port"] == 99
    assert "another one" not in json.dumps(told)


def test_a_narrowed_token_adds_nothing(millrace: Company) -> None:
    reads = millrace.as_("Tess", read_only=True)
    answer = add(reads)
    assert answer.status_code == 403
    assert "restricted" in answer.json()["detail"]
    listed = millrace.as_("Tess", only=[millrace.id("table", "raw.orders")])
    assert add(listed).status_code == 404
    assert listed.get("/api/connections").json()["items"] == []
