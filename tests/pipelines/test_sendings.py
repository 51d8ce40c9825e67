"""What a delivery may send where, known when it is saved: by its definition, and by the kind of its destination."""

from typing import Any

import pytest
from pydantic import ValidationError

from headgate.contracts.pipelines import delivery_targets as sendings
from headgate.contracts.pipelines.definitions import Delivery, DeliveryIn
from tests.spaces.connections.support import PLACE
from tests.support.company import Company

KEYED = {"write": "upsert", "keys": ["id"]}


def sending(target: str, **more: Any) -> DeliveryIn:
    return DeliveryIn(table="raw.orders", target=target, **more)


@pytest.mark.parametrize(
    ("kind", "target", "more"),
    [
        ("postgresql", "public.revenue", KEYED),
        ("mysql", "Größe.über_alles$-1", {"write": "overwrite"}),
        ("folder", "exports/revenue", {"write": "overwrite"}),
        ("object_store", "a b/c.d/", {}),
        ("http", "/v1/rows", {}),
        ("http", "rows", {}),
    ],
)
def test_what_is_taken(kind: str, target: str, more: dict[str, Any]) -> None:
    sendings.check(sending(target, **more), kind)


@pytest.mark.parametrize(
    ("kind", "target", "more", "word"),
    [
        ("postgresql", "revenue", {}, "schema.table"),
        ("postgresql", "a.b.c", {}, "schema.table"),
        ("postgresql", 'public."x"; DROP TABLE y', {}, "schema.table"),
        ("mysql", "shop.a`b", {}, "schema.table"),
        ("postgresql", "public." + "ä" * 40, {}, "schema.table"),
        ("postgresql", "pg_catalog.pg_class", {}, "system schema"),
        ("mysql", "MySQL.user", {}, "system schema"),
        ("postgresql", "public.Headgate_deliveries", {}, "another name"),
        ("folder", "exports", KEYED, "database"),
        ("object_store", "exports", KEYED, "database"),
        ("folder", "../etc", {}, "folder"),
        ("folder", "a//b", {}, "folder"),
        ("folder", "a/./b", {}, "folder"),
        ("object_store", "_hidden/x", {}, "folder"),
        ("folder", "a\nb", {}, "folder"),
        ("folder", "x" * 256, {}, "255"),
        ("http", "https://evil.example.com/x", {}, "path"),
        ("http", "//evil.example.com", {}, "path"),
        ("http", "/v1/rows?x=1", {}, "path"),
        ("http", "/v1/%2E%2e/admin", {}, "as a segment"),
        ("http", "/v1/rows", {"write": "overwrite"}, "append"),
        ("http", "/v1/rows", KEYED, "append"),
    ],
)
def test_what_is_refused_and_what_to_write(kind: str, target: str, more: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        sendings.check(sending(target, **more), kind)


@pytest.mark.parametrize(
    ("tables", "word"),
    [
        ([{"table": "raw.a", "target": "x"}, {"table": "raw.a", "target": "x"}], "twice"),
        (
            [{"table": "raw.a", "target": "x"}, {"table": "raw.b", "target": "x", "write": "overwrite"}],
            "would overwrite",
        ),
        (
            [{"table": "raw.a", "target": "x"}, {"table": "raw.b", "target": "/x/", "write": "overwrite"}],
            "would overwrite",
        ),
        ([{"table": "raw.a", "target": "x", "write": "upsert"}], "keys"),
    ],
)
def test_tables_do_not_get_into_each_others_way(tables: list[dict[str, Any]], word: str) -> None:
    with pytest.raises(ValidationError, match=word):
        Delivery.model_validate({"destination": "dst_11111111111111111111", "tables": tables})
    apart = [{"table": "raw.a", "target": "x"}, {"table": "raw.b", "target": "x"}]
    assert Delivery.model_validate({"destination": "dst_11111111111111111111", "tables": apart})


def test_it_is_refused_at_the_save_and_in_a_plan(millrace_on_sqlite: Company) -> None:
    tess = millrace_on_sqlite.as_("Tess")
    made = tess.post("/api/destinations", {"name": "Finance", "place": PLACE}).json()["id"]
    tables = [{"table": "raw.orders", "target": "public.orders"}, {"table": "raw.orders", "target": "exports/x"}]
    definition = {"kind": "delivery", "destination": made, "tables": tables}
    for path, more in (("/api/pipelines", {"name": "Out"}), ("/api/pipelines/plan", {})):
        answer = tess.post(path, {"definition": definition, **more})
        assert answer.status_code == 422, answer.text
        assert "definition.tables.1.target" in answer.text
    ok = tess.post("/api/pipelines", {"name": "Out", "definition": {**definition, "tables": tables[:1]}})
    assert ok.status_code == 200, ok.text
