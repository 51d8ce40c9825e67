"""The operator of the machine knows names, and no more: they are no member."""

from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from headgate.kit.ids import ALL_GROUP
from headgate.platform.http.authentication import OPERATOR_SCOPE
from tests.support.company import Company


@pytest.fixture
def operator(millrace: Company) -> TestClient:
    async def as_operator(scope: Scope, receive: Receive, send: Send) -> None:
        scope[OPERATOR_SCOPE] = True
        await millrace.client.app(scope, receive, send)

    return TestClient(as_operator, raise_server_exceptions=False)


def test_the_operator_knows_names_but_neither_members_nor_counts(operator: TestClient, millrace: Company) -> None:
    def get(path: str) -> Any:
        return operator.get(path).raise_for_status().json()

    assert [one["name"] for one in get("/api/groups")["items"]] == ["All", "analysts", "stewards"]
    for group in (ALL_GROUP, millrace.id("group", "analysts")):
        assert get(f"/api/groups/{group}")["members"] is None
    contexts = get("/api/contexts")["items"]
    assert [(one["name"], one["members"]) for one in contexts] == [("finance", None), ("sales", None)]
    assert get("/api/organization")["name"] == "Millrace Foods"


def test_the_operator_changes_nothing(operator: TestClient, millrace: Company) -> None:
    group = millrace.id("group", "analysts")
    answers = (
        operator.post("/api/groups", json={"name": "mine"}),
        operator.patch(f"/api/groups/{group}", json={"name": "mine"}),
        operator.delete(f"/api/groups/{group}"),
        operator.post("/api/contexts", json={"name": "mine"}),
        operator.patch("/api/organization", json={"name": "mine"}),
    )
    assert [answer.status_code for answer in answers] == [403] * 5
    assert millrace.rows("SELECT COUNT(*) FROM groups") == [(3,)]
    assert millrace.rows("SELECT COUNT(*) FROM contexts") == [(2,)]
    assert millrace.rows("SELECT name FROM organization") == [("Millrace Foods",)]
