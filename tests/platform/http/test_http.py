"""What every request meets: request ids, headers, problems, limits, health and metrics."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from headgate.kit.database import Database
from headgate.kit.errors import Problem
from headgate.organization.access import service
from headgate.schema import METADATA
from tests.support.company import Company, company


def test_health_and_readiness(millrace: Company) -> None:
    assert millrace.as_(None).get("/healthz").json()["status"] == "ok"
    assert millrace.as_(None).get("/readyz").json()["status"] == "ready"


def test_readiness_needs_the_database(millrace_on_sqlite: Company) -> None:
    with millrace_on_sqlite.database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE organization RENAME TO elsewhere")
    answer = millrace_on_sqlite.as_(None).get("/readyz")
    assert answer.status_code >= 500
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_request_id_is_taken_over_or_made(millrace: Company) -> None:
    api = millrace.as_(None)
    assert api.request("GET", "/healthz", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = api.get("/healthz").headers["x-request-id"]
    assert made
    assert made != api.get("/healthz").headers["x-request-id"]
    hostile = api.request("GET", "/healthz", headers={"X-Request-ID": 'a"} evil\t<script>'}).headers["x-request-id"]
    assert "script" not in hostile


def test_every_answer_has_security_headers(millrace: Company) -> None:
    for path in ("/healthz", "/nowhere", "/api/resources?kind=nonsense", "/api/openapi.json"):
        headers = millrace.as_("Ben").get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("DELETE", "/healthz", 405, "wrong_method"),
        ("GET", "/api/resources?kind=nonsense", 422, "invalid"),
        ("GET", "/api/resources", 422, "invalid"),
        ("GET", "/api/resources?kind=data_mart&sort=colour", 422, "invalid"),
        ("GET", "/api/resources?kind=data_mart&limit=0", 422, "invalid"),
        ("GET", "/api/resources?kind=data_mart&limit=many", 422, "invalid"),
        ("GET", "/api/resources?kind=data_mart&cursor=xyz", 422, "invalid"),
        ("GET", "/api/resources?kind=data_mart&action=fly", 422, "invalid"),
        ("GET", "/api/resources?kind=data_mart&prefix=%00", 422, "invalid"),
        ("GET", "/api/resources/not-an-id", 422, "invalid"),
        ("GET", "/api/resources/dm_00000000000000000000", 404, "not_found"),
        ("GET", "/api/resources/xx_00000000000000000000", 404, "not_found"),
        ("GET", "/api/resources/mbr_00000000000000000000", 404, "not_found"),
        ("GET", "/api/audit?cursor=AAAA", 422, "invalid"),
    ],
)
def test_bad_input_is_a_problem_that_says_what_to_do(
    millrace: Company, method: str, path: str, status: int, code: str
) -> None:
    answer = millrace.as_("Adam").request(method, path)
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["detail"]
    assert body["title"]
    assert body["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b'{"action": 7}',
        b'{"action": "see"}',
        b'{"action": "see", "resource": ""}',
        b'{"action": "see", "resource": "data_mart:\\u0000"}',
        b'{"action": "see", "resource": "data_mart:\\ud800"}',
        b'{"action": "see", "resource": "nonsense"}',
        b'{"action": "see", "resource": "data_mart:Revenue", "extra": 1}',
        b'{"action": "see", "kind": "report", "resource": "data_mart:Revenue"}',
        b'{"action": "fly", "resource": "data_mart:Revenue"}',
        b'{"action": "edit", "resource": "data_mart:Revenue", "with": {"colour": "red"}}',
        b'{"action": "edit", "resource": "data_mart:Revenue", "with": {"storage": 7, "reads": "x"}}',
        b'{"action": "edit", "resource": "data_mart:Revenue", "with": {"reads": [{"a": 1}]}}',
        b'{"action": "grant", "resource": "table:raw.orders", "with": {"to": ["x"], "level": "boss"}}',
        b'{"action": "see", "resource": "' + b"a" * 100_000 + b'"}',
        b"\xff\xfe",
        b'{"action": "see", "resource": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_a_malformed_question_is_a_4xx_and_changes_nothing(millrace: Company, body: bytes) -> None:
    before = millrace.rows("SELECT COUNT(*) FROM grants")
    headers = {"Content-Type": "application/json"}
    answer = millrace.as_("Adam").request("POST", "/api/access/explain", content=body, headers=headers)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["detail"]
    assert millrace.rows("SELECT COUNT(*) FROM grants") == before


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", "/api/sql/statements", {"sql": "SELECT 1", "max_row": 3}, "max_row: is an unknown field; did you mean max_rows?"),
        ("POST", "/api/sql/statements", {"sql": "SELECT 1", "colour": 3}, "colour: is an unknown field; the fields are sql, max_rows"),
        ("POST", "/api/layers", {"Name": "new"}, "Name: is an unknown field; did you mean name?"),
        ("PATCH", "/api/layers/{layer}", {"titel": "Raw"}, "titel: is an unknown field; did you mean title?"),
        ("PUT", "/api/me/notifications", {"channels": [{"channel": "access", "by_mial": True}]}, "did you mean by_mail?"),
        ("POST", "/api/access/changes", {"change": "share", "resource": "x:y", "for_reprting": 1}, "did you mean for_reporting?"),
    ],
)  # fmt: skip
def test_a_field_that_nobody_reads_is_refused_with_the_one_that_is_meant(
    millrace_on_sqlite: Company, method: str, path: str, body: dict[str, Any], says: str
) -> None:
    place = path.format(layer=millrace_on_sqlite.id("layer", "raw"))
    answer = millrace_on_sqlite.as_("Adam").request(method, place, json=body)
    assert (answer.status_code, says in answer.json()["detail"]) == (422, True), answer.text


def test_so_many_fields_that_nobody_reads_are_told_shortly(millrace_on_sqlite: Company) -> None:
    body = {"sql": "SELECT 1", **{f"{number}{'x' * 1000}": 1 for number in range(100)}}
    answer = millrace_on_sqlite.as_("Adam").post("/api/sql/statements", body)
    assert (answer.status_code, len(answer.json()["errors"])) == (422, 10)
    assert len(answer.text) < 10_000


def test_an_unknown_caller_is_asked_to_sign_in(millrace: Company) -> None:
    for token in ("", "nonsense", "hgt_" + "a" * 38, millrace.token("Ben")[:-1] + "x"):
        headers = {"Authorization": f"Bearer {token}"}
        answer = millrace.client.get("/api/access/me", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert millrace.client.get("/api/access/me").status_code == 401
    basic = millrace.client.get("/api/access/me", headers={"Authorization": f"Basic {millrace.token('Ben')}"})
    assert basic.status_code == 401


def test_a_large_body_is_refused_before_it_is_read(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with company(database, tmp_path, server={"max_body_bytes": 2048}) as found:
        api = found.as_("Ben")
        body = json.dumps({"action": "see", "resource": "x" * 5000}).encode()
        headers = {"Content-Type": "application/json"}
        assert api.request("POST", "/api/access/explain", content=body, headers=headers).status_code == 413

        def pieces() -> Any:
            for _ in range(100):
                yield b"x" * 100

        assert api.request("POST", "/api/access/explain", content=pieces(), headers=headers).status_code == 413


def test_a_fault_of_ours_is_a_problem_without_its_inner_life(
    millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("the secret plan is in /etc/plan")

    monkeypatch.setattr(service, "ask", broken)
    answer = millrace_on_sqlite.as_("Ben").post("/api/access/explain", {"action": "see", "resource": "organization"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.json()["code"] == Problem.code


def test_metrics_name_routes_and_no_resources(millrace: Company) -> None:
    mart = millrace.id("data_mart", "Revenue")
    millrace.as_("Ben").get(f"/api/resources/{mart}")
    text = millrace.as_(None).get("/metrics").text
    assert 'route="/api/resources/{resource_id}"' in text
    assert mart not in text
    assert "headgate_http_request_seconds_bucket" in text


@pytest.mark.parametrize(
    ("mode", "header", "status"),
    [("off", None, 404), ("token", None, 401), ("token", "Bearer wrong", 401), ("token", "Bearer scrape", 200)],
)
def test_metrics_can_be_closed(tmp_path: Path, mode: str, header: str | None, status: int) -> None:
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with company(database, tmp_path, server={"metrics": mode, "metrics_token": "scrape"}) as found:
        headers = {"Authorization": header} if header else {}
        assert found.client.get("/metrics", headers=headers).status_code == status


def test_a_request_is_compared_with_the_routes_of_fitting_routers_alone(
    millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    matches = APIRoute.matches

    def counted(route: APIRoute, scope: Scope) -> tuple[Match, Scope]:
        compared.append(route.path)
        return matches(route, scope)

    api = millrace_on_sqlite.as_("Ben")
    monkeypatch.setattr(APIRoute, "matches", counted)
    for path in ("/api/resources", "/api/maintenance/nothing", "/nowhere"):
        compared.clear()
        api.get(path, kind="data_mart")
        others = [route for route in compared if route.startswith(("/api/members", "/api/layers", "/iceberg"))]
        assert compared
        assert others == [], path
