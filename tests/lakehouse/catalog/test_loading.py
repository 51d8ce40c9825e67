"""Loading a table: the decision first, the stored bytes as they are, and nothing of what was tampered with."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import NoSuchTableError

from headgate.lakehouse.catalog.config import ENDPOINTS
from tests.lakehouse.catalog.support import MORE, ROWS, Lake, error_of, table_path
from tests.platform.http.test_route_table import ROUTES
from tests.support.company import Api, Company
from tests.support.installation import eventually
from tests.support.people import Browser, with_password

EVENTS = table_path("events")


@pytest.fixture
def events(served: Lake) -> Lake:
    """A lake in which Tess has made raw.events, with rows."""
    served.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    return served


def metadata_file(found: Lake) -> Path:
    [(table, file)] = found.rows(
        "SELECT p.table_id, p.metadata_file FROM table_pointers p JOIN resources r ON r.id = p.table_id "
        "WHERE r.name = 'events'"
    )
    return Path(found.warehouse, "metadata", table, file)


def test_the_stored_bytes_are_sent_as_they_are(events: Lake) -> None:
    stored = metadata_file(events).read_bytes()
    answer = events.api("Tess").get(EVENTS)
    assert stored in answer.content
    assert answer.json()["metadata-location"] == f"file://{metadata_file(events)}"
    assert answer.json()["config"] == {}
    assert answer.headers["cache-control"] == "no-store"
    assert hashlib.sha256(stored).hexdigest() == events.rows("SELECT metadata_sha256 FROM table_pointers")[0][0]


def test_a_client_that_knows_the_table_is_told_so_and_only_if_it_still_may(events: Lake) -> None:
    tom = events.api("Tom")
    tag = tom.get(EVENTS).headers["etag"]

    def again() -> Any:
        return tom.request("GET", EVENTS, headers={"If-None-Match": tag})

    assert again().status_code == 304
    assert again().content == b""
    assert tom.request("GET", EVENTS, headers={"If-None-Match": f'W/"x", W/{tag}'}).status_code == 304
    assert tom.request("GET", EVENTS, params={"snapshots": "refs"}, headers={"If-None-Match": tag}).status_code == 200
    events.engine("Tess").load_table("raw.events").append(MORE)
    assert again().status_code == 200
    tag = again().headers["etag"]
    events.api("Adam").change(change="revoke", to="Tom", resource="layer:raw", level="editor").raise_for_status()
    assert error_of(again()) == (404, "NoSuchTableException")


def test_only_referenced_snapshots_are_sent_to_who_asks(events: Lake) -> None:
    events.engine("Tess").load_table("raw.events").append(MORE)
    everything = events.api("Tom").get(EVENTS, snapshots="all").json()["metadata"]
    referenced = events.api("Tom").get(EVENTS, snapshots="refs").json()["metadata"]
    assert len(everything["snapshots"]) == 2
    assert [one["snapshot-id"] for one in referenced["snapshots"]] == [everything["current-snapshot-id"]]
    assert error_of(events.api("Tom").get(EVENTS, snapshots="some")) == (400, "BadRequestException")


def test_what_is_hidden_answers_exactly_like_what_does_not_exist(events: Lake) -> None:
    events.engine("Tess").create_table("trusted.secret", ROWS.schema)
    tom = events.api("Tom")

    def told(answer: Any, name: str) -> tuple[int, bytes, set[str]]:
        return answer.status_code, answer.content.replace(name.encode(), b"T"), set(answer.headers)

    for method, suffix in (("GET", ""), ("HEAD", ""), ("POST", ""), ("DELETE", ""), ("POST", "/metrics")):
        answers = {
            told(tom.request(method, table_path(name, "trusted") + suffix, json={}), name)[:2]
            for name in ("secret", "orders", "absent")
        }
        assert len(answers) == 1, (method, answers)
        assert answers.pop()[0] == 404
    hidden, missing = (tom.get(table_path(name, "trusted")) for name in ("secret", "absent"))
    assert set(hidden.headers) == set(missing.headers)
    layers = {told(tom.get(f"/iceberg/v1/namespaces/{name}"), name)[:2] for name in ("trusted", "nothing")}
    assert len(layers) == 1


def test_exists_is_204_or_404(events: Lake) -> None:
    tom = events.api("Tom")
    assert tom.request("HEAD", EVENTS).status_code == 204
    assert tom.request("HEAD", table_path("absent")).status_code == 404
    assert tom.request("HEAD", "/iceberg/v1/namespaces/raw").status_code == 204
    assert tom.request("HEAD", "/iceberg/v1/namespaces/trusted").status_code == 404


@pytest.mark.parametrize(
    "name",
    ["%2e%2e", "events%00", "ev%65nts%1fx", "EVENTS%20", "events;", "ｅvents", "e%CC%81vents", "`events`", "x" * 300,
     "raw.events", "\u212aey"],
)  # fmt: skip
def test_odd_names_name_nothing(served_on_sqlite: Lake, name: str) -> None:
    served_on_sqlite.engine("Tess").create_table("raw.key", ROWS.schema)
    tess = served_on_sqlite.api("Tess")
    assert tess.request("GET", f"/iceberg/v1/namespaces/raw/tables/{name}").status_code == 404
    assert tess.request("GET", f"/iceberg/v1/namespaces/{name}/tables/events").status_code == 404
    answer = tess.post("/iceberg/v1/namespaces/raw/tables", {"name": name, "schema": {}})
    assert answer.status_code == 400


def test_a_namespace_of_several_levels_holds_nothing(events: Lake) -> None:
    """Java's client asks for a metadata table as a table in the namespace of its table, and wants to hear this."""
    answer = events.api("Tom").get("/iceberg/v1/namespaces/raw%1Fevents/tables/snapshots")
    assert error_of(answer) == (404, "NoSuchTableException")
    assert answer.json()["error"]["message"] == "Table does not exist: raw.events.snapshots"


def test_a_table_without_data_is_told_apart_from_none_by_who_may_see_it(events: Lake) -> None:
    for name in ("payments", "PAYMENTS"):
        answer = events.api("Tom").get(table_path(name))
        assert error_of(answer) == (404, "NoSuchTableException")
        assert answer.json()["error"]["message"].startswith(f"Table raw.{name} has no data and no columns yet")
    for who, path in (("Ana", table_path("payments")), ("Tom", table_path("absent"))):
        answer = events.api(who).get(path)
        assert answer.json()["error"]["message"] == f"Table does not exist: raw.{path.rpartition('/')[2]}"
    with pytest.raises(NoSuchTableError, match=r"Table raw\.payments has no data and no columns yet"):
        events.engine("Tom").load_table("raw.payments")
    events.engine("Tom").create_table("raw.payments", ROWS.schema)
    assert events.api("Tom").get(table_path("payments")).status_code == 200


def test_case_does_not_matter(events: Lake) -> None:
    assert events.api("Tom").get(table_path("Events", "RAW")).status_code == 200


def test_a_metadata_file_that_was_changed_is_not_given_out(events: Lake) -> None:
    file = metadata_file(events)
    stored = file.read_bytes()
    file.write_bytes(stored.replace(b'"name":"name"', b'"name":"eman"'))
    for answer in (events.api("Tom").get(EVENTS), events.api("Tom").post(EVENTS, {"updates": []})):
        assert error_of(answer) == (400, "ValidationException")
        assert b"eman" not in answer.content
    file.write_bytes(stored)
    assert events.api("Tom").get(EVENTS).status_code == 200


def test_a_metadata_file_that_is_missing_is_told_in_icebergs_words_to_who_may_see_the_table(events: Lake) -> None:
    file = metadata_file(events)
    hidden = events.api("Bea").get(EVENTS).json()["error"]
    file.rename(file.with_name("away.json"))
    answer = events.api("Tess").get(EVENTS)
    assert error_of(answer) == (404, "NotFoundException")
    assert f"Failed to open input stream for file: file://{file}" in answer.json()["error"]["message"]
    assert events.api("Bea").get(EVENTS).json()["error"] == hidden
    assert hidden["type"] == "NoSuchTableException"


def test_other_engines_load_nothing_from_a_folder_unless_the_operator_trusts_the_host(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    for answer in (
        adam.post("/iceberg/v1/namespaces/raw/tables", {"name": "t"}),
        adam.post(EVENTS, {"updates": []}),
        adam.post(
            "/iceberg/v1/transactions/commit", {"table-changes": [{"identifier": {"namespace": ["raw"], "name": "t"}}]}
        ),
    ):
        assert error_of(answer) == (403, "ForbiddenException")
        assert "external_engines" in answer.json()["error"]["message"]


def test_a_load_and_a_refusal_are_audit_events(events: Lake) -> None:
    table = events.company.id("table", "raw.events")
    events.api("Tom").get(EVENTS)
    events.api("Ana").get(EVENTS)
    query = "SELECT event, allowed, action FROM audit_events e JOIN members m ON m.id = e.actor_id WHERE resource_id = '{}' AND m.name = '{}'"
    eventually(lambda: events.rows(query.format(table, "Tom")))
    assert [tuple(row) for row in events.rows(query.format(table, "Tom"))] == [("resource.read", True, "execute")]
    assert [bool(row[1]) for row in events.rows(query.format(table, "Ana"))] == [False]


def test_nobody_and_sessions_are_not_let_in(millrace: Company) -> None:
    assert error_of(millrace.as_(None).get("/iceberg/v1/config")) == (401, "NotAuthorizedException")
    with_password(millrace, "Adam", "adam@example.com")
    browser = Browser(millrace)
    browser.sign_in("adam@example.com").raise_for_status()
    assert browser.get("/api/access/me").status_code == 200
    assert error_of(browser.get("/iceberg/v1/config")) == (401, "NotAuthorizedException")


def test_a_stored_token_that_was_revoked_loads_nothing(events: Lake) -> None:
    token = events.company.token("Tess", read_only=True)
    api = Api(events.company.client, token)
    assert api.get(EVENTS).status_code == 200
    tokens = events.api("Tess").get("/api/tokens").json()["items"]
    [identifier] = [one["id"] for one in tokens if one["read_only"] and not one["revoked_at"]]
    events.api("Tess").request("DELETE", f"/api/tokens/{identifier}").raise_for_status()
    assert error_of(api.get(EVENTS)) == (401, "NotAuthorizedException")


def test_config_lists_what_is_served(millrace: Company) -> None:
    answer = millrace.as_("Ben").get("/iceberg/v1/config", warehouse="anything").json()
    assert answer["endpoints"] == list(ENDPOINTS)
    served = {(method, path.replace("_}", "}")) for method, path in ROUTES}
    for endpoint in answer["endpoints"]:
        method, path = endpoint.split()
        path = "/iceberg" + path.replace("/{prefix}", "")
        assert ("GET" if method == "HEAD" else method, path) in served, endpoint
    assert not any("register" in one for one in answer["endpoints"])


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("PATCH", "/iceberg/v1/namespaces", 405, "UnsupportedOperationException"),
        ("GET", "/iceberg/v1/nothing", 404, "NotFoundException"),
        ("GET", "/iceberg/v1/namespaces?pageSize=x", 400, "BadRequestException"),
        ("GET", "/iceberg/v1/namespaces/raw/views/v", 404, "NoSuchViewException"),
        ("GET", "/iceberg/v1/namespaces/nowhere/views", 404, "NoSuchNamespaceException"),
        ("DELETE", "/iceberg/v1/namespaces/raw/views/v", 404, "NoSuchViewException"),
        ("POST", "/iceberg/v1/namespaces/raw/register", 403, "ForbiddenException"),
        ("POST", "/iceberg/v1/namespaces", 400, "BadRequestException"),
    ],
)
def test_every_error_has_icebergs_form(millrace: Company, method: str, path: str, status: int, kind: str) -> None:
    assert error_of(millrace.as_("Adam").request(method, path)) == (status, kind)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"updates": 1}', b'{"updates": [1]}']
)
def test_what_is_no_commit_is_refused(events: Lake, body: bytes) -> None:
    answer = events.api("Tom").request("POST", EVENTS, content=body)
    assert error_of(answer) == (400, "BadRequestException")


def test_a_body_that_is_too_large_is_refused_in_icebergs_form(events: Lake) -> None:
    limit = events.company.settings.warehouse.max_commit_bytes
    answer = events.api("Tom").request("POST", EVENTS, content=b" " * (limit + 1))
    assert error_of(answer) == (413, "BadRequestException")
    large = json.dumps({"updates": [], "requirements": [], "x": "x" * 3_000_000}).encode()
    assert events.api("Tom").request("POST", EVENTS, content=large).status_code == 200
