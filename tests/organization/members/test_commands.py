"""`headgate member` for what removed members left behind."""

import json

import pytest

from headgate.cli.organization.member import app
from tests.organization.profile.support import Commands
from tests.support.company import Company


@pytest.fixture
def run(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace, app, monkeypatch)


def test_what_a_removed_member_left_is_listed_and_handed_over_by_id(run: Commands, millrace: Company) -> None:
    tess = millrace.id("member", "Tess")
    assert "No removed member left a resource" in run("Adam", "removed").output
    assert run("Adam", "remove", "Tess", "--yes").exit_code == 0
    [one] = json.loads(run("Adam", "removed", "--json").output)["items"]
    assert (one["id"], one["solely_owned"]) == (tess, 5)
    by_name = run("Adam", "holdings", "Tess")
    assert (by_name.exit_code, "`headgate member removed`" in by_name.output) == (1, True)
    assert "Sales data" in run("Adam", "holdings", tess).output
    done = run("Adam", "reassign", tess, "--to", "Tom")
    assert (done.exit_code, "Sales data" in done.output) == (0, True)
    assert "No removed member left a resource" in run("Adam", "removed").output
    assert run("Ben", "removed").exit_code == 1
