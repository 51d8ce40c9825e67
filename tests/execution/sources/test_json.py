"""Files of JSON: a value a line, a list, or one value a file."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from headgate.execution.steps.context import StepFailed
from tests.execution.sources.support import Files

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def lines(*rows: Any) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def land(files: Files, name: str = "*.json", **more: Any) -> Any:
    return files.land(name, files={"format": "json", **more.pop("options", {})}, **more)


def test_fields_of_all_records_become_columns(files: Files) -> None:
    files.put(
        "a.json",
        lines(
            {"id": 1, "Name": "ä", "paid": 1.5, "on": True, "day": "2026-01-02", "at": "2026-01-02T03:04:05+01:00"},
            {"id": 2, "tags": ["x", "y"], "to": {"city": "Ulm", "zip": 89073, "odd name": [1]}, "none": None},
            {"id": 3, "big": 12345678901234567890123, "mixed": 1, "list": [], "empty": {}},
            {"id": 4, "mixed": "one", "number text": "007", "paid": 2},
        ),
    )
    assert land(files).rows_out == 4
    assert files.types() == {
        "id": "bigint",
        "at": "timestamp",
        "big": "decimal(38,0)",
        "day": "date",
        "empty": "string",
        "list": "array<string>",
        "mixed": "string",
        "name": "string",
        "none": "string",
        "number_text": "string",
        "on": "boolean",
        "paid": "double",
        "tags": "array<string>",
        "to": "struct<city:string,odd name:array<bigint>,zip:bigint>",
    }
    first, second, third, fourth = files.rows(order="id")
    assert (first["name"], first["paid"], first["on"], first["day"]) == ("ä", 1.5, True, date(2026, 1, 2))
    assert first["at"] == datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert (second["tags"], second["to"]) == (["x", "y"], {"city": "Ulm", "odd name": [1], "zip": 89073})
    assert (int(third["big"]), third["mixed"], third["list"]) == (12345678901234567890123, "1", [])
    assert (fourth["mixed"], fourth["number_text"], fourth["paid"]) == ("one", "007", 2.0)


def test_records_that_cannot_be_read_are_rejected(files: Files) -> None:
    files.put(
        "a.json",
        lines({"id": 1}, '{"id": 2', "[1, 2]", '"text"', "", "   ", '{"id": 3, "id": 4}').encode()
        + b'{"id": 5, "x": "\xff"}\n',
    )
    found = land(files)
    assert (found.rows_in, found.rows_out, found.rejected) == (6, 2, 4)
    assert files.values("id") == [(1,), (4,)]
    told = {row["record"]: row["reason"] for row in files.rejected()}
    assert told['{"id": 2'] == "the record is not JSON"
    assert told["[1, 2]"] == told['"text"'] == "the record is JSON, but not an object"
    assert told['{"id": 5, "x": "\ufffd"}'] == "the record contains bytes that are invalid in the file's encoding"
    assert {row["file"] for row in files.rejected()} == {"a.json"}


def test_values_that_do_not_fit_any_more_are_rejected(files: Files) -> None:
    files.put("a.json", lines({"id": 1, "price": 1.5, "on": True, "at": "2026-01-01T00:00:00Z", "to": {"n": 1}}))
    land(files)
    (files.folder / "a.json").unlink()
    files.put(
        "b.json",
        lines(
            {"id": 2, "price": 2, "on": False, "at": "2026-01-02T00:00:00Z", "to": {"n": 2, "new": "x"}},
            {"id": "three", "price": 3.0},
            {"id": 4.5},
            {"id": 5, "on": "perhaps"},
            {"id": 6, "at": "yesterday"},
            {"id": 7, "to": {"n": "seven"}},
            {"id": "8", "price": "8.5"},
        ),
    )
    found = land(files, write="append")
    assert (found.rows_out, found.rejected) == (2, 5)
    assert files.values("id, price, to.n, to.new") == [(1, 1.5, 1, None), (2, 2.0, 2, "x"), (8, 8.5, None, None)]
    assert sorted(row["reason"] for row in files.rejected()) == [
        "at: yesterday is not a valid timestamp",
        "id: 4.5 is not a valid bigint",
        "id: three is not a valid bigint",
        "on: perhaps is not a valid boolean",
        'to: {"n":"seven"} is not a valid struct<n:bigint,new:string>',
    ]


def test_lists_and_single_values(files: Files) -> None:
    files.put("list.json", json.dumps([{"id": 1, "t": "a\nb"}, {"id": 2}], indent=2))
    files.put("one.json", json.dumps({"id": 3}, indent=2))
    files.put("broken.json", '[{"id": 4}, ')
    files.put("with_mark.json", b"\xef\xbb\xbf" + b'[{"id": 5}]')
    found = land(files, options={"multiline": True})
    assert (found.rows_out, found.rejected) == (4, 1)
    assert files.values("id, t") == [(1, "a\nb"), (2, None), (3, None), (5, None)]
    assert files.rejected()[0]["file"] == "broken.json"


def test_fields_that_differ_in_case_alone(files: Files) -> None:
    files.put("a.json", lines({"Id": 1, "id": 2, "ID": 3}))
    land(files)
    assert sorted(files.rows()[0].values()) == [1, 2, 3]
    assert files.rows()[0]["id"] == 2


def test_another_encoding(files: Files) -> None:
    files.put("a.json", lines({"id": 1, "name": "Müller"}).encode("utf-16"))
    with pytest.raises(StepFailed, match="UTF-16"):
        land(files)
    land(files, options={"encoding": "UTF-16"})
    assert files.values() in ([(1, "Müller")], [(1, "M\\u00fcller")])


def test_too_many_fields_are_said(files: Files) -> None:
    files.put("a.json", lines({f"key{number}": number for number in range(2001)}))
    with pytest.raises(StepFailed, match="2001 distinct fields, but a table has at most 2000"):
        land(files)
