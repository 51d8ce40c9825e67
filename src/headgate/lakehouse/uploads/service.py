"""Resumable uploads.

A part is a file named by its offset, and is durable before `received` counts it. The first part written at an offset
wins; a second one is rejected with the current offset. Finishing joins the parts into one file, whose id is derived
from the upload's, so that a repeated finish creates no second file.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from headgate.kit.errors import Conflict, Invalid, NotFound, TooLarge, Unavailable
from headgate.kit.ids import new_id
from headgate.kit.log import get_logger
from headgate.lakehouse.files import repository as files
from headgate.lakehouse.files.media_types import media_type
from headgate.lakehouse.files.schemas import FileOut, UploadBegin, UploadOut
from headgate.lakehouse.files.service import (
    SEATS,
    HashingReader,
    NewFile,
    ReplaceCondition,
    discard,
    place,
    replaced,
    write,
)
from headgate.lakehouse.uploads import repository
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.locations import upload_part, upload_root, volume_file
from headgate.warehouse.store import Missing, PathTaken, Store

PART = 32 << 20
"""Maximum bytes stored and authorized at once; a lost connection costs at most this much."""
PIECE = 1 << 20

_log = get_logger("headgate.files")


class WrongOffset(Conflict):
    """A part does not start at the current offset."""

    def __init__(self, offset: int, detail: str) -> None:
        super().__init__(detail, offset=offset)
        self.headers = {"Upload-Offset": str(offset)}


class BodyParts:
    """A body, split into parts."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._held = iter(pieces), b""

    def has_more(self) -> bool:
        """Whether there are more bytes."""
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self._held = piece
        return True

    def part(self, most: int) -> Iterator[bytes]:
        """The next bytes, up to `most`."""
        while most > 0 and self.has_more():
            piece, self._held = self._held[:most], self._held[most:]
            most -= len(piece)
            yield piece


def shown(call: Call, row: Any) -> UploadOut:
    """An upload as an API schema, with its offset in a header."""
    call.recorded.headers["Upload-Offset"] = str(row["received"])
    return listed(row)


def listed(row: Any) -> UploadOut:
    """An upload as an API schema."""
    return UploadOut(
        id=row["id"],
        volume=row["volume_id"],
        path=row["path"],
        size=row["size"],
        offset=row["received"],
        overwrite=row["overwrite"],
        expires_at=row["expires_at"],
    )


def own(call: Call, identifier: str) -> Any:
    """One of the caller's uploads, to a volume that they may write now; otherwise NotFound."""
    row = repository.one(call.connection, identifier, call.now)
    if row is None:
        call.hide("edit", "upload", identifier)
    if row["created_by_id"] != call.caller.member:
        call.hide("edit", "volume", row["volume_id"])
    call.require("edit", "volume", row["volume_id"])
    return row


def _expires(call: Call) -> datetime:
    return call.now + timedelta(hours=call.settings.warehouse.upload_hours)


def begin(call: Call, volume: str, body: UploadBegin) -> UploadOut:
    """Start an upload, if the file could be stored there now."""
    call.require("edit", "volume", volume)
    most = call.settings.warehouse.max_file_bytes
    if body.size > most:
        raise TooLarge(f"The file is larger than {most} bytes, the limit of `warehouse.max_file_bytes`")
    replaced(call, volume, body.path, ReplaceCondition(body.overwrite))
    if repository.count(call.connection, call.caller.member, call.now) >= repository.MOST:
        raise Conflict(f"You have {repository.MOST} open uploads; finish or cancel one first")
    row = {
        "id": new_id("upload"),
        "volume_id": volume,
        "path": body.path,
        "media_type": media_type(body.media_type, body.path),
        "overwrite": body.overwrite,
        "size": body.size,
        "received": 0,
        "created_at": call.now,
        "expires_at": _expires(call),
        "created_by_id": call.caller.member,
    }
    repository.add(call.connection, row)
    return shown(call, row)


def append(stages: Stages, identifier: str, offset: int, body: Iterable[bytes]) -> UploadOut:
    """Append a body at this offset, part by part, each authorized again."""
    row, upload = stages.read(lambda call: _seen(call, identifier))
    _refuse_elsewhere(row, offset)
    with SEATS.taken_by(stages.who.member):
        return _append(stages, row, upload, BodyParts(body))


def _append(stages: Stages, row: Any, upload: UploadOut, parts: BodyParts) -> UploadOut:
    identifier, offset, store = row["id"], row["received"], stages.services.store
    while parts.has_more():
        room = row["size"] - offset
        if room <= 0:
            raise TooLarge(f"The upload has {row['size']} bytes in total, and this part exceeds them")
        length, is_mine = _keep(store, identifier, offset, parts.part(min(PART, room)))
        row, upload = stages.write(partial(_advance, identifier=identifier, offset=offset, length=length))
        if not is_mine:
            raise WrongOffset(row["received"], "A part at this offset is already stored; continue at `offset`")
        offset += length
        _refuse_elsewhere(row, offset)
    return upload


def _seen(call: Call, identifier: str) -> tuple[Any, UploadOut]:
    row = own(call, identifier)
    return row, shown(call, row)


def _refuse_elsewhere(row: Any, offset: int) -> None:
    if row["received"] != offset:
        raise WrongOffset(
            row["received"], "The part does not start at the end of the previous one; continue at `offset`"
        )


def _keep(store: Store, identifier: str, offset: int, pieces: Iterable[bytes]) -> tuple[int, bool]:
    """Store a part; returns its length, and whether it is new rather than an uncounted one from an earlier attempt."""
    place = upload_part(identifier, offset)
    try:
        return write(store, place, pieces), True
    except PathTaken:
        return _size(store, place), False


def _size(store: Store, place: str) -> int:
    try:
        return store.size(place)
    except Missing:
        raise NotFound from None  # The upload was finished or cancelled meanwhile.


def _advance(call: Call, identifier: str, offset: int, length: int) -> tuple[Any, UploadOut]:
    row = own(call, identifier)
    if row["received"] == offset:
        expires = _expires(call)
        repository.advance(call.connection, identifier, offset + length, expires)
        row = {**row, "received": offset + length, "expires_at": expires}
    return row, shown(call, row)


def cancel(stages: Stages, identifier: str) -> None:
    """Cancel an upload and delete its parts."""

    def work(call: Call) -> None:
        repository.remove(call.connection, own(call, identifier)["id"])

    stages.write(work)
    _drop_parts(stages.services.store, identifier)


def _drop_parts(store: Store, identifier: str) -> None:
    """Delete the parts of a finished upload; if that fails, they are swept later."""
    try:
        store.delete_folder(upload_root(identifier))
    except (OSError, Unavailable) as error:
        _log.warning(
            "cannot delete the parts of an upload; they are cleaned up later", upload=identifier, error=str(error)
        )


def file_of(identifier: str) -> str:
    """The file id derived from an upload id."""
    return "fil" + identifier.removeprefix("upl")


def upload_of(file: str) -> str:
    """The upload id from which a file id is derived."""
    return "upl" + file.removeprefix("fil")


def _done(call: Call, identifier: str) -> FileOut | None:
    """The file of a finished upload of the caller; None while it is in progress."""
    result = files.by_id(call.connection, file_of(identifier))
    if result is None or result["created_by_id"] != call.caller.member:
        return None
    call.require("edit", "volume", result["volume_id"])
    return files.shown(result)


def _begun(call: Call, identifier: str) -> tuple[Any, FileOut | None]:
    done = _done(call, identifier)
    return (None, done) if done else (own(call, identifier), None)


def finish(stages: Stages, identifier: str, expected: str | None) -> FileOut:
    """Join the parts and insert the row. Repeated or concurrent calls create one file."""
    row, done = stages.read(lambda call: _begun(call, identifier))
    if done is None:
        if row["received"] != row["size"]:
            raise WrongOffset(row["received"], f"{row['received']} of {row['size']} bytes are stored; upload the rest")
        summed = _join(stages, row, expected)
        if summed is not None:
            return _conclude(stages, row, summed)
        done = stages.read(lambda call: _done(call, identifier))
        if done is None:
            raise Conflict("Parts of this upload are missing; cancel it and start again")
    if expected not in {None, done.sha256}:
        raise Invalid(f"sha256: the file has the checksum {done.sha256}")
    return done


def _join(stages: Stages, row: Any, expected: str | None) -> HashingReader | None:
    """Write the parts as one file, or use the file of an interrupted finish; None if parts are missing."""
    store, place = stages.services.store, volume_file(row["volume_id"], file_of(row["id"]))
    try:
        summed = HashingReader(_parts(store, row["id"], row["size"]), row["size"])
        try:
            write(store, place, _checked(summed, row["size"], expected))
        except PathTaken:
            summed = HashingReader(_pieces(store, place), row["size"])
            for _ in _checked(summed, row["size"], expected):
                pass
    except Missing:
        return None
    return summed


def _checked(summed: HashingReader, size: int, expected: str | None) -> Iterator[bytes]:
    """Pass the chunks on; fail before the file is complete if they differ from the announced content."""
    yield from summed
    if summed.size != size or expected not in {None, summed.sha256}:
        raise Invalid(
            f"sha256: received {summed.size} bytes with the checksum {summed.sha256}; cancel this upload and "
            "start again",
            sha256=summed.sha256,
        )


def _parts(store: Store, identifier: str, size: int) -> Iterator[bytes]:
    offset = 0
    while offset < size:
        begins = offset
        for piece in _pieces(store, upload_part(identifier, begins)):
            offset += len(piece)
            yield piece
        if offset == begins:
            raise Missing(upload_part(identifier, begins))


def _pieces(store: Store, place: str) -> Iterator[bytes]:
    with store.open(place) as file:
        while piece := file.read(PIECE):
            yield piece


def _conclude(stages: Stages, row: Any, summed: HashingReader) -> FileOut:
    new = NewFile(file_of(row["id"]), row["volume_id"], row["path"], summed.size, summed.sha256, row["media_type"])

    def work(call: Call) -> tuple[str | None, FileOut]:
        done = _done(call, row["id"])
        if done is not None:
            return None, done
        own(call, row["id"])
        old = place(call, new, ReplaceCondition(row["overwrite"]))
        repository.remove(call.connection, row["id"])
        return old, files.shown(files.by_id(call.connection, new.id))

    old, shown = stages.write(work)
    discard(stages.services.store, new.volume, old)
    _drop_parts(stages.services.store, row["id"])
    return shown
