"""Stores of both kinds: files appear whole or not at all, and no path leads out of them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headgate.warehouse.store import Missing, PathTaken, Store


def test_what_was_written_is_read(store: Store) -> None:
    assert store.write("metadata/a/1.json", [b"one", b"two"]) == 6
    assert store.read("metadata/a/1.json") == b"onetwo"
    assert store.size("metadata/a/1.json") == 6
    assert [(one.path, one.size) for one in store.files("metadata")] == [("metadata/a/1.json", 6)]


def test_nothing_is_written_over(store: Store) -> None:
    store.write("a/1", [b"first"])
    with pytest.raises(PathTaken):
        store.write("a/1", [b"second"])
    assert store.read("a/1") == b"first"


def test_a_write_that_breaks_off_leaves_nothing(store: Store) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise OSError("the client is gone")

    with pytest.raises(OSError, match="gone"):
        store.write("a/1", parts())
    with pytest.raises(Missing):
        store.read("a/1")
    assert list(store.files("a")) == []


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.hidden", "a\0b", "a/b/", "ä", "a b"]
)
def test_no_path_leads_out(store: Store, path: str) -> None:
    acts = (store.read, store.open, store.size, store.delete, store.delete_folder, lambda one: list(store.files(one)))
    for act in (*acts, lambda one: store.write(one, [b"x"])):
        with pytest.raises(ValueError, match="is not a path of the warehouse"):
            act(path)


def test_what_is_not_there(store: Store) -> None:
    for act in (store.read, store.open, store.size):
        with pytest.raises(Missing):
            act("a/b")
    store.delete("a/b")
    store.delete_folder("a")
    assert list(store.files("a")) == []


def test_a_folder_is_deleted_with_all_in_it(store: Store) -> None:
    store.write("a/1", [b"x"])
    store.write("a/b/2", [b"y"])
    store.delete_folder("a")
    assert list(store.files("a")) == []


def test_a_file_is_read_in_the_middle(store: Store) -> None:
    store.write("a/1", [b"0123456789" * 1000])
    with store.open("a/1") as file:
        assert file.read(3) == b"012"
        file.seek(9995)
        assert file.read() == b"56789"
        assert file.tell() == 10_000


def test_a_large_file_arrives_whole(store: Store) -> None:
    """More than one part of a multipart upload, in pieces that fit none."""
    piece = bytes(range(256)) * 5000
    assert store.write("a/large", (piece for _ in range(20))) == 20 * len(piece)
    with store.open("a/large") as file:
        file.seek(19 * len(piece))
        assert file.read() == piece
    with pytest.raises(PathTaken):
        store.write("a/large", (piece for _ in range(20)))


def test_a_large_write_that_breaks_off_leaves_nothing(store: Store) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * (1 << 20)
        raise OSError("the client is gone")

    with pytest.raises(OSError, match="gone"):
        store.write("a/large", parts())
    with pytest.raises(Missing):
        store.size("a/large")


def test_an_empty_file_is_a_file(store: Store) -> None:
    assert store.write("a/empty", []) == 0
    assert store.read("a/empty") == b""


def test_of_two_writers_of_one_name_one_wins(store: Store) -> None:
    def write(number: int) -> bool:
        try:
            store.write("a/same", [str(number).encode() * 1000])
        except PathTaken:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 1


def test_a_folder_whose_name_starts_another_is_left(store: Store) -> None:
    store.write("tables/a/1", [b"x"])
    store.write("tables/ab/1", [b"y"])
    assert [one.path for one in store.files("tables/a")] == ["tables/a/1"]
    store.delete_folder("tables/a")
    assert [one.path for one in store.files("tables")] == ["tables/ab/1"]


def test_all_is_well(store: Store) -> None:
    assert store.check() == []
    assert list(store.files("checks")) == []
