"""`headgate context`, as members use it."""

import json

import pytest

from headgate.cli.organization.context import app
from tests.organization.profile.support import Commands
from tests.support.company import Company


@pytest.fixture
def run(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace, app, monkeypatch)


def test_contexts_are_listed_as_a_table_and_as_json(run: Commands, millrace: Company) -> None:
    finance = millrace.id("context", "finance")
    lines = [line.split() for line in run("Adam", "list").output.splitlines()]
    assert lines[0] == ["NAME", "RESOURCES", "MEMBERS", "INVITATIONS", "ID"]
    assert lines[1] == ["finance", "3", "2", "0", finance]
    assert run("Bea", "list").output.splitlines()[1].split() == ["finance", "—", "—", "—", finance]
    found = json.loads(run("Adam", "list", "--prefix", "s", "--json").output)
    assert [one["name"] for one in found["items"]] == ["sales"]
    cursor = run("Bea", "list", "--limit", "1").output.partition("more: --cursor ")[2].strip()
    assert "sales" in run("Bea", "list", "--limit", "1", "--cursor", cursor).output


def test_a_context_goes_through_its_life_by_name(run: Commands, millrace: Company) -> None:
    created = run("Adam", "create", "North")
    context = millrace.id("context", "North")
    assert created.output == f"Created the context North ({context}).\n"
    assert run("Adam", "rename", "north", "South").output == "The context is now called South.\n"
    assert json.loads(run("Adam", "delete", context, "--json").output) == {"id": context, "name": "South"}
    assert run("Adam", "delete", "South").exit_code == 1


@pytest.mark.parametrize(
    ("who", "arguments", "status", "says"),
    [
        ("Bea", ("create", "mine"), 1, "You may not manage contexts"),
        ("Adam", ("delete", "finance"), 1, "attached to 3 resources and 2 members"),
        ("Adam", ("create", "Finance"), 1, "already"),
        ("Adam", ("create", " "), 2, "NAME: "),
        ("Adam", ("rename", "nowhere", "x"), 1, "There is no context called 'nowhere'"),
    ],
)
def test_a_refusal_is_a_sentence_and_a_status(
    run: Commands, who: str, arguments: tuple[str, ...], status: int, says: str
) -> None:
    done = run(who, *arguments)
    assert done.exit_code == status, done.output
    assert says in done.output
