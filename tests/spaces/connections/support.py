"""Connections of the demo's company."""

from typing import Any

from tests.support.company import Api, Company

PLACE = {"kind": "postgresql", "host": "db.example.com", "database": "shop", "user": "reader"}
SECRET = "seven slow herons"


def add(api: Api, name: str = "Shop", space: str = "Sales data", **more: Any) -> Any:
    """Add a connection; the answer."""
    body = {"name": name, "space": space, "place": PLACE, "secrets": {"password": SECRET}, **more}
    return api.post("/api/connections", body)


def added(millrace: Company, member: str = "Tess", **more: Any) -> dict[str, Any]:
    """A connection that was added."""
    answer = add(millrace.as_(member), **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def patch(api: Api, identifier: str, **body: Any) -> Any:
    """Change a connection; the answer."""
    return api.request("PATCH", f"/api/connections/{identifier}", json=body)


def secrets_of(shown: dict[str, Any]) -> set[str]:
    """The names of the secrets that are set."""
    return {one["name"] for one in shown["place"]["secrets"] if one["set_at"]}
