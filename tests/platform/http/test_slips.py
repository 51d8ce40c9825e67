"""Values that cannot be used are named as whoever sent them calls them, with what they have to be in plain words."""

import re
from pathlib import Path
from typing import Any

import pytest

import headgate
from tests.support.company import Company

SOURCES = Path(headgate.__file__).parent
CHANGES, STATEMENTS = "/api/access/changes", "/api/sql/statements"


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", STATEMENTS, {"sql": ""}, "sql: is empty"),
        ("POST", STATEMENTS, {}, "sql: is required"),
        ("POST", STATEMENTS, {"sql": 7}, "sql: must be a string"),
        ("POST", STATEMENTS, {"sql": "x" * 100_001}, "sql: is too long; the maximum is 100,000 characters"),
        ("POST", STATEMENTS, {"sql": "x", "max_rows": 0}, "max_rows: must be at least 1"),
        ("POST", STATEMENTS, {"sql": "x", "max_rows": "many"}, "max_rows: must be an integer"),
        ("POST", STATEMENTS, [], "body: must be an object"),
        (
            "POST",
            CHANGES,
            {"change": "grant", "to": "Ana", "resource": "table:raw.orders", "level": "boss"},
            "level: must be viewer, editor or manager",
        ),
        ("POST", CHANGES, {"change": "grant", "resource": "table:raw.orders", "level": "viewer"}, "to: is required"),
        ("POST", CHANGES, {"change": "fly"}, "change: unknown kind 'fly'; the kinds are grant, revoke"),
        ("POST", CHANGES, {"to": "Ana"}, "change: is required"),
        (
            "POST",
            "/api/access/what-if",
            {"change": {"change": "set_scope", "member": "Ana", "scope": "some"}},
            "change.scope: must be entire or selected",
        ),
        ("POST", "/api/tokens", {"name": "x", "expires": "soon"}, "expires: must be a time with a time zone"),
        ("POST", "/api/tokens", {"name": "x", "read_only": "maybe"}, "read_only: must be true or false"),
        ("POST", "/api/tokens", {"name": "x", "only": "table:raw.orders"}, "only: must be a list"),
        ("GET", "/api/resources?kind=castle", None, "kind: must be storage, data_mart"),
        ("GET", "/api/resources", None, "kind: is required"),
        ("GET", "/api/resources?kind=table&limit=0", None, "limit: must be at least 1"),
        ("GET", "/api/resources?kind=table&prefix=%00", None, "prefix: a name cannot contain control characters"),
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
    assert (answer.status_code, answer.json()["detail"]) == (422, "body: is not valid JSON")


def test_every_value_is_named_at_once(millrace_on_sqlite: Company) -> None:
    answer = millrace_on_sqlite.as_("Adam").post(CHANGES, {"change": "grant", "level": "boss", "resource": 1}).json()
    assert [one["place"] for one in answer["errors"]] == ["to", "resource", "level"]
    assert answer["detail"] == "to: is required; resource: must be a string; level: must be viewer, editor or manager"


def test_only_ids_have_a_bare_pattern() -> None:
    """Any other text that must match one is a Form, which says in words what it has to be."""
    bare = re.compile(r"(?:Field|Path|Query)\([^#\n]*pattern=(?!_ID\b)(?![^\n]*(?:\{20\}|_SUFFIX|PATTERN))")
    texts = {file: file.read_text(encoding="utf-8") for file in SOURCES.rglob("*.py")}
    assert [file.name for file, text in texts.items() if bare.search(text)] == []
    assert bare.search('Field(max_length=9, pattern="^[a-z]+$")')


NOTEBOOK = {"kind": "notebook", "cells": [{"kind": "code", "source": "1"}]}
SECRET = {"name": "api_key", "connection": "con_01k6x3v9c2m4n8p0q7rs", "field": "token"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"hosts": ["API.example.com"]}, "hosts.0: must be a host in lowercase letters with a port, such as"),
        ({"secrets": [SECRET | {"name": "1st"}]}, "secrets.0.name: must be at most 64 lowercase letters"),
        ({"secrets": [SECRET | {"field": "a b"}]}, "secrets.0.field: must be the name of a secret field"),
        (
            {"secrets": [SECRET | {"connection": "x"}]},
            "secrets.0.connection: 'x' is not the id of a connection; write con_",
        ),
    ],
)
def test_a_text_of_a_form_says_it_in_words(millrace_on_sqlite: Company, changed: Any, says: str) -> None:
    body = {"name": "x", "definition": NOTEBOOK | changed}
    answer = millrace_on_sqlite.as_("Adam").post("/api/pipelines", body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"].startswith(f"definition.{says}"), answer.json()["detail"]
