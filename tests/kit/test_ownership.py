"""Files that root shares with the user of its sandboxes."""

import os
from pathlib import Path

from headgate.kit.file_ownership import give, make_folder, owned
from headgate.settings.settings import Settings
from headgate.warehouse.folder import FolderStore
from tests.support.root import only_root

USER = Settings().spark.sandbox_uid


def _owner(path: Path) -> int:
    return path.lstat().st_uid


@only_root
def test_a_tree_is_given_without_what_its_links_lead_to(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "folder"
    secret.mkdir()
    (secret / "file").touch()
    (secret / "named twice").touch()
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").touch()
    (folder / "inner" / "link").symlink_to(secret)
    os.link(secret / "named twice", folder / "inner" / "hard link")
    owned(USER, folder)
    given = [folder, folder / "inner", folder / "inner" / "file", folder / "inner" / "link"]
    assert {_owner(path) for path in given} == {USER}
    assert {_owner(path) for path in (secret, secret / "file", secret / "named twice")} == {0}
    (tmp_path / "way").symlink_to(secret)
    give(USER, tmp_path / "way", tmp_path / "not there")
    assert (_owner(tmp_path / "way"), _owner(secret)) == (USER, 0)


@only_root
def test_what_root_adds_belongs_to_whom_the_folder_belongs(tmp_path: Path) -> None:
    owned(USER, tmp_path / "metadata")
    FolderStore(tmp_path).write("metadata/tbl_1/a/file.json", [b"x"])
    make_folder(tmp_path / "metadata" / "tbl_2" / "b", 0o700)
    added = [tmp_path / "metadata" / name for name in ("tbl_1", "tbl_1/a", "tbl_1/a/file.json", "tbl_2", "tbl_2/b")]
    assert {_owner(path) for path in added} == {USER}
    FolderStore(tmp_path).write("results/st_1/file", [b"x"])
    assert _owner(tmp_path / "results" / "st_1" / "file") == 0


def test_a_folder_is_made_with_all_above_it(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b" / "c", 0o700)
    make_folder(tmp_path / "a" / "b" / "c", 0o700)
    assert (tmp_path / "a" / "b" / "c").stat().st_mode & 0o777 == 0o700
