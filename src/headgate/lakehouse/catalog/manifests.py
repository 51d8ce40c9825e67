"""Checks that every path in the manifests added by a commit is below the table's root.

Otherwise a snapshot could name another table's data file: readers of this table would get its rows, and snapshot expiry
would delete it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headgate.lakehouse.catalog.avro import MAX_FILE, BadFile, scan
from headgate.lakehouse.catalog.errors import NotValid
from headgate.lakehouse.catalog.files import OutsideRoot, Root, opened, size

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

MAX_MANIFESTS = 50_000
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    NotImplementedError,
    ArithmeticError,
    EOFError,
    OSError,
    RecursionError,
)
"""Exceptions that reading an untrusted file can raise."""


def check_snapshots(root: Root, base: "TableMetadata | None", added: Sequence["Snapshot"]) -> None:
    """Refuse a commit whose new snapshots name files outside of the table's root.

    Manifests of the base's current snapshot or of the parent were already checked when they were committed.
    """
    known: set[str] = set()
    if base is not None and added:
        parents = {base.current_snapshot_id, *(snapshot.parent_snapshot_id for snapshot in added)}
        for snapshot in base.snapshots:
            if snapshot.snapshot_id in parents:
                known.update(manifests_of(root, snapshot.manifest_list))
    for snapshot in added:
        for manifest in manifests_of(root, snapshot.manifest_list):
            if manifest not in known:
                _check_manifest(root, manifest)
                known.add(manifest)


def check_path(root: Root, location: Any, what: str) -> str:
    """A location as a path in the store; otherwise raises NotValid."""
    try:
        return root.path(location)
    except OutsideRoot:
        raise NotValid(f"{what} is outside the table's location: {str(location)[:300]}") from None


def check_file(root: Root, location: Any, what: str) -> None:
    """Refuse a file that is outside of the root or does not exist."""
    try:
        size(root.store, check_path(root, location, what))
    except FileNotFoundError:
        raise NotValid(
            f"{what} does not exist: {location[:300]}. Write the file before the commit that references it"
        ) from None


def manifests_of(root: Root, manifest_list: str) -> list[str]:
    """The manifests that a manifest list names."""
    results = [row.manifest_path for row in _rows(root, manifest_list, "The manifest list", _lists)]
    if len(results) > MAX_MANIFESTS:
        raise NotValid(f"A snapshot has more than {MAX_MANIFESTS} manifests; rewrite the manifests first")
    return results


def entries_of(root: Root, manifest: str) -> Iterator[Any]:
    """The entries of a manifest, each with its data or delete file."""
    yield from _rows(root, manifest, "The manifest", _entries)


def _check_manifest(root: Root, manifest: str) -> None:
    # Deleted entries count too: snapshot expiry deletes those files.
    for row in entries_of(root, manifest):
        check_path(root, row.data_file.file_path, "A data or delete file")
        if row.data_file.key_metadata is not None:
            raise NotValid("Encrypted data files are not supported")


def _rows(root: Root, location: str, what: str, reader: Callable[[Any], Any]) -> Iterator[Any]:
    """The rows of an Avro file of the table."""
    from pyiceberg.exceptions import ResolveError, ValidationError
    from pyiceberg.io import InputFile, InputStream

    path = check_path(root, location, what)

    class Content(InputFile):
        """The validated content of a file."""

        def __init__(self, content: bytes) -> None:
            super().__init__(location)
            self._content = content

        def __len__(self) -> int:
            return len(self._content)

        def exists(self) -> bool:
            return True

        def open(self, seekable: bool = True) -> InputStream:
            import io  # noqa: PLC0415 - beside its only use

            return io.BytesIO(self._content)

    try:
        content = _content(root, path)
        scan(content)
        with reader(Content(content)) as rows:
            yield from rows
    except BadFile as error:
        raise NotValid(f"{what} is invalid, because {error}: {location[:300]}") from None
    except FileNotFoundError:
        raise NotValid(f"{what} does not exist: {location[:300]}") from None
    except (*_UNREADABLE, ResolveError, ValidationError):
        raise NotValid(f"{what} cannot be read: {location[:300]}") from None


def _content(root: Root, path: str) -> bytes:
    if size(root.store, path) > MAX_FILE:
        raise BadFile(f"it is larger than {MAX_FILE} bytes")
    with opened(root.store, path) as file:
        return bytes(file.read(MAX_FILE + 1))


def _lists(content: Any) -> Any:
    """A reader of a manifest list."""
    from pyiceberg import manifest as iceberg
    from pyiceberg.avro.file import AvroFile

    return AvroFile(
        content,
        iceberg.MANIFEST_LIST_FILE_SCHEMAS[iceberg.DEFAULT_READ_VERSION],
        read_types={-1: iceberg.ManifestFile, 508: iceberg.PartitionFieldSummary},
        read_enums={517: iceberg.ManifestContent},
    )


def _entries(content: Any) -> Any:
    """A reader of a manifest."""
    from pyiceberg import manifest as iceberg
    from pyiceberg.avro.file import AvroFile

    return AvroFile(
        content,
        iceberg.MANIFEST_ENTRY_SCHEMAS[iceberg.DEFAULT_READ_VERSION],
        read_types={-1: iceberg.ManifestEntry, 2: iceberg.DataFile},
        read_enums={0: iceberg.ManifestEntryStatus, 101: iceberg.FileFormat, 134: iceberg.DataFileContent},
    )
