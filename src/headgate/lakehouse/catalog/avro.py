"""Validation of Avro files that engines write.

Readers may interpret an unusual file differently: one stops at an empty block, another takes the second of two fields
with the same id. Unusual files are therefore refused, so that every reader sees the same content. Decompression is
limited in size.
"""

import io
import json
import zlib
from typing import Any

MAX_FILE = 64 << 20
MAX_UNPACKED = 256 << 20
_MAGIC = b"Obj\x01"
_SYNC = 16
_MAX_VARINT = 10
_CHECKSUM = 4
_IDS = ("field-id", "element-id", "key-id", "value-id")


class BadFile(Exception):
    """The file is invalid; the message says why."""


class _Reader:
    """Reads the bytes of a file sequentially."""

    def __init__(self, content: bytes) -> None:
        self.stream, self.left = io.BytesIO(content), len(content)

    def take(self, count: int) -> bytes:
        if count < 0 or count > self.left:
            raise BadFile("it is truncated")
        self.left -= count
        return self.stream.read(count)

    def number(self) -> int:
        result = 0
        for position in range(_MAX_VARINT):
            byte = self.take(1)[0]
            result |= (byte & 0x7F) << (7 * position)
            if not byte & 0x80:
                return (result >> 1) ^ -(result & 1)
        raise BadFile("a number in it is too long")

    def text(self) -> bytes:
        return self.take(self.number())


def scan(content: bytes) -> None:
    """Validate an Avro file. Raises BadFile if it is damaged, unusual, or decompresses to more than the limit."""
    if len(content) > MAX_FILE:
        raise BadFile(f"it is larger than {MAX_FILE} bytes")
    reader = _Reader(content)
    if reader.take(4) != _MAGIC:
        raise BadFile("it is not an Avro file")
    header = _header(reader)
    codec = header.get("avro.codec", b"null")
    if codec not in {b"null", b"deflate"}:
        raise BadFile("it uses a codec other than deflate")
    _check_schema(header.get("avro.schema", b""))
    sync, unpacked = reader.take(_SYNC), 0
    while reader.left:
        unpacked += _block(reader, codec, sync, MAX_UNPACKED - unpacked)


def _header(reader: _Reader) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    while count := reader.number():
        if count < 0:
            count = -count
            reader.number()
        for _ in range(count):
            key = reader.text().decode("utf-8", "replace")
            if key in values:
                raise BadFile(f"its header has {key!r} twice")
            values[key] = reader.text()
    return values


def _block(reader: _Reader, codec: bytes, sync: bytes, room: int) -> int:
    """Skip one block; returns its decompressed size."""
    if reader.number() <= 0:
        raise BadFile("it has an empty block")
    data = reader.text()
    if reader.take(_SYNC) != sync:
        raise BadFile("a block of it is damaged")
    size = len(data) if codec == b"null" else _unpacked(data, room)
    if size > room:
        raise BadFile(f"its content is larger than {MAX_UNPACKED} bytes")
    return size


def _unpacked(data: bytes, room: int) -> int:
    unpacker = zlib.decompressobj(-15)
    try:
        size = len(unpacker.decompress(data, room + 1))
    except zlib.error:
        raise BadFile("a block of it is damaged") from None
    # PyIceberg leaves three bytes of a checksum after the data.
    if size <= room and (not unpacker.eof or len(unpacker.unused_data) > _CHECKSUM):
        raise BadFile("a block of it is damaged")
    return size


def _check_schema(text: bytes) -> None:
    try:
        schema: Any = json.loads(text)
        ids: set[int] = set()
        _check_type(schema, ids)
    except (ValueError, RecursionError):
        raise BadFile("its schema cannot be read") from None


def _check_type(schema: Any, ids: set[int]) -> None:
    if isinstance(schema, list):
        for value in schema:
            _check_type(value, ids)
    if not isinstance(schema, dict):
        return
    _check_ids(schema, ids)
    names = [str(field.get("name")) for field in schema.get("fields", ()) if isinstance(field, dict)]
    if len(names) != len(set(names)):
        raise BadFile("its schema defines a name twice")
    for field in schema.get("fields", ()):
        if not isinstance(field, dict):
            raise BadFile("its schema cannot be read")
        if field.get("aliases"):
            raise BadFile("its schema has aliases")
        _check_ids(field, ids)
        _check_type(field.get("type"), ids)
    for inner in ("items", "values", "type"):
        if isinstance(schema.get(inner), dict | list):
            _check_type(schema[inner], ids)


def _check_ids(part: dict[str, Any], ids: set[int]) -> None:
    for name in _IDS:
        response = part.get(name)
        if response is None:
            continue
        if not isinstance(response, int) or isinstance(response, bool) or response in ids:
            raise BadFile("its schema has a duplicate or invalid field id")
        ids.add(response)
