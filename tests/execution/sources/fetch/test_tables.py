"""Tables of another catalog: our own, of another company, whose files lie in a bucket that only it has the key of."""

import json
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import LongType

from headgate.contracts.pipelines.streams import Stream
from headgate.execution.sources.fetch import catalog, scans, tables
from headgate.execution.sources.fetch import external as outside
from headgate.execution.sources.iceberg import fetched
from headgate.execution.sources.readers import CursorPosition, ReadOptions
from headgate.execution.steps.context import Context
from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.execution.sources.fetch import context, endpoint, land, refused
from tests.lakehouse.catalog.support import MORE, ROWS, Lake, lake
from tests.support.api import Api, Reply, Seen, serving
from tests.support.s3 import S3Server


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("other")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    with pytest.MonkeyPatch.context() as patch:
        # Of several threads, one takes the signer of PyIceberg's s3fs away from another.
        patch.setenv("PYICEBERG_MAX_WORKERS", "1")
        patch.setattr("pyiceberg.utils.concurrent.ExecutorFactory._instance", None)
        with lake(database, folder, **s3_server.settings(f"other-{uuid.uuid4().hex}")) as found:
            yield found


class Teller:
    """What the reader knows of its step here."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, text: str, level: str = "info") -> None:
        self.lines.append(text)


def config(url: str, **more: Any) -> dict[str, Any]:
    return {"uri": f"{url}/iceberg", "warehouse": "", "auth": {"style": "bearer"}, **more}


class Reading:
    """Reads tables as a run does, one time after the other."""

    def __init__(self, found: dict[str, Any], folder: Path, **secrets: str) -> None:
        self.endpoint, self.folder = endpoint("iceberg", found, **secrets), folder
        self.state: dict[str, Any] | None = None
        self.teller: Any = Teller()

    def rows(
        self, name: str, since: CursorPosition | None = None, run: Context | None = None, **stream: Any
    ) -> pa.Table | None:
        """What a run reads."""
        step, one = land(name, **stream), run or context(self.folder)
        more, state = outside.table(step, self.endpoint, one, self.state)
        self.state = state or self.state
        if more["after"] is not None and more["after"] == more["upto"]:
            return None
        asked = ReadOptions(
            "iceberg",
            step.stream,
            self.endpoint.config,
            dict(self.endpoint.secrets),
            folder=str(one.folder),
            since=since,
            more=more,
        )
        written = fetched(asked, self.teller, scans.SnapshotRange(more["upto"], more["after"]))
        assert not list((one.folder / "copies").glob("*.part"))
        return pa.concat_tables([pq.read_table(file.path) for file in written])


def test_a_table_is_read_as_it_is_now(other: Lake, tmp_path: Path) -> None:
    made = other.engine("Tess").create_table("raw.events", ROWS.schema)
    made.append(ROWS)
    made.append(MORE)
    made.delete("id = 2")
    with made.update_schema() as change:
        change.rename_column("name", "label")
        change.add_column("more", LongType())
    reading = Reading(config(other.url), tmp_path, token=other.company.token("Tess"))
    found = reading.rows("raw.events")
    assert found.sort_by("id").to_pydict() == {"id": [1, 3, 4, 5], "label": ["a", "c", "d", "e"], "more": [None] * 4}
    assert reading.state is None
    assert "files of raw.events" in reading.teller.lines[-1]


def test_an_empty_table_has_columns(other: Lake, tmp_path: Path) -> None:
    other.engine("Tess").create_table("raw.empty", ROWS.schema)
    found = Reading(config(other.url), tmp_path, token=other.company.token("Tess")).rows("raw.empty")
    assert (found.num_rows, found.column_names) == (0, ["id", "name"])


def test_every_type_becomes_one_that_spark_reads(other: Lake, tmp_path: Path) -> None:
    one = uuid.uuid4()
    rows = pa.table(
        {
            "d": pa.array([date(2026, 1, 2)]),
            "t": pa.array([time(1, 2, 3)], pa.time64("us")),
            "ts": pa.array([datetime(2026, 1, 2, 3)], pa.timestamp("us")),  # noqa: DTZ001
            "tz": pa.array([datetime(2026, 1, 2, 3, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "n": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "b": pa.array([b"ab"], pa.binary()),
            "f": pa.array([b"abcd"], pa.binary(4)),
            "l": pa.array([["x", None]], pa.list_(pa.string())),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "s": pa.array([{"at": time(4, 5), "id": 7}], pa.struct([("at", pa.time64("us")), ("id", pa.int32())])),
            "u": pa.array([one.bytes], pa.uuid()),
        }
    )
    other.engine("Tess").create_table("raw.kinds", rows.schema).append(rows)
    found = Reading(config(other.url), tmp_path, token=other.company.token("Tess")).rows("raw.kinds")
    (row,) = found.to_pylist()
    assert (row["t"], row["u"], row["s"]) == ("01:02:03", str(one), {"at": "04:05:00", "id": 7})
    assert (row["d"], row["n"], row["b"], row["f"]) == (date(2026, 1, 2), Decimal("1.50"), b"ab", b"abcd")
    assert (row["l"], row["m"]) == (["x", None], [("k", 1)])
    assert found.schema.field("ts").type == pa.timestamp("us")
    assert found.schema.field("tz").type == pa.timestamp("us", "UTC")


def test_a_table_is_read_on_from_the_snapshot_of_the_last_run(other: Lake, tmp_path: Path) -> None:
    made = other.engine("Tess").create_table("raw.grows", ROWS.schema)
    made.append(ROWS)
    reading = Reading(config(other.url), tmp_path, token=other.company.token("Tess"))
    more: dict[str, Any] = {"read": "incremental", "write": "append"}
    assert reading.rows("raw.grows", **more).num_rows == 3
    assert reading.state
    assert reading.state["type"] == "snapshot"
    one = context(tmp_path)
    assert reading.rows("raw.grows", run=one, **more) is None
    assert "has not changed" in one.told[-1]
    made.append(MORE)
    made.append(ROWS)
    assert sorted(reading.rows("raw.grows", **more)["id"].to_pylist()) == [1, 2, 3, 4, 5]
    made.overwrite(MORE)
    before = dict(reading.state)
    found = refused(lambda: reading.rows("raw.grows", **more))
    assert (found.code, "run a full refresh once" in found.message) == ("NOT_APPENDED", True)
    assert reading.state == before
    # Rows that are merged by key may come from files that were written anew, but not from deletes.
    merging: dict[str, Any] = {"read": "incremental", "write": "merge", "keys": ["id"]}
    reading.state = {"type": "snapshot", "cursor": str(made.refresh().metadata.snapshots[-2].snapshot_id)}
    assert sorted(reading.rows("raw.grows", **merging)["id"].to_pylist()) == [4, 5]
    reading.state = {"type": "snapshot", "cursor": "12345"}
    found = refused(lambda: reading.rows("raw.grows", **more))
    assert (found.code, "expired, or the table was rolled back" in found.message) == ("SNAPSHOT_GONE", True)


def test_a_cursor_leaves_out_files_that_have_only_older_rows(other: Lake, tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2]),
            "at": pa.array(
                [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC")
            ),
        }
    )
    later = pa.table(
        {"id": pa.array([3]), "at": pa.array([datetime(2026, 2, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))}
    )
    made = other.engine("Tess").create_table("raw.timed", rows.schema)
    made.append(rows)
    made.append(later)
    reading = Reading(config(other.url), tmp_path, token=other.company.token("Tess"))
    more: dict[str, Any] = {"read": "incremental", "write": "merge", "keys": ["id"], "cursor": "at"}

    def since(value: str, look_back: timedelta | None = None) -> CursorPosition:
        return CursorPosition(value, "timestamp", look_back, including=True)

    assert reading.rows("raw.timed", **more).num_rows == 3
    assert reading.rows("raw.timed", since("2026-01-15T00:00:00.000000Z"), **more)["id"].to_pylist() == [3]
    assert reading.rows("raw.timed", since("2026-01-15T00:00:00.000000Z", timedelta(days=20)), **more).num_rows == 3
    assert reading.rows("raw.timed", since("no time"), **more).num_rows == 3
    assert reading.state is None


@pytest.mark.parametrize(
    ("kind", "value", "look_back", "found"),
    [
        ("long", "5", None, "5"),
        ("long", "5", timedelta(days=1), None),
        ("decimal(9, 2)", "1.5", None, "1.5"),
        ("string", "x", None, "x"),
        ("date", "2026-01-03", timedelta(days=1), "2026-01-02"),
        ("timestamp", "2026-01-03T01:00:00Z", timedelta(hours=2), "2026-01-02T23:00:00"),
        ("timestamptz", "2026-01-03T01:00:00Z", None, "2026-01-03T01:00:00+00:00"),
        ("boolean", "true", None, None),
        ("long", "many", None, None),
    ],
)
def test_conditions_are_for_what_can_be_compared(
    kind: str, value: str, look_back: timedelta | None, found: str | None
) -> None:
    class Table:
        def schema(self) -> Any:
            from pyiceberg.schema import Schema  # noqa: PLC0415

            return Schema.model_validate(
                {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "c", "required": False, "type": kind}]}
            )

    table: Any = Table()
    made = scans.condition(table, "c", value, look_back)
    assert ("AlwaysTrue()" in repr(made)) == (found is None)
    if found is not None:
        assert found in repr(made)
    assert "AlwaysTrue" in repr(scans.condition(table, None, value, look_back))


@pytest.mark.parametrize(
    ("name", "token", "code"),
    [
        ("raw.nothing", None, "NO_SUCH_TABLE"),
        ("nothing", None, "NO_SUCH_TABLE"),
        ("raw.", None, "NO_SUCH_TABLE"),
        ("raw.secret", "Tom", "NO_SUCH_TABLE"),
        ("raw.secret", "hgt_wrong", "CATALOG_UNAUTHORIZED"),
    ],
)
def test_what_the_other_catalog_refuses_is_told(
    other: Lake, tmp_path: Path, name: str, token: str | None, code: str
) -> None:
    found_token = other.company.token(token or "Tess") if token != "hgt_wrong" else "hgt_wrong"
    found = refused(lambda: Reading(config(other.url), tmp_path, token=found_token).rows(name))
    assert found.code == code
    assert found_token not in found.message


def test_oauth_with_the_catalog_or_another_service(other: Lake, tmp_path: Path) -> None:
    other.engine("Tess").create_table("raw.by_oauth", ROWS.schema).append(ROWS)
    auth = {"style": "oauth2", "client_id": "any", "scope": "catalog"}
    reading = Reading(config(other.url, auth=auth), tmp_path, client_secret=other.company.token("Tess"))
    assert reading.rows("raw.by_oauth").num_rows == 3


def test_more_bytes_than_allowed_are_not_brought(other: Lake, tmp_path: Path) -> None:
    big = pa.table({"text": pa.array([os.urandom(100).hex() for _ in range(20_000)])})
    other.engine("Tess").create_table("raw.big", big.schema).append(big)
    reading = Reading(config(other.url), tmp_path, token=other.company.token("Tess"))
    assert refused(lambda: reading.rows("raw.big", run=context(tmp_path, max_bytes=1 << 20))).code == "TOO_MANY_BYTES"


# A catalog that means harm: what it says of a table is of its own making.


@pytest.fixture
def evil(other: Lake) -> Iterator[Api]:
    """A catalog that passes on what ours says of a table, changed by the test."""
    made = other.engine("Tess")
    if not made.table_exists("raw.bait"):
        made.create_table("raw.bait", ROWS.schema).append(ROWS)
    path = "/iceberg/v1/namespaces/raw/tables/bait"
    answer = other.api("Tess").get(path).json()
    with serving([]) as api:
        api.on("/iceberg/v1/config", lambda _: Reply({"defaults": {}, "overrides": {}}))
        api.state = answer
        api.on(path, lambda _: Reply(api.state))
        api.on("/iceberg/" + answer["config"]["signer.endpoint"], lambda seen: _passed_on(other, seen))
        yield api


def _passed_on(other: Lake, seen: Seen) -> Reply:
    answer = other.api("Tess").post(seen.path, json.loads(seen.body))
    return Reply(answer.json(), answer.status_code)


def changed(api: Api, old: str, new: str) -> None:
    api.state = json.loads(json.dumps(api.state).replace(old, new))


def bait(api: Api, tmp_path: Path) -> Any:
    return Reading(config(api.url), tmp_path, token="the-token-of-this-connection").rows("raw.bait")


def test_the_catalog_is_believed_as_far_as_it_may_be(evil: Api, tmp_path: Path) -> None:
    assert bait(evil, tmp_path).num_rows == 3


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "/etc/passwd", "gs://bucket/x", "http://127.0.0.1/x", "s3:///x", "hdfs://x/y"]
)
def test_files_that_do_not_lie_in_a_store_are_not_opened(evil: Api, tmp_path: Path, target: str) -> None:
    location = evil.state["metadata"]["snapshots"][-1]["manifest-list"]
    changed(evil, location, target)
    found = refused(lambda: bait(evil, tmp_path))
    assert found.code == "FILES_ELSEWHERE"
    assert not list(tmp_path.glob("run/copies/*"))


def test_a_store_at_a_private_address_is_not_called(evil: Api, tmp_path: Path) -> None:
    evil.state["config"] = {"s3.endpoint": "http://169.254.169.254", "s3.path-style-access": "true"}
    assert refused(lambda: bait(evil, tmp_path)).code == "ADDRESS_REFUSED"


@pytest.mark.parametrize("signer", ["http://127.0.0.2:1/", "https://evil.test/", "nonsense://"])
def test_the_token_goes_to_the_catalog_alone(evil: Api, tmp_path: Path, signer: str) -> None:
    evil.state["config"]["s3.signer.uri"] = signer
    found = refused(lambda: bait(evil, tmp_path))
    assert (found.code, "to which its token is not sent" in found.message) == ("CATALOG_ODD", True)


def test_no_class_is_loaded_by_name(evil: Api, tmp_path: Path) -> None:
    evil.state["config"]["py-io-impl"] = "tests.execution.sources.fetch.test_tables.Trap"
    assert bait(evil, tmp_path).num_rows == 3


class Trap:
    """What must never be made."""

    def __init__(self, *_: Any) -> None:
        raise AssertionError("it was loaded")


@pytest.mark.parametrize(
    "body",
    [{}, {"metadata": {}}, {"metadata": []}, {"metadata": {"format-version": 9}}, {"config": "x", "metadata": None}],
)
def test_nonsense_is_told(evil: Api, tmp_path: Path, body: Any) -> None:
    evil.state = body
    assert refused(lambda: bait(evil, tmp_path)).code == "CATALOG_ODD"


@pytest.mark.parametrize(
    ("reply", "code", "passing"),
    [
        (Reply(b"<html>"), "CATALOG_ODD", False),
        (Reply([]), "CATALOG_ODD", False),
        (Reply(None, 403), "CATALOG_FORBIDDEN", False),
        (Reply(None, 503), "CATALOG_UNREACHABLE", True),
        (Reply(None, 400), "CATALOG_UNREACHABLE", False),
        (Reply(None, 302, {"Location": "http://10.0.0.1/"}), "ADDRESS_REFUSED", False),
    ],
)
def test_trouble_is_told(evil: Api, tmp_path: Path, reply: Reply, code: str, passing: bool) -> None:
    evil.on("/iceberg/v1/namespaces/raw/tables/bait", lambda _: reply)
    found = refused(lambda: bait(evil, tmp_path))
    assert (found.code, found.passing) == (code, passing)
    assert "the-token" not in found.message


def test_what_it_says_is_bounded(evil: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "MAX_METADATA", 1000)
    found = refused(lambda: bait(evil, tmp_path))
    assert (found.code, "larger than 1,000 bytes" in found.message) == ("CATALOG_ODD", True)


def test_damaged_files_are_told(other: Lake, s3_server: S3Server, tmp_path: Path) -> None:
    made = other.engine("Tess").create_table("raw.damaged", ROWS.schema)
    made.append(ROWS)
    root = s3_server.folder / made.location().removeprefix("s3://")
    for file in root.glob("**/*.parquet"):
        file.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    reading = Reading(config(other.url), tmp_path, token=other.company.token("Tess"))
    assert refused(lambda: reading.rows("raw.damaged")).code == "FILE_DAMAGED"
    for file in root.glob("**/*.parquet"):
        file.unlink()
    assert refused(lambda: reading.rows("raw.damaged")).code == "FILE_NOT_FOUND"


def test_keys_that_are_lent_are_used_and_asked_for_anew_before_they_end(tmp_path: Path) -> None:
    loads: list[int] = []

    def loaded() -> catalog.Loaded:
        loads.append(1)
        lent = {"s3.access-key-id": f"key{len(loads)}", "s3.secret-access-key": "hidden", "s3.session-token": "session"}
        ends = 0 if len(loads) == 1 else 99_999_999_999_999
        keys = {**lent, "s3.session-token-expires-at-ms": str(ends)}
        metadata: Any = None
        return catalog.Loaded(
            metadata, {"s3.endpoint": "https://s3.test", "s3.region": "r"}, (("s3://lake/", {}), ("s3://lake/t/", keys))
        )

    none: Any = None
    files = catalog.Files(none, loaded, loaded())
    url, headers = files.address("s3://lake/t/data/a b.parquet")
    assert url == "https://lake.s3.test/t/data/a%20b.parquet"
    found = headers()
    assert found["x-amz-security-token"] == "session"
    assert "Credential=key2/" in found["Authorization"]
    assert len(loads) == 2
    assert files.address("s3://lake/other/x")[1]() == {}
    assert "hidden" not in repr(loaded())


def test_memory_is_bounded_and_told() -> None:
    with pytest.raises(Exception, match="GB of memory") as found, tables.reading():
        raise MemoryError
    error: Any = found.value
    assert error.code == "FILE_TOO_LARGE"
    with pytest.raises(Exception, match="compact the table") as found, tables.reading():
        raise ValueError("PyIceberg does not yet support equality deletes: …")
    error = found.value
    assert error.code == "EQUALITY_DELETES"


def test_streams_of_a_catalog_are_whole() -> None:
    assert (
        Stream.model_validate({"name": "raw.x", "table": "x", "read": "incremental", "write": "append"}).cursor is None
    )
