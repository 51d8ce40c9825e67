"""Files of a folder: each is read once, whatever its times say."""

import os
import time
from pathlib import Path
from typing import Any

from headgate.execution.steps.files import from_folder
from tests.execution.sources.fetch import contents, context, land

DAY = 86_400


class Folder:
    """A folder that is read again and again, as published runs do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state: dict[str, Any] | None = None
        (path / "in").mkdir()

    def put(self, name: str, days: float = 0) -> None:
        """Put a file there that was written so many days from now."""
        file = self.path / "in" / name
        file.write_text(name)
        os.utime(file, (time.time() + days * DAY,) * 2)

    def read(self) -> list[str]:
        """The names of the files that are new."""
        root = str(self.path / "in")
        got = from_folder(
            land("*.csv", read="incremental", write="append"),
            root,
            context(self.path, folders=[root]),
            self.state,
        )
        self.state = got.state
        return sorted(contents(got))


def test_each_file_is_read_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.put("a.csv", -400)
    folder.put("b.csv")
    assert folder.read() == ["a.csv", "b.csv"]
    assert folder.read() == []
    folder.put("c.csv", -3)
    assert folder.read() == ["c.csv"]
    (tmp_path / "in" / "b.csv").unlink()
    assert folder.read() == []
    folder.put("a.csv", -1)
    assert folder.read() == ["a.csv"], "it was written anew"


def test_one_that_says_it_is_of_tomorrow_hides_none_that_come_before_then(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.put("a.csv", 3650)
    assert folder.read() == ["a.csv"]
    folder.put("b.csv")
    assert folder.read() == ["b.csv"]
    assert folder.read() == []
