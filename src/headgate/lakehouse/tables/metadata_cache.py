"""The metadata of tables as plain data, kept by its sum: what a sum names never changes, so that no copy is ever stale.

Nothing here decides: whoever asks has read the pointer, and with it the sum, in a transaction that decided.
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
"""How many bytes of metadata files are kept parsed, in each process; in memory they take a few times that."""
MOST_TABLES = 256


class LruCache(Generic[T]):
    """The values used last, up to a number and a weight."""

    def __init__(self, most: int, heaviest: int) -> None:
        self._most, self._heaviest, self._weight = most, heaviest, 0
        self._values: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], tuple[T, int]]) -> T:
        """The value of a key, made with its weight if it is not there. Two threads may make the same one."""
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
    """The metadata that a pointer names. It is shared: do not change it."""

    def load() -> tuple[Document, int]:
        content = read_metadata(store, pointer["table_id"], pointer["metadata_file"], pointer["metadata_sha256"])
        return json.loads(content), len(content)

    return _documents.get((pointer["table_id"], pointer["metadata_sha256"]), load)


def current_schema(document: Document) -> Document:
    """The schema that the table has now."""
    return schema_of(document, document["current-schema-id"])


def schema_of(document: Document, identifier: int) -> Document:
    """One of the table's schemas."""
    schemas: list[Document] = document["schemas"]
    return next(schema for schema in schemas if schema["schema-id"] == identifier)


def snapshots(document: Document) -> list[Document]:
    """The snapshots of a table, the newest first."""
    return sorted(
        document.get("snapshots") or (), key=lambda value: (value["timestamp-ms"], value["snapshot-id"]), reverse=True
    )


def current_snapshot(document: Document) -> int | None:
    """The id of the snapshot that is the table now; none before the first."""
    identifier = document.get("current-snapshot-id")
    return None if identifier in {None, -1} else identifier
