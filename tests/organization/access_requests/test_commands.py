"""`headgate request`, as a person and as a program use it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs
from typer.testing import CliRunner

from headgate.cli.organization.access_request import app
from headgate.client import Headgate
from tests.organization.access_requests.conftest import Asking

Run = Callable[..., Any]


@pytest.fixture
def run(asking_on_sqlite: Asking, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command as a member."""
    company = asking_on_sqlite.company

    def as_member(who: str, *arguments: str) -> Any:
        @contextmanager
        def connect() -> Iterator[Headgate]:
            headers = {"Authorization": f"Bearer {company.token(who)}"}
            http = TestClient(company.client.app, headers=headers, raise_server_exceptions=False)
            yield Headgate(str(http.base_url), http=http)

        monkeypatch.setattr("headgate.cli.client.connect", connect)
        with capture_logs():
            return CliRunner().invoke(app, list(arguments))

    return as_member


def made(run: Run, who: str, action: str, resource: str) -> str:
    done = run(who, "make", action, resource, "--reason", "For the audit", "--json")
    assert done.exit_code == 0, done.output
    return str(json.loads(done.stdout)["id"])


def test_from_asking_to_having(run: Run, asking_on_sqlite: Asking) -> None:
    done = run("Bea", "make", "edit", "table:service.revenue", "--reason", "For the audit")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Asked: edit on table:service.revenue, req_")
    request = done.stdout.split()[-1]
    listed = run("Tess", "list").stdout
    for part in (request, "open", "Bea", "edit", "table:service.revenue", "For the audit"):
        assert part in listed
    shown = run("Tess", "show", request).stdout.splitlines()
    assert any("Grant Bea Editor on the table service.revenue" in line and line.startswith("1 ") for line in shown)
    end = "2090-01-01T00:00:00Z"
    done = run("Tess", "approve", request, "--proposal", "1", "--comment", "Fine", "--expires", end, "--json")
    found = json.loads(done.stdout)
    assert (found["state"], found["comment"], found["change"]["expires"]) == ("approved", "Fine", end)
    assert asking_on_sqlite.company.as_("Bea").may("edit", "table:service.revenue")
    mine = json.loads(run("Bea", "list", "--mine", "--json").stdout)["items"]
    assert [(one["id"], one["state"]) for one in mine] == [(request, "approved")]
    assert "level=editor" in run("Bea", "show", request).stdout
    assert "PROPOSAL" not in run("Bea", "show", request).stdout


def test_an_approval_by_a_change_of_ones_own(run: Run, asking_on_sqlite: Asking) -> None:
    request = made(run, "Bea", "edit", "table:service.revenue")
    values = ("to=Bea", "resource=layer:service", "level=editor")
    done = run("Tess", "approve", request, "grant", *values)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == f"Approved: edit on table:service.revenue, {request}"
    assert asking_on_sqlite.company.as_("Bea").may("edit", "layer:service")


def test_contexts_are_written_with_commas(run: Run, asking_on_sqlite: Asking) -> None:
    owner = {"change": "add_owner", "resource": "data_mart:Pipeline health", "member": "Ana", "ownership": "business"}
    asking_on_sqlite.company.as_("Adam").change(**owner).raise_for_status()
    request = made(run, "Ana", "edit", "data_mart:Pipeline health")
    done = run("Adam", "approve", request, "set_scope", "member=Ana", "scope=selected", "contexts=finance, sales")
    assert done.exit_code == 0, done.output
    assert asking_on_sqlite.company.as_("Ana").may("edit", "data_mart:Pipeline health")


def test_declining_and_withdrawing(run: Run, asking_on_sqlite: Asking) -> None:
    first, second = (made(run, "Bea", action, "table:service.revenue") for action in ("edit", "describe"))
    assert run("Tess", "decline", first, "--comment", "Not now").stdout.startswith("Declined")
    assert run("Bea", "withdraw", second).stdout.startswith("Withdrawn")
    assert (asking_on_sqlite.state(first), asking_on_sqlite.state(second)) == ("declined", "withdrawn")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("approve", "{}"), 2, "either"),
        (("approve", "{}", "grant", "--proposal", "1"), 2, "either"),
        (("approve", "{}", "grant", "level"), 2, "KEY=VALUE"),
        (("approve", "{}", "--proposal", "9"), 1, "2 proposals"),
        (("approve", "{}", "grant", "to=Bea", "resource=table:service.revenue", "level=viewer"), 1, "would not give"),
        (("withdraw", "{}"), 1, "Only who asked"),
        (("show", "req_00000000000000000000"), 1, "no request req_00000000000000000000"),
    ],
)
def test_slips_are_told_in_a_sentence(run: Run, arguments: tuple[str, ...], status: int, says: str) -> None:
    request = made(run, "Bea", "edit", "table:service.revenue")
    done = run("Tess", *(part.format(request) for part in arguments))
    assert done.exit_code == status, done.output
    assert says in done.stderr
    assert "Traceback" not in done.output
