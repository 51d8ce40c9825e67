"""Cache of parsed table metadata by checksum. The content of a checksum never changes, so entries never become stale.

It performs no authorization: callers have read the pointer in a transaction that authorized the access.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from headgate.lakehouse.catalog.metadata_files import read_metadata
from headgate.warehouse.store import Store

Document = dict[str, Any]
T = TypeVar("T")

MOST_BYTES = 32 << 20
"""Maximum bytes of metadata files cached per process; parsed, they take several times that in memory."""
MOST_TABLES = 256


class LruCache(Generic[T]):
    """The most recently used values, limited by number and weight."""

    def __init__(self, most: int, heaviest: int) -> None:
        self._most, self._heaviest, self._weight = most, heaviest, 0
        self._values: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], tuple[T, int]]) -> T:
        """The value of a key, created with its weight if missing. Two threads may create the same value
        concurrently.
        """
        with self._lock:
            response = self._values.get(key)
            if response is not None:
                self._values.move_to_end(key)
                return response[0]
        value, weight = make()
        with self._lock:
            if key not in self._values and weight <= self._heaviest:
                self._values[key] = (value, weight)
                self._weight += weight
            while self._weight > self._heaviest or len(self._values) > self._most:
                _, (_, dropped) = self._values.popitem(last=False)
                self._weight -= dropped
        return value


_documents: LruCache[Document] = LruCache(MOST_TABLES, MOST_BYTES)


def document(store: Store, pointer: Any) -> Document:
    """The metadata of a pointer. It is shared, so do not modify it."""

    def load() -> tuple[Document, int]:
        content = read_metadata(store, pointer["table_id"], pointer["metadata_file"], pointer["metadata_sha256"])
        return json.loads(content), len(content)

    return _documents.get((pointer["table_id"], pointer["metadata_sha256"]), load)


def current_schema(document: Document) -> Document:
    """The current schema of the table."""
    return schema_of(document, document["current-schema-id"])


def schema_of(document: Document, identifier: int) -> Document:
    """One of the table's schemas."""
    schemas: list[Document] = document["schemas"]
    return next(schema for schema in schemas if schema["schema-id"] == identifier)


def snapshots(document: Document) -> list[Document]:
    """The snapshots of a table, newest first."""
    return sorted(
        document.get("snapshots") or (), key=lambda value: (value["timestamp-ms"], value["snapshot-id"]), reverse=True
    )


def current_snapshot(document: Document) -> int | None:
    """The id of the current snapshot; None before the first commit."""
    identifier = document.get("current-snapshot-id")
    return None if identifier in {None, -1} else identifier
