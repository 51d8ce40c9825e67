"""Sealed values open where they were sealed and nowhere else, and the key file keeps what they need."""

import base64
import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headgate.kit.encryption import PURPOSE, CannotOpen, Sealer, UnknownPlace, key_id_of, prefix_of, row_name
from headgate.kit.key_file import BadKeyFile, KeyFile, KeyRing

PLACE = ("connections", "con_1", "password")
AT = datetime(2026, 6, 1, tzinfo=UTC)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


class Anywhere:
    """Every place, for values that no table holds."""

    def __contains__(self, place: object) -> bool:
        return True


@pytest.fixture(scope="module")
def sealer(tmp_path_factory: pytest.TempPathFactory) -> Sealer:
    return sealer_of(KeyFile(tmp_path_factory.mktemp("sealed") / "keys.json"))


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json")


def sealer_of(keys: KeyFile) -> Sealer:
    return Sealer(keys, Anywhere())


def turn(keys: KeyFile) -> KeyRing:
    return keys.change(PURPOSE, lambda ring: ring.turned(AT, rotating=False))


def forget_all_but_the_newest(keys: KeyFile) -> KeyRing:
    return keys.change(PURPOSE, lambda ring: KeyRing(ring.generations[-1:]))


@settings(deadline=None)
@given(texts, st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_what_was_sealed_opens_in_its_place(sealer: Sealer, text: str, table: str, row: str, column: str) -> None:
    assert sealer.open(sealer.seal(text, table, row, column), table, row, column) == text


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_bytes_come_back_as_bytes(sealer: Sealer, secret: bytes) -> None:
    value = sealer.seal(secret, *PLACE)
    assert sealer.open_bytes(value, *PLACE) == secret
    try:
        expected = secret.decode()
    except UnicodeDecodeError:
        with pytest.raises(CannotOpen, match="bytes"):
            sealer.open(value, *PLACE)
    else:
        assert sealer.open(value, *PLACE) == expected


@settings(deadline=None)
@given(texts, st.tuples(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8)), st.data())
def test_no_other_place_opens_it(sealer: Sealer, text: str, place: tuple[str, str, str], data: Any) -> None:
    """Also not one whose parts, put together, read the same."""
    joined = "".join(place)
    cuts = sorted(data.draw(st.tuples(*[st.integers(0, len(joined))] * 2)))
    moved = (joined[: cuts[0]], joined[cuts[0] : cuts[1]], joined[cuts[1] :])
    for other in (
        moved,
        place[::-1],
        *(tuple(p + "x" if n == m else p for m, p in enumerate(place)) for n in range(3)),
    ):
        if other != place:
            with pytest.raises(CannotOpen):
                sealer.open(sealer.seal(text, *place), *other)


def test_every_single_change_of_a_character_is_noticed(sealer: Sealer) -> None:
    for text in ("", "a", "ab", "abc"):
        value = sealer.seal(text, *PLACE)
        for position in range(len(value)):
            for other in {*ALPHABET, ".", "=", "+", "/", " ", "\n", "é", "\x00"} - {value[position]}:
                with pytest.raises(CannotOpen):
                    sealer.open(value[:position] + other + value[position + 1 :], *PLACE)


@settings(deadline=None)
@given(texts, st.data())
def test_every_cut_addition_and_change_of_bytes_is_noticed(sealer: Sealer, text: str, data: Any) -> None:
    value = sealer.seal(f"hunter2 {text}", *PLACE)
    prefix = prefix_of(key_id_of(value) or "")
    raw = bytearray(base64.urlsafe_b64decode(value[len(prefix) :] + "=="))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    position = data.draw(st.integers(0, len(value)))
    extra = data.draw(st.text(min_size=1, max_size=5))
    changed = prefix + base64.urlsafe_b64encode(raw).decode().rstrip("=")
    inserted = value[:position] + extra + value[position:]
    for other in (changed, inserted, value[:position], value[position:]):
        if other != value:
            with pytest.raises(CannotOpen) as caught:
                sealer.open(other, *PLACE)
            assert "hunter2" not in str(caught.value)


@settings(deadline=None)
@given(st.text(max_size=80))
def test_whatever_was_not_sealed_does_not_open(sealer: Sealer, value: str) -> None:
    with pytest.raises(CannotOpen, match=r"connections\.password of con_1"):
        sealer.open(value, *PLACE)


@settings(deadline=None)
@given(texts)
def test_equal_texts_are_sealed_differently_and_the_text_is_not_seen(sealer: Sealer, text: str) -> None:
    assume(len(text) > 2)
    one, other = (sealer.seal(text, *PLACE) for _ in range(2))
    assert one != other
    assert text.encode() not in base64.urlsafe_b64decode(one.rpartition(".")[2] + "==")


def test_a_nonce_is_never_used_twice(sealer: Sealer) -> None:
    assert len({sealer.seal("x", *PLACE)[12:28] for _ in range(2000)}) == 2000


def test_the_value_is_compact_text_that_names_its_key(sealer: Sealer) -> None:
    value = sealer.seal("a password", *PLACE)
    assert value.startswith(f"v1.{sealer.current().id}.")
    assert set(value) <= {*ALPHABET, "."}
    assert len(value) == 12 + -(-(12 + 10 + 16) * 4 // 3)


def test_text_that_cannot_be_written_is_refused_without_being_told(sealer: Sealer) -> None:
    with pytest.raises(ValueError, match="UTF-8") as caught:
        sealer.seal("hunter2\ud800", *PLACE)
    assert caught.value.__suppress_context__
    assert "hunter2" not in str(caught.value)


def test_rows_with_keys_of_several_columns_have_names_of_their_own() -> None:
    assert row_name("con_1") == "con_1"
    assert row_name(7) == "7"
    assert len({row_name("a", "b"), row_name("ab", ""), row_name("a,b", ""), row_name("a", "b", "")}) == 4


def test_nothing_is_sealed_where_no_rotation_would_find_it(keys: KeyFile) -> None:
    with pytest.raises(UnknownPlace, match=r"nowhere\.secret.*register"):
        Sealer(keys).seal("x", "nowhere", "1", "secret")


def test_a_rotation_by_another_process_is_noticed(keys: KeyFile) -> None:
    running, first = sealer_of(keys), sealer_of(keys).current().id
    old = running.seal("old", *PLACE)
    second = turn(keys).current.id
    assert key_id_of(running.seal("x", *PLACE)) == second != first
    assert running.open(old, *PLACE) == "old"


def test_a_key_that_is_not_known_yet_is_looked_for_once_more(keys: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    running = sealer_of(keys)
    turn(keys)
    new = sealer_of(keys).seal("new", *PLACE)
    reads: list[str] = []
    read = KeyFile.ring
    monkeypatch.setattr(KeyFile, "ring", lambda self, purpose: (reads.append(purpose), read(self, purpose))[1])
    assert [running.open(new, *PLACE) for _ in range(3)] == ["new"] * 3
    assert reads == [PURPOSE]
    with pytest.raises(CannotOpen):
        running.open(prefix_of("00000000") + new[12:], *PLACE)
    assert reads == [PURPOSE] * 2


def test_a_missing_key_is_named_with_what_to_do(keys: KeyFile) -> None:
    value = sealer_of(keys).seal("hunter2", *PLACE)
    lost = key_id_of(value)
    turn(keys)
    forget_all_but_the_newest(keys)
    with pytest.raises(CannotOpen) as caught:
        sealer_of(keys).open(value, *PLACE)
    assert str(caught.value) == (
        f"connections.password of con_1 is encrypted with key {lost}, which is not in {keys.path}; restore the "
        "key file from a backup that has this key"
    )


def test_a_running_server_neither_replaces_a_key_file_that_is_gone_nor_seals_without_it(keys: KeyFile) -> None:
    running = sealer_of(keys)
    value = running.seal("x", *PLACE)
    keys.path.unlink()
    assert running.open(value, *PLACE) == "x"
    with pytest.raises(BadKeyFile, match="restore it"):
        running.seal("y", *PLACE)
    with pytest.raises(CannotOpen, match="restore it"):
        running.open(prefix_of("00000000") + value[12:], *PLACE)
    assert not keys.path.exists()


def test_processes_that_start_together_agree_on_the_first_key(keys: KeyFile) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(sealer_of(keys).current().id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(keys.ring(PURPOSE).generations) == 1


def test_a_file_of_the_first_version_keeps_its_keys_and_takes_rings(keys: KeyFile) -> None:
    old = {"version": 1, "keys": {"audit": base64.b64encode(b"k" * 32).decode()}}
    keys.path.write_text(json.dumps(old))
    keys.path.chmod(0o600)
    assert keys.key("audit") == b"k" * 32
    assert keys.ring(PURPOSE) == KeyRing()
    assert json.loads(keys.path.read_text()) == old
    sealer_of(keys)
    written = json.loads(keys.path.read_text())
    assert (written["version"], written["keys"]) == (2, old["keys"])
    assert keys.key("audit") == b"k" * 32


def test_a_file_without_rings_stays_what_older_versions_read(keys: KeyFile) -> None:
    keys.key("audit")
    assert set(json.loads(keys.path.read_text())) == {"version", "keys"}
    assert json.loads(keys.path.read_text())["version"] == 1


def test_rings_and_keys_survive_each_other_and_stay_private(keys: KeyFile) -> None:
    audit = keys.key("audit")
    ring = [turn(keys) for _ in range(3)][-1]
    other = keys.key("other")
    assert len({one.id for one in ring.generations}) == 3
    assert KeyFile(keys.path).ring(PURPOSE) == ring
    assert (keys.key("audit"), keys.key("other")) == (audit, other)
    assert {one.stat().st_mode & 0o777 for one in keys.path.parent.iterdir()} == {0o600}


def test_keys_are_not_shown_by_accident(keys: KeyFile) -> None:
    ring = turn(keys)
    assert repr(ring.current.key) not in repr(ring)
    assert ring.current.id in repr(ring)


def test_a_change_that_fails_leaves_the_file_and_its_lock_free(keys: KeyFile) -> None:
    ring = turn(keys)

    def fail(_: KeyRing) -> KeyRing:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        keys.change(PURPOSE, fail)
    assert keys.ring(PURPOSE) == ring
    assert len(turn(keys).generations) == 2


def test_a_disk_that_is_full_leaves_the_file_as_it_was(keys: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    ring, text = turn(keys), keys.path.read_text()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        turn(keys)
    monkeypatch.undo()
    assert keys.path.read_text() == text
    assert keys.ring(PURPOSE) == ring


def test_what_a_killed_process_left_half_written_is_removed(keys: KeyFile) -> None:
    left = keys.path.with_name(".keys.json.12345.new")
    left.write_text("{}")
    turn(keys)
    assert not left.exists()
    assert len(keys.ring(PURPOSE).generations) == 1


def _damaged() -> Iterator[Any]:
    good = {"id": "abcdefgh", "made": "2026-06-01T00:00:00Z", "key": base64.b64encode(b"k" * 32).decode()}
    yield [good, good]
    yield []
    yield 7
    for change in (
        {"id": "ABCDEFGH"},
        {"id": "abc"},
        {"id": None},
        {"made": "2026-06-01T00:00:00"},
        {"made": "yesterday"},
        {"made": None},
        {"key": "%%%%"},
        {"key": base64.b64encode(b"short").decode()},
        {"key": None},
    ):
        yield [{**good, **change}]
    for name in good:
        yield [{key: value for key, value in good.items() if key != name}]


@pytest.mark.parametrize("generations", list(_damaged()))
def test_a_damaged_ring_is_told_and_never_replaced(keys: KeyFile, generations: Any) -> None:
    rings = {PURPOSE: {"rotating": False, "generations": generations}}
    text = json.dumps({"version": 2, "keys": {}, "rings": rings})
    keys.path.write_text(text)
    keys.path.chmod(0o600)
    for attempt in (lambda: sealer_of(keys), lambda: turn(keys), lambda: keys.key("audit")):
        with pytest.raises(BadKeyFile, match=r"keys\.json is not a key file; restore it from a backup"):
            attempt()
    assert keys.path.read_text() == text


@settings(max_examples=50, deadline=None)
@given(cut=st.integers(0, 400))
def test_a_key_file_that_was_cut_is_told(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    keys = KeyFile(tmp_path_factory.mktemp("cut") / "keys.json")
    turn(keys)
    text = keys.path.read_text()
    assume(cut < len(text))
    os.truncate(keys.path, cut)
    with pytest.raises(BadKeyFile, match="restore it from a backup"):
        sealer_of(keys)


def test_a_key_file_of_a_later_version_is_left_alone(keys: KeyFile) -> None:
    keys.path.write_text('{"version": 3, "keys": {}, "rings": {}}')
    keys.path.chmod(0o600)
    with pytest.raises(BadKeyFile, match="another version"):
        sealer_of(keys)
