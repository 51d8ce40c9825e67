"""What someone with bad intentions sends: nothing hidden is learnt, nothing stops, and every refusal is recorded."""

import base64
import json
import zlib
from typing import Any

import pytest

from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds
from headgate.kit.ids import kind_of
from headgate.organization.access import service
from tests.support.company import Company
from tests.support.installation import eventually

MEMBERS = ("Olga", "Adam", "Tess", "Tom", "Ana", "Ben", "Bea", "Dora")


def narrowed(millrace: Company, member: str) -> Any:
    """A token that reaches one table and nothing else."""
    return millrace.as_(member, only=[millrace.id("table", "service.revenue")])


def raw(millrace: Company, member: str, path: str, body: str) -> Any:
    """A body exactly as written."""
    headers = {"content-type": "application/json"}
    return millrace.as_(member).request("POST", path, content=body, headers=headers)


def evaluation(subject: str, action: str, kind: str, name: str) -> dict[str, Any]:
    return {
        "subject": {"type": "member", "id": subject},
        "action": {"name": action},
        "resource": {"type": kind, "id": name},
    }


# Texts that no row can hold


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/access/v1/evaluation",
            '{"subject":{"type":"user","id":"Ben"},"action":{"name":"\\ud800"},"resource":{"type":"x","id":"y"}}',
        ),
        (
            "/access/v1/evaluation",
            '{"subject":{"type":"user","id":"Ben"},"action":{"name":"see"},"resource":{"type":"x","id":"\\u0000"}}',
        ),
        ("/api/access/explain", '{"action":"create","kind":"\\ud800","with":{}}'),
        ("/api/access/explain", '{"action":"see","resource":"data_mart:Revenue","with":{"\\ud800":1}}'),
        ("/api/access/changes", '{"change":"set_plan","plan":"\\ud800"}'),
    ],
)
def test_texts_that_no_row_can_hold_are_refused(millrace: Company, path: str, body: str) -> None:
    answer = raw(millrace, "Ben", path, body)
    assert answer.status_code in {400, 422}, answer.text
    assert "character" in answer.json()["detail"]


def test_nobody_can_stop_the_audit_log(millrace: Company) -> None:
    long = evaluation("Ben", "x" * 390, "y" * 390, "z")
    assert millrace.as_("Ben").post("/access/v1/evaluation", long).status_code == 200
    millrace.as_("Ben").post("/api/access/explain", {"action": "edit", "resource": "data_mart:Revenue"})
    query = "SELECT action FROM audit_events WHERE event = 'access.decided' ORDER BY id"
    eventually(lambda: len(millrace.rows(query)) == 2)
    assert [len(action) for (action,) in millrace.rows(query)] == [40, 4]


# Nothing hidden is learnt from a state


@pytest.mark.parametrize(
    ("member", "action", "resource", "field", "hidden"),
    [
        ("Ben", "see", "data_mart:Revenue", "storage", "Warehouse"),
        ("Ana", "list", "project:Shop", "target", "Secret"),
        ("Ana", "see", "pipeline:Refine orders", "project", "Shop"),
    ],
)
def test_a_state_that_names_something_hidden_is_denied_like_one_that_names_nothing(
    millrace: Company, member: str, action: str, resource: str, field: str, hidden: str
) -> None:
    answers = []
    for name in (hidden, "no such thing"):
        body = {"action": action, "resource": resource, "with": {field: name}}
        found = millrace.as_(member).post("/api/access/explain", body)
        answers.append((found.status_code, found.json().get("allowed")))
    assert answers[0] == answers[1]


def test_a_state_that_names_what_the_asker_sees_still_counts(millrace: Company) -> None:
    body = {"action": "edit", "resource": "data_mart:Revenue", "with": {"storage": "Warehouse"}}
    assert millrace.as_("Tess").post("/api/access/explain", body).json()["allowed"]


# Explanations


def test_every_question_about_everything_is_answered(millrace: Company) -> None:
    ids = [row[0] for row in millrace.rows("SELECT id FROM resources")]
    for member in MEMBERS:
        api, asked = millrace.as_(member), 0
        for identifier in ids:
            kind = kind_of(identifier) or ""
            for action in {one for rules in rule_kinds(kind) for one in BOOK.actions(rules)}:
                if asked % 7 == zlib.crc32(f"{member}{identifier}".encode()) % 7:
                    answer = api.post("/api/access/explain", {"action": action, "resource": identifier})
                    assert answer.status_code in {200, 404, 422}, (member, identifier, action, answer.text)
                asked += 1


def test_spaces_explain_what_is_missing(millrace: Company) -> None:
    answer = millrace.as_("Ana").post(
        "/api/access/explain", {"action": "update", "resource": "pipeline:Land shop orders"}
    )
    assert answer.status_code == 200
    assert any("space" in text for way in answer.json()["ways"] for text in way["missing"])
    refused = millrace.as_("Ana").post(
        "/api/access/who-can", {"action": "list", "resource": "connection:Shop database"}
    )
    assert refused.status_code == 403


# Narrowed tokens


@pytest.mark.parametrize(
    "change",
    [
        {"change": "grant", "to": "Ben", "resource": "{}", "level": "viewer"},
        {"change": "share", "resource": "{}"},
        {"change": "remove_owner", "resource": "{}", "member": "Tess", "ownership": "technical"},
        {"change": "remove_owner", "resource": "{}", "member": "Tom", "ownership": "technical"},
        {"change": "attach_context", "resource": "{}", "context": "finance"},
    ],
)
@pytest.mark.parametrize("path", ["/api/access/changes", "/api/access/what-if"])
def test_a_token_learns_nothing_of_what_it_does_not_reach(millrace: Company, change: dict[str, str], path: str) -> None:
    answers = []
    for resource in ("data_mart:Revenue", "data_mart:Nothing"):
        body: Any = {**change, "resource": resource}
        answer = narrowed(millrace, "Tess").post(path, {"change": body} if "what-if" in path else body)
        answers.append((answer.status_code, answer.json()["detail"].replace(resource.partition(":")[2], "…")))
    assert answers[0] == answers[1] == (404, "There is no data mart … that you may see")


def test_a_token_with_a_list_learns_nothing_of_grants_elsewhere(millrace: Company) -> None:
    api = narrowed(millrace, "Tess")
    for who in ("Tom", "Bea"):
        answer = api.change(change="revoke", to=who, resource="layer:raw", level="editor")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert who not in answer.json()["detail"]


def test_a_token_with_a_list_foretells_only_what_it_reaches(millrace: Company) -> None:
    change = {"change": "grant", "to": "Ana", "resource": "table:service.revenue", "level": "viewer"}
    seen = narrowed(millrace, "Tess").post("/api/access/what-if", {"change": change}).json()["items"]
    assert {one["kind"] for one in seen} <= {"table", "layer"}
    assert "integration" in {
        one["kind"] for one in millrace.as_("Adam").post("/api/access/what-if", {"change": change}).json()["items"]
    }


@pytest.mark.parametrize("limits", [{"read_only": True}, {"only": []}])
def test_a_narrowed_token_has_no_actions_beyond_its_limits(millrace: Company, limits: dict[str, Any]) -> None:
    for resource in ({"type": "organization", "id": "organization"}, {"type": "member", "id": "Ben"}):
        body = {"subject": {"type": "member", "id": "Adam"}, "resource": resource}
        assert millrace.as_("Adam").post("/access/v1/search/action", body).json()["results"]
        found = millrace.as_("Adam", **limits).post("/access/v1/search/action", body).json()["results"]
        assert found == []


def test_a_narrowed_token_is_refused_before_it_learns_of_states(millrace: Company) -> None:
    for change in (
        {"change": "join_group", "group": "All", "member": "Bea"},
        {"change": "set_scope", "member": "Olga", "scope": "selected"},
    ):
        assert narrowed(millrace, "Adam").change(**change).status_code == 403


# What if


def test_what_if_tells_nothing_of_saved_queries_of_others(millrace: Company) -> None:
    for member in ("Ana", "Tom"):
        change = {"change": "grant", "to": member, "resource": "table:trusted.orders", "level": "editor"}
        answer = millrace.as_("Adam").post("/api/access/what-if", {"change": change, "member": member}).json()
        assert "hidden" not in answer
        assert answer["total"] == len(answer["items"])
        assert "saved_query" not in {one["kind"] for one in answer["items"]}


def test_what_if_tells_who_gains_only_to_those_who_may_ask(millrace: Company) -> None:
    change = {"change": "grant", "to": "group:All", "resource": "table:service.revenue", "level": "viewer"}
    seen = millrace.as_("Tess").post("/api/access/what-if", {"change": change}).json()["items"]
    assert {one["kind"] for one in seen} <= {"table", "layer"}
    assert seen


# Refusals are recorded


def denials(millrace: Company) -> int:
    return int(millrace.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'access.denied'")[0][0])


def test_every_refusal_is_recorded(millrace: Company) -> None:
    ben = millrace.as_("Ben")
    grant = {"change": "grant", "to": "Ben", "resource": "table:raw.orders", "level": "viewer"}
    requests = [
        ("/api/access/changes", grant),
        ("/api/access/what-if", {"change": grant}),
        ("/access/v1/evaluations", {"evaluations": [evaluation("Tess", "see", "data_mart", "Revenue")]}),
        (
            "/access/v1/search/subject",
            {
                "subject": {"type": "member"},
                "action": {"name": "see"},
                "resource": {"type": "table", "id": "raw.orders"},
            },
        ),
    ]
    for number, (path, body) in enumerate(requests, 1):
        ben.post(path, body)
        assert denials(millrace) == number, path


# Faults of ours


@pytest.mark.parametrize(
    "identifier", ["grp_00000000000000000a11", "ctx_00000000000000000000", "tok_00000000000000000000"]
)
def test_ids_that_name_no_resource_are_not_found(millrace: Company, identifier: str) -> None:
    assert millrace.as_("Ben").get(f"/api/resources/{identifier}").status_code == 404


def test_an_action_asked_of_a_kind_that_lacks_it_is_a_slip(millrace: Company) -> None:
    for resource in ("data_mart:Revenue", "space:Sales data"):
        body: dict[str, Any] = {"action": "change_space", "resource": resource, "with": {}}
        answer = millrace.as_("Tess").post("/api/access/explain", body)
        assert answer.status_code == 422
        assert "change_space" in answer.json()["detail"]


def test_a_time_beyond_all_years_is_refused(millrace: Company) -> None:
    for expires in ("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"):
        answer = millrace.as_("Tess").change(
            change="grant", to="Ben", resource="table:raw.orders", level="viewer", expires=expires
        )
        assert answer.status_code == 422, answer.text


def test_a_cursor_with_a_huge_number_is_harmless(millrace: Company) -> None:
    text = json.dumps(["audit   ", "", "9" * 40], separators=(",", ":"))
    cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    assert millrace.as_("Adam").get("/api/audit", cursor=cursor).status_code in {200, 422}


def test_a_fault_of_ours_carries_the_headers_too(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(service, "member_asked", broken)
    answer = millrace_on_sqlite.as_("Ben").post("/api/access/explain", {"action": "see", "resource": "layer:raw"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert {"x-request-id", "content-security-policy", "cache-control"} <= set(answer.headers)


def test_the_host_header_leads_nowhere(millrace: Company) -> None:
    headers = {"host": "evil.example"}
    told = millrace.client.get("/.well-known/authzen-configuration", headers=headers)
    assert "evil" not in told.text
    moved = millrace.client.get("/api/resources/", headers=headers, follow_redirects=False)
    assert "location" not in moved.headers
