"""`headgate space`, `connection` and `destination`, as members use them."""

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.main import app
from tests.organization.profile.support import Commands
from tests.platform.connection_checks.test_checks import running
from tests.platform.external_systems.test_opening import opened
from tests.spaces.connections.support import SECRET
from tests.support import api as apis
from tests.support.company import Company, company

DATABASE = ("--kind", "postgresql", "--set", "host=db.example.com", "--set", "database=shop", "--set", "user=reader")


@pytest.fixture
def run(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace, app, monkeypatch)


def out(done: Any) -> str:
    assert done.exit_code == 0, done.output
    return str(done.output)


def test_a_space_is_made_and_shown(run: Commands) -> None:
    assert "Created the space Mill data (spc_" in out(run("Dora", "space", "create", "Mill data"))
    assert "Mill data" in out(run("Dora", "space", "list"))
    assert "Dora" in out(run("Dora", "space", "show", "mill data"))
    refused = run("Tess", "space", "create", "Mine")
    assert refused.exit_code == 1
    hidden = run("Ben", "space", "show", "Tom's own")
    assert (hidden.exit_code, "that you may see" in hidden.output) == (1, True)


def test_a_connection_goes_through_its_life(
    run: Commands, millrace: Company, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    added = out(
        run(
            "Tess",
            "connection",
            "add",
            "Shop",
            "--space",
            "Sales data",
            *DATABASE,
            "--secret",
            "password=env:SHOP_PASSWORD",
        )
    )
    identifier = millrace.id("connection", "Shop")
    assert f"Added the connection Shop ({identifier})" in added
    assert opened(millrace, identifier).secrets == {"password": SECRET}
    shown = out(run("Tess", "connection", "show", "shop"))
    assert "db.example.com" in shown
    assert "secret: password" in shown
    assert SECRET not in shown
    assert "postgresql" in out(run("Bea", "connection", "list"))

    kept = out(run("Tess", "connection", "change", "Shop", "--name", "Till", "--set", "user=writer"))
    assert kept == "Changed the connection Till.\n"
    moved = out(run("Tess", "connection", "change", "Till", "--set", "port=6543"))
    assert "Its host changed" in moved
    assert opened(millrace, identifier).config["port"] == 6543
    assert opened(millrace, identifier).secrets == {}
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    out(run("Tess", "connection", "change", "Till", "--secret", f"password=file:{file}"))
    assert opened(millrace, identifier).secrets == {"password": SECRET}
    out(run("Tess", "connection", "change", "Till", "--forget-secret", "password"))
    assert opened(millrace, identifier).secrets == {}
    assert "Deleted the connection Till" in out(run("Tess", "connection", "delete", "Till"))


def test_a_secret_is_typed_in_and_never_an_argument(run: Commands, millrace: Company) -> None:
    typed = run(
        "Tess", "connection", "add", "Shop", "--space", "Sales data", *DATABASE, "--secret", "password",
        typed=f"{SECRET}\n",
    )  # fmt: skip
    assert SECRET not in out(typed)
    assert opened(millrace, millrace.id("connection", "Shop")).secrets == {"password": SECRET}
    refused = run(
        "Tess", "connection", "add", "S", "--space", "Sales data", *DATABASE, "--secret", f"password={SECRET}"
    )
    assert refused.exit_code == 2
    assert "other users can see" in refused.output
    assert SECRET not in refused.output
    unset = run("Tess", "connection", "change", "Shop", "--secret", "password=env:NO_SUCH_VARIABLE")
    assert (unset.exit_code, "NO_SUCH_VARIABLE" in unset.output) == (2, True)


def test_slips_are_said_with_what_to_do(run: Commands, tmp_path: Path) -> None:
    slips = {
        ("connection", "add", "S", "--space", "Sales data"): "kind",
        ("connection", "add", "S", "--space", "Sales data", "--set", "host"): "NAME=VALUE",
        ("connection", "add", "S", "--space", "Sales data", *DATABASE, "--set", "host.x=1"): "no nested fields",
        ("connection", "add", "S", "--space", "Sales data", *DATABASE, "--set", "host=localhost"): "outgoing.allow",
        ("connection", "change", "Shop database"): "Nothing to change",
    }
    for command, says in slips.items():
        done = run("Tess", *command)
        assert done.exit_code == 2, command
        assert says in done.output, done.output
    assert run("Tess", "connection", "add", "S", "--space", "Nowhere", *DATABASE).exit_code == 1
    file = tmp_path / "place.json"
    file.write_text("{")
    broken = run("Tess", "connection", "add", "S", "--space", "Sales data", "--place", str(file))
    assert (broken.exit_code, "is not JSON" in broken.output) == (2, True)
    file.write_text(json.dumps({"kind": "http", "base_url": "https://api.example.com", "auth": {"style": "bearer"}}))
    made = run("Tess", "connection", "add", "S", "--space", "Sales data", "--place", str(file), "--json")
    assert json.loads(out(made))["place"]["config"]["auth"] == {"style": "bearer"}
    assert "Missing secrets: token" in out(run("Tess", "connection", "change", "S", "--set", "retries=1"))


def test_a_destination_goes_through_its_life(run: Commands, millrace: Company) -> None:
    assert "Made the destination Out" in out(run("Ben", "destination", "add", "Out", *DATABASE))
    assert "Out" in out(run("Ben", "destination", "list"))
    assert "db.example.com" in out(run("Ben", "destination", "show", "Out"))
    assert out(run("Ben", "destination", "change", "Out", "--name", "Away")) == "Changed the destination Away.\n"
    assert "0 reports and 0 pipelines" in out(run("Ben", "destination", "delete", "Away"))
    assert "Away" in out(run("Ben", "destination", "list", "--deleted"))
    assert out(run("Ben", "destination", "restore", "Away")) == "Restored the destination Away.\n"
    assert run("Tess", "destination", "show", "Away").exit_code == 1
    assert millrace.as_("Ben").get("/api/destinations", deleted=True).json()["items"] == []


def test_a_connection_is_tested_and_discovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Any) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.csv").write_text("x")
    more = {"outgoing": {"allow": ["127.0.0.1"]}, "sources": {"folders": [str(tmp_path)]}}
    with company(database, tmp_path, **more) as millrace, apis.serving() as api, running(millrace):
        run = Commands(millrace, app, monkeypatch)
        space = ("--space", "Sales data")
        out(run("Tess", "connection", "add", "Api", *space, "--kind", "http", "--set", f"base_url={api.url}"))
        assert "The API answers 200 (" in out(run("Tess", "connection", "test", "Api", "--path", "/rows"))
        wrong = run("Tess", "connection", "test", "Api", "--path", "/bearer")
        assert (wrong.exit_code, "[WRONG_CREDENTIALS]" in wrong.output) == (1, True)
        out(run("Tess", "connection", "add", "Files", *space, "--kind", "folder", "--set", f"path={source}"))
        assert "a.csv" in out(run("Tess", "connection", "discover", "Files", "--pattern", "*.csv"))
        found = json.loads(out(run("Tess", "connection", "discover", "Files", "--json")))
        assert [one["name"] for one in found["result"]["streams"]] == ["a.csv"]
        assert "name its paths" in out(run("Tess", "connection", "discover", "Api"))
        out(run("Ben", "destination", "add", "Hook", "--kind", "http", "--set", f"base_url={api.url}"))
        assert "The API answers 404" in out(run("Ben", "destination", "test", "Hook"))
