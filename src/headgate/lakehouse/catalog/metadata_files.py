"""Metadata files: written under a fresh name where clients cannot write, and verified by checksum when read."""

import hashlib
import json
import uuid
from typing import TYPE_CHECKING, Any

from headgate.kit.log import get_logger
from headgate.lakehouse.catalog.errors import Damaged, MetadataMissing, NotValid
from headgate.warehouse.locations import metadata_root
from headgate.warehouse.store import Missing, Store, StoreUnavailable

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

MAX_BYTES = 64 << 20
"""Maximum size of a metadata file."""
_log = get_logger("headgate.catalog")


def sum_of(content: bytes) -> str:
    """The checksum stored with a pointer."""
    return hashlib.sha256(content).hexdigest()


def fresh_name(version: int) -> str:
    """A file name that is not in use."""
    return f"{version:05d}-{uuid.uuid4()}.metadata.json"


def url(store: Store, table_id: str, metadata_file: str) -> str:
    """The location of a metadata file as engines see it."""
    return f"{store.url}/{metadata_root(table_id)}/{metadata_file}"


def read_metadata(store: Store, table_id: str, metadata_file: str, sha256: str) -> bytes:
    """Read a metadata file and verify its checksum; raises Damaged or MetadataMissing."""
    try:
        content = store.read(f"{metadata_root(table_id)}/{metadata_file}")
    except Missing:
        _log.error("a metadata file is missing", table=table_id, file=metadata_file)
        raise MetadataMissing(url(store, table_id, metadata_file)) from None
    if sum_of(content) != sha256:
        _log.error("a metadata file was changed", table=table_id, file=metadata_file)
        raise Damaged("The table's metadata file does not match the last commit; restore it from a backup")
    return content


def parse(content: bytes) -> "TableMetadata":
    """Parse a metadata file written by Headgate."""
    from pyiceberg.table.metadata import TableMetadataUtil

    return TableMetadataUtil.parse_obj(json.loads(content))


def dump(metadata: "TableMetadata") -> bytes:
    """Serialize metadata for its file."""
    content = metadata.model_dump_json().encode()
    if len(content) > MAX_BYTES:
        raise NotValid(
            f"The table's metadata would have {len(content)} bytes, more than the limit of {MAX_BYTES}; expire "
            "snapshots"
        )
    return content


def write(store: Store, table_id: str, metadata_file: str, content: bytes) -> None:
    """Write a metadata file durably under an unused name."""
    store.write(f"{metadata_root(table_id)}/{metadata_file}", [content])


def discard(store: Store, table_id: str, metadata_file: str) -> None:
    """Delete a file that no pointer refers to; if that fails, maintenance deletes it later."""
    try:
        store.delete(f"{metadata_root(table_id)}/{metadata_file}")
    except (OSError, StoreUnavailable) as error:
        _log.warning("a metadata file was left behind", table=table_id, file=metadata_file, error=str(error))


def answer(location: str | None, content: bytes, told: dict[str, Any] | None) -> bytes:
    """The response to a load or commit: the stored bytes unchanged, with the additional fields around them."""
    parts = [b'{"metadata-location":', json.dumps(location).encode(), b',"metadata":', content]
    for name, value in (told or {}).items():
        parts += [b",", json.dumps(name).encode(), b":", json.dumps(value).encode()]
    return b"".join([*parts, b"}"])


def with_referenced_snapshots(content: bytes) -> bytes:
    """The metadata without snapshots that no branch or tag refers to."""
    document = json.loads(content)
    named = {ref["snapshot-id"] for ref in document.get("refs", {}).values()}
    document["snapshots"] = [value for value in document.get("snapshots", ()) if value["snapshot-id"] in named]
    return json.dumps(document).encode()
