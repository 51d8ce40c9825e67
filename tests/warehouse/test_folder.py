"""A folder as a store: files appear whole or not at all, and no path leads out of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.warehouse.folder import FolderStore
from headgate.warehouse.store import Missing, Taken


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "warehouse")


def test_what_was_written_is_read(store: FolderStore) -> None:
    assert store.write("metadata/a/1.json", [b"one", b"two"]) == 6
    assert store.read("metadata/a/1.json") == b"onetwo"
    assert store.size("metadata/a/1.json") == 6
    assert [(one.path, one.size) for one in store.files("metadata")] == [("metadata/a/1.json", 6)]


def test_nothing_is_written_over(store: FolderStore) -> None:
    store.write("a/1", [b"first"])
    with pytest.raises(Taken):
        store.write("a/1", [b"second"])
    assert store.read("a/1") == b"first"


def test_a_write_that_breaks_off_leaves_nothing(store: FolderStore) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise OSError("the client is gone")

    with pytest.raises(OSError, match="gone"):
        store.write("a/1", parts())
    with pytest.raises(Missing):
        store.read("a/1")
    assert list((store.root / "a").iterdir()) == []


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.hidden", "a\0b", "a/b/", "ä", "a b"]
)
def test_no_path_leads_out(store: FolderStore, path: str) -> None:
    for act in (store.read, store.size, store.delete, store.delete_folder, lambda one: store.write(one, [b"x"])):
        with pytest.raises(ValueError, match="no path of the warehouse"):
            act(path)


def test_what_is_not_there(store: FolderStore) -> None:
    for act in (store.read, store.open, store.size):
        with pytest.raises(Missing):
            act("a/b")
    store.delete("a/b")
    store.delete_folder("a")
    assert list(store.files("a")) == []


def test_a_folder_is_deleted_with_all_in_it(store: FolderStore) -> None:
    store.write("a/1", [b"x"])
    store.write("a/b/2", [b"y"])
    store.delete_folder("a")
    assert list(store.files("a")) == []
