"""Contexts over HTTP: who knows them, who changes them, and what holds one in place."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, update

from headgate.access.invitations import MemberScope
from headgate.kit.clock import now
from headgate.organization.invitations import service as invitations
from headgate.organization.invitations.models import invitation_table
from tests.organization.profile.support import ADMINS, EVERYONE, OTHERS, at_once, changes, counted, told
from tests.support.company import Company

NOTHING = "ctx_00000000000000000000"


def made(millrace: Company, name: str) -> str:
    answer = millrace.as_("Adam").post("/api/contexts", {"name": name})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def patch(millrace: Company, who: str, context: str, name: Any, **narrowing: Any) -> Any:
    return millrace.as_(who, **narrowing).request("PATCH", f"/api/contexts/{context}", json={"name": name})


def delete(millrace: Company, who: str, context: str, **narrowing: Any) -> Any:
    return millrace.as_(who, **narrowing).request("DELETE", f"/api/contexts/{context}")


def invite(millrace: Company, context: str, email: str = "new@example.com", **changed: Any) -> str:
    """An invitation into a context, with some of its columns changed after."""

    def work(connection: Connection) -> str:
        reach = MemberScope(entire=False, contexts=frozenset({context}))
        adam = millrace.id("member", "Adam")
        found, _ = invitations.make(connection, email, "business", reach, adam, now(), 7)
        if changed:
            connection.execute(update(invitation_table).where(invitation_table.c.id == found).values(**changed))
        return found

    return millrace.database.write(work)


def counts(millrace: Company, name: str) -> tuple[Any, ...]:
    found = {one["name"]: one for one in millrace.as_("Adam").get("/api/contexts").json()["items"]}
    return tuple(found[name][part] for part in ("resources", "members", "invitations"))


@pytest.mark.parametrize("who", EVERYONE)
def test_everyone_knows_the_names_and_who_manages_contexts_the_counts(millrace: Company, who: str) -> None:
    invite(millrace, millrace.id("context", "finance"))
    answer = millrace.as_(who).get("/api/contexts")
    assert answer.status_code == 200
    found = [(one["name"], one["resources"], one["members"], one["invitations"]) for one in answer.json()["items"]]
    whole = [("finance", 3, 2, 1), ("sales", 2, 1, 0)]
    assert found == (whole if who in ADMINS else [(name, None, None, None) for name, *_ in whole])


def test_nobody_else_knows_them(millrace: Company) -> None:
    assert millrace.as_(None).get("/api/contexts").status_code == 401


def test_counts_follow_what_is_attached(millrace: Company) -> None:
    olga, context = millrace.as_("Olga"), made(millrace, "north")
    assert counts(millrace, "north") == (0, 0, 0)
    olga.change(change="attach_context", resource="data_mart:Revenue", context="north").raise_for_status()
    olga.change(change="set_scope", member="Bea", scope="selected", contexts=["north"]).raise_for_status()
    waiting = invite(millrace, context, "a@example.com")
    invite(millrace, context, "b@example.com")
    assert counts(millrace, "north") == (1, 1, 2)
    millrace.database.write(lambda connection: invitations.revoke(connection, waiting, now()))
    invite(millrace, context, "c@example.com", expires_at=now() - timedelta(seconds=1))
    invite(millrace, context, "d@example.com", accepted_at=now())
    assert counts(millrace, "north") == (1, 1, 1)
    olga.change(change="remove_member", member="Bea").raise_for_status()
    assert counts(millrace, "north") == (1, 0, 1)


def test_the_list_takes_as_many_statements_for_many_contexts_as_for_few(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    adam.get("/api/contexts")
    with counted(millrace) as few:
        adam.get("/api/contexts")
    for number in range(12):
        invite(millrace, made(millrace, f"region {number}"), f"{number}@example.com")
    with counted(millrace) as many:
        assert len(adam.get("/api/contexts").json()["items"]) == 14
    assert len(few) == len(many) == 4


def test_the_list_pages_in_the_order_of_names_and_takes_a_beginning(millrace: Company) -> None:
    for name in ("Zürich", "Basel", "ﬁnal"):
        made(millrace, name)
    first = millrace.as_("Ben").get("/api/contexts", limit=3).json()
    assert [one["name"] for one in first["items"]] == ["Basel", "ﬁnal", "finance"]
    rest = millrace.as_("Ben").get("/api/contexts", limit=3, cursor=first["next_cursor"]).json()
    assert ([one["name"] for one in rest["items"]], rest["next_cursor"]) == (["sales", "Zürich"], None)
    begun = millrace.as_("Ben").get("/api/contexts", prefix="FIN").json()["items"]
    assert [one["name"] for one in begun] == ["ﬁnal", "finance"]
    groups = millrace.as_("Ben").get("/api/groups", limit=1).json()["next_cursor"]
    assert millrace.as_("Ben").get("/api/contexts", cursor=groups).status_code == 422


@pytest.mark.parametrize("who", ADMINS)
def test_admins_create_rename_and_delete_and_the_log_tells(millrace: Company, who: str) -> None:
    created = millrace.as_(who).post("/api/contexts", {"name": " North "})
    assert created.status_code == 200
    context = created.json()["id"]
    assert created.json() | {"created_at": 0} == {
        "id": context,
        "name": "North",
        "created_at": 0,
        "resources": 0,
        "members": 0,
        "invitations": 0,
    }
    steps = [
        (created, {}, {"change": "create_context", "name": "North"}),
        (patch(millrace, who, context, "NORTH"), {"name": "North"}, {"change": "rename_context", "name": "NORTH"}),
        (delete(millrace, who, context), {"name": "NORTH"}, {"change": "delete_context"}),
    ]
    found = millrace.as_("Adam").get("/api/audit", event="access.changed", resource=context).json()["items"]
    assert len(found) == 3
    for event, (answer, before, after) in zip(reversed(found), steps, strict=True):
        assert answer.status_code == 200
        assert (event["actor_name"], event["action"], event["kind"]) == (who, "manage_contexts", "context")
        assert (event["via"], event["before"], event["after"]) == (["admin"], before, after)
        assert event["request_id"] == answer.headers["x-request-id"]
    assert [one["name"] for one in millrace.as_(who).get("/api/contexts").json()["items"]] == ["finance", "sales"]


@pytest.mark.parametrize("who", OTHERS)
def test_others_change_no_context(millrace: Company, who: str) -> None:
    context, before = made(millrace, "free"), changes(millrace)
    refused = (
        millrace.as_(who).post("/api/contexts", {"name": "mine"}),
        patch(millrace, who, context, "mine"),
        delete(millrace, who, context),
        delete(millrace, who, NOTHING),
    )
    assert [answer.status_code for answer in refused] == [403] * 4
    assert refused[0].json()["ways"][0]["missing"] == ["role owner or admin"]
    assert changes(millrace) == before
    denied = told(millrace, "access.denied")
    assert (denied["actor_name"], denied["action"]) == (who, "manage_contexts")


@pytest.mark.parametrize("narrowing", [{"read_only": True}, {"only": []}])
def test_a_narrowed_token_changes_nothing(millrace: Company, narrowing: dict[str, Any]) -> None:
    context, before = made(millrace, "free"), changes(millrace)
    refused = (
        millrace.as_("Olga", **narrowing).post("/api/contexts", {"name": "mine"}),
        patch(millrace, "Olga", context, "mine", **narrowing),
        delete(millrace, "Olga", context, **narrowing),
    )
    assert [answer.status_code for answer in refused] == [403] * 3
    assert all("token is restricted" in answer.json()["detail"] for answer in refused)
    assert changes(millrace) == before


def test_a_token_for_a_list_of_data_knows_no_contexts_and_a_reading_one_the_names(millrace: Company) -> None:
    assert millrace.as_("Adam", only=[millrace.id("layer", "raw")]).get("/api/contexts").status_code == 403
    found = millrace.as_("Adam", read_only=True).get("/api/contexts").json()["items"]
    assert [(one["name"], one["members"]) for one in found] == [("finance", None), ("sales", None)]


def test_a_context_in_use_is_not_deleted_and_the_answer_counts(millrace: Company) -> None:
    finance, before = millrace.id("context", "finance"), changes(millrace)
    invite(millrace, finance)
    for who in ADMINS:
        answer = delete(millrace, who, finance)
        assert answer.status_code == 409
        detail = "'finance' is attached to 3 resources, 2 members and 1 waiting invitation; detach it first"
        assert answer.json()["detail"] == detail
        assert {part: answer.json()[part] for part in ("resources", "members", "invitations")} == {
            "resources": 3,
            "members": 2,
            "invitations": 1,
        }
    assert changes(millrace) == before
    assert millrace.id("context", "finance") == finance


@pytest.mark.parametrize("by", ["resource", "member", "invitation"])
def test_each_sort_of_use_alone_holds_a_context_until_it_ends(millrace: Company, by: str) -> None:
    olga, context = millrace.as_("Olga"), made(millrace, "north")
    attached = {"change": "attach_context", "resource": "destination:Old mailbox", "context": "north"}
    if by == "resource":
        olga.change(change="restore_destination", destination="Old mailbox").raise_for_status()
        olga.change(**attached).raise_for_status()
        olga.change(change="delete_destination", destination="Old mailbox").raise_for_status()
    elif by == "member":
        olga.change(change="set_scope", member="Bea", scope="selected", contexts=["north"]).raise_for_status()
    else:
        invitation = invite(millrace, context)
    answer = delete(millrace, "Olga", context)
    assert answer.status_code == 409
    assert f"attached to 1 {'waiting ' if by == 'invitation' else ''}{by};" in answer.json()["detail"]
    if by == "resource":
        olga.change(change="restore_destination", destination="Old mailbox").raise_for_status()
        olga.change(**attached | {"change": "detach_context"}).raise_for_status()
    elif by == "member":
        olga.change(change="set_scope", member="Bea", scope="entire").raise_for_status()
    else:
        millrace.database.write(lambda connection: invitations.revoke(connection, invitation, now()))
    assert delete(millrace, "Olga", context).status_code == 200
    assert delete(millrace, "Olga", context).status_code == 404


def test_invitations_that_wait_no_more_hold_nothing(millrace: Company) -> None:
    context = made(millrace, "north")
    expired = invite(millrace, context, "a@example.com", expires_at=now() - timedelta(seconds=1))
    invite(millrace, context, "b@example.com", accepted_at=now())
    invite(millrace, context, "c@example.com", revoked_at=now())
    assert delete(millrace, "Adam", context).json() == {"id": context, "name": "north"}
    with millrace.database.read() as connection:
        kept = invitations.by_id(connection, expired)
    assert kept is not None
    assert (kept.reach.entire, kept.reach.contexts) == (False, frozenset())


def test_a_name_that_looks_the_same_is_taken(millrace: Company) -> None:
    before = changes(millrace)
    for name in ("finance", "FINANCE", " Finance ", "ﬁnance"):
        answer = millrace.as_("Adam").post("/api/contexts", {"name": name})
        assert answer.status_code == 409, name
        assert answer.json()["detail"].startswith("A context called 'finance' already exists")
    assert patch(millrace, "Adam", millrace.id("context", "sales"), "Finance").status_code == 409
    assert changes(millrace) == before


@pytest.mark.parametrize("name", ["", "   ", "a\u0007b", "a\0b", "x" * 201, None, 7])
def test_what_is_no_name_is_refused(millrace: Company, name: Any) -> None:
    assert millrace.as_("Adam").post("/api/contexts", {"name": name}).status_code == 422
    assert patch(millrace, "Adam", millrace.id("context", "sales"), name).status_code == 422


def test_a_rename_keeps_what_it_is_attached_to(millrace: Company) -> None:
    answer = patch(millrace, "Adam", millrace.id("context", "finance"), "Money")
    assert (answer.status_code, answer.json()["name"], answer.json()["resources"]) == (200, "Money", 3)
    assert millrace.as_("Ana").may("see", "data_mart:Revenue")


def test_unknown_ids_are_not_found_and_others_are_no_ids(millrace: Company) -> None:
    for context, status in ((NOTHING, 404), (millrace.id("group", "analysts"), 422), ("finance", 422)):
        assert patch(millrace, "Olga", context, "x").status_code == status
        assert delete(millrace, "Olga", context).status_code == status


def test_of_two_who_create_the_same_name_at_once_one_does(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    for number in range(5):
        names = (f"region {number}", f"REGION {number}")
        answers = at_once(*(lambda name=name: adam.post("/api/contexts", {"name": name}) for name in names))
        assert answers == [200, 409]
    assert millrace.rows("SELECT COUNT(*) FROM contexts") == [(7,)]


def test_a_context_that_is_attached_while_it_is_deleted_is_one_or_the_other(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    for number in range(8):
        context = made(millrace, f"region {number}")
        answers = at_once(
            lambda context=context: adam.request("DELETE", f"/api/contexts/{context}"),
            lambda context=context: adam.change(change="attach_context", resource="data_mart:Revenue", context=context),
        )
        assert answers in ([200, 404], [200, 409])
        rows = millrace.rows(f"SELECT COUNT(*) FROM resource_contexts WHERE context_id = '{context}'")
        assert rows == millrace.rows(f"SELECT COUNT(*) FROM contexts WHERE id = '{context}'")
