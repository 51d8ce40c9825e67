"""Values that cannot be used are named as whoever sent them calls them, with what they have to be in plain words."""

from typing import Any

import pytest

from headgate.edge.slips import slips
from tests.support.company import Company

CHANGES, STATEMENTS = "/api/access/changes", "/api/sql/statements"


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", STATEMENTS, {"sql": ""}, "sql: is empty"),
        ("POST", STATEMENTS, {}, "sql: is needed"),
        ("POST", STATEMENTS, {"sql": 7}, "sql: must be a text"),
        ("POST", STATEMENTS, {"sql": "x" * 100_001}, "sql: is too long; it has at most 100,000 characters"),
        ("POST", STATEMENTS, {"sql": "x", "max_rows": 0}, "max_rows: must be at least 1"),
        ("POST", STATEMENTS, {"sql": "x", "max_rows": "many"}, "max_rows: must be a whole number"),
        ("POST", STATEMENTS, [], "body: must be an object with fields"),
        (
            "POST",
            CHANGES,
            {"change": "grant", "to": "Ana", "resource": "table:raw.orders", "level": "boss"},
            "level: must be viewer, editor or manager",
        ),
        ("POST", CHANGES, {"change": "grant", "resource": "table:raw.orders", "level": "viewer"}, "to: is needed"),
        ("POST", CHANGES, {"change": "fly"}, "change: there is no 'fly'; there are grant, revoke"),
        ("POST", CHANGES, {"to": "Ana"}, "change: is needed"),
        (
            "POST",
            "/api/access/what-if",
            {"change": {"change": "set_scope", "member": "Ana", "scope": "some"}},
            "change.scope: must be entire or selected",
        ),
        ("POST", "/api/tokens", {"name": "x", "expires": "soon"}, "expires: must be a time with its zone"),
        ("POST", "/api/tokens", {"name": "x", "read_only": "maybe"}, "read_only: must be true or false"),
        ("POST", "/api/tokens", {"name": "x", "only": "table:raw.orders"}, "only: must be a list"),
        ("GET", "/api/resources?kind=castle", None, "kind: must be storage, data_mart"),
        ("GET", "/api/resources", None, "kind: is needed"),
        ("GET", "/api/resources?kind=table&limit=0", None, "limit: must be at least 1"),
        ("GET", "/api/resources?kind=table&prefix=%00", None, "prefix: a name cannot hold control characters"),
        ("GET", "/api/resources?kind=table&cursor=x", None, "cursor: "),
        (
            "POST",
            "/api/connections",
            {
                "name": "x",
                "space": "Sales data",
                "place": {"kind": "postgresql", "host": "a b", "database": "d", "user": "u"},
            },
            "place.host: ",
        ),
        ("GET", f"{STATEMENTS}/7", None, "statement_id: is not an id; one looks like stm_"),
    ],
)
def test_a_value_is_named_by_its_field(
    millrace_on_sqlite: Company, method: str, path: str, body: Any, says: str
) -> None:
    more = {} if body is None else {"json": body}
    answer = millrace_on_sqlite.as_("Adam").request(method, path, **more)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"].startswith(says), answer.json()["detail"]


def test_what_is_no_json_is_said(millrace_on_sqlite: Company) -> None:
    headers = {"Content-Type": "application/json"}
    answer = millrace_on_sqlite.as_("Adam").request("POST", STATEMENTS, content=b"{", headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (422, "body: is not JSON")


def test_every_value_is_named_at_once(millrace_on_sqlite: Company) -> None:
    answer = millrace_on_sqlite.as_("Adam").post(CHANGES, {"change": "grant", "level": "boss", "resource": 1}).json()
    assert [one["place"] for one in answer["errors"]] == ["to", "resource", "level"]
    assert answer["detail"] == "to: is needed; resource: must be a text; level: must be viewer, editor or manager"


def test_a_text_of_another_form_than_an_id_is_not_called_one() -> None:
    [slip] = slips(
        [{"type": "string_pattern_mismatch", "loc": ("body", "secret"), "ctx": {"pattern": "^[a-z]{1,40}$"}}]
    )
    assert slip["message"] == "does not have the form that is needed here; it must match ^[a-z]{1,40}$"
