"""Rotating keys: everything opens at every moment, nothing that is needed is dropped, and old keys end."""

import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, MetaData, String, Table, Text, insert, update

import headgate
from headgate.kit.database import Busy, Database
from headgate.kit.encryption import PLACES, PURPOSE, Sealer, key_id_of, row_name
from headgate.kit.key_file import KeyFile, KeyRing
from headgate.platform.secrets import rotation
from headgate.platform.secrets.rotation import GRACE, prune, register, rotate, status
from headgate.schema import MODULES
from tests.platform.secrets import ITEMS, METADATA, PAIRS, Clock, Vault, registered

pytestmark = pytest.mark.both_databases


@pytest.fixture
def vault(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    monkeypatch.setattr(rotation, "BATCH", 7)
    database = Database(database_url)
    METADATA.create_all(database.engine)
    with registered():
        yield Vault(database, KeyFile(tmp_path / "keys.json"))
    database.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ids(vault: Vault) -> list[str]:
    return [one.id for one in vault.ring.generations]


def test_every_row_gets_the_new_key_and_keeps_its_text(vault: Vault) -> None:
    texts = vault.fill(40)
    (old,) = ids(vault)
    assert vault.usage() == {old: len(texts)}
    told: list[tuple[int, int]] = []
    outcome = rotate(vault.database, vault.keys, lambda done, total: told.append((done, total)))
    new = vault.ring.current.id
    assert new != old
    assert vault.usage() == {new: len(texts)}
    assert vault.texts() == texts
    assert (outcome.key, outcome.resumed, outcome.resealed, outcome.unopened) == (new, False, len(texts), 0)
    assert told == sorted(told)
    assert told[-1] == (len(texts), len(texts))
    assert len(told) > len(texts) // 7
    assert not vault.ring.rotating
    assert vault.keys.path.stat().st_mode & 0o777 == 0o600


def test_an_installation_without_secrets_can_rotate_too(vault: Vault) -> None:
    outcome = rotate(vault.database, vault.keys)
    assert outcome.resealed == 0
    assert ids(vault) == [outcome.key]


def test_the_key_before_is_kept_by_a_rotation_and_dropped_by_the_next(vault: Vault, clock: Clock) -> None:
    texts = vault.fill(10)
    seen = ids(vault)
    for _ in range(3):
        clock.pass_(2 * GRACE)
        outcome = rotate(vault.database, vault.keys, clock=clock)
        seen.append(outcome.key)
        assert ids(vault) == seen[-2:]
        assert outcome.dropped == tuple(seen[-3:-2])
        assert vault.texts() == texts


def test_no_key_is_dropped_within_its_grace(vault: Vault, clock: Clock) -> None:
    vault.fill(3)
    for _ in range(3):
        rotate(vault.database, vault.keys, clock=clock)
        prune(vault.database, vault.keys, clock=clock)
    assert len(ids(vault)) == 4
    clock.pass_(GRACE - timedelta(seconds=1))
    assert prune(vault.database, vault.keys, clock=clock).dropped == ()
    clock.pass_(timedelta(seconds=1))
    assert len(prune(vault.database, vault.keys, clock=clock).dropped) == 3
    assert ids(vault) == [vault.ring.current.id]


def test_a_rotation_that_is_finished_much_later_keeps_the_key_before_too(vault: Vault, clock: Clock) -> None:
    vault.fill(3)
    old = vault.ring.current.id
    rotate(vault.database, vault.keys, clock=clock)
    vault.keys.change(PURPOSE, lambda ring: KeyRing(ring.generations, rotating=True))
    clock.pass_(2 * GRACE)
    assert rotate(vault.database, vault.keys, clock=clock).dropped == ()
    assert ids(vault)[0] == old


def test_a_key_whose_rows_were_just_moved_is_kept_while_others_are_dropped(vault: Vault, clock: Clock) -> None:
    """Somebody may have read a row before it was moved, and open it now."""
    vault.fill(3)
    rotate(vault.database, vault.keys, clock=clock)
    late = Sealer(vault.keys).seal("late", ITEMS.name, "i0", "secret")
    rotate(vault.database, vault.keys, clock=clock)
    vault.store("i0", late)
    first, second, _ = ids(vault)
    clock.pass_(2 * GRACE)
    assert prune(vault.database, vault.keys, clock=clock).dropped == (first,)
    assert Sealer(vault.keys).open(late, ITEMS.name, "i0", "secret") == "late"
    assert prune(vault.database, vault.keys, clock=clock).dropped == (second,)


def test_what_a_server_commits_late_still_opens_and_is_moved_by_the_next_run(vault: Vault, clock: Clock) -> None:
    texts = vault.fill(3)
    late = Sealer(vault.keys).seal("late", ITEMS.name, "i0", "secret")
    old = key_id_of(late)
    rotate(vault.database, vault.keys, clock=clock)
    vault.store("i0", late)
    texts["i0"] = "late"
    assert vault.texts() == texts
    clock.pass_(2 * GRACE)
    moved = prune(vault.database, vault.keys, clock=clock)
    assert (moved.resealed, moved.dropped) == (1, ())
    assert prune(vault.database, vault.keys, clock=clock).dropped == (old,)
    assert vault.texts() == texts


def test_a_key_that_comes_into_use_after_all_was_sealed_anew_is_not_dropped(
    vault: Vault, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count that decides is the one under the lock, not the one before."""
    texts = vault.fill(3)
    late = Sealer(vault.keys).seal("late", ITEMS.name, "i0", "secret")
    rotate(vault.database, vault.keys, clock=clock)
    clock.pass_(2 * GRACE)
    settle = rotation._settle

    def commit_then_settle(*args: object, **more: object) -> object:
        vault.store("i0", late)
        return settle(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(rotation, "_settle", commit_then_settle)
    assert prune(vault.database, vault.keys, clock=clock).dropped == ()
    assert vault.texts() == {**texts, "i0": "late"}


def test_a_key_is_not_dropped_before_those_who_may_use_it_have_committed(
    vault: Vault, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = vault.fill(3)
    late = Sealer(vault.keys).seal("late", ITEMS.name, "i0", "secret")
    rotate(vault.database, vault.keys, clock=clock)
    clock.pass_(2 * GRACE)
    monkeypatch.setattr(rotation, "LOCK_WAIT", timedelta(milliseconds=50))
    monkeypatch.setattr("headgate.kit.database.BUSY_TIMEOUT", 0.05)
    monkeypatch.setattr("headgate.kit.database.MAX_ATTEMPTS", 2)
    other = Database(vault.database.engine.url.render_as_string(hide_password=False))
    kept = ids(vault)

    def commit_late(connection: object) -> None:
        connection.execute(update(ITEMS).where(ITEMS.c.id == "i0").values(secret=late))  # type: ignore[attr-defined]
        with pytest.raises(Busy):
            prune(other, vault.keys, clock=clock)

    vault.database.write(commit_late)
    other.close()
    assert ids(vault) == kept
    assert vault.texts() == {**texts, "i0": "late"}


def test_a_change_made_meanwhile_is_never_overwritten(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that is sealed with the old key nor one with the new."""
    texts = vault.fill(30)
    stale, write, sealer = Sealer(vault.keys), Database.write, Sealer(vault.keys)
    slow = stale.seal("slow", ITEMS.name, "i1", "secret")
    changed: list[str] = []

    def change_first(database: Database, work: Callable[..., int]) -> int:
        monkeypatch.setattr(Database, "write", write)
        vault.store("i1", slow)
        vault.set("i10", "quick", sealer)
        changed.append(key_id_of(vault.stored("i10")) or "")
        return write(database, work)

    monkeypatch.setattr(Database, "write", change_first)
    rotate(vault.database, vault.keys)
    assert changed == [vault.ring.current.id]
    assert vault.texts() == {**texts, "i1": "slow", "i10": "quick"}
    assert set(vault.usage()) == {vault.ring.current.id}


def test_servers_write_and_read_while_keys_rotate(vault: Vault, clock: Clock) -> None:
    expected = vault.fill(24)
    stop, faults = threading.Event(), []

    def serve(mine: list[str]) -> None:
        sealer, number = Sealer(vault.keys), 0
        try:
            while not stop.is_set():
                number += 1
                item = mine[number % len(mine)]
                vault.set(item, f"{item} {number}", sealer)
                expected[item] = f"{item} {number}"
                assert sealer.open(vault.stored(item), ITEMS.name, item, "secret") == expected[item]
        except Exception as error:  # noqa: BLE001 - told by the test
            faults.append(error)

    threads = [threading.Thread(target=serve, args=([f"i{n}" for n in range(24) if n % 2 == part],)) for part in (0, 1)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            clock.pass_(2 * GRACE)
            assert rotate(vault.database, vault.keys, clock=clock).unopened == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []
    assert vault.texts() == expected
    assert len(ids(vault)) <= 3


def test_two_rotations_at_once_share_the_work(vault: Vault) -> None:
    texts, barrier = vault.fill(60), threading.Barrier(2)
    faults: list[BaseException] = []

    def run() -> None:
        database = Database(vault.database.engine.url.render_as_string(hide_password=False))
        try:
            barrier.wait()
            rotate(database, KeyFile(vault.keys.path))
        except BaseException as error:  # noqa: BLE001 - told by the test
            faults.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert vault.texts() == texts
    assert vault.usage() == {vault.ring.current.id: len(texts)}
    assert not vault.ring.rotating


def test_a_second_rotation_helps_the_first_and_adds_no_key(vault: Vault) -> None:
    texts, helpers = vault.fill(30), list[Any]()

    def help_once(_done: int, _total: int) -> None:
        if not helpers:
            helpers.append(rotate(vault.database, vault.keys))

    first = rotate(vault.database, vault.keys, help_once)
    assert helpers[0].resumed
    assert helpers[0].key == first.key
    assert first.resealed + helpers[0].resealed == len(texts)
    assert len(ids(vault)) == 2
    assert vault.texts() == texts


def test_a_rotation_that_is_overtaken_goes_on_to_the_newest_key(vault: Vault, clock: Clock) -> None:
    texts, keys = vault.fill(30), list[Any]()

    def overtake(_done: int, _total: int) -> None:
        if not keys:
            keys.append(vault.ring.current.id)
            rotate(vault.database, vault.keys, clock=clock)
            vault.keys.change(PURPOSE, lambda ring: ring.turned(clock(), rotating=True))
            keys.append(vault.ring.current.id)

    first = rotate(vault.database, vault.keys, overtake, clock)
    assert (first.key, vault.usage()) == (keys[1], {keys[1]: len(texts)})
    assert vault.texts() == texts


def test_the_mark_of_a_later_rotation_is_not_taken_away(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.fill(3)
    settle = rotation._settle

    def overtaken(*args: object, **more: object) -> object:
        vault.keys.change(PURPOSE, lambda ring: KeyRing(ring.generations).turned(Clock()(), rotating=True))
        return settle(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(rotation, "_settle", overtaken)
    rotate(vault.database, vault.keys)
    assert vault.ring.rotating
    monkeypatch.undo()
    assert rotate(vault.database, vault.keys).resumed
    assert not vault.ring.rotating


def test_rows_that_cannot_be_opened_are_named_left_alone_and_keep_their_key(vault: Vault, clock: Clock) -> None:
    vault.fill(30)
    old = vault.ring.current.id
    moved, cut = vault.stored("i2"), vault.stored("i3")[:-1]
    for item, value in (("i1", moved), ("i3", cut), ("i4", "never sealed"), ("i5", "v1.00000000.AAAA" + "A" * 40)):
        vault.store(item, value)
    clock.pass_(2 * GRACE)
    outcome = rotate(vault.database, vault.keys, clock=clock)
    assert outcome.unopened == len(outcome.faults) == 4
    assert {fault.partition(" of ")[2].split()[0] for fault in outcome.faults} == {"i1", "i3", "i4", "i5"}
    assert any("key 00000000" in fault for fault in outcome.faults)
    assert (vault.stored("i1"), vault.stored("i3"), vault.stored("i4")) == (moved, cut, "never sealed")
    assert not vault.ring.rotating
    clock.pass_(2 * GRACE)
    for _ in range(2):
        prune(vault.database, vault.keys, clock=clock)
    assert vault.usage()[old] == 2
    assert old in ids(vault)


def test_many_rows_that_cannot_be_opened_hide_no_others(vault: Vault) -> None:
    """More than a batch of them, in the order of the keys and in the order in which they were stored."""
    sealer = Sealer(vault.keys)
    names = [(f"z{n}", "damaged") for n in range(10)] + [
        (name, sealer.seal(name, ITEMS.name, name, "secret")) for name in ("a", "m", "zz")
    ]
    items = [{"id": name, "secret": value} for name, value in names]
    pairs = [{"order": "a", "number": n, "secret": "damaged"} for n in range(10)]
    for n in (10, 11):
        value = sealer.seal("fine", PAIRS.name, row_name("a", n), "secret")
        pairs.append({"order": "a", "number": n, "secret": value})
    vault.database.write(lambda connection: connection.execute(insert(ITEMS), items) and None)
    vault.database.write(lambda connection: connection.execute(insert(PAIRS), pairs) and None)
    outcome = rotate(vault.database, vault.keys)
    assert (outcome.resealed, outcome.unopened) == (5, 20)
    assert vault.usage() == {outcome.key: 5, None: 20}


def test_only_the_first_faults_are_told_in_full(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "MAX_FAULTS", 2)
    vault.fill(5)
    for n in range(5):
        vault.store(f"i{n}", "not sealed")
    outcome = rotate(vault.database, vault.keys)
    assert (outcome.unopened, len(outcome.faults)) == (5, 2)


def test_the_status_counts_rows_and_names_keys_that_are_missing(vault: Vault, tmp_path: Path) -> None:
    texts = vault.fill(6)
    first = vault.ring.current
    rotate(vault.database, vault.keys)
    vault.store("i1", "not sealed")
    lost = vault.ring.current.id
    vault.keys.change(PURPOSE, lambda ring: KeyRing((first,)).turned(ring.current.made, rotating=True))
    vault.set("i0", "new", Sealer(vault.keys))
    with vault.database.read() as connection:
        found = status(connection, vault.keys)
    assert [(one.id, one.state, one.rows) for one in found.keys] == [
        (vault.ring.current.id, "current", 1),
        (first.id, "older", 0),
        (lost, "missing", len(texts) - 2),
    ]
    assert (found.rotating, found.unsealed) == (True, 1)


def test_values_that_are_null_stay_so(vault: Vault) -> None:
    vault.database.write(lambda connection: connection.execute(insert(ITEMS), [{"id": "empty"}]) and None)
    assert rotate(vault.database, vault.keys).unopened == 0


def test_a_column_is_registered_once_and_with_a_key_that_stays_readable() -> None:
    metadata = MetaData()
    bare = Table("bare", metadata, Column("secret", Text))
    keyed = Table("keyed", metadata, Column("id", String(10), primary_key=True), Column("secret", Text))
    with registered():
        register(keyed, "secret")
        register(keyed, "secret")
        assert [one.table.name for one in rotation.SEALED].count("keyed") == 1
        for table, column in ((bare, "secret"), (keyed, "id")):
            with pytest.raises(ValueError, match="primary key"):
                register(table, column)
        with pytest.raises(KeyError):
            register(keyed, "no such column")
    assert ("keyed", "secret") not in PLACES


def hidden_registrations(folder: Path, known: set[str]) -> list[str]:
    """Files that register columns, yet that a command which rotates keys would not have loaded."""
    calls = re.compile(r"headgate\.platform\.secrets\.rotation import [^\n]*\bregister\b|\brotation\.register\(")
    names = {
        ".".join(("headgate", *file.relative_to(folder).with_suffix("").parts)): file.read_text(encoding="utf-8")
        for file in folder.rglob("*.py")
    }
    return [name for name, text in names.items() if calls.search(text) and name not in known]


def test_columns_are_registered_where_every_command_finds_them(tmp_path: Path) -> None:
    assert hidden_registrations(Path(headgate.__file__).parent, {module.__name__ for module in MODULES}) == []
    (tmp_path / "service.py").write_text("from headgate.platform.secrets.rotation import register\n")
    assert hidden_registrations(tmp_path, set()) == ["headgate.service"]
