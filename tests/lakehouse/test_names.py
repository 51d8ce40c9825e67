"""Completion: names of what is visible, and the functions that the guard lets through."""

import zipfile
from pathlib import Path

import pytest

from headgate.contracts import guard_files
from headgate.lakehouse.completion import functions as sql_functions
from headgate.lakehouse.completion.functions import functions
from headgate.lakehouse.tables import metadata_cache as table_documents
from tests.lakehouse.catalog.support import SCHEMA, Lake
from tests.support.company import Company


@pytest.mark.parametrize(
    ("who", "layers", "tables"),
    [
        ("Adam", ["raw", "service", "trusted"], ["raw.orders", "raw.payments", "service.revenue", "trusted.orders"]),
        ("Ana", ["trusted"], ["trusted.orders"]),
        ("Bea", ["service"], ["service.revenue"]),
        ("Dora", [], []),
    ],
)
def test_names_are_those_of_what_is_visible(millrace: Company, who: str, layers: list[str], tables: list[str]) -> None:
    found = millrace.as_(who).get("/api/sql/names").json()
    assert found["layers"] == layers
    assert [one["name"] for one in found["tables"]] == tables
    assert {"count", "sum", "date_trunc"} <= set(found["functions"])


def test_names_are_found_by_their_beginning_and_paged(millrace: Company) -> None:
    api = millrace.as_("Adam")
    found = api.get("/api/sql/names", prefix="R").json()
    assert (found["layers"], len(found["tables"])) == (["raw"], 2)
    assert found["functions"]
    assert all(name.startswith("r") for name in found["functions"])
    assert [one["name"] for one in api.get("/api/sql/names", prefix="raw.p").json()["tables"]] == ["raw.payments"]
    first = api.get("/api/sql/names", limit=3).json()
    second = api.get("/api/sql/names", limit=3, cursor=first["next_cursor"]).json()
    assert [one["name"] for one in second["tables"]] == ["trusted.orders"]
    assert (second["layers"], second["functions"], second["next_cursor"]) == ([], [], None)


def test_a_narrowed_token_completes_what_it_reaches(millrace: Company) -> None:
    table = millrace.id("table", "service.revenue")
    found = millrace.as_("Adam", only=[table], read_only=True).get("/api/sql/names").json()
    assert (found["layers"], [one["name"] for one in found["tables"]]) == (["service"], ["service.revenue"])


def test_columns_come_with_their_tables(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    body = {"name": "shop", "schema": SCHEMA}
    assert lake.company.as_("Tom").post("/iceberg/v1/namespaces/raw/tables", body).status_code == 200
    found = lake.company.as_("Tom").get("/api/sql/names", prefix="raw.s").json()["tables"]
    assert found == [
        {
            "name": "raw.shop",
            "title": None,
            "columns": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
        }
    ]
    bare = lake.company.as_("Tom").get("/api/sql/names", prefix="raw.s", columns=False).json()["tables"]
    assert bare[0]["columns"] == []
    table = lake.company.id("table", "raw.shop")
    table_documents._documents._values.clear()
    for file in (lake.warehouse / "metadata" / table).iterdir():
        file.write_bytes(b"{}")
    assert lake.company.as_("Tom").get("/api/sql/names", prefix="raw.s").json()["tables"][0]["columns"] == []


def test_a_wheel_takes_the_functions_from_its_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "guard.jar", "w") as jar:
        jar.writestr(sql_functions.LIST, "# those\nabs\n+\nlake.system.days\nand\n")
    monkeypatch.setattr(sql_functions, "SOURCES", tmp_path / "none")
    monkeypatch.setattr(sql_functions, "SHIPPED", tmp_path / "guard.jar")
    functions.cache_clear()
    assert functions() == ("abs", "lake.system.days")
    monkeypatch.setattr(sql_functions, "SHIPPED", tmp_path / "no.jar")
    functions.cache_clear()
    assert functions() == ()
    monkeypatch.undo()
    functions.cache_clear()
    assert (guard_files.SOURCES / "resources" / sql_functions.LIST).is_file()
    assert "abs" in functions()
