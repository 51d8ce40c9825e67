"""CREATE OR REPLACE that meets another commit: as in Iceberg's own catalogs, both count."""

from typing import Any

import pytest

from tests.lakehouse.catalog.support import MORE, ROWS, Lake, appending, error_of, table_path, update_of

pytestmark = pytest.mark.both_databases

EVENTS = table_path("events")


@pytest.fixture
def events(served: Lake) -> Lake:
    """A lake in which Tess has made raw.events, with rows."""
    served.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    return served


def replacing(table: Any, rows: Any = MORE, **order: Any) -> dict[str, Any]:
    """What Java's client sends for CREATE OR REPLACE TABLE AS: a snapshot without a parent."""
    snapshot = update_of(appending(table, rows), "add-snapshot")["snapshot"]
    del snapshot["parent-snapshot-id"]
    reference = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    ordered = [{"action": "add-sort-order", "sort-order": order}] if order else []
    return {
        "requirements": [{"type": "assert-table-uuid", "uuid": str(table.metadata.table_uuid)}],
        "updates": [
            {"action": "set-default-spec", "spec-id": 0},
            *ordered,
            {"action": "set-default-sort-order", "sort-order-id": -1 if order else 0},
            {"action": "set-current-schema", "schema-id": 0},
            {"action": "remove-snapshot-ref", "ref-name": "main"},
            {"action": "add-snapshot", "snapshot": snapshot},
            {**reference, "snapshot-id": snapshot["snapshot-id"]},
        ],
    }


def sorted_by(field: int, identifier: int = 1) -> dict[str, Any]:
    part = {"source-id": field, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    return {"order-id": identifier, "fields": [part]}


def test_a_replace_that_met_other_commits_counts_and_the_sequence_never_goes_back(events: Lake) -> None:
    tom = events.engine("Tom")
    body = replacing(tom.load_table("raw.events"))
    for _ in range(2):
        events.engine("Tess").load_table("raw.events").append(MORE)
    answer = events.api("Tom").post(EVENTS, body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["last-sequence-number"] == 3
    table = tom.load_table("raw.events")
    assert table.current_snapshot().sequence_number == 2
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5], "what it saw and added, once"
    assert [one.sequence_number for one in table.snapshots()] == [1, 2, 3, 2]
    table.append(ROWS)
    assert table.current_snapshot().sequence_number == 4
    assert tom.load_table("raw.events").scan().to_arrow().num_rows == 8
    assert events.rows("SELECT operation FROM commits ORDER BY version")[-2:] == [("replace",), ("append",)]


def test_a_snapshot_with_a_parent_still_needs_the_next_number(events: Lake) -> None:
    body = appending(events.engine("Tom").load_table("raw.events"))
    del body["requirements"]
    events.engine("Tess").load_table("raw.events").append(MORE)
    assert error_of(events.api("Tom").post(EVENTS, body)) == (409, "CommitFailedException")


@pytest.mark.parametrize("number", [-1, 0, 9])
def test_a_replace_cannot_choose_any_number(events: Lake, number: int) -> None:
    body = replacing(events.engine("Tom").load_table("raw.events"))
    update_of(body, "add-snapshot")["snapshot"]["sequence-number"] = number
    answer = events.api("Tom").post(EVENTS, body)
    assert answer.status_code == 400
    assert events.rows("SELECT MAX(version) FROM commits") == [(2,)]


def test_two_replaces_with_sort_orders_of_their_own_both_count(events: Lake) -> None:
    table, tom = events.engine("Tom").load_table("raw.events"), events.api("Tom")
    bodies = [replacing(table, **sorted_by(field)) for field in (1, 2)]
    answers = [tom.post(EVENTS, body) for body in bodies]
    assert [answer.status_code for answer in answers] == [200, 200], answers[1].text
    metadata = answers[1].json()["metadata"]
    orders = {one["order-id"]: [field["source-id"] for field in one["fields"]] for one in metadata["sort-orders"]}
    assert orders == {0: [], 1: [1], 2: [2]}
    assert metadata["default-sort-order-id"] == 2
    again = tom.post(EVENTS, replacing(table, **sorted_by(1, 7))).json()["metadata"]
    assert again["default-sort-order-id"] == 1, "an order that is there is not added again"


def test_a_schema_gets_a_free_id_and_the_snapshot_follows_it(events: Lake) -> None:
    """Tom drops a column and Tess the other one, under the same id, and each refers to it by that id."""
    table = events.engine("Tom").load_table("raw.events")
    fields = [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ]
    for field in fields:
        body = replacing(table)
        schema = {"type": "struct", "schema-id": 1, "fields": [field]}
        body["updates"].insert(0, {"action": "add-schema", "schema": schema})
        update_of(body, "set-current-schema")["schema-id"] = 1
        snapshot = update_of(body, "add-snapshot")["snapshot"]
        snapshot["schema-id"] = 1
        answer = events.api("Tom").post(EVENTS, body)
        assert answer.status_code == 200, answer.text
    metadata = answer.json()["metadata"]
    assert [(one["schema-id"], one["fields"][0]["name"]) for one in metadata["schemas"]] == [
        (0, "id"),
        (1, "id"),
        (2, "name"),
    ]
    assert metadata["current-schema-id"] == 2
    assert metadata["snapshots"][-1]["schema-id"] == 2


def test_a_partition_spec_whose_id_was_taken_is_a_conflict(events: Lake) -> None:
    """Manifests name their spec by its id."""
    table, tom = events.engine("Tom").load_table("raw.events"), events.api("Tom")
    answers = []
    for field, name in ((1, "id"), (2, "name")):
        part = {"source-id": field, "field-id": 1000 + field, "name": f"by_{name}", "transform": "identity"}
        body = replacing(table)
        body["updates"] = [
            {"action": "add-spec", "spec": {"spec-id": 1, "fields": [part]}},
            {"action": "set-default-spec", "spec-id": -1},
        ]
        answers.append(tom.post(EVENTS, body))
    assert answers[0].status_code == 200, answers[0].text
    assert error_of(answers[1]) == (409, "CommitFailedException")
