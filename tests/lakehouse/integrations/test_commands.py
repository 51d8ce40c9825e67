"""`headgate integration`, as admins use it."""

import json

import pytest

from headgate.cli.main import app
from tests.organization.profile.support import Commands
from tests.support.company import Company


def test_an_integration_goes_through_its_life(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Commands(millrace_on_sqlite, app, monkeypatch)
    made = run("Adam", "integration", "add", "Board", "--table", "service.revenue", "--description", "for the board")
    assert made.exit_code == 0, made.output
    secret = made.output.strip().splitlines()[-1]
    assert secret.startswith("hgt_")
    shown = run("Adam", "integration", "show", "Board")
    assert ("service.revenue" in shown.output, secret in shown.output) == (True, False)
    assert "Board" in run("Adam", "integration", "list").output
    renewed = json.loads(run("Adam", "integration", "renew", "Board", "--json").output)
    assert renewed["secret"] != secret
    changed = run("Adam", "integration", "change", "Board", "--name", "Directors", "--table", "raw.orders")
    assert "raw.orders" in changed.output
    refused = run("Tess", "integration", "add", "Mine", "--table", "raw.orders")
    assert (refused.exit_code, "Traceback" in refused.output) == (1, False)
    for slip in (("--table", "raw.nothing"), ("--table", "raw.orders", "--expires", "yesterday")):
        said = run("Adam", "integration", "add", "Slip", *slip)
        assert said.exit_code == 2, said.output
    assert run("Adam", "integration", "delete", "Directors").output == "Deleted 'Directors'.\n"
    assert run("Adam", "integration", "show", "Directors").exit_code == 1
