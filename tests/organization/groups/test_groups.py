"""Groups over HTTP: who knows them, who changes them, and what ends with them."""

from typing import Any

import pytest
from sqlalchemy import text

from headgate.kit.ids import ALL_GROUP
from headgate.platform.authorization.list_index import rebuild
from tests.organization.profile.support import ADMINS, EVERYONE, OTHERS, at_once, changes, counted, told
from tests.support.company import Company

NOBODY = "grp_00000000000000000000"


def made(millrace: Company, name: str) -> str:
    answer = millrace.as_("Adam").post("/api/groups", {"name": name})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def join(millrace: Company, group: str, *members: str) -> None:
    for member in members:
        millrace.as_("Adam").change(change="join_group", group=group, member=member).raise_for_status()


def patch(millrace: Company, who: str, group: str, name: str, **narrowing: Any) -> Any:
    return millrace.as_(who, **narrowing).request("PATCH", f"/api/groups/{group}", json={"name": name})


def delete(millrace: Company, who: str, group: str, **narrowing: Any) -> Any:
    return millrace.as_(who, **narrowing).request("DELETE", f"/api/groups/{group}")


@pytest.mark.parametrize("who", EVERYONE)
def test_everyone_knows_the_groups_and_how_large_they_are(millrace: Company, who: str) -> None:
    found = millrace.as_(who).get("/api/groups").json()
    assert [(one["name"], one["members"], one["built_in"]) for one in found["items"]] == [
        ("All", 8, True),
        ("analysts", 2, False),
        ("stewards", 1, False),
    ]
    assert found["next_cursor"] is None


def test_nobody_else_knows_them(millrace: Company) -> None:
    assert millrace.as_(None).get("/api/groups").status_code == 401
    assert millrace.as_(None).get(f"/api/groups/{ALL_GROUP}").status_code == 401


def test_a_removed_member_counts_no_more(millrace: Company) -> None:
    millrace.as_("Olga").change(change="remove_member", member="Ana").raise_for_status()
    found = {one["name"]: one["members"] for one in millrace.as_("Ben").get("/api/groups").json()["items"]}
    assert found == {"All": 7, "analysts": 1, "stewards": 1}
    shown = millrace.as_("Ben").get(f"/api/groups/{ALL_GROUP}").json()
    assert "Ana" not in {one["name"] for one in shown["members"]}


def test_the_list_pages_in_the_order_of_names_and_takes_a_beginning(millrace: Company) -> None:
    for name in ("Élan", "zebra", "Beta", "ALLIES"):
        made(millrace, name)
    names, cursor = [], None
    while True:
        page = millrace.as_("Bea").get("/api/groups", limit=2, **({"cursor": cursor} if cursor else {})).json()
        assert len(page["items"]) <= 2
        names += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == ["All", "ALLIES", "analysts", "Beta", "stewards", "zebra", "Élan"]
    begun = millrace.as_("Bea").get("/api/groups", prefix="aL").json()["items"]
    assert [one["name"] for one in begun] == ["All", "ALLIES"]
    foreign = millrace.as_("Bea").get("/api/groups", limit=1).json()["next_cursor"]
    assert millrace.as_("Bea").get("/api/groups", prefix="a", cursor=foreign).status_code == 422
    for wrong in ({"cursor": "x"}, {"limit": 0}, {"limit": 201}, {"prefix": "\0"}, {"prefix": "x" * 201}):
        assert millrace.as_("Bea").get("/api/groups", **wrong).status_code == 422, wrong


def test_the_list_takes_as_many_statements_for_many_groups_as_for_few(millrace: Company) -> None:
    bea = millrace.as_("Bea")
    bea.get("/api/groups")
    with counted(millrace) as few:
        bea.get("/api/groups")
    for number in range(12):
        join(millrace, made(millrace, f"team {number}"), "Bea", "Ben")
    with counted(millrace) as many:
        assert len(bea.get("/api/groups").json()["items"]) == 15
    assert len(few) == len(many) <= 3


@pytest.mark.parametrize(("who", "sees"), [(who, who in (*ADMINS, "Ana", "Ben")) for who in EVERYONE])
def test_members_are_shown_to_those_inside_and_to_who_manages_groups(millrace: Company, who: str, sees: bool) -> None:
    group = millrace.id("group", "analysts")
    answer = millrace.as_(who).get(f"/api/groups/{group}")
    assert answer.status_code == 200
    assert answer.json()["group"] | {"created_at": 0} == {
        "id": group,
        "name": "analysts",
        "built_in": False,
        "members": 2,
        "created_at": 0,
    }
    inside = [{"id": millrace.id("member", name), "name": name} for name in ("Ana", "Ben")]
    assert answer.json()["members"] == (inside if sees else None)
    everyone = millrace.as_(who).get(f"/api/groups/{ALL_GROUP}").json()
    assert [one["name"] for one in everyone["members"]] == sorted(EVERYONE)


def test_who_leaves_sees_the_members_no_more(millrace: Company) -> None:
    group = millrace.id("group", "analysts")
    assert millrace.as_("Ben").get(f"/api/groups/{group}").json()["members"]
    millrace.as_("Adam").change(change="leave_group", group="analysts", member="Ben").raise_for_status()
    assert millrace.as_("Ben").get(f"/api/groups/{group}").json()["members"] is None


def test_members_of_a_group_come_by_page(millrace: Company) -> None:
    group = millrace.id("group", "analysts")
    join(millrace, "analysts", "Tess", "Bea")
    first = millrace.as_("Ana").get(f"/api/groups/{group}", limit=3).json()
    assert [one["name"] for one in first["members"]] == ["Ana", "Bea", "Ben"]
    rest = millrace.as_("Ana").get(f"/api/groups/{group}", limit=3, cursor=first["next_cursor"]).json()
    assert ([one["name"] for one in rest["members"]], rest["next_cursor"]) == (["Tess"], None)
    assert rest["group"]["members"] == 4
    other = millrace.id("group", "stewards")
    assert millrace.as_("Adam").get(f"/api/groups/{other}", cursor=first["next_cursor"]).status_code == 422


@pytest.mark.parametrize("who", ADMINS)
def test_admins_create_and_the_log_tells(millrace: Company, who: str) -> None:
    answer = millrace.as_(who).post("/api/groups", {"name": "  Night shift "})
    assert answer.status_code == 200
    group = answer.json()
    assert (group["name"], group["members"], group["built_in"]) == ("Night shift", 0, False)
    event = told(millrace)
    assert (event["actor_name"], event["kind"], event["resource"]) == (who, "group", group["id"])
    assert (event["action"], event["via"]) == ("create_group", ["admin on Growth or Custom"])
    assert (event["before"], event["after"]) == ({}, {"change": "create_group", "name": "Night shift"})
    assert event["request_id"] == answer.headers["x-request-id"]
    join(millrace, "night shift", "Bea")
    assert millrace.as_("Bea").get(f"/api/groups/{group['id']}").json()["members"][0]["name"] == "Bea"
    granted = millrace.as_("Tess").change(change="grant", to="group:NIGHT SHIFT", resource="layer:raw", level="viewer")
    assert granted.status_code == 200
    assert millrace.as_("Bea").may("see", "table:raw.orders")


@pytest.mark.parametrize("who", OTHERS)
def test_others_change_no_group(millrace: Company, who: str) -> None:
    group, before = millrace.id("group", "analysts"), changes(millrace)
    refused = (
        millrace.as_(who).post("/api/groups", {"name": "mine"}),
        patch(millrace, who, group, "mine"),
        delete(millrace, who, group),
        delete(millrace, who, NOBODY),
        delete(millrace, who, ALL_GROUP),
    )
    assert [answer.status_code for answer in refused] == [403] * 5
    assert refused[0].json()["ways"][0]["missing"] == ["role owner or admin"]
    assert changes(millrace) == before
    assert [one["name"] for one in millrace.as_(who).get("/api/groups").json()["items"]] == [
        "All",
        "analysts",
        "stewards",
    ]
    denied = told(millrace, "access.denied")
    assert (denied["actor_name"], denied["action"], denied["allowed"]) == (who, "manage_groups", False)


@pytest.mark.parametrize("who", EVERYONE)
def test_on_starter_nobody_creates_and_is_told_why(millrace: Company, who: str) -> None:
    group = millrace.id("group", "analysts")
    millrace.as_("Olga").change(change="set_plan", plan="starter").raise_for_status()
    answer = millrace.as_(who).post("/api/groups", {"name": "late"})
    assert answer.status_code == 403
    assert "Starter plan" in answer.json()["detail"]
    assert "owner can change the plan" in answer.json()["detail"]
    assert "the plan is Growth or Custom; Starter ignores grants" in answer.json()["ways"][0]["missing"]
    assert told(millrace, "access.denied")["action"] == "create_group"
    # What there is can still be looked after.
    assert patch(millrace, who, group, "analysis").status_code == (200 if who in ADMINS else 403)


@pytest.mark.parametrize("narrowing", [{"read_only": True}, {"only": []}])
def test_a_narrowed_token_changes_nothing(millrace: Company, narrowing: dict[str, Any]) -> None:
    group, before = millrace.id("group", "analysts"), changes(millrace)
    refused = (
        millrace.as_("Olga", **narrowing).post("/api/groups", {"name": "mine"}),
        patch(millrace, "Olga", group, "mine", **narrowing),
        delete(millrace, "Olga", group, **narrowing),
    )
    assert [answer.status_code for answer in refused] == [403] * 3
    assert all("token is restricted" in answer.json()["detail"] for answer in refused)
    assert changes(millrace) == before
    assert millrace.id("group", "analysts") == group


def test_a_token_for_a_list_of_data_knows_no_groups_and_a_reading_one_does(millrace: Company) -> None:
    group = millrace.id("group", "analysts")
    listed = millrace.as_("Ana", only=[millrace.id("layer", "trusted")])
    assert listed.get("/api/groups").status_code == listed.get(f"/api/groups/{group}").status_code == 403
    reading = millrace.as_("Ana", read_only=True)
    assert reading.get("/api/groups").status_code == 200
    assert len(reading.get(f"/api/groups/{group}").json()["members"]) == 2
    assert millrace.as_("Adam", read_only=True).get(f"/api/groups/{group}").json()["members"] is None


def test_a_name_that_looks_the_same_is_taken(millrace: Company) -> None:
    before = changes(millrace)
    for name in ("analysts", "ANALYSTS", " Analysts ", "ａｎａｌｙｓｔｓ", "all", "ALL"):
        answer = millrace.as_("Adam").post("/api/groups", {"name": name})
        assert answer.status_code == 409, name
        assert "already" in answer.json()["detail"]
    group = millrace.id("group", "stewards")
    for name in ("Analysts", "All"):
        assert patch(millrace, "Adam", group, name).status_code == 409
    assert changes(millrace) == before


@pytest.mark.parametrize("name", ["", "   ", "a\u0007b", "a\0b", "x" * 201, "\ufdfa" * 60, None, 7, ["x"]])
def test_what_is_no_name_is_refused(millrace: Company, name: Any) -> None:
    assert millrace.as_("Adam").post("/api/groups", {"name": name}).status_code == 422
    renamed = millrace.as_("Adam").request(
        "PATCH", f"/api/groups/{millrace.id('group', 'stewards')}", json={"name": name}
    )
    assert renamed.status_code == 422
    assert millrace.rows("SELECT COUNT(*) FROM groups") == [(3,)]


def test_a_rename_keeps_members_and_grants(millrace: Company) -> None:
    group = millrace.id("group", "analysts")
    answer = patch(millrace, "Adam", group, "Analysts of Ours")
    assert (answer.status_code, answer.json()["name"], answer.json()["members"]) == (200, "Analysts of Ours", 2)
    assert millrace.as_("Ana").may("see", "table:trusted.orders")
    event = told(millrace)
    assert (event["action"], event["kind"], event["resource"]) == ("manage_groups", "group", group)
    assert event["before"] == {"name": "analysts"}
    assert event["after"] == {"change": "rename_group", "name": "Analysts of Ours"}
    assert patch(millrace, "Adam", group, "ANALYSTS OF OURS").json()["name"] == "ANALYSTS OF OURS"


def test_the_old_name_is_free_after_a_rename_and_inherits_nothing(millrace: Company) -> None:
    patch(millrace, "Adam", millrace.id("group", "analysts"), "others").raise_for_status()
    join(millrace, made(millrace, "analysts"), "Bea")
    assert not millrace.as_("Bea").may("see", "table:trusted.orders")


def test_all_is_neither_renamed_nor_deleted(millrace: Company) -> None:
    before = changes(millrace)
    for answer in (patch(millrace, "Olga", ALL_GROUP, "Everyone"), delete(millrace, "Olga", ALL_GROUP)):
        assert answer.status_code == 409
        assert "built-in" in answer.json()["detail"]
    assert changes(millrace) == before
    assert millrace.as_("Bea").get("/api/groups").json()["items"][0]["name"] == "All"


def test_unknown_ids_are_not_found_and_others_are_no_ids(millrace: Company) -> None:
    olga = millrace.as_("Olga")
    member = millrace.id("member", "Ben")
    for group, status in ((NOBODY, 404), (member, 422), ("analysts", 422), ("grp_1", 422), (NOBODY + "0", 422)):
        assert olga.get(f"/api/groups/{group}").status_code == status
        assert patch(millrace, "Olga", group, "x").status_code == status
        assert delete(millrace, "Olga", group).status_code == status


def index(millrace: Company) -> set[Any]:
    with millrace.database.read() as connection:
        return {tuple(row) for row in connection.execute(text("SELECT * FROM audience"))}


def test_a_deleted_group_ends_what_it_held_and_the_index_is_as_if_built_anew(millrace: Company) -> None:
    group, adam = millrace.id("group", "analysts"), millrace.as_("Adam")
    end = "2030-01-01T00:00:00Z"
    # Ana sees the pipeline by a mix: the group's level on one table, and her own on the other.
    adam.change(change="grant", to="Ana", resource="table:raw.orders", level="viewer").raise_for_status()
    adam.change(
        change="grant", to="group:analysts", resource="table:service.revenue", level="editor", expires=end
    ).raise_for_status()
    ana = millrace.as_("Ana")
    held = [
        ("see", "table:trusted.orders"),
        ("see", "layer:trusted"),
        ("edit", "table:service.revenue"),
        ("see", "pipeline:Refine orders"),
        ("see", "integration:Dashboards"),
        ("control", "pipeline:Land shop orders"),
        ("see", "space:Sales data"),
    ]
    kinds = {resource.partition(":")[0] for _, resource in held} - {"space"}

    def listed() -> set[str]:
        found = {kind: ana.get("/api/resources", kind=kind).json()["items"] for kind in kinds}
        return {f"{kind}:{item['name']}" for kind, items in found.items() for item in items}

    assert all(ana.may(*one) for one in held)
    assert listed() >= {"pipeline:Refine orders", "pipeline:Land shop orders", "integration:Dashboards"}
    answer = delete(millrace, "Adam", group)
    assert answer.status_code == 200
    assert answer.json() == {"id": group, "name": "analysts", "members": 2, "grants": 2, "space_roles": 1}
    assert not any(ana.may(*one) for one in held)
    assert listed() == {"layer:raw", "table:raw.orders"}
    for table, column in (("grants", "grantee_id"), ("space_members", "principal_id"), ("group_members", "group_id")):
        assert millrace.rows(f"SELECT COUNT(*) FROM {table} WHERE {column} = '{group}'") == [(0,)]
    for table in ("groups", "principals"):
        assert millrace.rows(f"SELECT COUNT(*) FROM {table} WHERE id = '{group}'") == [(0,)]
    kept = index(millrace)
    millrace.database.write(rebuild)
    assert kept == index(millrace)


def test_the_log_tells_what_a_deleted_group_held(millrace: Company) -> None:
    group, before = millrace.id("group", "analysts"), changes(millrace)
    delete(millrace, "Olga", group).raise_for_status()
    event = told(millrace)
    assert (event["action"], event["via"], event["kind"]) == ("manage_groups", ["admin"], "group")
    assert (event["resource"], event["actor_name"], event["allowed"]) == (group, "Olga", True)
    assert event["before"] == {
        "name": "analysts",
        "members": sorted(millrace.id("member", name) for name in ("Ana", "Ben")),
        "grants": [{"resource": millrace.id("layer", "trusted"), "level": "viewer", "expires": None}],
        "space_roles": [{"space": millrace.id("space", "Sales data"), "space_role": "can_operate"}],
    }
    assert event["after"] == {"change": "delete_group"}
    assert changes(millrace) == [(before[0][0] + 1,)]
    assert delete(millrace, "Olga", group).status_code == 404
    assert changes(millrace) == [(before[0][0] + 1,)]


def test_a_group_made_again_is_another_one(millrace: Company) -> None:
    delete(millrace, "Adam", millrace.id("group", "analysts")).raise_for_status()
    join(millrace, made(millrace, "analysts"), "Ana")
    assert not millrace.as_("Ana").may("see", "table:trusted.orders")


def test_of_two_who_create_the_same_name_at_once_one_does(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    for number in range(5):
        names = (f"Crew {number}", f"ＣＲＥＷ {number}")
        answers = at_once(*(lambda name=name: adam.post("/api/groups", {"name": name}) for name in names))
        assert answers == [200, 409]
    assert millrace.rows("SELECT COUNT(*) FROM groups") == [(8,)]


def test_of_two_who_delete_at_once_one_does_and_a_join_meanwhile_leaves_nothing(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    for number in range(5):
        group = made(millrace, f"crew {number}")
        answers = at_once(
            lambda group=group: adam.request("DELETE", f"/api/groups/{group}"),
            lambda group=group: adam.request("DELETE", f"/api/groups/{group}"),
            lambda group=group: adam.change(change="join_group", group=group, member="Bea"),
        )
        assert answers in ([200, 200, 404], [200, 404, 404])
        assert millrace.rows(f"SELECT COUNT(*) FROM group_members WHERE group_id = '{group}'") == [(0,)]
