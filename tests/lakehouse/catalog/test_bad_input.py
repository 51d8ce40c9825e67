"""What a client sends and no table can have: refused by name, in words of ours, and nothing is dropped silently."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.lakehouse.catalog import commit as committing
from tests.lakehouse.catalog.support import MORE, ROWS, SCHEMA, Lake, error_of, table_path
from tests.lakehouse.catalog.support import lake as a_lake
from tests.support.databases import on_sqlite

EVENTS = table_path("events")
TABLES = "/iceberg/v1/namespaces/raw/tables"
LIBRARY = (
    *("pydantic", "validation error", "Value error", "input_value", "type=", "NestedField"),
    *("Input ", "Field required", "discriminator", "instance of", "SnapshotRefType", "expected tags"),
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake in which Tess has made raw.events, with rows; one for all tests, most of which change nothing."""
    folder = tmp_path_factory.mktemp("lake")
    with a_lake(on_sqlite(folder), folder) as found:
        found.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
        yield found


def with_field(**field: Any) -> dict[str, Any]:
    return {
        **SCHEMA,
        "schema-id": 1,
        "fields": [*SCHEMA["fields"], {"id": 3, "name": "odd", "required": False, **field}],
    }


def refusals(lake: Lake, schema: dict[str, Any]) -> list[str]:
    """What creating a table with this schema says, and what changing one to it does."""
    tess = lake.api("Tess")
    answers = [
        tess.post(TABLES, {"name": "new", "schema": schema}),
        tess.post(EVENTS, {"updates": [{"action": "add-schema", "schema": schema}]}),
    ]
    assert [error_of(answer)[0] for answer in answers] == [400] * 2
    assert lake.rows("SELECT COUNT(*) FROM resources WHERE name = 'new'") == [(0,)]
    return [answer.json()["error"]["message"] for answer in answers]


@pytest.mark.parametrize("default", ["initial-default", "write-default"])
def test_a_column_default_is_refused_and_not_dropped(lake: Lake, default: str) -> None:
    for message in refusals(lake, with_field(type="int", **{default: 7})):
        assert "Column odd" in message
        assert default in message
    nested = {"type": "struct", "fields": [{"id": 4, "name": "deep", "required": False, "type": "int", default: 0}]}
    for message in refusals(lake, with_field(type=nested)):
        assert "Column odd.deep" in message


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("colour", "unknown type 'colour'"),
        (5, "unknown type '5'"),
        (None, "unknown type"),
        ({"type": "bag"}, "unknown type"),
        ({"type": ["list"]}, "unknown type"),
        ([], "unknown type"),
        ({"type": "list", "element-id": 4, "element": "bag", "element-required": False}, "Column odd.element"),
        ("variant", "requires format version 3"),
        ("geometry(srid:4326)", "requires format version 3"),
        ("decimal(99, 2)", "precision"),
        ("fixed[x]", "unknown type"),
    ],
)
def test_an_unknown_type_is_named_without_the_words_of_a_library(lake: Lake, kind: Any, said: str) -> None:
    for message in refusals(lake, with_field(type=kind)):
        assert said in message
        assert not [word for word in LIBRARY if word in message], message


@pytest.mark.parametrize("schema", [None, [], "x", {}, {"type": "struct"}, {"type": "struct", "fields": [{"id": 1}]}])
def test_a_malformed_schema_is_refused_in_plain_words(lake: Lake, schema: Any) -> None:
    answer = lake.api("Tess").post(TABLES, {"name": "new", "schema": schema})
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert not [word for word in LIBRARY if word in message], message


ORDER = {"source-id": 1, "transform": "identity", "direction": "up", "null-order": "nulls-first"}
PART = {"source-id": "x", "field-id": 1000, "name": "part", "transform": "identity"}
REFERENCE = {"action": "set-snapshot-ref", "ref-name": "b", "type": "twig", "snapshot-id": 1}


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({"action": "set-properties", "updates": 5}, "must be an object of strings"),
        ({"action": "set-properties", "updates": {"note": 5}}, "must be an object of strings"),
        ({"action": "set-properties", "updates": {"note": None}}, "must be an object of strings"),
        ({"action": "remove-snapshots", "snapshot-ids": "x"}, "must be a list"),
        ({"action": "colour"}, "'colour': it does not exist"),
        ({}, "Invalid"),
        ({"action": "set-location"}, "location: is missing"),
        ({"action": "assign-uuid", "uuid": "x"}, "must be a UUID"),
        ({"action": "add-spec", "spec": {"spec-id": 1, "fields": [PART]}}, "source-id: must be an integer"),
        ({"action": "add-spec", "spec": 5}, "spec: must be an object"),
        (
            {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [ORDER]}},
            "direction: must be 'asc' or 'desc'",
        ),
        (REFERENCE, "type: is not a value"),
        ({**REFERENCE, "type": "branch", "max-ref-age-ms": "x"}, "must be an integer"),
    ],
)
def test_a_malformed_update_is_refused_in_plain_words(lake: Lake, update: dict[str, Any], said: str) -> None:
    answer = lake.api("Tess").post(EVENTS, {"updates": [update]})
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert said in message
    assert not [word for word in LIBRARY if word in message], message


@pytest.mark.parametrize(
    "requirement",
    [{"type": "colour"}, {}, {"type": "assert-default-spec-id"}, {"type": "assert-table-uuid", "uuid": "x"}],
)
def test_a_malformed_requirement_is_refused_in_plain_words(lake: Lake, requirement: dict[str, Any]) -> None:
    answer = lake.api("Tess").post(EVENTS, {"requirements": [requirement], "updates": []})
    assert error_of(answer) == (400, "BadRequestException")
    message = answer.json()["error"]["message"]
    assert not [word for word in LIBRARY if word in message], message


@pytest.mark.parametrize("transform", ["colour", "bucket[0]", "truncate[99999999999]"])
def test_a_transform_that_no_engine_can_write_is_refused(lake: Lake, transform: str) -> None:
    """An engine could not even load a table with some of them."""
    part = {"source-id": 1, "field-id": 1000, "name": "part", "transform": transform}
    spec, order = {"spec-id": 1, "fields": [part]}, {"order-id": 1, "fields": [{**ORDER, **part, "direction": "asc"}]}
    asked = [
        (TABLES, {"name": "new", "schema": SCHEMA, "partition-spec": spec}),
        (TABLES, {"name": "new", "schema": SCHEMA, "write-order": order}),
        (EVENTS, {"updates": [{"action": "add-spec", "spec": spec}]}),
        (EVENTS, {"updates": [{"action": "add-sort-order", "sort-order": order}]}),
    ]
    for path, body in asked:
        answer = lake.api("Tess").post(path, body)
        assert error_of(answer) == (400, "ValidationException")
        assert f"unknown transform {transform!r}" in answer.json()["error"]["message"]


def test_a_new_table_may_leave_the_ids_of_its_partition_fields_out(lake: Lake) -> None:
    parts = [
        {"source-id": 1, "name": "part", "transform": "bucket[4]"},
        {"source-id": 1, "name": "id_part", "transform": "truncate[10]"},
    ]
    body = {"name": "parted", "schema": SCHEMA, "partition-spec": {"fields": parts}}
    found = lake.api("Tess").post(TABLES, body).json()["metadata"]["partition-specs"]
    assert [[part["field-id"] for part in spec["fields"]] for spec in found] == [[1000, 1001]]


def test_two_fields_with_one_id_are_refused(lake: Lake) -> None:
    inner = {"type": "list", "element-id": 1, "element": "int", "element-required": False}
    for schema in (with_field(type="int", id=1), with_field(type=inner)):
        answer = lake.api("Tess").post(EVENTS, {"updates": [{"action": "add-schema", "schema": schema}]})
        assert error_of(answer) == (400, "ValidationException")
        assert "have the id 1" in answer.json()["error"]["message"]


def test_a_number_that_engines_cannot_read_is_refused(lake: Lake) -> None:
    """Iceberg's Java library could not load the table any more."""
    snapshot = lake.engine("Tess").load_table("raw.events").current_snapshot().snapshot_id
    reference = {**REFERENCE, "type": "branch", "snapshot-id": snapshot}
    for name, value in (("max-ref-age-ms", 2**63), ("max-snapshot-age-ms", 2**63), ("min-snapshots-to-keep", 2**31)):
        answer = lake.api("Tess").post(EVENTS, {"updates": [{**reference, name: value}]})
        assert answer.status_code == 400, name
    assert lake.api("Tess").post(EVENTS, {"updates": [{**reference, "max-ref-age-ms": 2**63 - 1}]}).status_code == 200


def statistics(lake: Lake, kind: str) -> tuple[dict[str, Any], str]:
    """An update that names a file of statistics, which does not exist; and where it would be."""
    table = lake.engine("Tess").load_table("raw.events")
    path = f"{table.location()}/metadata/{kind}.stats"
    found = {"snapshot-id": table.current_snapshot().snapshot_id, "statistics-path": path, "file-size-in-bytes": 3}
    if kind == "statistics":
        found |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    return {"action": f"set-{kind}", kind: found, "snapshot-id": found["snapshot-id"]}, path


@pytest.mark.parametrize("kind", ["statistics", "partition-statistics"])
def test_a_statistics_file_that_does_not_exist_is_refused(lake: Lake, kind: str) -> None:
    update, path = statistics(lake, kind)
    answer = lake.api("Tess").post(EVENTS, {"updates": [update]})
    assert error_of(answer) == (400, "ValidationException")
    assert "does not exist" in answer.json()["error"]["message"]
    Path(path.removeprefix("file://")).write_bytes(b"abc")
    assert lake.api("Tess").post(EVENTS, {"updates": [update]}).status_code == 200


@pytest.mark.parametrize(
    "mapping",
    [
        *(
            "x",
            "{}",
            "[1]",
            "[" * 100_000,
            '[{"field-id": "one", "names": ["a"]}]',
            '[{"field-id": "1", "names": ["a"]}]',
        ),
        *('[{"field-id": 1.0, "names": ["a"]}]', '[{"field-id": 2147483648, "names": ["a"]}]', '[{"field-id": 1}]'),
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]',
        '[{"field-id": 1, "names": ["a"], "fields": [{"field-id": 1, "names": ["b"]}]}]',
        '[{"field-id": 1, "names": ["a"], "fields": null}]',
    ],
)
def test_a_name_mapping_is_json_that_engines_can_read(lake: Lake, mapping: str) -> None:
    changed = {"schema.name-mapping.default": mapping}
    answer = lake.api("Tess").post(EVENTS, {"updates": [{"action": "set-properties", "updates": changed}]})
    assert error_of(answer) == (400, "ValidationException")
    assert "schema.name-mapping.default" in answer.json()["error"]["message"]
    answer = lake.api("Tess").post(TABLES, {"name": "new", "schema": SCHEMA, "properties": changed})
    assert error_of(answer) == (400, "ValidationException")
    inner = [{"field-id": 3, "names": ["id"]}, {"names": ["unmapped"]}]
    good = [{"field-id": 1, "names": ["id", "number"]}, {"field-id": 2, "names": ["name"], "fields": inner}]
    changed = {"schema.name-mapping.default": json.dumps(good)}
    answer = lake.api("Tess").post(EVENTS, {"updates": [{"action": "set-properties", "updates": changed}]})
    assert answer.status_code == 200


def test_the_tag_of_a_new_table_is_that_of_a_load(lake: Lake) -> None:
    tess = lake.api("Tess")
    made = tess.post(TABLES, {"name": "tagged", "schema": SCHEMA})
    headers = {"If-None-Match": made.headers["ETag"]}
    assert tess.request("GET", table_path("tagged"), headers=headers).status_code == 304
    staged = tess.post(TABLES, {"name": "later", "schema": SCHEMA, "stage-create": True})
    assert "ETag" not in staged.headers


def test_the_tag_of_a_commit_is_that_of_a_load(lake: Lake) -> None:
    tess = lake.api("Tess")
    body: dict[str, Any] = {"updates": [{"action": "set-properties", "updates": {"tag": "new"}}]}
    for _ in ("what changes the table", "what changes nothing"):
        done = tess.post(EVENTS, body)
        headers = {"If-None-Match": done.headers["ETag"]}
        assert tess.request("GET", EVENTS, headers=headers).status_code == 304
        body = {"updates": []}
    tess.post(EVENTS, {"updates": [{"action": "set-properties", "updates": {"tag": "newer"}}]})
    assert tess.request("GET", EVENTS, headers=headers).status_code == 200


def test_a_commit_asks_for_no_keys(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where loads give keys, each has a tag of its own; and after a commit nothing may fail."""
    monkeypatch.setattr(committing, "vends_credentials", lambda _: True)
    monkeypatch.setattr(committing, "told_of", lambda *_, **__: pytest.fail("asked for keys"))
    done = lake.api("Tess").post(EVENTS, {"updates": []})
    assert done.status_code == 200
    assert "ETag" not in done.headers


def test_a_refusal_says_what_was_tried(lake: Lake) -> None:
    table = lake.engine("Tess").load_table("raw.events")
    table.append(MORE)
    first, tom = table.snapshots()[0].snapshot_id, lake.api("Tom")
    reference = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": first}
    tried = {
        "roll back table raw.events": reference,
        "expire snapshots of table raw.events": {"action": "remove-snapshots", "snapshot-ids": [first]},
    }
    for what, update in tried.items():
        answer = tom.post(EVENTS, {"updates": [update]})
        assert error_of(answer) == (403, "ForbiddenException")
        message = answer.json()["error"]["message"]
        assert message.startswith(f"You may not {what}. Missing: Manager"), message
    names = {"source": {"namespace": ["raw"], "name": "events"}, "destination": {"namespace": ["raw"], "name": "other"}}
    message = tom.post("/iceberg/v1/tables/rename", names).json()["error"]["message"]
    assert message.startswith("You may not rename table raw.events. Missing: Manager"), message
    message = tom.request("DELETE", EVENTS).json()["error"]["message"]
    assert message.startswith("You may not delete table raw.events. Missing: Manager"), message


@pytest.mark.parametrize("half", [b"\\ud800", b"\xed\xa0\x80"])
def test_half_of_a_surrogate_pair_is_refused(lake: Lake, half: bytes) -> None:
    """It is JSON to Python, and cannot be written to a file or a database."""
    bodies = {
        (TABLES, "Tess"): b'{"name": "half", "schema": %s, "properties": {"note": "%s"}}'
        % (json.dumps(SCHEMA).encode(), half),
        (EVENTS, "Tess"): b'{"updates": [{"action": "set-properties", "updates": {"note": "%s"}}]}' % half,
        ("/iceberg/v1/namespaces", "Adam"): b'{"namespace": ["half"], "properties": {"note": "%s"}}' % half,
    }
    for (path, member), body in bodies.items():
        answer = lake.api(member).request("POST", path, content=body)
        assert error_of(answer) == (400, "BadRequestException"), path
        assert "surrogate" in answer.json()["error"]["message"]
    pair = b'{"updates": [{"action": "set-properties", "updates": {"note": "\\ud83d\\ude00"}}]}'
    answer = lake.api("Tess").request("POST", EVENTS, content=pair)
    assert answer.json()["metadata"]["properties"]["note"] == "\N{GRINNING FACE}"
