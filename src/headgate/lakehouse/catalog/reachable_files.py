"""Every file that some metadata of one table names: what may never be removed.

Paths are compared after decoding, so that two spellings of one name count as one: that only ever keeps more. Whatever
cannot be read, or names a place outside the table, stops the look: then nothing of the table is removed.
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
"""The status of an entry for a file that is no longer part of the table from its snapshot on."""


class ReachableFiles:
    """The files of one table that its metadata names; what is looked at once is not read again."""

    def __init__(self, store: Store, table_id: str) -> None:
        self.root = Root(store, table_id)
        self._store, self._table = store, table_id
        self._files: set[str] = set()
        self._looked_at: set[str] = set()

    def __contains__(self, path: str) -> bool:
        """Whether a path of the store is one of them, or the checksum that Hadoop keeps beside one."""
        folder, slash, name = path.rpartition("/")
        beside = f"{folder}{slash}{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else path
        return bool({_plain(path), _plain(beside)} & self._files)

    def add(self, metadata_file: str, sha256: str) -> None:
        """Add all that a metadata file names which some pointer has now. What is missing stops the look."""
        if metadata_file not in self._looked_at:
            content = read_metadata(self._store, self._table, metadata_file, sha256)
            self._add(metadata_file, content, must_exist=True)

    def add_past(self, metadata_file: str) -> None:
        """Add all that the table named at some time before, as far as that is still there."""
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
    """One spelling for paths that any reader could take for one another."""
    for _ in range(4):
        path = unquote(path)
    return path
