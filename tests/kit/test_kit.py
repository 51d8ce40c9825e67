"""Names, ids, cursors, settings, keys, leases and the database, each by itself."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from headgate.kit.clock import iso, now
from headgate.kit.database import Busy, Database, bound, fetch, instant
from headgate.kit.ids import ALL_GROUP, PREFIXES, kind_of, new_id
from headgate.kit.key_file import BadKeyFile, KeyFile
from headgate.kit.leases import acquire, is_held, release
from headgate.kit.names import BadName, check_name, check_sql_name, name_key
from headgate.kit.paging import BadCursor, Cursor

pytestmark = pytest.mark.both_databases


@pytest.mark.parametrize(
    ("one", "other"),
    [("Sales", "sALES"), ("Ａnn", "ann"), ("ﬁle", "FILE"), ("straße", "STRASSE"), ("é", "e\u0301"), (" a ", "a")],
)
def test_names_that_look_the_same_are_one(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@given(st.text(max_size=60))
def test_a_name_key_is_stable(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)


@pytest.mark.parametrize("name", ["Ünïcode ☃", "工場", "a" * 200, "O'Brien; DROP TABLE members", "%_\\", "{}"])
def test_a_name_may_hold_any_unicode(name: str) -> None:
    assert check_name(f"  {name} ") == name


@pytest.mark.parametrize("name", ["", "   ", "a" * 201, "a\nb", "a\x00b", "\x7f", "a\ud800", "\u00a0", "ﷺ" * 200])
def test_but_no_control_characters_and_not_nothing(name: str) -> None:
    with pytest.raises(BadName):
        check_name(name)


def test_sql_names_are_lowered_and_checked() -> None:
    assert check_sql_name(" Orders_2 ") == "orders_2"
    for bad in ("2a", "a-b", "a.b", "", "system", "Global_Temp", "é", "a" * 129):
        with pytest.raises(BadName):
            check_sql_name(bad)


def test_ids_say_their_kind_and_sort_by_time() -> None:
    for kind in PREFIXES:
        assert kind_of(new_id(kind)) == kind
    made = [new_id("data_mart") for _ in range(1000)]
    assert len(set(made)) == 1000
    assert kind_of(ALL_GROUP) == "group"
    for bad in ("", "dm_", "dm_" + "u" * 20, "xx_" + "0" * 20, made[0] + "0", made[0].upper(), "dm_" + "0" * 19 + "\n"):
        assert kind_of(bad) is None


def test_ids_sort_in_the_order_in_which_they_were_made_within_a_moment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [new_id("notice") for _ in range(5_000)]
    monkeypatch.setattr("headgate.kit.ids.time.time_ns", lambda: 1_000_000_000)
    made += [new_id("notice") for _ in range(5_000)]
    assert made == sorted(made)


def test_threads_never_get_the_same_id() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: new_id("notice"), range(5_000)))
    assert len(set(made)) == 5_000


@given(st.text(max_size=80), st.text(max_size=40), st.text(max_size=40))
def test_a_cursor_comes_back_as_it_was(value: str, identifier: str, purpose: str) -> None:
    encoded = Cursor(value, identifier).encode(purpose) if value.isprintable() and identifier.isprintable() else None
    if encoded and purpose.isprintable():
        assert Cursor.decode(encoded, purpose) == Cursor(value, identifier)


@given(st.text(max_size=200))
def test_whatever_else_is_no_cursor(cursor: str) -> None:
    with pytest.raises(BadCursor):
        Cursor.decode(cursor, "a purpose that nobody has")


def test_times_are_aware_and_come_back_to_the_microsecond(database: Database) -> None:
    moment = datetime(2026, 6, 1, 12, 0, 0, 123456, tzinfo=UTC)
    assert iso(moment.astimezone()) == "2026-06-01T12:00:00.123456Z"
    with database.read() as connection:
        cast = "CAST(:at AS TIMESTAMPTZ)" if database.dialect == "postgresql" else ":at"
        rows = fetch(connection, f"SELECT {cast}", {"at": bound(connection, moment)})
        assert instant(rows[0][0]) == moment


def test_a_write_that_meets_another_is_repeated_whole(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE counter (n INTEGER)"))
        connection.execute(text("INSERT INTO counter VALUES (0)"))

    def add_one(connection: object) -> None:
        n = connection.execute(text("SELECT n FROM counter")).scalar_one()  # type: ignore[attr-defined]
        connection.execute(text("UPDATE counter SET n = :n"), {"n": n + 1})  # type: ignore[attr-defined]

    threads = [threading.Thread(target=lambda: [database.write(add_one) for _ in range(5)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as connection:
        assert connection.execute(text("SELECT n FROM counter")).scalar_one() == 30


def test_writes_in_turn_do_not_meet(database: Database) -> None:
    inside, most, tries = 0, 0, 0

    def work(connection: Connection) -> None:
        nonlocal inside, most, tries
        inside, tries = inside + 1, tries + 1
        most = max(most, inside)
        connection.execute(text("SELECT 1"))
        time.sleep(0.002)
        inside -= 1

    threads = [threading.Thread(target=lambda: database.write(work, in_turn=True)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most, tries) == (0, 1, 8)


def test_a_turn_that_never_comes_is_told_to_be_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.kit.database.BUSY_TIMEOUT", 0.01)
    monkeypatch.setattr("headgate.kit.database.MAX_ATTEMPTS", 2)
    database = Database(f"sqlite:///{tmp_path}/a.db")

    def inside(_: object) -> None:
        with pytest.raises(Busy):
            database.write(lambda connection: connection.execute(text("SELECT 1")))

    database.write(inside)
    database.close()


def test_a_writer_that_never_gets_its_turn_is_told_that_we_are_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.kit.database.BUSY_TIMEOUT", 0.01)
    monkeypatch.setattr("headgate.kit.database.MAX_ATTEMPTS", 2)
    first, second = (Database(f"sqlite:///{tmp_path}/a.db") for _ in range(2))

    def inside(_: object) -> None:
        with pytest.raises(Busy):
            second.write(lambda connection: connection.execute(text("SELECT 1")))

    first.write(inside)
    first.close()
    second.close()


def test_only_known_databases_are_taken() -> None:
    with pytest.raises(ValueError, match="sqlite"):
        Database("mysql://localhost/x")


def test_a_key_is_made_once_kept_private_and_shared(tmp_path: Path) -> None:
    path = tmp_path / "folder/keys.json"
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(KeyFile(path).key("audit"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found[0]) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert KeyFile(path).key("other") != found[0]
    assert KeyFile(path).key("audit") == found[0]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 2, "keys": {}}', '{"version": 1, "keys": 7}'])
def test_a_damaged_key_file_is_never_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(BadKeyFile):
        KeyFile(path).key("audit")
    assert path.read_text() == content


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    KeyFile(path).key("audit")
    os.chmod(path, 0o640)  # noqa: PTH101 - what an operator might do
    with pytest.raises(BadKeyFile, match="chmod 600"):
        KeyFile(path).key("audit")
    assert json.loads(path.read_text())["version"] == 1


def test_a_lease_has_one_holder_and_a_growing_fence(database: Database) -> None:
    moment, length = now(), timedelta(seconds=10)

    def take(holder: str, at: datetime) -> int | None:
        return database.write(lambda connection: acquire(connection, "work", holder, at, length))

    assert take("a", moment) == 1
    assert take("a", moment + timedelta(seconds=5)) == 1
    assert take("b", moment + timedelta(seconds=9)) is None
    assert take("b", moment + timedelta(seconds=16)) == 2
    assert take("a", moment + timedelta(seconds=17)) is None
    with database.read() as connection:
        assert is_held(connection, "work", "b", 2)
        assert not is_held(connection, "work", "a", 1)
    database.write(lambda connection: release(connection, "work", "b", moment + timedelta(seconds=18)))
    assert take("a", moment + timedelta(seconds=18)) == 3
