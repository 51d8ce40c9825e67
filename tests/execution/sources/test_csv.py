"""Files of comma-separated values, however they are written."""

import gzip
from datetime import UTC, date, datetime

import pytest

from headgate.execution.steps.context import StepFailed
from tests.execution.sources.support import Files

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ORDERS = """Order ID,Größe,Paid,Price,Day,At,Zip,Note
1,10,true,9.5,2026-01-02,2026-01-02T03:04:05Z,00501,"a ""quoted"", one"
2,20,false,10,2026-01-03,2026-01-03 04:05:06.789,10115,
3,,TRUE,-0.25,,,01067,ü
"""


def test_types_are_found_out_and_names_made_safe(files: Files) -> None:
    files.put("orders.csv", ORDERS)
    found = files.land("orders.csv")
    assert files.types() == {
        "order_id": "bigint",
        "größe": "bigint",
        "paid": "boolean",
        "price": "double",
        "day": "date",
        "at": "timestamp",
        "zip": "string",
        "note": "string",
    }
    assert files.values() == [
        (1, 10, True, 9.5, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "00501", 'a "quoted", one'),
        (2, 20, False, 10.0, date(2026, 1, 3), datetime(2026, 1, 3, 4, 5, 6, 789000, tzinfo=UTC), "10115", None),
        (3, None, True, -0.25, None, None, "01067", "ü"),
    ]
    assert (found.rows_in, found.rows_out, found.rejected) == (3, 3, 0)
    assert found.bytes == len(ORDERS.encode())
    assert found.state is None
    assert "Reading 1 files" in files.log


def test_rows_that_do_not_fit_are_rejected_with_the_reason(files: Files) -> None:
    files.put("a.csv", "id,name,at\n1,one,2026-01-01\n2,two,2026-01-02\n")
    assert files.land("*.csv").rejected == 0
    files.put(
        "b.csv", "id,name,at\n3,three,2026-01-03\nfour,x,2026-01-04\n5,five\n6,six,2026-01-06,more\n7,seven,2026\n"
    )
    found = files.land("*.csv")
    assert (found.rows_in, found.rows_out, found.rejected) == (7, 3, 4)
    assert [row[0] for row in files.values("id")] == [1, 2, 3]
    rejected = files.rejected()
    assert list(rejected[0]) == ["at", "reason", "record", "file", "stream"]
    assert {row["file"] for row in rejected} == {"b.csv"}
    assert {row["stream"] for row in rejected} == {"*.csv"}
    reasons = {row["record"]: row["reason"] for row in rejected}
    assert reasons["5,five"] == reasons["6,six,2026-01-06,more"] == "the row has more or fewer values than the header"
    assert reasons['{"id":"four","name":"x","at":"2026-01-04"}'] == "id: four is not a valid bigint"
    assert reasons['{"id":"7","name":"seven","at":"2026"}'] == "at: 2026 is not a valid date"
    # What is right now is rejected no more.
    (files.folder / "b.csv").unlink()
    assert files.land("*.csv").rejected == 0
    assert files.rejected() == []


def test_columns_go_by_their_names_in_each_file(files: Files) -> None:
    files.put("a.csv", "id,name\n1,one\n")
    files.put("sub/b.csv", "name,id\ntwo,2\n")
    files.put("sub/deep/c.csv", "id,extra\n3,x\n")
    assert files.land("**/*.csv").rows_out == 3
    assert files.rows() == [
        {"id": 1, "name": "one", "extra": None},
        {"id": 2, "name": "two", "extra": None},
        {"id": 3, "name": None, "extra": "x"},
    ]


def test_names_that_are_alike_or_odd_are_told_apart(files: Files) -> None:
    files.put("a.csv", "id,ID,id,,1st,a b,a-b,select,a.b`c,\n1,2,3,4,5,6,7,8,9,10\n")
    files.land("a.csv")
    assert list(files.rows()[0].values()) == list(range(1, 11))
    assert list(files.types()) == [
        *("id", "id_3", "id_2", "column_4", "_1st", "a_b", "a_b_2", "select", "a_b_c", "column_10"),
    ]


def test_other_ways_to_write_it(files: Files) -> None:
    files.put("a.csv", "1;'x;y';n/a\n2;'it''s';-\n")
    options = {"header": False, "delimiter": ";", "quote": "'", "nulls": ["n/a", "-"]}
    files.land("a.csv", files=options)
    assert files.values() == [(1, "x;y", None), (2, "it's", None)]
    files.put("b.csv", 'id||text\n1||a"b\n2||\n')
    files.table += "b"
    files.land("b.csv", files={"delimiter": "||", "quote": "", "nulls": []})
    assert files.values() == [(1, 'a"b'), (2, "")]
    files.put("c.csv", 'id,text\r\n1,"two\nlines"\r\n2,x\r\n')
    files.table += "c"
    files.land("c.csv", files={"multiline": True})
    assert files.values() == [(1, "two\nlines"), (2, "x")]


@pytest.mark.parametrize("encoding", ["windows-1252", "UTF-16", "utf-16-le", "ISO-8859-1"])
def test_other_encodings(files: Files, encoding: str) -> None:
    files.put("a.csv", "id,name\n1,Müller\n".encode(encoding))
    files.land("a.csv", files={"encoding": encoding})
    assert files.values() == [(1, "Müller")]


def test_a_wrong_encoding_is_said_and_never_guessed(files: Files) -> None:
    files.put("a.csv", "id,name\n1,Müller\n2,Meier\n".encode("windows-1252"))
    found = files.land("a.csv")
    assert (found.rows_out, found.rejected) == (1, 1)
    assert files.rejected()[0]["reason"] == "the row contains bytes that are invalid in the file's encoding"
    assert "a.csv: 1 rows are not valid UTF-8; if the file has another encoding, set the" in files.log
    files.put("b.csv", "id,größe\n1,x\n".encode("windows-1252"))
    with pytest.raises(StepFailed, match=r"b\.csv: its header is not UTF-8; set the stream's encoding"):
        files.land("b.csv")
    files.put("e.csv", "id,name\n1,x,y\n")
    assert files.land("e.csv").rejected == 1
    assert "encoding" not in files.log
    files.put("c.csv", "id,name\n1,x\n".encode("utf-16"))
    with pytest.raises(StepFailed, match=r"c.csv is UTF-16, not UTF-8"):
        files.land("c.csv")
    for name in ("nothing", "zlib"):
        with pytest.raises(ValueError, match=f"unknown encoding '{name}'; write one such as UTF-8"):
            files.land("a.csv", files={"encoding": name})
    files.put("d.csv", "id,name\n1,日本\n".encode("shift-jis"))
    with pytest.raises(StepFailed, match=r"d.csv: part of it is not ascii|d.csv: part of it is not euc-jp"):
        files.land("d.csv", files={"encoding": "euc-jp"})


def test_packed_files(files: Files) -> None:
    files.put("a.csv.gz", gzip.compress(b"id\n1\n"))
    files.land("*.csv.gz")
    assert files.values() == [(1,)]
    files.put("b.csv", gzip.compress(b"id\n1\n"))
    with pytest.raises(StepFailed, match="contains gzip; rename it"):
        files.land("b.csv")
    files.put("c.csv.gz", gzip.compress(b"id\n1\n" * 1000)[:40])
    with pytest.raises(StepFailed, match=r"cannot read c.csv.gz"):
        files.land("c.csv.gz")
    files.put("d.csv", b"PK\x03\x04....")
    with pytest.raises(StepFailed, match=r"d\.csv contains a ZIP archive"):
        files.land("d.csv")


def test_nothing_to_read_is_no_error(files: Files) -> None:
    found = files.land("nothing/*.csv")
    assert (found.rows_in, found.rows_out, found.bytes) == (0, 0, 0)
    assert "No file of the connection matches nothing/*.csv" in files.log
    files.put("empty.csv", b"")
    assert files.land("*.csv").rows_in == 0
    assert "1 files are empty: empty.csv" in files.log
    files.put("header.csv", "id,name\n")
    assert files.land("*.csv").rows_in == 0
    assert files.types() == {"id": "string", "name": "string"}
    assert files.values() == []
    # Types are found out once there are rows.
    files.put("rows.csv", "id,name\n1,one\n")
    assert files.land("*.csv").rows_in == 1
    assert files.types() == {"id": "bigint", "name": "string"}


def test_times_without_a_zone_are_of_the_runs(files: Files) -> None:
    files.put("a.csv", "at\n2026-07-01 12:00:00\n2026-07-01T12:00:00Z\n")
    files.land("a.csv", time_zone="Europe/Berlin")
    assert [row[0].astimezone(UTC).hour for row in files.values()] == [10, 12]


def test_a_folder_that_the_settings_do_not_allow_is_refused(files: Files) -> None:
    for path in ("/etc", str(files.folder / ".." / ".." / ".."), str(files.folder.parents[1])):
        files.endpoint.config["path"] = path
        with pytest.raises(StepFailed, match=r"sources\.folders"):
            files.land("**")
    (files.folder / "out").symlink_to("/etc")
    (files.folder / "passwd.csv").symlink_to("/etc/passwd")
    files.endpoint.config["path"] = str(files.folder)
    assert files.land("**").rows_in == 0
