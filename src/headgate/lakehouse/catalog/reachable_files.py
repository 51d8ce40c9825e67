"""All files that any metadata of one table references; maintenance must never remove them.

Paths are compared after decoding, so two spellings of a name count as one; this can only keep more files. A file that
cannot be read, or a location outside of the table, aborts the scan, and nothing of the table is removed.
"""

import json
from typing import Any
from urllib.parse import unquote

from headgate.lakehouse.catalog.errors import NotValid
from headgate.lakehouse.catalog.files import OutsideRoot, Root, size
from headgate.lakehouse.catalog.manifests import check_path, entries_of, manifests_of
from headgate.lakehouse.catalog.metadata_files import read_metadata
from headgate.warehouse.locations import metadata_root
from headgate.warehouse.store import Missing, Store

_DELETED = 2
"""Manifest entry status of a file that is deleted from the table as of its snapshot."""


class ReachableFiles:
    """The files of one table that its metadata references. Each metadata file is read once."""

    def __init__(self, store: Store, table_id: str) -> None:
        self.root = Root(store, table_id)
        self._store, self._table = store, table_id
        self._files: set[str] = set()
        self._looked_at: set[str] = set()

    def __contains__(self, path: str) -> bool:
        """Whether a path is one of them, or Hadoop's checksum file for one of them."""
        folder, slash, name = path.rpartition("/")
        beside = f"{folder}{slash}{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else path
        return bool({_plain(path), _plain(beside)} & self._files)

    def add(self, metadata_file: str, sha256: str) -> None:
        """Add all files of a metadata file that a pointer refers to now. A missing file aborts the scan."""
        if metadata_file not in self._looked_at:
            content = read_metadata(self._store, self._table, metadata_file, sha256)
            self._add(metadata_file, content, must_exist=True)

    def add_past(self, metadata_file: str) -> None:
        """Add all files of earlier metadata, as far as they still exist."""
        if metadata_file in self._looked_at:
            return
        try:
            content = self._store.read(f"{metadata_root(self._table)}/{metadata_file}")
        except Missing:
            return
        self._add(metadata_file, content, must_exist=False)

    def _add(self, metadata_file: str, content: bytes, *, must_exist: bool) -> None:
        document = json.loads(content)
        self._keep(f"{metadata_root(self._table)}/{metadata_file}")
        for value in document.get("metadata-log") or ():
            self._keep(self._logged(value["metadata-file"]))
        for name in ("statistics", "partition-statistics"):
            for value in document.get(name) or ():
                self._keep(check_path(self.root, value["statistics-path"], "A statistics file"))
        for value in document.get("snapshots") or ():
            self._add_list(value["manifest-list"], must_exist=must_exist)
        self._looked_at.add(metadata_file)

    def _logged(self, location: Any) -> str:
        try:
            return self.root.path(location, or_metadata=True)
        except OutsideRoot:
            raise NotValid(f"A metadata file lies outside the table's own: {str(location)[:300]}") from None

    def _add_list(self, location: str, *, must_exist: bool) -> None:
        path = check_path(self.root, location, "The manifest list")
        if path in self._looked_at or not (must_exist or self._exists(path)):
            return
        self._keep(path)
        for manifest in manifests_of(self.root, location):
            self._add_manifest(manifest, must_exist=must_exist)
        self._looked_at.add(path)

    def _add_manifest(self, location: str, *, must_exist: bool) -> None:
        path = check_path(self.root, location, "The manifest")
        if path in self._looked_at or not (must_exist or self._exists(path)):
            return
        self._keep(path)
        for entry in entries_of(self.root, location):
            if int(entry.status) != _DELETED:
                self._keep(check_path(self.root, entry.data_file.file_path, "A data or delete file"))
        self._looked_at.add(path)

    def _exists(self, path: str) -> bool:
        try:
            return size(self._store, path) >= 0
        except FileNotFoundError:
            return False

    def _keep(self, path: str) -> None:
        self._files.add(_plain(path))


def _plain(path: str) -> str:
    """A canonical spelling for paths that a reader could confuse."""
    for _ in range(4):
        path = unquote(path)
    return path
