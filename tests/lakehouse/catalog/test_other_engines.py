"""What other engines and their users expect of a catalog: notes kept as given, requested locations, Iceberg's words."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import BadRequestError, NoSuchNamespaceError

from tests.lakehouse.catalog.support import ROWS, SCHEMA, Lake, error_of, lake, table_path
from tests.support.databases import on_sqlite

EVENTS = table_path("events")
TABLES = "/iceberg/v1/namespaces/raw/tables"
NOTES = {
    "team": "sales",
    "created-at": "2022-02-25T00:38:19",
    "prop1": "",
    "Source URL": "https://example.org/a?b=c",
    "pii.level": "high",
    "équipe": "ventes",
    "dbt.model": "orders",
}


@pytest.fixture
def events(served_on_sqlite: Lake) -> Lake:
    """A lake in which Tess has made raw.events, with rows."""
    served_on_sqlite.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    return served_on_sqlite


def test_notes_are_stored_as_given(events: Lake) -> None:
    tess = events.engine("Tess")
    assert NOTES.items() <= tess.create_table("raw.noted", ROWS.schema, properties=NOTES).properties.items()
    with tess.load_table("raw.events").transaction() as change:
        change.set_properties(NOTES)
    assert NOTES.items() <= tess.load_table("raw.events").properties.items()
    with tess.load_table("raw.events").transaction() as change:
        change.remove_properties("team")
    assert "team" not in tess.load_table("raw.events").properties


def test_settings_of_each_file_format_are_taken_for_delete_files_too(events: Lake) -> None:
    names = [
        f"write.{part}.compression-codec" for part in ("orc", "avro", "delete.orc", "delete.avro", "delete.parquet")
    ]
    settings = {
        **dict.fromkeys(names, "zstd"),
        "read.data-planning-mode": "local",
        "read.delete-planning-mode": "local",
    }
    made = events.engine("Tess").create_table("raw.tuned", ROWS.schema, properties=settings)
    assert settings.items() <= made.properties.items()


def asked(**more: Any) -> dict[str, Any]:
    return {"name": "placed", "schema": SCHEMA, "location": "file:///etc"} | more


@pytest.mark.parametrize("is_staged", [False, True])
def test_a_requested_location_is_ignored(events: Lake, is_staged: bool) -> None:
    answer = events.api("Tess").post(TABLES, asked(**{"stage-create": is_staged}))
    assert answer.status_code == 200, answer.text
    location = answer.json()["metadata"]["location"]
    assert location.startswith(f"file://{events.warehouse}/tables/tbl_")
    assert error_of(events.api("Tess").post(TABLES, asked(name="odd", location=5)))[0] == 400


def replacing(table: Any) -> dict[str, Any]:
    return {
        "requirements": [{"type": "assert-table-uuid", "uuid": str(table.metadata.table_uuid)}],
        "updates": [
            {"action": "set-current-schema", "schema-id": 0},
            {"action": "set-default-spec", "spec-id": 0},
            {"action": "set-default-sort-order", "sort-order-id": 0},
            {"action": "remove-snapshot-ref", "ref-name": "main"},
            {"action": "set-location", "location": "file:///etc"},
        ],
    }


def test_a_replace_that_asks_for_a_location_stays_where_it_is_and_a_move_is_refused(events: Lake) -> None:
    table, tess = events.engine("Tess").load_table("raw.events"), events.api("Tess")
    body = replacing(table)
    answer = tess.post(EVENTS, {"updates": body["updates"][-1:]})
    assert error_of(answer) == (400, "ValidationException")
    answer = tess.post(EVENTS, body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["location"] == table.location()


def test_a_replace_that_wrote_rows_to_a_location_of_its_own_says_what_to_do(events: Lake) -> None:
    """Iceberg's Java client writes them where it asked the table to be, before the catalog knows of it."""
    body = replacing(events.engine("Tess").load_table("raw.events"))
    snapshot = {"snapshot-id": 5, "timestamp-ms": 0, "sequence-number": 2, "summary": {"operation": "append"}}
    snapshot["manifest-list"] = "file:///etc/metadata/snap-5.avro"
    body["updates"].append({"action": "add-snapshot", "snapshot": snapshot})
    answer = events.api("Tess").post(EVENTS, body)
    assert error_of(answer) == (400, "ValidationException")
    message = answer.json()["error"]["message"]
    assert "is outside the table's location" in message
    assert "omit LOCATION" in message


def test_a_setting_refuses_requested_locations(tmp_path: Path) -> None:
    with lake(on_sqlite(tmp_path), tmp_path, requested_location="refuse") as found:
        answer = found.api("Tess").post(TABLES, asked())
        assert error_of(answer) == (400, "ValidationException")
        assert "requested_location" in answer.json()["error"]["message"]
        table = found.engine("Tess").create_table("raw.events", ROWS.schema)
        assert error_of(found.api("Tess").post(EVENTS, replacing(table))) == (400, "ValidationException")


def test_conflicts_are_told_in_the_words_that_clients_match(events: Lake) -> None:
    table, tess = events.engine("Tess").load_table("raw.events"), events.api("Tess")
    snapshot, uuid = table.current_snapshot().snapshot_id, table.metadata.table_uuid
    other = "00000000-0000-0000-0000-000000000000"
    expected = {
        f"UUID does not match: expected {other} != {uuid}": {"type": "assert-table-uuid", "uuid": other},
        f"branch main has changed: expected id 1 != {snapshot}": {
            "type": "assert-ref-snapshot-id",
            "ref": "main",
            "snapshot-id": 1,
        },
        "branch main was created concurrently": {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        "last assigned field id changed: expected id 77 != 2": {
            "type": "assert-last-assigned-field-id",
            "last-assigned-field-id": 77,
        },
        "current schema changed: expected id 9 != 0": {"type": "assert-current-schema-id", "current-schema-id": 9},
        "last assigned partition id changed: expected id 1 != 999": {
            "type": "assert-last-assigned-partition-id",
            "last-assigned-partition-id": 1,
        },
        "default partition spec changed: expected id 4 != 0": {"type": "assert-default-spec-id", "default-spec-id": 4},
        "default sort order changed: expected id 4 != 0": {
            "type": "assert-default-sort-order-id",
            "default-sort-order-id": 4,
        },
    }
    for words, requirement in expected.items():
        answer = tess.post(EVENTS, {"requirements": [requirement], "updates": []})
        assert error_of(answer) == (409, "CommitFailedException")
        assert answer.json()["error"]["message"] == f"Requirement failed: {words}"
    answer = tess.post(EVENTS, {"requirements": [{"type": "assert-create"}], "updates": []})
    assert answer.json()["error"]["message"].startswith("Requirement failed: table already exists")
    answer = tess.post(TABLES, {"name": "events", "schema": SCHEMA})
    assert answer.json()["error"]["message"] == "Table already exists: raw.events"


def test_a_layer_keeps_notes_as_given(events: Lake) -> None:
    adam, tom = events.engine("Adam"), events.engine("Tom")
    adam.create_namespace("own", {**NOTES, "comment": "mine", "location": "file:///etc"})
    assert adam.load_namespace_properties("own") == {**NOTES, "comment": "mine"}
    summary = adam.update_namespace_properties("own", {"team", "missing"}, {"prop1": "x", "prop2": "y"})
    assert (summary.removed, summary.missing, sorted(summary.updated)) == (["team"], ["missing"], ["prop1", "prop2"])
    expected = {**NOTES, "comment": "mine", "prop1": "x", "prop2": "y"}
    del expected["team"]
    assert adam.load_namespace_properties("own") == expected
    assert tom.update_namespace_properties("raw", set(), {"by": "Tom"}).updated == ["by"]
    with pytest.raises(BadRequestError, match="engines interpret"):
        adam.update_namespace_properties("own", set(), {"write.data.path": "file:///etc"})
    with pytest.raises(BadRequestError, match="engines interpret"):
        adam.update_namespace_properties("own", set(), {"location": "file:///etc"})
    with pytest.raises(NoSuchNamespaceError):
        tom.load_namespace_properties("own")
    changes = events.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'access.changed' AND action = 'describe'")
    assert changes[0][0] >= 3
