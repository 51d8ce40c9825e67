"""Folders of connections and destinations: below an allowed one at a save and at every use, links resolved."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.execution.steps.context import StepFailed
from headgate.execution.steps.files import from_folder
from headgate.outgoing import folders
from headgate.outgoing.folders import FolderNotAllowed, check_saved, opened
from tests.execution.sources.fetch import contents, context, land

SETTING = "sources.folders"


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """An allowed folder, with a folder of files in it, beside one with a file that nobody may read."""
    (tmp_path / "allowed" / "in").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.csv").write_text("hidden")
    (tmp_path / "allowed" / "in" / "a.csv").write_text("open")
    return tmp_path / "allowed"


def read(path: Path, root: Path, work: Path) -> dict[str, bytes]:
    return contents(from_folder(land("**/*.csv"), str(path), context(work, folders=[str(root)]), None))


@pytest.mark.parametrize("written", ["{root}/link", "{root}/link/deeper", "{root}/in/up"])
def test_a_link_that_leads_out_is_refused_at_a_save_and_at_a_use(allowed: Path, written: str) -> None:
    (allowed / "link").symlink_to(allowed.parent / "secret")
    (allowed / "in" / "up").symlink_to("../../secret")
    path = written.format(root=allowed)
    with pytest.raises(FolderNotAllowed, match="symbolic link"):
        check_saved(path, [allowed], SETTING)
    with pytest.raises(FolderNotAllowed, match="symbolic link"), opened(path, [allowed], SETTING):
        pass


def test_no_folder_is_allowed_unless_it_is_listed(allowed: Path) -> None:
    for listed in ([], [allowed / "other"]):
        with pytest.raises(FolderNotAllowed, match=SETTING):
            check_saved(str(allowed / "in"), listed, SETTING)


def test_a_root_that_is_a_link_and_links_within_it_are_fine(allowed: Path, tmp_path: Path) -> None:
    (tmp_path / "root").symlink_to(allowed)
    (allowed / "again").symlink_to("in")
    (allowed / "in" / "b.csv").symlink_to("a.csv")
    path = str(tmp_path / "root" / "again")
    check_saved(path, [tmp_path / "root"], SETTING)
    with opened(path, [tmp_path / "root"], SETTING) as root:
        assert [one.name for one in root.files()] == ["a.csv", "b.csv"]


def test_what_leads_out_or_is_no_file_is_left_out(allowed: Path) -> None:
    (allowed / "in" / "out.csv").symlink_to("../../secret/a.csv")
    (allowed / "in" / "gone.csv").symlink_to("nowhere")
    (allowed / "in" / "folder.csv").symlink_to(allowed)
    os.mkfifo(allowed / "in" / "pipe.csv")
    with opened(str(allowed / "in"), [allowed], SETTING) as root:
        assert [one.name for one in root.files()] == ["a.csv"]
        for name in ("out.csv", "gone.csv", "folder.csv", "pipe.csv", "../../secret/a.csv", "."):
            with pytest.raises(FolderNotAllowed):
                os.close(root.open(name))


def test_a_folder_that_becomes_a_link_after_the_check_leads_nowhere(
    allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = folders._resolved

    def swapped(*about: object) -> object:
        found = resolved(*about)  # type: ignore[arg-type]
        (allowed / "in").rename(allowed / "before")
        (allowed / "in").symlink_to(allowed.parent / "secret")
        return found

    monkeypatch.setattr(folders, "_resolved", swapped)
    with pytest.raises(FolderNotAllowed, match="became a link"), opened(str(allowed / "in"), [allowed], SETTING):
        pass


def test_a_folder_that_becomes_a_link_while_it_is_open_stays_the_one_that_was_opened(allowed: Path) -> None:
    with opened(str(allowed / "in"), [allowed], SETTING) as root:
        (allowed / "in").rename(allowed / "before")
        (allowed / "in").symlink_to(allowed.parent / "secret")
        with pytest.raises(FolderNotAllowed):
            root.open("a.csv")
        assert [one.name for one in root.files()] == ["a.csv"]


def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_read(
    allowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = folders.Root.files

    def swapped(root: folders.Root) -> Iterator[folders.FolderFile]:
        found = list(real(root))
        (allowed / "in" / "a.csv").unlink()
        (allowed / "in" / "a.csv").symlink_to(allowed.parent / "secret" / "a.csv")
        return iter(found)

    monkeypatch.setattr(folders.Root, "files", swapped)
    with pytest.raises(StepFailed, match="leads out"):
        read(allowed / "in", allowed, tmp_path)


def test_a_file_that_becomes_a_link_before_spark_reads_it_was_read_already(allowed: Path, tmp_path: Path) -> None:
    with _got(allowed, tmp_path) as path:
        (allowed / "in" / "a.csv").unlink()
        (allowed / "in" / "a.csv").symlink_to(allowed.parent / "secret" / "a.csv")
        assert Path(path).read_text() == "open"


@contextmanager
def _got(allowed: Path, work: Path) -> Iterator[str]:
    [file] = from_folder(land("*.csv"), str(allowed / "in"), context(work, folders=[str(allowed)]), None).files
    yield file.path
