"""Layers, tables and volumes: made, renamed, moved, deleted and restored, with everything that hangs on them."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from headgate.access.narrowing import Narrowing
from headgate.kit.clock import now
from headgate.kit.errors import Conflict, Denied, Invalid, NotFound
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.models import table_pointer_table
from headgate.lakehouse.files.models import volume_file_table
from headgate.lakehouse.items import service
from headgate.lakehouse.models import lake_text_table
from headgate.lakehouse.trash import deletion
from headgate.lakehouse.trash.models import deleted_item_table
from headgate.lakehouse.trash.retained_rows import _pointing
from headgate.lakehouse.uploads.models import upload_table
from headgate.schema import METADATA
from tests.lakehouse.support import ITSELF, acting, everything, is_indexed, put, traces
from tests.support.company import Company

HOSTILE = [
    "", " ", "a b", "a.b", "`a`", "..", "../a", "a/b", "a\0", "a\n", "\na", "ä", "ｒａｗ", "\u212aelvin", "1a", "a-b", "a;b",
    "a" * 129, "system", "SYSTEM", "global_temp", "spark_catalog", "a\u200b", "%2e%2e", "a'b", 'a"b', "\U0001f4a7",
]  # fmt: skip


def pointed(millrace: Company, table: str) -> None:
    """Give a table a pointer, as a commit does."""
    sent = {"snapshot_id": 2**62 + 1, "committed_by_id": millrace.id("member", "Tess")}
    put(millrace, table_pointer_table, table_id=table, **sent)


def described(millrace: Company, resource: str, field: int, title: str) -> None:
    put(millrace, lake_text_table, resource_id=resource, field_id=field, title=title)


def granted(millrace: Company, to: str, resource: str, level: str, **more: Any) -> None:
    millrace.as_("Adam").change(change="grant", to=to, resource=resource, level=level, **more).raise_for_status()


# Making


def test_an_admin_makes_a_layer_and_nobody_else_does(millrace: Company) -> None:
    layer = acting(millrace, "Adam", lambda call: service.create_layer(call, "Gold"))
    assert millrace.id("layer", "gold") == layer
    assert millrace.as_("Adam").may("see", layer)
    for who in ("Tess", "Tom", "Ben", "Dora"):
        assert not millrace.as_(who).may("see", layer)
        with pytest.raises(Denied):
            acting(millrace, who, lambda call: service.create_layer(call, "silver"))
    assert is_indexed(millrace)


def test_an_editor_of_the_layer_makes_tables_and_volumes_in_it(millrace: Company) -> None:
    raw = millrace.id("layer", "raw")
    for kind in ("table", "volume"):
        item = acting(millrace, "Tom", lambda call, kind=kind: service.create_item(call, kind, raw, f"new_{kind}"))
        assert millrace.id(kind, f"raw.new_{kind}") == item
        assert millrace.as_("Tess").may("delete", item)
        assert millrace.as_("Tom").may("edit", item)
        assert not millrace.as_("Ana").may("see", item)
        listed = millrace.as_("Tom").get("/api/resources", kind=kind).json()["items"]
        shown = next(one for one in listed if one["id"] == item)
        assert shown["created_by"]["name"] == "Tom"
    assert is_indexed(millrace)


def test_who_sees_a_layer_without_editor_is_denied_and_who_does_not_finds_nothing(millrace: Company) -> None:
    trusted, raw = millrace.id("layer", "trusted"), millrace.id("layer", "raw")
    with pytest.raises(Denied):
        acting(millrace, "Ana", lambda call: service.create_item(call, "table", trusted, "t"))
    for layer in (raw, f"lay_{'0' * 20}", millrace.id("table", "raw.orders"), "nonsense"):
        with pytest.raises(NotFound):
            acting(millrace, "Ana", lambda call, layer=layer: service.create_item(call, "table", layer, "t"))


@pytest.mark.parametrize("narrowing", ["read-only", "another", "table"])
def test_a_narrowed_token_makes_nothing_outside_its_limits(millrace: Company, narrowing: str) -> None:
    raw, orders = millrace.id("layer", "raw"), millrace.id("table", "raw.orders")
    limits = {
        "read-only": Narrowing(read_only=True),
        "another": Narrowing(only=frozenset({millrace.id("layer", "trusted")})),
        "table": Narrowing(only=frozenset({orders}), layers=frozenset({raw})),
    }[narrowing]
    with pytest.raises((Denied, NotFound)):
        acting(millrace, "Adam", lambda call: service.create_item(call, "table", raw, "t"), limits)
    allowed = Narrowing(only=frozenset({raw}))
    assert acting(millrace, "Adam", lambda call: service.create_item(call, "table", raw, "t"), allowed)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_no_sql_name_is_refused_everywhere(millrace_on_sqlite: Company, name: str) -> None:
    millrace = millrace_on_sqlite
    raw, orders = millrace.id("layer", "raw"), millrace.id("table", "raw.orders")
    works: list[Any] = [
        lambda call: service.create_layer(call, name),
        lambda call: service.create_item(call, "table", raw, name),
        lambda call: service.rename_item(call, orders, name=name),
        lambda call: service.rename_item(call, raw, name=name),
    ]
    for work in works:
        with pytest.raises(Invalid):
            acting(millrace, "Adam", work)
    acting(millrace, "Adam", lambda call: deletion.delete_item(call, orders))
    with pytest.raises(Invalid):
        acting(millrace, "Adam", lambda call: deletion.restore_item(call, orders, name=name))


def test_the_longest_name_fits_and_case_is_lowered(millrace: Company) -> None:
    raw = millrace.id("layer", "raw")
    item = acting(millrace, "Tom", lambda call: service.create_item(call, "table", raw, "A" * 128))
    with millrace.database.read() as connection:
        assert service.find(connection, "RAW", "a" * 128, "table") == item
        assert service.find(connection, "raw", "A" * 128, "volume") is None
        assert service.find(connection, "ｒａｗ", "a" * 128, "table") is None
        assert service.find_layer(connection, "Raw") == raw
        assert service.full_name(connection, item) == f"raw.{'a' * 128}"


def test_tables_and_volumes_of_a_layer_share_names(millrace: Company) -> None:
    raw, trusted = millrace.id("layer", "raw"), millrace.id("layer", "trusted")
    for kind, name in (("table", "INVOICES"), ("volume", "orders"), ("table", "orders")):
        with pytest.raises(Conflict, match="already"):
            acting(millrace, "Tess", lambda call, k=kind, n=name: service.create_item(call, k, raw, n))
    assert acting(millrace, "Tess", lambda call: service.create_item(call, "table", trusted, "invoices"))
    with pytest.raises(Conflict, match="layer"):
        acting(millrace, "Adam", lambda call: service.create_layer(call, "RAW"))


def test_an_id_that_was_promised_is_used(millrace: Company) -> None:
    raw, promised = millrace.id("layer", "raw"), new_id("table")
    made = acting(millrace, "Tom", lambda call: service.create_item(call, "table", raw, "t", item_id=promised))
    assert made == promised == millrace.id("table", "raw.t")
    with pytest.raises(ValueError, match="is not the id"):
        acting(millrace, "Tom", lambda call: service.create_item(call, "volume", raw, "v", item_id=new_id("table")))


def test_a_created_table_is_not_the_one_that_a_definition_once_named(millrace: Company) -> None:
    old = millrace.id("table", "raw.orders")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, old))
    raw = millrace.id("layer", "raw")
    new = acting(millrace, "Tess", lambda call: service.create_item(call, "table", raw, "orders"))
    refs = millrace.rows("SELECT DISTINCT item_id FROM table_refs WHERE ref = 'raw.orders'")
    assert refs == [(None,)]
    assert new not in {row[0] for row in millrace.rows("SELECT resource_id FROM grants")}


# Renaming


def test_renaming_keeps_id_grants_texts_and_what_names_it(millrace: Company) -> None:
    orders = millrace.id("table", "raw.orders")
    granted(millrace, "Ben", "table:raw.orders", "viewer")
    described(millrace, orders, 0, "Orders")
    acting(millrace, "Tess", lambda call: service.rename_item(call, orders, name="Bestellungen"))
    assert millrace.id("table", "raw.bestellungen") == orders
    assert millrace.as_("Ben").may("execute", orders)
    assert millrace.as_("Ben").get("/api/resources", kind="table").json()["items"][0]["name"] == "raw.bestellungen"
    assert {"grants", "lake_texts", "table_refs"} <= traces(millrace, orders)
    assert is_indexed(millrace)
    with pytest.raises(Conflict):
        acting(millrace, "Tess", lambda call: service.rename_item(call, orders, name="invoices"))


def test_moving_takes_the_access_of_the_new_layer(millrace: Company) -> None:
    orders, trusted = millrace.id("table", "raw.orders"), millrace.id("layer", "trusted")
    granted(millrace, "Bea", "table:raw.orders", "viewer")
    assert not millrace.as_("Ana").may("see", "pipeline:Refine orders")
    acting(millrace, "Tess", lambda call: service.rename_item(call, orders, name="shop_orders", layer_id=trusted))
    assert millrace.id("table", "trusted.shop_orders") == orders
    assert not millrace.as_("Tom").may("see", orders)
    assert millrace.as_("Ana").may("execute", orders)
    assert millrace.as_("Ana").may("see", "pipeline:Refine orders")
    assert millrace.as_("Bea").may("see", "layer:trusted")
    assert not millrace.as_("Bea").may("see", "layer:raw")
    layers = millrace.rows(f"SELECT DISTINCT layer_id FROM table_refs WHERE item_id = '{orders}'")
    assert layers == [(trusted,)]
    assert is_indexed(millrace)


def test_renaming_needs_manager_and_the_target_layer(millrace: Company) -> None:
    orders, trusted = millrace.id("table", "raw.orders"), millrace.id("layer", "trusted")
    with pytest.raises(Denied):
        acting(millrace, "Tom", lambda call: service.rename_item(call, orders, name="mine"))
    granted(millrace, "Tom", "table:raw.orders", "manager")
    acting(millrace, "Tom", lambda call: service.rename_item(call, orders, name="mine"))
    with pytest.raises(NotFound):
        acting(millrace, "Tom", lambda call: service.rename_item(call, orders, name="mine", layer_id=trusted))
    granted(millrace, "Ben", orders, "manager")
    with pytest.raises(Denied):
        acting(millrace, "Ben", lambda call: service.rename_item(call, orders, name="payments"))
    with pytest.raises(NotFound):
        acting(millrace, "Ana", lambda call: service.rename_item(call, orders, name="x"))


def test_a_layer_is_renamed_by_who_may_make_one_and_its_tables_follow(millrace: Company) -> None:
    raw = millrace.id("layer", "raw")
    with pytest.raises(Denied):
        acting(millrace, "Tess", lambda call: service.rename_item(call, raw, name="landing"))
    acting(millrace, "Adam", lambda call: service.rename_item(call, raw, name="landing"))
    names = [one["name"] for one in millrace.as_("Tess").get("/api/resources", kind="table").json()["items"]]
    assert names == ["landing.orders", "landing.payments", "service.revenue", "trusted.orders"]
    assert is_indexed(millrace)
    with pytest.raises(Invalid):
        acting(millrace, "Adam", lambda call: service.rename_item(call, raw, name="x", layer_id=raw))


# Deleting and restoring


def test_nothing_of_a_deleted_table_is_left_but_its_place_in_the_trash(millrace: Company) -> None:
    orders = millrace.id("table", "raw.orders")
    granted(millrace, "Bea", "table:raw.orders", "viewer")
    pointed(millrace, orders)
    described(millrace, orders, 4, "Amount")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, orders))
    assert traces(millrace, orders) == {"deleted_items"}
    assert not millrace.as_("Bea").may("see", "layer:raw")
    assert millrace.as_("Tess").get(f"/api/resources/{orders}").status_code == 404
    assert is_indexed(millrace)


def test_restoring_brings_everything_back(millrace: Company) -> None:
    orders = millrace.id("table", "raw.orders")
    granted(millrace, "Bea", "table:raw.orders", "viewer")
    granted(millrace, "group:analysts", "table:raw.orders", "editor", expires="2999-01-01T00:00:00Z")
    pointed(millrace, orders)
    described(millrace, orders, 0, "Orders")
    described(millrace, orders, 4, "Amount")
    millrace.token("Adam", only=[orders])
    millrace.token("Adam")
    before = everything(millrace)
    assert {"grants", "lake_texts", "table_pointers", "table_refs", "token_reach"} <= traces(millrace, orders)
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, orders))
    assert acting(millrace, "Tess", lambda call: deletion.restore_item(call, orders)) == orders
    assert everything(millrace) == before


def test_restoring_a_volume_brings_its_files_back_and_ends_its_uploads(millrace: Company) -> None:
    invoices, tess = millrace.id("volume", "raw.invoices"), millrace.id("member", "Tess")
    put(millrace, volume_file_table, id=new_id("file"), volume_id=invoices, path="a/b.csv", created_by_id=tess)
    before = everything(millrace)
    put(millrace, upload_table, id=new_id("upload"), volume_id=invoices, received=3, created_by_id=tess)
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, invoices))
    assert not everything(millrace)["volume_files"]
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, invoices))
    assert everything(millrace) == before


def test_what_ended_meanwhile_does_not_come_back(millrace: Company) -> None:
    orders, soon = millrace.id("table", "raw.orders"), now() + timedelta(hours=1)
    granted(millrace, "Ben", "table:raw.orders", "viewer")
    granted(millrace, "Bea", "table:raw.orders", "viewer")
    granted(millrace, "Dora", "table:raw.orders", "viewer", expires=soon.isoformat())
    granted(millrace, "group:stewards", "table:raw.orders", "manager")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, orders))
    millrace.as_("Olga").change(change="remove_member", member="Bea").raise_for_status()
    millrace.as_("Olga").request("DELETE", f"/api/groups/{millrace.id('group', 'stewards')}").raise_for_status()
    _later(millrace, orders, soon)
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, orders))
    left = millrace.rows(f"SELECT grantee_id FROM grants WHERE resource_id = '{orders}'")
    assert left == [(millrace.id("member", "Ben"),)]
    assert is_indexed(millrace)


def _later(millrace: Company, item: str, end: Any) -> None:
    """Let a kept grant's end pass."""
    with millrace.database.read() as connection:
        kept = connection.execute(deleted_item_table.select().where(deleted_item_table.c.id == item)).one().kept
    for grant in kept["rows"]["grants"]:
        if grant["expires_at"]:
            assert grant["expires_at"].startswith(end.isoformat()[:19])
            grant["expires_at"] = now().isoformat()
    values = update(deleted_item_table).where(deleted_item_table.c.id == item).values(kept=kept)
    millrace.database.write(lambda c: c.execute(values))


def test_restoring_is_for_those_who_could_delete_it(millrace: Company) -> None:
    orders = millrace.id("table", "raw.orders")
    granted(millrace, "Ben", "table:raw.orders", "manager")
    granted(millrace, "Bea", "table:raw.orders", "editor")
    with pytest.raises(Denied):
        acting(millrace, "Bea", lambda call: deletion.delete_item(call, orders))
    acting(millrace, "Ben", lambda call: deletion.delete_item(call, orders))
    for who in ("Bea", "Tom", "Ana"):
        with pytest.raises(NotFound):
            acting(millrace, who, lambda call: deletion.restore_item(call, orders))
    limits = (Narrowing(read_only=True), Narrowing(only=frozenset({millrace.id("layer", "trusted")})))
    for narrowing in limits:
        with pytest.raises(NotFound):
            acting(millrace, "Adam", lambda call: deletion.restore_item(call, orders), narrowing)
    with pytest.raises(Denied):
        acting(millrace, "Ben", lambda call: deletion.restore_item(call, orders, name="payments"))
    acting(millrace, "Ben", lambda call: deletion.restore_item(call, orders))
    assert millrace.as_("Ben").may("delete", orders)
    with pytest.raises(NotFound):
        acting(millrace, "Ben", lambda call: deletion.restore_item(call, orders))


def test_a_name_that_was_taken_since_asks_for_another(millrace: Company) -> None:
    raw, orders = millrace.id("layer", "raw"), millrace.id("table", "raw.orders")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, orders))
    acting(millrace, "Tess", lambda call: service.create_item(call, "volume", raw, "orders"))
    with pytest.raises(Conflict, match="give a new name"):
        acting(millrace, "Tess", lambda call: deletion.restore_item(call, orders))
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, orders, name="orders_2"))
    assert millrace.id("table", "raw.orders_2") == orders
    assert is_indexed(millrace)


def test_a_link_that_was_made_anew_is_not_taken_back(millrace: Company) -> None:
    orders, other = millrace.id("table", "raw.orders"), millrace.id("table", "raw.payments")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, orders))
    pipeline = millrace.id("pipeline", "Refine orders")
    where = f"resource_id = '{pipeline}' AND ref = 'raw.orders'"
    millrace.database.write(lambda c: c.exec_driver_sql(f"UPDATE table_refs SET item_id = '{other}' WHERE {where}"))
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, orders))
    assert millrace.rows(f"SELECT item_id FROM table_refs WHERE {where}") == [(other,)]


def test_a_layer_is_deleted_only_when_empty_and_unused(millrace: Company) -> None:
    raw = millrace.id("layer", "raw")
    with pytest.raises(Conflict, match="3 tables and volumes"):
        acting(millrace, "Tess", lambda call: deletion.delete_item(call, raw))
    items = [
        millrace.id("table", "raw.orders"),
        millrace.id("table", "raw.payments"),
        millrace.id("volume", "raw.invoices"),
    ]
    for item in items[1:]:
        acting(millrace, "Tess", lambda call, item=item: deletion.delete_item(call, item))
    with pytest.raises(Conflict, match="it contains a table or volume; delete or move that first"):
        acting(millrace, "Tess", lambda call: deletion.delete_item(call, raw))
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, items[0]))
    with pytest.raises(Conflict, match="2 pipelines write to it"):
        acting(millrace, "Adam", lambda call: deletion.delete_item(call, raw))
    with pytest.raises(Denied):
        acting(millrace, "Tom", lambda call: deletion.delete_item(call, raw))
    trusted = millrace.id("layer", "trusted")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, millrace.id("table", "trusted.orders")))
    with pytest.raises(Conflict, match="a pipeline writes to it; change the output layer of the pipeline first"):
        acting(millrace, "Tess", lambda call: deletion.delete_item(call, trusted))


def test_a_layer_comes_back_with_its_grants_and_then_its_tables(millrace: Company) -> None:
    revenue, layer = millrace.id("table", "service.revenue"), millrace.id("layer", "service")
    before = everything(millrace)
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, revenue))
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, layer))
    assert traces(millrace, layer) == {"deleted_items"}
    with pytest.raises(Conflict, match="restore the layer first"):
        acting(millrace, "Adam", lambda call: deletion.restore_item(call, revenue))
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, layer))
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, revenue))
    assert everything(millrace) == before


def test_every_change_is_told(millrace: Company) -> None:
    raw = millrace.id("layer", "raw")
    item = acting(millrace, "Tess", lambda call: service.create_item(call, "table", raw, "t"))
    acting(millrace, "Tess", lambda call: service.rename_item(call, item, name="u"))
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, item))
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, item))
    found = millrace.as_("Adam").get("/api/audit", event="access.changed", limit=4).json()["items"]
    assert [one["after"]["change"] for one in reversed(found)] == [
        "create_table", "rename_table", "delete_table", "restore_table",
    ]  # fmt: skip
    assert [one["action"] for one in reversed(found)] == ["create", "rename", "delete", "restore"]
    assert {one["resource"] for one in found} == {item}
    assert [one["via"] for one in reversed(found)] == [["Editor of the layer"], ["Manager"], ["Manager"], ["Manager"]]


def test_the_kept_rows_are_all_there_are() -> None:
    """Rows go with their parent by one step only: else `keep` would have to look deeper."""
    children = {table.name for table, _ in _pointing("CASCADE")} - ITSELF
    own = {"grants", "lake_texts", "table_pointers", "token_reach", "volume_files"}
    assert own <= children
    for table in METADATA.sorted_tables:
        for key in table.foreign_keys:
            assert not (key.ondelete and key.column.table.name in own), (
                f"{table.name} goes with {key.column.table.name}"
            )
