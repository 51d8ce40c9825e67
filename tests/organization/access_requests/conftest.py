"""The demo's company, with requests for access, and what tests of them share."""

import json
from typing import Any

import pytest

from tests.support.company import Company

PLACE = "/api/access/requests"


class Asking:
    """A company whose members ask for access and answer."""

    def __init__(self, millrace: Company) -> None:
        self.company = millrace

    def ask(self, who: str, action: str, resource: str, reason: str = "I need it for the audit") -> Any:
        """The answer to asking for access."""
        return self.company.as_(who).post(PLACE, {"action": action, "resource": resource, "reason": reason})

    def asked(self, who: str, action: str, resource: str) -> str:
        """The id of a request that was just made."""
        answer = self.ask(who, action, resource)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def show(self, who: str, request: str) -> Any:
        return self.company.as_(who).get(f"{PLACE}/{request}")

    def proposals(self, who: str, request: str) -> list[dict[str, Any]]:
        answer = self.show(who, request)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["proposals"]
        return found

    def proposal(self, who: str, request: str, sort: str) -> dict[str, Any]:
        """The change of the first proposal of a sort."""
        offered = [one["change"] for one in self.proposals(who, request) if one["change"]["change"] == sort]
        assert offered, (who, sort, self.proposals(who, request))
        return dict(offered[0])

    def approve(self, who: str, request: str, change: dict[str, Any], **more: Any) -> Any:
        return self.company.as_(who).post(f"{PLACE}/{request}/approve", {"change": change, **more})

    def decline(self, who: str, request: str, comment: str = "Not now") -> Any:
        return self.company.as_(who).post(f"{PLACE}/{request}/decline", {"comment": comment})

    def withdraw(self, who: str, request: str) -> Any:
        return self.company.as_(who).request("POST", f"{PLACE}/{request}/withdraw")

    def state(self, request: str) -> str:
        return str(self.company.rows(f"SELECT state FROM access_requests WHERE id = '{request}'")[0][0])

    def listed(self, who: str, **parameters: Any) -> list[str]:
        """The ids of all requests on somebody's list, page by page."""
        found: list[str] = []
        cursor = None
        while True:
            more: dict[str, Any] = {"cursor": cursor} if cursor else {}
            answer = self.company.as_(who).get(PLACE, **parameters, **more)
            assert answer.status_code == 200, answer.text
            found += [one["id"] for one in answer.json()["items"]]
            cursor = answer.json()["next_cursor"]
            if cursor is None:
                return found

    def told(self, event: str) -> list[dict[str, Any]]:
        """What was to be told, the newest last; recipients by name."""
        names = dict(self.company.rows("SELECT id, name FROM members"))
        columns = "actor_id, member_id, kind, resource_id, needs, recipients, facts, channel"
        rows = self.company.rows(f"SELECT {columns} FROM notices WHERE event = '{event}' ORDER BY id")
        keys = ("actor", "member", "kind", "resource", "needs", "to", "facts", "channel")
        found = [dict(zip(keys, (_plain(value) for value in row), strict=True)) for row in rows]
        return [{**one, "to": {names[member] for member in one["to"]}} for one in found]

    def events(self, sort: str) -> list[Any]:
        """The audit events of a sort, the newest first."""
        found: list[Any] = self.company.as_("Adam").get("/api/audit", event=sort, limit=200).json()["items"]
        return found

    def count(self, table: str) -> int:
        return int(self.company.rows(f"SELECT COUNT(*) FROM {table}")[0][0])


def _plain(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value[:1] in "[{" else value


@pytest.fixture
def asking(millrace: Company) -> Asking:
    """The company on each kind of database in turn."""
    return Asking(millrace)


@pytest.fixture
def asking_on_sqlite(millrace_on_sqlite: Company) -> Asking:
    """The company on SQLite."""
    return Asking(millrace_on_sqlite)
