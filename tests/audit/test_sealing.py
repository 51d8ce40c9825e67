"""The audit log: only added to, chained under a key that the database does not hold, and any tampering found."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from headgate.audit.events import Event, record
from headgate.audit.sealing import Head, HeadFile, last_seal, seal_pending, verify
from headgate.config import Settings
from headgate.kit.batches import Batches
from headgate.kit.clock import now
from headgate.kit.db import Database
from headgate.migrations import upgrade
from headgate.supervisor.scheduler import Scheduler
from tests.support.databases import on_sqlite
from tests.support.installation import eventually

KEY = b"k" * 32


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def log_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a migrated database, on each kind in turn: with the triggers that keep the log."""
    if request.param == "sqlite":
        yield str(on_sqlite(tmp_path, upgrade).engine.url)
        return
    with request.getfixturevalue("postgres_databases").made(upgrade) as url:
        yield url


@pytest.fixture
def log(log_url: str) -> Iterator[Database]:
    """The same, open."""
    found = Database(log_url)
    yield found
    found.close()


def add(database: Database, count: int) -> None:
    events = [
        Event(now(), "access.changed", allowed=True, actor_id="mbr_x", before={"n": n, "ü": None}, via=["owner"])
        for n in range(count)
    ]
    database.write(lambda connection: record(connection, events))


def seal(database: Database) -> Head:
    return database.write(lambda connection: seal_pending(connection, KEY))[0]


def faults(database: Database, head: Head | None, key: bytes = KEY) -> tuple[str, ...]:
    with database.read() as connection:
        return verify(connection, key, head).faults


def unguarded(database: Database, statement: str) -> None:
    """What somebody could do who owns the database and has removed its guards."""
    with database.engine.begin() as connection:
        if database.dialect == "sqlite":
            connection.execute(text("DROP TRIGGER IF EXISTS audit_events_fixed"))
            connection.execute(text("DROP TRIGGER IF EXISTS audit_events_kept"))
        else:
            connection.execute(text("ALTER TABLE audit_events DISABLE TRIGGER ALL"))
        connection.execute(text(statement))


def test_an_untouched_log_is_intact(log: Database) -> None:
    add(log, 5)
    seal(log)
    add(log, 3)
    head = seal(log)
    add(log, 2)
    with log.read() as connection:
        verdict = verify(connection, KEY, head)
    assert (verdict.sealed, verdict.unsealed, verdict.faults) == (8, 2, ())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET actor_id = 'mbr_y'",
        "UPDATE audit_events SET allowed = NOT allowed",
        "UPDATE audit_events SET before = NULL",
        "UPDATE audit_events SET via = '[]'",
        "DELETE FROM audit_events",
        "UPDATE audit_events SET seal_number = seal_number + 100",
    ],
)
def test_the_database_refuses_to_change_or_remove_events(log: Database, statement: str) -> None:
    add(log, 3)
    seal(log)
    with pytest.raises(Exception, match="audit events are never"), log.engine.begin() as connection:
        connection.execute(text(statement))
    assert faults(log, seal(log)) == ()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE audit_events SET actor_id = 'mbr_y' WHERE seal_number = 3", "event 3"),
        ("UPDATE audit_events SET at = '2020-01-01 00:00:00' WHERE seal_number = 2", "event 2"),
        ("UPDATE audit_events SET before = '{}' WHERE seal_number = 1", "event 1"),
        ("UPDATE audit_events SET seal = '0' WHERE seal_number = 6", "event 6"),
        ("DELETE FROM audit_events WHERE seal_number = 4", "events 4 to 4 are missing"),
        ("DELETE FROM audit_events WHERE seal_number < 3", "events 1 to 2 are missing"),
        ("DELETE FROM audit_events WHERE seal_number > 4", "events 5 to 6 were cut off"),
        ("DELETE FROM audit_events", "events 1 to 6 were cut off"),
        ("UPDATE audit_events SET seal_number = NULL, seal = NULL WHERE seal_number = 6", "were cut off"),
    ],
)
def test_verify_finds_any_change_gap_or_cut(log: Database, statement: str, says: str) -> None:
    add(log, 6)
    head = seal(log)
    unguarded(log, statement)
    assert any(says in fault for fault in faults(log, head)), faults(log, head)


def test_a_log_that_was_sealed_again_with_another_key_is_found(log: Database) -> None:
    add(log, 4)
    head = seal(log)
    assert faults(log, head, b"x" * 32)
    unguarded(log, "UPDATE audit_events SET seal_number = NULL, seal = NULL")
    log.write(lambda connection: seal_pending(connection, b"x" * 32))
    assert faults(log, head)


def test_the_head_file_is_signed_and_missing_is_said(log: Database, tmp_path: Path) -> None:
    add(log, 2)
    head = seal(log)
    file = HeadFile(tmp_path / "audit.head", KEY)
    assert file.read() is None
    assert "missing" in faults(log, None)[0]
    file.write(head)
    assert file.read() == head
    assert (tmp_path / "audit.head").stat().st_mode & 0o777 == 0o600
    (tmp_path / "audit.head").write_text((tmp_path / "audit.head").read_text().replace('"number": 2', '"number": 1'))
    with pytest.raises(ValueError, match="key"):
        file.read()
    (tmp_path / "audit.head").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        file.read()


def test_events_that_need_no_transaction_of_their_own_are_written_soon(log: Database) -> None:
    assert Batches.INTERVAL < 1, "they are promised within a second"
    batches = Batches(log, record, "audit events")
    for _ in range(1200):
        batches.put(Event(now(), "resource.read", allowed=True))

    def written() -> int:
        with log.read() as connection:
            return int(connection.execute(text("SELECT COUNT(*) FROM audit_events")).scalar_one())

    eventually(lambda: written() == 1200)
    batches.put(Event(now(), "resource.read", allowed=True))
    batches.close()
    assert written() == 1201


def test_one_sealer_at_a_time_and_the_next_takes_over(log_url: str, log: Database, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database={"url": log_url})
    with closing(Scheduler(settings)) as first, closing(Scheduler(settings)) as second:
        _one_after_the_other(log, first, second)


def _one_after_the_other(log: Database, first: Scheduler, second: Scheduler) -> None:
    second._holder += " other"
    add(log, 3)
    assert first.tick()
    assert not second.tick()
    with log.read() as connection:
        assert verify(connection, first._key, first._head.read()).sealed == 3
    with log.engine.begin() as connection:
        connection.execute(text("UPDATE leases SET expires_at = '2020-01-01 00:00:00'"))
    add(log, 1)
    assert second.tick()
    add(log, 1)
    first._fence = 1
    first.seal(1)
    with log.read() as connection:
        assert verify(connection, first._key, first._head.read()).unsealed == 1


def test_two_sealers_that_race_make_one_chain(log: Database) -> None:
    add(log, 300)

    def work(_: Any = None) -> None:
        for _ in range(5):
            seal(log)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with log.read() as connection:
        verdict = verify(connection, KEY, seal_head(log))
    assert (verdict.sealed, verdict.unsealed, verdict.faults) == (300, 0, ())


def seal_head(database: Database) -> Head:
    with database.read() as connection:
        return last_seal(connection)
