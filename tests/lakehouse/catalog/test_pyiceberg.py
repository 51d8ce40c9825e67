"""Stock PyIceberg with a member's token: what it can do, seeing and doing exactly what the member may."""

import pyarrow as pa
import pytest
from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.types import LongType

from tests.lakehouse.catalog.support import MORE, ROWS, Lake


def test_a_table_is_created_written_changed_and_read(served: Lake) -> None:
    tess = served.engine("Tess")
    table = tess.create_table("raw.events", ROWS.schema)
    assert table.location().startswith(f"file://{served.warehouse}/tables/tbl_")
    table.append(ROWS)
    table.append(MORE)
    assert tess.load_table("raw.events").scan().to_arrow().sort_by("id")["id"].to_pylist() == [1, 2, 3, 4, 5]
    first = table.history()[0].snapshot_id
    table.delete("id = 2")
    assert table.scan().to_arrow().num_rows == 4
    table.overwrite(ROWS)
    with table.update_schema() as update:
        update.add_column("price", LongType())
    table.append(pa.table({"id": [9], "name": ["z"], "price": [7]}))
    again = tess.load_table("RAW.Events")
    assert again.scan().to_arrow().num_rows == 4
    assert again.scan(snapshot_id=first).to_arrow().num_rows == 3
    with again.transaction() as change:
        change.set_properties({"comment": "what happened", "write.parquet.compression-codec": "zstd"})
    assert tess.load_table("raw.events").properties["comment"] == "what happened"


def test_new_tables_are_compressed_as_iceberg_s_own_catalogs_say(served: Lake) -> None:
    """Without the property, Spark takes gzip."""
    tess, codec = served.engine("Tess"), "write.parquet.compression-codec"
    assert tess.create_table("raw.plain", ROWS.schema).properties[codec] == "zstd"
    assert tess.create_table("raw.own", ROWS.schema, properties={codec: "snappy"}).properties[codec] == "snappy"
    tess.create_table_transaction("raw.later", ROWS.schema).commit_transaction()
    assert tess.load_table("raw.later").properties[codec] == "zstd"


def test_each_member_does_what_their_level_allows(served: Lake) -> None:
    """Tess is Manager of the layer, Tom Editor, Ana Viewer of trusted alone, Bea sees one table elsewhere."""
    tess, tom, ana, bea = (served.engine(name) for name in ("Tess", "Tom", "Ana", "Bea"))
    tess.create_table("raw.events", ROWS.schema).append(ROWS)
    tess.create_table("trusted.facts", ROWS.schema).append(ROWS)

    assert tom.load_table("raw.events").scan().to_arrow().num_rows == 3
    tom.load_table("raw.events").append(MORE)
    tom.create_table("raw.own", ROWS.schema)
    with pytest.raises(ForbiddenError, match="may not delete"):
        tom.drop_table("raw.own")
    with pytest.raises(ForbiddenError):
        tom.rename_table("raw.own", "raw.other")
    with pytest.raises(NoSuchTableError, match=r"Table does not exist: trusted\.facts"):
        tom.load_table("trusted.facts")

    assert ana.load_table("trusted.facts").scan().to_arrow().num_rows == 3
    with pytest.raises(ForbiddenError):
        ana.load_table("trusted.facts").append(MORE)
    with pytest.raises(ForbiddenError):
        ana.create_table("trusted.own", ROWS.schema)
    with pytest.raises(NoSuchNamespaceError):
        ana.create_table("raw.own2", ROWS.schema)

    assert bea.list_namespaces() == [("service",)]
    with pytest.raises(NoSuchTableError):
        bea.load_table("raw.events")
    tess.drop_table("raw.own")
    with pytest.raises(NoSuchTableError):
        tom.load_table("raw.own")


def test_lists_show_what_is_visible(served: Lake) -> None:
    tess = served.engine("Tess")
    for name in ("b", "a", "c"):
        tess.create_table(f"raw.{name}", ROWS.schema)
    tess.create_table("trusted.facts", ROWS.schema)
    assert tess.list_tables("raw") == [("raw", "a"), ("raw", "b"), ("raw", "c")]
    assert served.engine("Tom").list_namespaces() == [("raw",)]
    assert served.engine("Ana").list_tables("trusted") == [("trusted", "facts")]
    assert set(served.engine("Adam").list_namespaces()) == {("raw",), ("service",), ("trusted",)}
    with pytest.raises(NoSuchNamespaceError):
        served.engine("Ana").list_tables("raw")
    narrowed = served.engine("Tess", only=[served.company.id("table", "raw.a")])
    assert narrowed.list_tables("raw") == [("raw", "a")]
    assert narrowed.list_namespaces() == [("raw",)]


def test_lists_come_by_page_to_who_asks_for_pages(served: Lake) -> None:
    tess = served.engine("Tess")
    names = [f"t{number}" for number in range(7)]
    for name in names:
        tess.create_table(f"raw.{name}", ROWS.schema)
    paged = served.engine_by(served.company.token("Tess"), **{"rest-page-size": "3"})
    assert [name for _, name in paged.list_tables("raw")] == names
    api, found, token = served.api("Tess"), [], ""
    while token is not None:
        page = api.get("/iceberg/v1/namespaces/raw/tables", pageToken=token, pageSize=3).json()
        assert len(page["identifiers"]) <= 3
        found += [one["name"] for one in page["identifiers"]]
        token = page["next-page-token"]
    assert found == names
    everything = api.get("/iceberg/v1/namespaces/raw/tables", pageSize=3).json()
    assert [one["name"] for one in everything["identifiers"]] == names
    assert everything["next-page-token"] is None
    assert api.get("/iceberg/v1/namespaces/raw/tables", pageToken="x").status_code == 400


def test_a_rename_keeps_the_table_and_its_grants(served: Lake) -> None:
    tess = served.engine("Tess")
    tess.create_table("raw.events", ROWS.schema).append(ROWS)
    served.api("Adam").change(change="grant", to="Bea", resource="table:raw.events", level="viewer").raise_for_status()
    before = served.company.id("table", "raw.events")
    tess.create_table("raw.taken", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        tess.rename_table("raw.events", "raw.taken")
    with pytest.raises(NoSuchNamespaceError):
        tess.rename_table("raw.events", "nowhere.at_all")
    tess.rename_table("raw.events", "trusted.happenings")
    assert served.company.id("table", "trusted.happenings") == before
    assert served.engine("Bea").load_table("trusted.happenings").scan().to_arrow().num_rows == 3
    with pytest.raises(NoSuchTableError):
        tess.load_table("raw.events")


def test_a_staged_table_comes_to_be_with_its_first_commit(served: Lake) -> None:
    tess = served.engine("Tess")
    change = tess.create_table_transaction("raw.staged", ROWS.schema, properties={"comment": "new"})
    change.append(ROWS)
    assert not tess.table_exists("raw.staged")
    assert ("raw", "staged") not in tess.list_tables("raw")
    other = tess.create_table_transaction("raw.staged", ROWS.schema)
    other.append(MORE)
    change.commit_transaction()
    assert tess.load_table("raw.staged").scan().to_arrow().num_rows == 3
    assert tess.load_table("raw.staged").properties["comment"] == "new"
    with pytest.raises(CommitFailedException):
        other.commit_transaction()
    assert served.rows("SELECT COUNT(*) FROM staged_tables WHERE name = 'staged'") == [(1,)]


def test_a_taken_name_is_a_conflict_and_a_dropped_one_is_free(served: Lake) -> None:
    tess = served.engine("Tess")
    first = tess.create_table("raw.events", ROWS.schema).location()
    with pytest.raises(TableAlreadyExistsError, match=r"Table already exists: raw\.events"):
        tess.create_table("raw.EVENTS", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        tess.create_table("raw.invoices", ROWS.schema)
    tess.purge_table("raw.events")
    assert not tess.table_exists("raw.events")
    assert served.rows("SELECT COUNT(*) FROM deleted_items WHERE name = 'events'") == [(1,)]
    assert tess.create_table("raw.events", ROWS.schema).location() != first


def test_layers_are_namespaces(served: Lake) -> None:
    adam, tess = served.engine("Adam"), served.engine("Tess")
    with pytest.raises(ForbiddenError):
        tess.create_namespace("own")
    adam.create_namespace("own", {"comment": "mine", "owner": "somebody"})
    with pytest.raises(NamespaceAlreadyExistsError):
        adam.create_namespace("OWN")
    assert adam.namespace_exists("own")
    assert not tess.namespace_exists("own")
    assert adam.load_namespace_properties("own") == {"comment": "mine", "owner": "somebody"}
    adam.update_namespace_properties("own", {"comment"}, {})
    assert adam.load_namespace_properties("own") == {"owner": "somebody"}
    adam.create_table("own.t", ROWS.schema)
    with pytest.raises(NamespaceNotEmptyError):
        adam.drop_namespace("own")
    adam.drop_table("own.t")
    adam.drop_namespace("own")
    assert not adam.namespace_exists("own")
    assert adam.list_namespaces("raw") == []
    with pytest.raises(NoSuchNamespaceError):
        adam.list_namespaces("nowhere")


def test_a_declared_table_gets_its_content_and_keeps_its_grants(served: Lake) -> None:
    """The company's tables have rows and grants, and no content yet."""
    bea, tess = served.engine("Bea"), served.engine("Tess")
    identifier = served.company.id("table", "service.revenue")
    assert bea.list_tables("service") == []
    with pytest.raises(NoSuchTableError):
        bea.load_table("service.revenue")
    with pytest.raises(ForbiddenError):
        bea.create_table("service.revenue", ROWS.schema)
    table = tess.create_table("service.revenue", ROWS.schema)
    assert table.location().endswith(identifier)
    table.append(ROWS)
    assert bea.load_table("service.revenue").scan().to_arrow().num_rows == 3
    assert bea.list_tables("service") == [("service", "revenue")]


def test_a_token_that_only_reads_reads(served: Lake) -> None:
    served.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    reader = served.engine("Tess", read_only=True)
    assert reader.load_table("raw.events").scan().to_arrow().num_rows == 3
    with pytest.raises(ForbiddenError, match="restricted"):
        reader.load_table("raw.events").append(MORE)
    with pytest.raises(ForbiddenError):
        reader.drop_table("raw.events")


def test_a_client_signs_in_with_client_credentials(served: Lake) -> None:
    served.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    token = served.company.token("Tess")
    server = {"oauth2-server-uri": f"{served.url}/iceberg/v1/oauth/tokens"}
    engine = served.engine_by("", credential=f"headgate:{token}", **server)
    assert engine.load_table("raw.events").scan().to_arrow().num_rows == 3
