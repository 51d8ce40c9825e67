"""Lineage of columns: as Spark tells it for queries, by definition for the rest, and only between what one may see."""

import json
from typing import Any

import pytest

from headgate.cli.main import app
from headgate.contracts.pipelines import definitions
from headgate.pipelines.column_lineage import MOST, ColumnOrigin, by_definition, of_query
from tests.organization.profile.support import Commands
from tests.pipelines.probes import LONG, Probe, create, fields
from tests.pipelines.runs.support import make
from tests.support.company import Company


def save(millrace: Company, name: str = "Daily", output: str = "trusted.daily", *, source: str = "raw.sold") -> str:
    """A query that adds up raw.sold by day."""
    origins = [("day", [(source, "day")]), ("amount", [(source, "amount"), ("raw.rates", "rate")]), ("n", [])]
    probe = Probe(millrace, "Tess", name, output)
    return probe.save(fields(day="date", amount=LONG, n=LONG), source, "raw.rates", origins=origins)


def tables(millrace: Company) -> None:
    create(millrace, "Tess", "raw.sold", day="date", amount=LONG)
    create(millrace, "Tess", "raw.rates", day="date", rate=LONG)


def lines(millrace: Company, member: str, path: str, **more: Any) -> list[tuple[Any, ...]]:
    """What an answer says of columns, by name."""
    answer = millrace.as_(member).get(path, columns=True, **more)
    assert answer.status_code == 200, answer.text
    names = {None: None, **{one["id"]: one["name"] for one in answer.json()["nodes"]}}
    return sorted(
        (names[one["source"]], one["source_column"], names[one["target"]], one["target_column"])
        for one in answer.json()["columns"]
    )


def of_table(millrace: Company, name: str) -> str:
    return f"/api/lineage/{millrace.id('table', name)}"


DAILY = [
    ("raw.rates", "rate", "trusted.daily", "amount"),
    ("raw.sold", "amount", "trusted.daily", "amount"),
    ("raw.sold", "day", "trusted.daily", "day"),
]
VERSIONS = ("trusted.daily", None, "service.versions", None)


def test_columns_are_followed_through_a_chain(millrace: Company) -> None:
    tables(millrace)
    pipeline = save(millrace)
    make(millrace, name="Versions", table="trusted.daily", output="service.versions", keys=["day"])
    assert lines(millrace, "Tess", of_table(millrace, "service.versions")) == [*DAILY, VERSIONS]
    assert lines(millrace, "Tess", of_table(millrace, "service.versions"), depth=1) == [VERSIONS]
    assert lines(millrace, "Tess", of_table(millrace, "raw.rates"), direction="downstream", depth=1) == DAILY[:1]
    assert lines(millrace, "Tess", f"/api/pipelines/{pipeline}/lineage") == [*DAILY, VERSIONS]
    assert lines(millrace, "Tess", f"/api/pipelines/{pipeline}/lineage", depth=1) == DAILY
    assert lines(millrace, "Tess", f"/api/pipelines/{pipeline}/lineage", direction="downstream") == [VERSIONS]
    bare = millrace.as_("Tess").get(of_table(millrace, "trusted.daily")).json()
    assert bare["columns"] is None


def test_a_save_replaces_what_was_known_of_columns(millrace: Company) -> None:
    tables(millrace)
    save(millrace)
    create(millrace, "Tess", "raw.other", day="date", amount=LONG)
    save(millrace, source="raw.other")
    found = lines(millrace, "Tess", of_table(millrace, "trusted.daily"))
    assert {one[0] for one in found} == {"raw.rates", "raw.other"}
    Probe(millrace, "Tess", "Daily", "trusted.daily").save(fields(day="date"))
    assert lines(millrace, "Tess", of_table(millrace, "trusted.daily")) == []


def test_columns_stay_with_their_table_when_it_is_renamed(millrace: Company) -> None:
    tables(millrace)
    save(millrace)
    table = millrace.id("table", "raw.sold")
    answer = millrace.as_("Tess").request("PATCH", f"/api/tables/{table}", json={"name": "sales"})
    assert answer.status_code == 200, answer.text
    assert ("raw.sales", "day", "trusted.daily", "day") in lines(millrace, "Tess", of_table(millrace, "trusted.daily"))


def test_a_column_of_a_hidden_table_is_neither_named_nor_counted(millrace: Company) -> None:
    tables(millrace)
    pipeline = save(millrace)
    path = of_table(millrace, "trusted.daily")
    # Ana sees trusted: of what comes before it, nothing.
    bare = millrace.as_("Ana").get(path, columns=True).json()
    assert (bare["columns"], bare["cut"], bare["edges"], len(bare["nodes"])) == ([], False, [], 1)
    assert millrace.as_("Ana").get(f"/api/pipelines/{pipeline}/lineage", columns=True).status_code == 404
    millrace.as_("Tess").change(change="grant", to="Ana", resource="table:raw.sold", level="viewer")
    assert lines(millrace, "Ana", path) == []
    millrace.as_("Tess").change(change="grant", to="Ana", resource="table:raw.rates", level="viewer")
    assert lines(millrace, "Ana", path) == DAILY


def test_a_task_that_one_may_open_names_no_column_of_a_hidden_table(millrace: Company) -> None:
    """Who has a role in the space sees the task; of its tables they see those that they may."""
    tables(millrace)
    project = millrace.id("project", "Shop")
    definition = {"kind": "query", "sql": "SELECT 1", "output": "trusted.daily"}
    body = {"name": "Daily task", "definition": definition, "project": project}
    answer = millrace.as_("Tess").post("/api/pipelines", body)
    assert answer.status_code == 200, answer.text
    probe = Probe.of(millrace, "Tess", answer.json()["statement"])
    origins = [("day", [("raw.sold", "day"), ("raw.rates", "day")])]
    pipeline = probe.save(fields(day="date"), "raw.sold", "raw.rates", origins=origins)
    path = f"/api/pipelines/{pipeline}/lineage"
    assert len(lines(millrace, "Tess", path)) == 2
    assert millrace.as_("Bea").get(path, columns=True).json()["columns"] == []
    millrace.as_("Tess").change(change="grant", to="Bea", resource="table:raw.rates", level="viewer")
    assert lines(millrace, "Bea", path) == []
    millrace.as_("Tess").change(change="grant", to="Bea", resource="table:trusted.daily", level="viewer")
    assert lines(millrace, "Bea", path) == [("raw.rates", "day", "trusted.daily", "day")]


def test_streams_and_histories_give_columns_as_they_are() -> None:
    source = definitions.Source(
        volume="raw.landing",
        output_layer="raw",
        streams=({"name": "a/*.csv", "table": "a"}, {"name": "b/*.csv", "table": "b", "enabled": False}),
    )
    items = {"raw.a": "A", "raw.b": "B", "raw.landing": "L"}
    assert by_definition(source, items) == [ColumnOrigin("A", None, "L", None)]
    outside = source.model_copy(update={"volume": None, "connection": "con_1"})
    assert by_definition(outside, items) == [ColumnOrigin("A", None, None, None)]


def test_what_spark_tells_of_tables_that_nothing_loaded_is_left_out() -> None:
    loaded = {"raw.sold": "S", "raw.gone": None}
    told = [("day", [("raw.sold", "day"), ("raw.sold.branch_x", "id"), ("raw.gone", "x"), ("raw.other", "x")])]
    assert of_query("T", told, loaded) == [ColumnOrigin("T", "day", "S", "day"), ColumnOrigin("T", "day", "S", "id")]
    assert of_query(None, told, loaded) == []
    assert of_query("T", [("day", [("raw.sold", "day")] * (MOST + 1))], loaded) == []


def test_the_commands_show_lineage_and_columns(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(millrace)
    save(millrace)
    make(millrace, name="Versions", table="trusted.daily", output="service.versions", keys=["day"])
    run = Commands(millrace, app, monkeypatch)
    plain = run("Tess", "table", "lineage", "trusted.daily")
    assert plain.exit_code == 0, plain.output
    words = [line.split() for line in plain.output.splitlines()]
    assert ["raw.rates", "table", "Daily", "pipeline"] in words
    assert "amount" not in plain.output
    columns = run("Tess", "pipeline", "lineage", "Daily", "--columns", "--direction", "both")
    words = [line.split() for line in columns.output.splitlines()]
    assert ["trusted.daily.amount", "raw.rates.rate", "Daily"] in words
    assert ["service.versions.*", "trusted.daily.*", "Versions"] in words
    found = json.loads(run("Tess", "table", "lineage", "raw.rates", "--depth", "1", "--json").output)
    assert {one["name"] for one in found["nodes"]} == {"raw.rates", "Daily", "trusted.daily"}
    assert "There is no lineage that you may see" in run("Ana", "table", "lineage", "trusted.daily", "--columns").output
    assert run("Ana", "pipeline", "lineage", "Daily").exit_code == 1
    assert run("Tess", "table", "lineage", "raw.rates", "--direction", "sideways").exit_code == 2
