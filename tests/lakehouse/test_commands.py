"""`headgate layer`, `table`, `volume`, `deleted`, `grant` and `revoke`, as members use them."""

import json
from typing import Any

import pytest

from headgate.cli.main import app
from tests.lakehouse.catalog.support import ROWS, Lake
from tests.organization.profile.support import Commands
from tests.support.company import Company


@pytest.fixture
def run(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace, app, monkeypatch)


def lines(done: Any) -> list[list[str]]:
    assert done.exit_code == 0, done.output
    return [line.split() for line in done.output.splitlines()]


def test_lists_as_tables_and_as_json(run: Commands, millrace: Company) -> None:
    assert [row[0] for row in lines(run("Tess", "layer", "list"))] == ["NAME", "raw", "service", "trusted"]
    assert [row[0] for row in lines(run("Tess", "table", "list", "--layer", "raw"))] == [
        "NAME", "raw.orders", "raw.payments",
    ]  # fmt: skip
    assert [row[0] for row in lines(run("Tess", "volume", "list"))] == ["NAME", "raw.invoices"]
    assert run("Dora", "table", "list").output == "There is no table that you may see.\n"
    found = json.loads(run("Ana", "table", "list", "--json").output)
    assert [one["id"] for one in found["items"]] == [millrace.id("table", "trusted.orders")]
    first = run("Tess", "table", "list", "--limit", "1").output
    cursor = first.partition("more: --cursor ")[2].strip()
    assert "raw.payments" in run("Tess", "table", "list", "--limit", "1", "--cursor", cursor).output


def test_a_layer_goes_through_its_life(run: Commands, millrace: Company) -> None:
    created = run("Adam", "layer", "create", "Gold", "--title", "Gold")
    layer = millrace.id("layer", "gold")
    assert created.output == f"Created the layer gold ({layer}).\n"
    assert (
        run("Adam", "layer", "describe", "gold", "--description", "Fine").output
        == "Updated the title or description of gold.\n"
    )
    assert ["title", "Gold"] in lines(run("Adam", "layer", "show", "gold"))
    assert "now called finest" in run("Adam", "layer", "rename", "GOLD", "finest").output
    assert "headgate deleted restore" in run("Adam", "layer", "delete", "finest").output
    assert layer in run("Adam", "deleted", "list").output
    assert run("Adam", "deleted", "restore", "finest").output == "Restored the layer finest.\n"
    assert run("Tess", "layer", "create", "mine").exit_code == 1
    refused = run("Adam", "layer", "create", "no good")
    assert (refused.exit_code, "SQL name" in refused.output) == (2, True)


def test_a_table_is_renamed_moved_deleted_and_restored_by_name(run: Commands, millrace: Company) -> None:
    table = millrace.id("table", "raw.orders")
    assert "now called raw.sales" in run("Tess", "table", "rename", "raw.orders", "sales").output
    assert "now called trusted.sales" in run("Tess", "table", "rename", table, "trusted.sales").output
    assert run("Ben", "table", "rename", "trusted.sales", "mine").exit_code == 1
    assert "Deleted the table trusted.sales" in run("Tess", "table", "delete", "trusted.sales").output
    missing = run("Tess", "table", "show", "sales")
    assert missing.exit_code == 1
    assert "raw.sales" in missing.output
    back = run("Tess", "deleted", "restore", "trusted.sales", "--name", "sold", "--json")
    assert json.loads(back.output)["name"] == "trusted.sold"
    assert run("Ana", "deleted", "list").output == "There is no deleted resource that you may restore.\n"
    assert run("Ana", "deleted", "restore", "trusted.sales").exit_code == 1


def test_a_name_that_several_had_asks_for_the_id(run: Commands, millrace: Company) -> None:
    for _ in range(2):
        assert run("Tess", "volume", "create", "raw.twice").exit_code == 0
        assert run("Tess", "volume", "delete", "raw.twice").exit_code == 0
    done = run("Tess", "deleted", "restore", "raw.twice")
    assert (done.exit_code, "Give the id" in done.output) == (1, True)
    assert run("Tess", "volume", "create", "twice").exit_code == 2


def test_grants_are_made_shown_and_taken_back(run: Commands, millrace: Company) -> None:
    done = run("Tess", "grant", "viewer", "table:raw.orders", "group:analysts", "--until", "2999-01-01")
    assert done.output == "group:analysts is viewer on table:raw.orders until 2999-01-01, by Manager.\n"
    assert millrace.as_("Ben").may("execute", "table:raw.orders")
    shown = lines(run("Tess", "table", "grants", "raw.orders"))
    assert shown[1][:4] == ["analysts", "group", "viewer", "2999-01-01T00:00:00Z"]
    assert {row[0] for row in lines(run("Tess", "layer", "grants", "raw"))} == {"TO", "Tess", "Tom"}
    assert {row[0] for row in lines(run("Tess", "volume", "grants", "raw.invoices"))} == {"TO", "Tess", "Tom"}
    done = run("Tess", "revoke", "viewer", "table:raw.orders", "group:analysts")
    assert done.exit_code == 0, done.output
    assert not millrace.as_("Ben").may("execute", "table:raw.orders")
    assert run("Tess", "grant", "manager", "table:raw.orders", "Ben").exit_code == 1
    assert run("Tess", "grant", "chief", "table:raw.orders", "Ben").exit_code == 2
    assert run("Ben", "table", "grants", "raw.orders").exit_code == 1


def test_volumes_are_made_described_and_moved(run: Commands, millrace: Company) -> None:
    assert run("Tess", "volume", "create", "raw.scans", "--title", "Scans").exit_code == 0
    assert ["title", "Scans"] in lines(run("Tess", "volume", "show", "raw.scans"))
    assert run("Tess", "volume", "describe", "raw.scans", "--title", "").exit_code == 0
    assert ["title", "—"] in lines(run("Tess", "volume", "show", "raw.scans"))
    assert run("Tess", "volume", "describe", "raw.scans").exit_code == 2
    assert "trusted.scans" in run("Tess", "volume", "rename", "raw.scans", "trusted.scans").output
    assert millrace.id("volume", "trusted.scans")


def test_what_is_known_about_a_table_is_shown(served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = served_on_sqlite
    run = Commands(lake.company, app, monkeypatch)
    table = lake.engine("Tom").create_table("raw.shop", schema=ROWS.schema)
    table.append(ROWS)
    assert run("Tom", "table", "describe", "raw.shop", "--field", "name", "--title", "The name").exit_code == 0
    shown = run("Tom", "table", "show", "raw.shop")
    assert ["rows", "3"] in lines(shown)
    assert ["name", "string", "no", "The", "name", "2"] in lines(shown)
    assert lines(run("Tom", "table", "preview", "raw.shop", "--limit", "2"))[1:] == [
        ["1", "a"], ["2", "b"], ["There", "are", "more", "rows."],
    ]  # fmt: skip
    assert lines(run("Tom", "table", "preview", "raw.shop", "--column", "name"))[0] == ["name"]
    assert json.loads(run("Tom", "table", "preview", "raw.shop", "--json").output)["rows"][2] == [3, "c"]
    assert "Tom" in run("Tom", "table", "history", "raw.shop").output
    assert str(table.current_snapshot().snapshot_id) in run("Tom", "table", "snapshots", "raw.shop").output
    assert run("Tom", "table", "dependents", "raw.shop").output.startswith(
        "No pipeline, data mart or integration that you may see"
    )
    assert run("Tom", "table", "preview", "raw.shop", "--as-of", "1999-01-01").exit_code == 2
    assert run("Ana", "table", "preview", "raw.shop").exit_code == 1


def test_nobody_is_answered_who_is_not_known(millrace_on_sqlite: Company) -> None:
    for path in ("layers", "tables", "volumes", "deleted", "sql/names"):
        assert millrace_on_sqlite.as_(None).get(f"/api/{path}").status_code == 401
