"""Orphan files: files in a table's folders that no metadata references. They are removed if they are old enough.

The files are listed before the references are read, and the pointers are checked again before each batch is removed, so
files of a concurrent commit are kept. Only files listed in this table's folders are removed, so corrupt metadata cannot
affect another table.
"""

from collections.abc import Callable
from datetime import datetime

from headgate.kit.crash_points import crash_point
from headgate.kit.database import Database
from headgate.lakehouse.catalog.errors import NotValid
from headgate.lakehouse.catalog.files import OutsideRoot, remove
from headgate.lakehouse.catalog.reachable_files import ReachableFiles
from headgate.lakehouse.maintenance.retained_metadata import MetadataRoots, RunCheckpoints, roots
from headgate.warehouse.locations import metadata_root, table_root
from headgate.warehouse.store import Store, StoredFile

AT_ONCE = 100


class Orphans:
    """Orphan files of one table older than a given time."""

    def __init__(self, database: Database, store: Store, runs: RunCheckpoints, table_id: str, before: datetime) -> None:
        self._database, self._store, self._runs = database, store, runs
        self._table, self._before = table_id, before
        self._reachable = ReachableFiles(store, table_id)
        self._known: MetadataRoots | None = None

    def listed(self) -> list[StoredFile]:
        """All files of the table that are old enough."""
        folders = (table_root(self._table), metadata_root(self._table))
        return [file for folder in folders for file in self._store.files(folder) if file.modified < self._before]

    def of(self, files: list[StoredFile]) -> list[StoredFile]:
        """The subset of files that are unreferenced now. Raises NotValid or Damaged if that cannot be determined."""
        if not files:
            return []
        self._look()
        return [file for file in files if file.path not in self._reachable and self._is_plain(file.path)]

    def _look(self) -> None:
        with self._database.read() as connection:
            metadata_roots = roots(connection, self._runs, self._table, self._before)
        if metadata_roots == self._known:
            return
        try:
            for file, sha256 in sorted(metadata_roots.pointed):
                self._reachable.add(file, sha256)
            for file in metadata_roots.past:
                self._reachable.add_past(file)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotValid(f"Cannot read the table's metadata: {type(error).__name__}") from error
        self._known = metadata_roots

    def _is_plain(self, path: str) -> bool:
        """Whether a file name chosen by an engine does not lead elsewhere by a link or spelling."""
        try:
            return self._reachable.root.path(f"{self._store.url}/{path}", or_metadata=True) == path
        except OutsideRoot:
            return False

    def remove(self, files: list[StoredFile], is_stopping: Callable[[], bool] = lambda: False) -> list[StoredFile]:
        """Remove those of the files that are still unreferenced; returns the removed ones."""
        gone: list[StoredFile] = []
        for first in range(0, len(files), AT_ONCE):
            if is_stopping():
                break
            still = self.of(files[first : first + AT_ONCE])
            remove(self._store, [file.path for file in still])
            gone += still
            crash_point("maintenance: some files removed")
        return gone
