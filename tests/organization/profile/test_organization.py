"""The organization over HTTP: what it is called, its plan, and what it holds."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from headgate.access.invitations import MemberScope
from headgate.kit.clock import now
from headgate.organization.invitations import service as invitations
from tests.organization.profile.support import ADMINS, EVERYONE, OTHERS, changes, counted, told
from tests.support.company import Company

PATH = "/api/organization"
RESOURCES = {
    "connection": 1,
    "data_mart": 2,
    "data_mart_trigger": 1,
    "destination": 1,
    "gateway": 1,
    "integration": 1,
    "layer": 3,
    "pipeline": 3,
    "pipeline_trigger": 1,
    "project": 1,
    "report": 1,
    "report_trigger": 1,
    "run": 1,
    "space": 2,
    "storage": 1,
    "table": 4,
    "volume": 1,
}


def rename(millrace: Company, who: str, name: Any, **narrowing: Any) -> Any:
    return millrace.as_(who, **narrowing).request("PATCH", PATH, json={"name": name})


@pytest.mark.parametrize("who", EVERYONE)
def test_every_member_knows_the_organization(millrace: Company, who: str) -> None:
    answer = millrace.as_(who).get(PATH)
    assert answer.json() == {"name": "Millrace Foods", "plan": "growth", "invites": "by-role"}


def test_nobody_else_does(millrace: Company) -> None:
    assert millrace.as_(None).get(PATH).status_code == 401
    assert millrace.as_("Olga", only=[millrace.id("layer", "raw")]).get(PATH).status_code == 403
    assert millrace.as_("Bea", read_only=True).get(PATH).status_code == 200


def test_it_shows_what_was_changed(millrace: Company) -> None:
    millrace.as_("Olga").change(change="set_plan", plan="custom").raise_for_status()
    millrace.as_("Adam").change(change="set_invites", invites="admins-only").raise_for_status()
    found = millrace.as_("Bea").get(PATH).json()
    assert (found["plan"], found["invites"]) == ("custom", "admins-only")


@pytest.mark.parametrize("who", ADMINS)
def test_admins_rename_it_and_the_log_tells(millrace: Company, who: str) -> None:
    answer = rename(millrace, who, "  Millrace & Söhne ")
    assert answer.json() == {"name": "Millrace & Söhne", "plan": "growth", "invites": "by-role"}
    assert millrace.as_("Bea").get(PATH).json()["name"] == "Millrace & Söhne"
    event = told(millrace)
    assert (event["actor_name"], event["action"], event["via"]) == (who, "manage_settings", ["admin"])
    assert (event["kind"], event["resource"]) == ("organization", "organization")
    assert event["before"] == {"name": "Millrace Foods"}
    assert event["after"] == {"change": "rename_organization", "name": "Millrace & Söhne"}


@pytest.mark.parametrize("who", OTHERS)
def test_others_do_not_rename_it(millrace: Company, who: str) -> None:
    before, answer = changes(millrace), rename(millrace, who, "Mine")
    assert (answer.status_code, answer.json()["action"]) == (403, "manage_settings")
    assert millrace.as_("Bea").get(PATH).json()["name"] == "Millrace Foods"
    assert changes(millrace) == before
    assert told(millrace, "access.denied")["action"] == "manage_settings"


@pytest.mark.parametrize("narrowing", [{"read_only": True}, {"only": []}])
def test_a_narrowed_token_neither_renames_nor_counts(millrace: Company, narrowing: dict[str, Any]) -> None:
    assert rename(millrace, "Olga", "Mine", **narrowing).status_code == 403
    assert millrace.as_("Olga", **narrowing).get(f"{PATH}/usage").status_code == 403
    assert millrace.as_("Bea").get(PATH).json()["name"] == "Millrace Foods"


@pytest.mark.parametrize("name", ["", "  ", "a\u0007b", "a\0b", "x" * 201, None, 7])
def test_what_is_no_name_is_refused(millrace: Company, name: Any) -> None:
    assert rename(millrace, "Olga", name).status_code == 422
    assert millrace.as_("Bea").get(PATH).json()["name"] == "Millrace Foods"


@pytest.mark.parametrize("who", [who for who in EVERYONE if who != "Olga"])
def test_usage_is_for_owners(millrace: Company, who: str) -> None:
    answer = millrace.as_(who).get(f"{PATH}/usage")
    assert (answer.status_code, answer.json()["action"]) == (403, "manage_billing")


def test_usage_counts_what_there_is_and_nothing_private_or_gone(millrace: Company) -> None:
    olga = millrace.as_("Olga")
    found = olga.get(f"{PATH}/usage").json()
    assert found == {
        "plan": "growth",
        "members": {"owner": 1, "admin": 1, "technical": 3, "business": 3},
        "invitations": 0,
        "groups": 2,
        "contexts": 2,
        "tokens": 1,
        "resources": RESOURCES,
    }
    assert list(found["members"]) == ["owner", "admin", "technical", "business"]


def test_usage_follows_what_happens(millrace: Company) -> None:
    olga = millrace.as_("Olga")
    millrace.token("Ben")
    millrace.token("Ana", expires=now() + timedelta(days=1))
    millrace.token("Ana", expires=now() - timedelta(seconds=1))
    millrace.token("Tess")

    def invite(connection: Connection) -> None:
        for number, days in enumerate((7, 7, -1)):
            reach, by = MemberScope(entire=True, contexts=frozenset()), millrace.id("member", "Adam")
            made, _ = invitations.make(connection, f"{number}@example.com", "business", reach, by, now(), days)
            if number == 1:
                invitations.revoke(connection, made, now())

    millrace.database.write(invite)
    olga.change(change="restore_destination", destination="Old mailbox").raise_for_status()
    olga.change(change="remove_member", member="Tess").raise_for_status()
    olga.post("/api/groups", {"name": "crew"}).raise_for_status()
    olga.post("/api/contexts", {"name": "north"}).raise_for_status()
    found = olga.get(f"{PATH}/usage").json()
    assert found["members"] == {"owner": 1, "admin": 1, "technical": 2, "business": 3}
    assert (found["invitations"], found["groups"], found["contexts"]) == (1, 3, 3)
    assert found["tokens"] == 3
    assert found["resources"] == RESOURCES | {"destination": 2}


def test_usage_takes_the_same_few_statements(millrace: Company) -> None:
    with counted(millrace) as sent:
        millrace.as_("Olga").get(f"{PATH}/usage").raise_for_status()
    assert len([one for one in sent if one.startswith("SELECT")]) == 4
