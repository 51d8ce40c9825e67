"""The audit log: only added to, chained under a key that the database does not hold, and any tampering found."""

import hashlib
import hmac
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from headgate.kit.batch_writer import Batches
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.leases import release
from headgate.migrations import upgrade
from headgate.platform.audit.chain import acknowledge, last_seal, seal_pending
from headgate.platform.audit.chain_heads import HEAD_FILE, SEALED, Head, HeadFile, RecordedHead
from headgate.platform.audit.events import Event, record
from headgate.platform.audit.signatures import sign_events
from headgate.platform.audit.verification import ExternalRecord, VerificationResult, anchor, verify
from headgate.platform.secrets.installation_keys import key_file
from headgate.settings.settings import Settings
from headgate.supervisor.scheduler import LEASE, Scheduler
from tests.support.databases import on_sqlite
from tests.support.installation import eventually, installed

pytestmark = pytest.mark.both_databases

KEY = b"k" * 32


@pytest.fixture
def log_url(database_dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a migrated database: with the triggers that protect the audit log."""
    if database_dialect == "sqlite":
        yield str(on_sqlite(tmp_path, upgrade).engine.url)
        return
    with request.getfixturevalue("postgres_databases").made(upgrade) as url:
        yield url


@pytest.fixture
def log(log_url: str) -> Iterator[Database]:
    """The same, open."""
    found = Database(log_url)
    sign_events(found, lambda: KEY)
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


def verified(database: Database, head: Head | None, key: bytes = KEY, **outside: Any) -> VerificationResult:
    with database.read() as connection:
        return verify(connection, key, ExternalRecord(RecordedHead(head) if head else None, **outside))


def faults(database: Database, head: Head | None, key: bytes = KEY, **outside: Any) -> tuple[str, ...]:
    return verified(database, head, key, **outside).faults


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
    verdict = verified(log, head)
    assert (verdict.sealed, verdict.unsealed, verdict.faults) == (8, 2, ())
    assert verdict.end == anchor(f" {head.anchor}\n") == head


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
        ("DELETE FROM audit_events WHERE seal_number > 4", "events 5 to 6 at the end of the log are missing"),
        ("DELETE FROM audit_events", "events 1 to 6 at the end of the log are missing"),
        ("UPDATE audit_events SET seal_number = NULL, seal = NULL WHERE seal_number = 6", "are missing"),
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
    file.change(lambda _: RecordedHead(head))
    assert file.read() == RecordedHead(head)
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
    sign_events(log, lambda: key_file(settings).key("audit"))
    with closing(Scheduler(settings)) as first, closing(Scheduler(settings)) as second:
        _one_after_the_other(log, first, second)


def kept(scheduler: Scheduler) -> Head:
    found = scheduler._head.read()
    assert found is not None
    return found.head


def _one_after_the_other(log: Database, first: Scheduler, second: Scheduler) -> None:
    second._holder += " other"
    add(log, 3)
    assert first.tick()
    assert not second.tick()
    assert verified(log, kept(first), first._key).sealed == 3
    with log.engine.begin() as connection:
        connection.execute(text("UPDATE leases SET expires_at = '2020-01-01 00:00:00'"))
    add(log, 1)
    assert second.tick()
    add(log, 1)
    first._fence = 1
    first.seal(1)
    assert verified(log, kept(first), first._key).unsealed == 1


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
    verdict = verified(log, seal_head(log))
    assert (verdict.sealed, verdict.unsealed, verdict.faults) == (300, 0, ())


def seal_head(database: Database) -> Head:
    with database.read() as connection:
        return last_seal(connection)


class Site:
    """A scheduler on the log, with its data folder; what verifying finds there."""

    def __init__(self, url: str, log: Database, folder: Path) -> None:
        self.log, self.settings = log, Settings(data_dir=folder, database={"url": url})
        self.keys = key_file(self.settings)
        sign_events(log, lambda: self.keys.key("audit"))

    def tick(self) -> None:
        """Start a scheduler, let it work twice, and end it: what it finds, it also records."""
        with closing(Scheduler(self.settings)) as scheduler:
            assert scheduler.tick()
            assert scheduler.tick()
            self.log.write(lambda c: release(c, LEASE, scheduler._holder, now()))

    @property
    def file(self) -> HeadFile:
        return HeadFile(self.settings.data_dir / HEAD_FILE, self.keys.key("audit"))

    def verdict(self, *anchors: Head) -> VerificationResult:
        with self.log.read() as connection:
            outside = ExternalRecord(self.file.read(), None, self.keys.has(SEALED), anchors)
            return verify(connection, self.keys.key("audit"), outside)


@pytest.fixture
def site(log_url: str, log: Database, tmp_path: Path) -> Site:
    return Site(log_url, log, tmp_path / "data")


WIPE = "DELETE FROM audit_events"


def test_a_log_that_was_wiped_with_the_file_of_its_end_is_not_a_new_one(site: Site) -> None:
    assert site.verdict().faults == ()
    add(site.log, 4)
    site.tick()
    assert (site.verdict().sealed, site.verdict().faults) == (4, ())
    unguarded(site.log, WIPE)
    site.file.path.unlink()
    assert "are missing" in site.verdict().faults[0]


@pytest.mark.parametrize("loses_file", [False, True])
@pytest.mark.parametrize("statement", [WIPE, "DELETE FROM audit_events WHERE seal_number > 2"])
def test_a_cut_stays_known_once_new_events_are_sealed(site: Site, statement: str, loses_file: bool) -> None:
    add(site.log, 4)
    site.tick()
    end = site.verdict().end
    unguarded(site.log, statement)
    if loses_file:
        site.file.path.unlink()
    for _ in range(3):
        add(site.log, 5)
        site.tick()
    found = site.verdict(end)
    assert len(found.faults) == 2, found.faults
    assert ("missing" if loses_file else "lacked event 4 of the chain head file") in found.faults[0]
    assert "seal of the anchor" in found.faults[1]
    assert found.unsealed == 0
    with site.log.read() as connection:
        told = connection.execute(text("SELECT COUNT(*) FROM audit_events WHERE event = 'audit.broken'")).scalar_one()
    assert told == 1


def test_a_break_that_the_operator_acknowledges_is_recorded_and_no_fault_any_more(site: Site) -> None:
    add(site.log, 4)
    site.tick()
    unguarded(site.log, WIPE)
    add(site.log, 1)
    site.tick()
    unguarded(site.log, FORGED)
    site.tick()
    assert len(site.verdict().faults) == 2
    acknowledge(site.log, site.file, "restored a backup", site.verdict().faults)
    assert site.verdict().faults == ()
    site.tick()
    assert (site.verdict().faults, site.verdict().unsealed) == ((), 0)
    with site.log.read() as connection:
        told = connection.execute(
            text("SELECT after FROM audit_events WHERE event = 'audit.acknowledged'")
        ).scalar_one()
    assert "restored a backup" in str(told)
    assert "lacked event 4" in str(told)


FORGED = (
    "INSERT INTO audit_events (at, event, actor_id, allowed, via) "
    "VALUES ('2026-01-02 00:00:00', 'access.changed', 'mbr_forged', true, '[]')"
)
COPIED = (
    "INSERT INTO audit_events (at, event, actor_id, token_id, request_id, action, kind, resource_id, allowed, via, "
    "before, after, mark) SELECT at, event, actor_id, token_id, request_id, action, kind, resource_id, allowed, via, "
    "before, after, mark FROM audit_events WHERE seal_number = 2"
)


@pytest.mark.parametrize("statement", [FORGED, COPIED], ids=["forged", "copied"])
@pytest.mark.parametrize("hides", [False, True])
def test_a_row_that_somebody_else_wrote_is_not_sealed_but_put_in_quarantine(
    site: Site, statement: str, hides: bool
) -> None:
    add(site.log, 3)
    site.tick()
    unguarded(site.log, statement)
    if hides:
        unguarded(site.log, "UPDATE audit_events SET seal = 'x' WHERE seal_number IS NULL")
    add(site.log, 2)
    site.tick()
    found = site.verdict()
    [fault] = found.faults
    assert "the event with id 4 is quarantined" in fault
    assert (found.sealed, found.unsealed, found.quarantined) == (5 if hides else 6, 0, (4,))


def test_a_forged_row_is_reported_before_it_is_looked_at_by_the_sealer(site: Site) -> None:
    add(site.log, 1)
    site.tick()
    add(site.log, 1)
    unguarded(site.log, FORGED)
    found = site.verdict()
    assert [fault for fault in found.faults if "its mark is invalid" in fault] == list(found.faults)
    assert (len(found.faults), found.unsealed) == (1, 2)


def test_a_changed_event_that_was_not_sealed_yet_is_put_in_quarantine(site: Site) -> None:
    add(site.log, 1)
    site.tick()
    add(site.log, 2)
    unguarded(site.log, "UPDATE audit_events SET actor_id = 'mbr_other' WHERE id = 3")
    site.tick()
    assert site.verdict().quarantined == (3,)


def test_the_mark_of_a_sealed_event_cannot_be_taken_away(site: Site) -> None:
    add(site.log, 2)
    site.tick()
    unguarded(site.log, "UPDATE audit_events SET mark = NULL WHERE id = 1")
    assert "event 1 (id 1) was changed" in site.verdict().faults


def test_an_older_copy_of_the_file_is_noticed_while_it_works(site: Site) -> None:
    add(site.log, 2)
    site.tick()
    old = site.file.path.read_text()
    with closing(Scheduler(site.settings)) as scheduler:
        add(site.log, 2)
        scheduler.tick()
        site.file.path.write_text(old)
        unguarded(site.log, "DELETE FROM audit_events WHERE seal_number > 2")
        add(site.log, 1)
        scheduler.tick()
        scheduler.tick()
    assert "missing, damaged or outdated" in site.verdict().faults[0]


@pytest.mark.parametrize("has_file", [True, False])
def test_an_installation_of_an_earlier_version_goes_on_with_its_log(site: Site, has_file: bool) -> None:
    """Sealed and unsealed events without marks, and a file as it was written then, or none."""
    bare = Database(site.log.engine.url.render_as_string(hide_password=False))
    key = site.keys.key("audit")
    add(bare, 3)
    head = bare.write(lambda connection: seal_pending(connection, key, adopts=True))[0]
    add(bare, 1500)
    bare.close()
    if has_file:
        mac = hmac.new(key, f"head {head.number} {head.seal}".encode(), hashlib.sha256).hexdigest()
        site.file.path.write_text(json.dumps({"number": head.number, "seal": head.seal, "mac": mac}))
        assert (site.verdict().faults, site.verdict().unsealed) == ((), 1500)
    add(site.log, 1)
    site.tick()
    assert (site.verdict().faults, site.verdict().sealed, site.verdict().unsealed) == ((), 1504, 0)
    unguarded(site.log, FORGED)
    site.tick()
    assert len(site.verdict().quarantined) == 1


@pytest.mark.processes
def test_everything_that_an_installation_writes_has_a_mark(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.fill()
        address, token = one.up(), one.token("Tess")
        as_tess = {"HEADGATE_SERVER_URL": address, "HEADGATE_TOKEN": token}
        one.headgate("access", "change", "share", "resource=data_mart:Revenue", "for_use=true", **as_tess)
        one.headgate("audit", "list", **as_tess)

        def events() -> dict[str, bool]:
            with sqlite3.connect(tmp_path / "headgate.db") as connection:
                return dict(connection.execute("SELECT event, MIN(mark IS NOT NULL) FROM audit_events GROUP BY event"))

        eventually(lambda: {"access.changed", "access.denied"} <= events().keys())
        eventually(lambda: "0 not sealed yet: the log is intact" in one.headgate("audit", "verify").stdout)
        assert set(events().values()) == {True}, events()
