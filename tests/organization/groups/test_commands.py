"""`headgate group`, as members use it."""

import json

import pytest

from headgate.cli.organization.group import app
from tests.organization.profile.support import Commands
from tests.support.company import Company


@pytest.fixture
def run(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace, app, monkeypatch)


def test_groups_are_listed_as_a_table_and_as_json(run: Commands, millrace: Company) -> None:
    done = run("Bea", "list")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert lines[0] == ["NAME", "MEMBERS", "BUILT", "IN", "ID"]
    assert lines[1][:3] == ["All", "8", "yes"]
    assert lines[2] == ["analysts", "2", "no", millrace.id("group", "analysts")]
    assert [one["name"] for one in json.loads(run("Bea", "list", "--prefix", "st", "--json").output)["items"]] == [
        "stewards"
    ]
    first = run("Bea", "list", "--limit", "1").output
    cursor = first.partition("more: --cursor ")[2].strip()
    assert "analysts" in run("Bea", "list", "--limit", "1", "--cursor", cursor).output


def test_a_group_goes_through_its_life_by_name(run: Commands, millrace: Company) -> None:
    created = run("Adam", "create", "Night shift")
    group = millrace.id("group", "Night shift")
    assert created.output == f"Created the group Night shift ({group}).\n"
    assert run("Adam", "add", "night shift", "Bea", "Ben").output.splitlines() == [
        "Bea is in night shift.",
        "Ben is in night shift.",
    ]
    shown = run("Adam", "show", "NIGHT SHIFT").output
    assert "Bea" in shown
    assert "Ben" in shown
    assert run("Adam", "remove", group, "Ben").exit_code == 0
    assert [one["name"] for one in json.loads(run("Bea", "show", group, "--json").output)["members"]] == ["Bea"]
    assert "Only members of the group" in run("Ben", "show", "Night shift").output
    assert run("Adam", "rename", "Night shift", "Day shift").output == "The group is now called Day shift.\n"
    deleted = run("Adam", "delete", "Day shift")
    assert "members: 1, grants: 0, space roles: 0" in deleted.output
    assert json.loads(run("Adam", "create", "Day shift", "--json").output)["id"] != group


def test_a_name_is_not_taken_for_one_that_begins_like_it(run: Commands, millrace: Company) -> None:
    run("Adam", "create", "analysts abroad")
    run("Adam", "delete", "analysts")
    assert millrace.rows("SELECT name FROM groups ORDER BY name") == [("All",), ("analysts abroad",), ("stewards",)]
    again = run("Adam", "delete", "analysts")
    assert again.exit_code == 1
    assert "There is no group called 'analysts'" in again.output


@pytest.mark.parametrize(
    ("who", "arguments", "status", "says"),
    [
        ("Bea", ("create", "mine"), 1, "You may not create group"),
        ("Bea", ("add", "analysts", "Bea"), 1, "You may not manage groups"),
        ("Adam", ("delete", "All"), 1, "built-in group All"),
        ("Adam", ("create", "analysts"), 1, "already"),
        ("Adam", ("create", ""), 2, "NAME: "),
        ("Adam", ("show", "grp_00000000000000000000"), 1, "no group grp_00000000000000000000"),
    ],
)
def test_a_refusal_is_a_sentence_and_a_status(
    run: Commands, who: str, arguments: tuple[str, ...], status: int, says: str
) -> None:
    done = run(who, *arguments)
    assert done.exit_code == status, done.output
    assert says in done.output
