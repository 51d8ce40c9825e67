"""The OpenAPI document is complete: every route typed, its errors declared, its bodies with examples."""

from typing import Any

import pytest

from headgate.app import create_app
from headgate.settings.settings import Settings

WITHOUT_BODY = (
    "/sign-out",
    "/resend",
    "/magic-link",
    "/password-reset",
    "/withdraw",
    "/cancel",
    "/confirm",
    "/resume",
    "/pause",
    "/{destination_id}/restore",
)
PUBLIC = ("/api/sign-in", "/api/password", "/api/invitations/accept")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings(database={"url": "sqlite://"})).openapi()


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, one) for path, item in document["paths"].items() for method, one in item.items()]


def test_every_operation_is_described_and_named(document: dict[str, Any]) -> None:
    names = [one["operationId"] for _, _, one in operations(document)]
    assert len(names) == len(set(names))
    for path, _, one in operations(document):
        assert one["summary"], path
        assert one["description"], path
        assert one["tags"], path


def test_every_operation_says_what_it_answers(document: dict[str, Any]) -> None:
    for path, _, one in operations(document):
        content = one["responses"]["200"]["content"]
        for media, body in content.items():
            is_model = "$ref" in body["schema"]
            is_text = body["schema"].get("type") == "string" and media != "application/json"
            assert is_model or is_text, (path, media)


def test_every_operation_declares_its_errors(document: dict[str, Any]) -> None:
    for path, _, one in operations(document):
        declared = set(one["responses"])
        assert {"503", "507"} <= declared, path
        assert ("422" in declared) == bool(one.get("parameters") or one.get("requestBody")), path
        assert ("413" in declared) == bool(one.get("requestBody")), path
        if path.startswith(("/api/", "/access/")) and not path.startswith(PUBLIC):
            assert {"401", "403", "404"} <= declared, path
        for status, response in one["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], path
                problem = response["content"]["application/problem+json"]
                assert problem["example"]["status"] == int(status), path
                assert problem["schema"] == {"$ref": "#/components/schemas/ProblemBody"}
    assert document["components"]["schemas"]["ProblemBody"]["properties"]["code"]


def test_every_field_of_a_body_has_an_example_or_a_plain_type(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description") or schema.get("enum") or name.startswith("HTTP"), name


def test_requests_with_a_body_name_it(document: dict[str, Any]) -> None:
    for path, method, one in operations(document):
        if method == "post" and not path.endswith(WITHOUT_BODY):
            schema = one["requestBody"]["content"]["application/json"]["schema"]
            assert "$ref" in schema or "oneOf" in schema, path


LOOSE = ("/api/worker/", "/access/v1/")
"""Where fields that we do not know are ignored: a worker may be newer than its server, and AuthZEN asks for it."""


def _reached(document: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The models that a schema refers to, by name."""
    found: dict[str, Any] = {}
    pending = [schema]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            name = str(one.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found[name] = document["components"]["schemas"][name]
                pending.append(found[name])
            pending += one.values()
    return found


def test_a_body_takes_no_field_that_it_does_not_have(document: dict[str, Any]) -> None:
    closed = 0
    for path, _, one in operations(document):
        content = one.get("requestBody", {}).get("content", {})
        for name, schema in _reached(document, content.get("application/json")).items():
            if schema.get("type") == "object":
                is_closed = schema.get("additionalProperties") is False
                assert is_closed != path.startswith(LOOSE), (path, name)
                closed += is_closed
    assert closed > 30
