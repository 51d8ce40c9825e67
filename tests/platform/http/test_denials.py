"""Whatever a member is denied is in the audit log: with narrowed tokens, and on what belongs to somebody else."""

from datetime import timedelta
from typing import Any

import pytest

from headgate.kit.clock import now
from tests.support.company import Api, Company
from tests.support.people import Browser, with_password

INVITATION = {"email": "new@example.com", "role": "business"}


def denied(millrace: Company, member: str) -> list[tuple[Any, ...]]:
    """What the log tells of refusals to a member."""
    query = (
        "SELECT action, kind, resource_id FROM audit_events WHERE event = 'access.denied' "
        f"AND actor_id = '{millrace.id('member', member)}' ORDER BY id"
    )
    return millrace.rows(query)


@pytest.mark.parametrize("limits", [{"read_only": True}, {"only": []}, {"expires": now() + timedelta(days=9)}])
@pytest.mark.parametrize(
    ("method", "path", "body", "action"),
    [
        ("POST", "/api/tokens", {"name": "mine"}, "create_token"),
        ("POST", "/api/invitations", INVITATION, "invite_member"),
        ("POST", "/api/integrations", {"name": "mine", "tables": ["service.revenue"]}, "create_integration"),
        ("POST", "/api/me/password", {"password": "seven quiet herons"}, "change_password"),
        ("DELETE", "/api/me/sessions", None, "end_other_sessions"),
        ("GET", "/api/tokens", None, "list_tokens"),
    ],
)
def test_what_a_narrowed_token_may_not_do_is_recorded(
    millrace_on_sqlite: Company, limits: dict[str, Any], method: str, path: str, body: Any, action: str
) -> None:
    adam = millrace_on_sqlite.as_("Adam", **limits)
    answer = adam.request(method, path, **({"json": body} if body else {}))
    assert answer.status_code == 403, answer.text
    assert [one[0] for one in denied(millrace_on_sqlite, "Adam")] == [action]


@pytest.mark.parametrize("name", ["table:service.hidden", "table:service.missing"])
def test_narrowing_a_token_to_what_one_may_not_see_is_recorded(millrace: Company, name: str) -> None:
    answer = millrace.as_("Ana").post("/api/tokens", {"name": "mine", "only": [name]})
    assert answer.status_code == 404, answer.text
    assert [one[:2] for one in denied(millrace, "Ana")] == [("see", "table")]


def test_inviting_beyond_ones_own_scope_is_recorded(millrace: Company) -> None:
    ana = millrace.as_("Ana")
    answer = ana.post("/api/invitations", {**INVITATION, "scope": "entire"})
    assert answer.status_code == 403, answer.text
    assert len(denied(millrace, "Ana")) == 1


def belongings(millrace: Company) -> list[tuple[str, str, str]]:
    """Requests that touch something of Tess: a token, a session, an invitation, a statement, a request."""
    tess = millrace.as_("Tess")
    token = tess.post("/api/tokens", {"name": "mine"}).json()["id"]
    with_password(millrace, "Tess", "tess@example.com")
    browser = Browser(millrace)
    assert browser.sign_in("tess@example.com").status_code == 200
    session = browser.get("/api/me/sessions").json()["items"][0]["id"]
    invitation = tess.post("/api/invitations", INVITATION).json()["id"]
    statement = tess.post("/api/sql/statements", {"sql": "SELECT 1"}).json()["id"]
    mart = millrace.id("data_mart", "Pipeline health")
    asked = tess.post("/api/access/requests", {"action": "manage_owners", "resource": mart, "reason": "x"}).json()["id"]
    return [
        ("DELETE", f"/api/tokens/{token}", "token"),
        ("DELETE", f"/api/me/sessions/{session}", "session"),
        ("POST", f"/api/invitations/{invitation}/resend", "invitation"),
        ("DELETE", f"/api/invitations/{invitation}", "invitation"),
        ("GET", f"/api/sql/statements/{statement}", "statement"),
        ("POST", f"/api/sql/statements/{statement}/cancel", "statement"),
        ("DELETE", f"/api/sql/statements/{statement}", "statement"),
        ("POST", f"/api/access/requests/{asked}/withdraw", "request"),
        ("POST", f"/api/access/requests/{asked}/decline", "request"),
    ]


def test_touching_what_belongs_to_somebody_else_is_recorded(millrace: Company) -> None:
    ben: Api = millrace.as_("Ben")
    for number, (method, path, kind) in enumerate(belongings(millrace), 1):
        answer = ben.request(method, path, **({"json": {"comment": "no"}} if path.endswith("decline") else {}))
        assert answer.status_code == 404, (path, answer.text)
        found = denied(millrace, "Ben")
        assert len(found) == number, path
        assert (found[-1][1], found[-1][2]) == (kind, path.split("/")[-1 if method in {"DELETE", "GET"} else -2])
