"""`headgate organization`, as members use it."""

import json

import pytest

from headgate.cli.organization.organization import app
from tests.organization.profile.support import Commands
from tests.support.company import Company


@pytest.fixture
def run(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace, app, monkeypatch)


def test_the_organization_is_shown_and_renamed(run: Commands) -> None:
    shown = [line.split(maxsplit=1) for line in run("Bea", "show").output.splitlines()]
    assert shown[1:] == [["name", "Millrace Foods"], ["plan", "growth"], ["invites", "by-role"]]
    assert run("Adam", "rename", "Millrace Mills").output == "The organization is now called Millrace Mills.\n"
    assert json.loads(run("Bea", "show", "--json").output)["name"] == "Millrace Mills"


def test_owners_see_the_usage(run: Commands) -> None:
    lines = [line.split() for line in run("Olga", "usage").output.splitlines()]
    assert ["members:", "technical", "3"] in lines
    assert ["resources:", "data_mart", "2"] in lines
    assert ["groups", "2"] in lines
    assert json.loads(run("Olga", "usage", "--json").output)["contexts"] == 2
    refused = run("Adam", "usage")
    assert (refused.exit_code, "You may not manage billing" in refused.output) == (1, True)


def test_plan_and_invites_are_set_by_who_may(run: Commands, millrace: Company) -> None:
    assert run("Olga", "set-plan", "custom").output == "Done, by owner.\n"
    assert json.loads(run("Adam", "set-invites", "admins-only", "--json").output)["after"] == {"invites": "admins-only"}
    assert millrace.rows("SELECT plan, invites FROM organization") == [("custom", "admins-only")]
    assert run("Adam", "set-plan", "starter").exit_code == 1
    assert run("Bea", "set-invites", "by-role").exit_code == 1
    assert run("Olga", "set-plan", "gold").exit_code == 2
    assert millrace.rows("SELECT plan, invites FROM organization") == [("custom", "admins-only")]
