"""Writes and deletes files of volumes.

The bytes are written durably under an id before one transaction makes a row refer to them. The bytes of a replaced file
are deleted afterwards. So no row lacks its bytes and no partial file is visible after a crash; leftovers are swept
later.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from sqlalchemy import delete, insert
from sqlalchemy.exc import IntegrityError

from headgate.contracts.volume_paths import check_path, path_key
from headgate.kit.errors import Conflict, Invalid, NotFound, Problem, TooLarge, Unavailable, VersionConflict
from headgate.kit.ids import new_id
from headgate.kit.log import get_logger
from headgate.kit.names import BadName
from headgate.lakehouse.files import repository
from headgate.lakehouse.files.media_types import media_type
from headgate.lakehouse.files.models import volume_file_table
from headgate.lakehouse.files.responses import is_among
from headgate.lakehouse.files.schemas import FileOut
from headgate.platform.http.bodies import Seats
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.locations import volume_file
from headgate.warehouse.store import Store

SEATS = Seats(8)
"""Maximum concurrent uploads per member and process: half of the threads that read bodies."""

_log = get_logger("headgate.files")
_files = volume_file_table.c


@dataclass(frozen=True, slots=True)
class ReplaceCondition:
    """Whether a file may replace another: always, never, or only one with one of these hashes."""

    overwrite: bool = False
    matching: str | None = None
    """The header `If-Match`."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file whose bytes are stored durably and that has no row yet."""

    id: str
    volume: str
    path: str
    size: int
    sha256: str
    media_type: str


class HashingReader:
    """Passes chunks on and computes their size and hash, up to `most` bytes."""

    def __init__(self, pieces: Iterable[bytes], most: int) -> None:
        self._pieces, self._most, self._hash = pieces, most, hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size += len(piece)
            if self.size > self._most:
                raise TooLarge(f"The file is larger than {self._most} bytes, the limit of `warehouse.max_file_bytes`")
            self._hash.update(piece)
            yield piece

    @property
    def sha256(self) -> str:
        """The hash of the chunks so far."""
        return self._hash.hexdigest()


def checked(path: str) -> str:
    """The normalized path; raises Invalid."""
    try:
        return check_path(path)
    except BadName as error:
        raise Invalid(f"path: {error}") from None


def missing(path: str) -> str:
    """The error for a missing file in a volume that the caller may see."""
    return f"There is no file {path!r} in this volume"


def replaced(call: Call, volume: str, path: str, replacing: ReplaceCondition) -> Any:
    """The existing file that a new one at this path replaces, or None; raises a Problem if it may not be stored
    there.
    """
    result = repository.alike(call.connection, volume, path)
    is_same = result is not None and result["path"] == path
    if replacing.matching is not None:
        if not is_same or not is_among(result["sha256"], replacing.matching):
            raise VersionConflict(
                "The file has changed: its checksum does not match `If-Match`. Reload it, or omit `If-Match`"
            )
        return result
    if result is not None and not is_same:
        raise Conflict(
            f"A file {result['path']!r} already exists, whose path differs only in case or Unicode normalization; "
            "use that path, or another name"
        )
    if result is not None and not replacing.overwrite:
        raise Conflict(f"The file {path!r} already exists; set `overwrite` to replace it")
    return result


def place(call: Call, new: NewFile, replacing: ReplaceCondition) -> str | None:
    """Insert the row of a new file; returns the id of the file that it replaces."""
    decision = call.require("edit", "volume", new.volume)
    old = replaced(call, new.volume, new.path, replacing)
    row = {
        "id": new.id,
        "volume_id": new.volume,
        "path": new.path,
        "path_key": path_key(new.path),
        "size": new.size,
        "sha256": new.sha256,
        "media_type": new.media_type,
        "created_at": call.now,
        "created_by_id": call.caller.member,
    }
    if old is not None:
        call.connection.execute(delete(volume_file_table).where(_files.id == old["id"]))
    try:
        call.connection.execute(insert(volume_file_table).values(row))
    except IntegrityError:
        raise Conflict("Another file was uploaded to this path at the same time; check it, and upload again") from None
    after = {"change": "put_file", **_told(row)}
    call.record_change(decision, "edit", "volume", new.volume, before=_told(old), after=after)
    return old["id"] if old is not None else None


def _told(row: Any) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "path", "size", "sha256")} if row is not None else {}


def discard(store: Store, volume: str, file: str | None) -> None:
    """Delete bytes that no row refers to; if that fails, they are swept later."""
    if file is not None:
        try:
            store.delete(volume_file(volume, file))
        except (OSError, Unavailable) as error:
            _log.warning("cannot delete the content of a file; it is cleaned up later", file=file, error=str(error))


def write(store: Store, path: str, pieces: Iterable[bytes]) -> int:
    """Write a new file in the store; returns its size. Store errors, such as a full disk, are reported without
    internals.
    """
    try:
        return store.write(path, pieces)
    except OSError as error:
        _log.error("cannot write to the warehouse", error=str(error))
        raise Unavailable("Cannot write to the warehouse; ask the operator") from error


def opened(store: Store, volume: str, file: str) -> BinaryIO:
    """Open the bytes of a file; raises Missing. Store errors are reported without internals."""
    try:
        return store.open(volume_file(volume, file))
    except OSError as error:
        _log.error("cannot read from the warehouse", error=str(error))
        raise Unavailable("Cannot read from the warehouse; ask the operator") from error


def put(
    stages: Stages, volume: str, path: str, body: Iterable[bytes], given_type: str | None, replacing: ReplaceCondition
) -> FileOut:
    """Write a file and insert its row. Authorization happens before the body is read and again afterwards."""
    store, name, file = stages.services.store, checked(path), new_id("file")
    stages.read(lambda call: replaced(call, volume, name, replacing))
    summed = HashingReader(body, stages.settings.warehouse.max_file_bytes)
    with SEATS.taken_by(stages.who.member):
        write(store, volume_file(volume, file), summed)
    new = NewFile(file, volume, name, summed.size, summed.sha256, media_type(given_type, name))
    try:
        old, shown = stages.write(lambda call: (place(call, new, replacing), _shown(call, file)))
    except Problem:
        # Nothing was committed. After any other error that is uncertain, so the bytes are left to the sweeper.
        discard(store, volume, file)
        raise
    discard(store, volume, old)
    return shown


def _shown(call: Call, file: str) -> FileOut:
    return repository.shown(repository.by_id(call.connection, file))


def remove(stages: Stages, volume: str, path: str) -> Any:
    """Delete a file's row, then its bytes; returns the deleted row."""
    name = checked(path)

    def work(call: Call) -> Any:
        decision = call.require("edit", "volume", volume)
        row = repository.one(call.connection, volume, name)
        if row is None:
            raise NotFound(missing(name))
        call.connection.execute(delete(volume_file_table).where(_files.id == row["id"]))
        after = {"change": "delete_file", "path": name}
        call.record_change(decision, "edit", "volume", volume, before=_told(row), after=after)
        return row

    result = stages.write(work)
    discard(stages.services.store, volume, result["id"])
    return result
