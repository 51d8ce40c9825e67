"""Parquet and Avro, XML and workbooks."""

import io
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.execution.steps.context import StepFailed
from tests.execution.sources.support import Files

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


NOON = datetime.fromisoformat("2026-01-02 12:00:00")


def parquet(**columns: Any) -> bytes:
    found = io.BytesIO()
    pq.write_table(pa.table(columns), found)
    return found.getvalue()


def test_parquet_of_several_shapes(files: Files) -> None:
    options = {"format": "parquet"}
    files.put(
        "a.parquet",
        parquet(id=pa.array([1], pa.int32()), price=[Decimal("1.50")], tags=[["x"]], t=[NOON]),
    )
    files.put("b.parquet", parquet(id=pa.array([2], pa.int64()), name=["two"]))
    found = files.land("*.parquet", files=options)
    assert (found.rows_out, found.rejected) == (2, 0)
    assert files.types() == {
        "id": "bigint",
        "price": "decimal(3,2)",
        "tags": "array<string>",
        "t": "timestamp_ntz",
        "name": "string",
    }
    assert files.values("id, price, tags, name") == [(1, Decimal("1.50"), ["x"], None), (2, None, None, "two")]
    files.put("c.parquet", parquet(id=["three", "4"], price=[None, None]))
    found = files.land("c.parquet", files=options, write="append")
    assert (found.rows_out, found.rejected) == (1, 1)
    assert files.rejected()[0]["reason"] == "id: three is not a valid bigint"


@pytest.mark.parametrize("kind", ["parquet", "avro"])
@pytest.mark.parametrize("content", [b"not at all", b"PAR1", b"Obj\x01", b"Obj\x01\x04\x16avro.schema"])
def test_a_file_that_is_none_is_named(files: Files, kind: str, content: bytes) -> None:
    files.put("broken.file", content)
    with pytest.raises(
        StepFailed, match=r"cannot read broken\.file: it is not (a|an)( complete)? (Parquet|Avro) file"
    ) as failed:
        files.land("*", files={"format": kind})
    assert not failed.value.passing


def test_a_parquet_file_that_is_damaged_inside_is_named(files: Files) -> None:
    content = bytearray(parquet(id=list(range(10_000)), text=[f"row {n}" for n in range(10_000)]))
    content[200:5000] = bytes(4800)
    files.put("damaged.parquet", bytes(content))
    with pytest.raises(StepFailed, match=r"cannot read damaged\.parquet"):
        files.land("*", files={"format": "parquet"})


def test_avro(files: Files) -> None:
    out = files.shop.folder / f"avro-{files.table}"
    running = files.start()
    arguments = {"folder": str(out)}
    files.shop.platform.call("tests.execution.sources.functions:write_avro", arguments, running.context)
    for number, part in enumerate(sorted(out.rglob("*.avro"))):
        files.put(f"{number}.avro", part.read_bytes())
    found = files.land("*.avro", files={"format": "avro"})
    assert found.rows_out == 4
    assert files.types() == {"id": "bigint", "name": "string", "day": "date", "extra": "struct<a:int>"}
    assert files.values() == [
        (0, "0", date(2026, 1, 1), None),
        (1, "1", date(2026, 1, 1), None),
        (10, "10", None, {"a": 1}),
        (11, "11", None, {"a": 1}),
    ]


XML = """<?xml version="1.0" encoding="UTF-8"?>
<orders><order no="007"><price>9.5</price><to><city>Ulm</city></to><line>a</line><line>b</line></order>
<order no="008"><price>10</price><paid>true</paid><day>2026-01-02</day></order></orders>"""


def test_xml(files: Files) -> None:
    options = {"format": "xml", "row_tag": "order"}
    files.put("a.xml", XML)
    assert files.land("a.xml", files=options).rows_out == 2
    assert files.types() == {
        "no": "string",
        "day": "date",
        "line": "array<string>",
        "paid": "boolean",
        "price": "double",
        "to": "struct<city:string>",
    }
    assert files.values("no, price, to.city, line, paid") == [
        ("007", 9.5, "Ulm", ["a", "b"], None),
        ("008", 10.0, None, None, True),
    ]
    files.put("none.xml", "<orders/>")
    assert files.land("none.xml", files=options, write="append").rows_in == 0
    assert "No file has an element <order>" in files.log
    files.put("cut.xml", XML[:-30])
    with pytest.raises(StepFailed, match=r"cannot read cut\.xml: it is not valid XML: .*line 3"):
        files.land("cut.xml", files=options)
    files.put("bad.xml", '<!DOCTYPE o [<!ENTITY x SYSTEM "file:///etc/passwd">]><o><order><a>&x;</a></order></o>')
    with pytest.raises(StepFailed, match="has a DOCTYPE"):
        files.land("bad.xml", files=options)
    with pytest.raises(StepFailed, match="is not a valid element name"):
        files.land("a.xml", files={"format": "xml", "row_tag": "<order>"})


def workbook(sheets: dict[str, list[list[Any]]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    found = io.BytesIO()
    book.save(found)
    return found.getvalue()


ROWS: list[list[Any]] = [
    ["Id", "Name", "Price", "Day", "At", "On"],
    [1, "one", 1.5, date(2026, 1, 2), NOON, True],
    [],
    [2, None, 2, None, None, False],
]


def test_sheets(files: Files) -> None:
    options = {"format": "excel"}
    files.put("a.xlsx", workbook({"first": ROWS, "second": [["Id", "Id"], ["x", "y"]]}))
    found = files.land("*.xlsx", files=options)
    assert (found.rows_in, found.rows_out) == (2, 2)
    assert files.types() == {
        "id": "bigint",
        "name": "string",
        "price": "double",
        "day": "date",
        "at": "timestamp",
        "on": "boolean",
    }
    assert files.values("id, name, price, day, on") == [
        (1, "one", 1.5, date(2026, 1, 2), True),
        (2, None, 2.0, None, False),
    ]
    files.put("b.xlsx", workbook({"first": [["Name", "Id"], ["three", 3], ["four", "4th"], ["five", 5, "more"]]}))
    found = files.land("b.xlsx", files=options, write="append")
    assert (found.rows_out, found.rejected) == (1, 2)
    assert {row["reason"] for row in files.rejected()} == {
        "id: 4th is not a valid bigint",
        "the row has values beyond the last column of the header",
    }
    assert {row["file"] for row in files.rejected()} == {"b.xlsx"}
    files.table += "s"
    files.land("a.xlsx", files=options | {"sheet": "second"})
    assert files.rows() == [{"id": "x", "id_2": "y"}]
    with pytest.raises(StepFailed, match=r"a\.xlsx has no sheet 'third'; it has first, second"):
        files.land("a.xlsx", files=options | {"sheet": "third"})
    files.put("broken.xlsx", b"PK\x03\x04 no workbook")
    with pytest.raises(StepFailed, match=r"cannot read broken\.xlsx: it is not"):
        files.land("broken.xlsx", files=options)
    files.put("none.xlsx", workbook({"empty": []}))
    assert files.land("none.xlsx", files=options, write="append").rows_in == 0
