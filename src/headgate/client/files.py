"""File transfer: uploads to and downloads from volumes, resumed after an interruption.

The client keeps no state of an upload: it finds one again by its path and size, and the checksum of the whole file
proves it. A download continues in a file that is named by the checksum.
"""

import hashlib
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headgate.client.connection import Connection, answer
from headgate.client.errors import NotFound, Unreachable
from headgate.kit.errors import Invalid

PART = 8 << 20
"""The size of a part; a larger file is uploaded in parts."""
ATTEMPTS = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
FINISH_SECONDS = 3600.0
"""The timeout of the request that joins the parts."""

Progress = Callable[[int, int], None]
"""Called with the bytes that are done and the bytes in all."""


class Damaged(OSError):
    """The checksum of the received bytes is not that of the file."""


class _WrongChecksum(Exception):
    """The parts of an upload are not those of the file."""


class _Backoff:
    """Retries after a lost connection, with a longer pause each time; gives up after some failures in a row."""

    def __init__(self) -> None:
        self._failures = 0

    def failed(self, error: Unreachable) -> None:
        """Wait, or raise the error."""
        self._failures += 1
        if self._failures > ATTEMPTS:
            raise error
        time.sleep(min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE))

    def succeeded(self) -> None:
        """Reset the number of failures."""
        self._failures = 0


def volume_id(connection: Connection, text: str) -> str:
    """The id of a volume given by its id, or as layer.name."""
    if text.startswith("vol_"):
        return text
    name = text.removeprefix("volume:").casefold()
    for item in connection.items("/api/resources", kind="volume", prefix=name):
        if item["name"].casefold() == name:
            return str(item["id"])
    raise NotFound(404, {"code": "not_found", "detail": f"There is no volume {text} that you may see"})


def url(volume: str, path: str) -> str:
    """The URL of a file. Invalid for a path with `..`, which would be the URL of something else."""
    path = unicodedata.normalize("NFC", path)
    if {".", ".."} & set(path.split("/")):
        raise Invalid(f"{path}: a path cannot contain . or .. as a segment")
    return f"/api/volumes/{quote(volume, safe='')}/files/{quote(path, safe='/')}"


# Uploads


def upload(
    connection: Connection, volume: str, file: Path, path: str, progress: Progress | None, *, overwrite: bool = False
) -> Any:
    """Upload a file: a small one in one request, a larger one in parts. The file as the API shows it."""
    target, size, report = volume_id(connection, volume), file.stat().st_size, progress or _silent
    at = url(target, path)
    if size > PART:
        begin = {"path": unicodedata.normalize("NFC", path), "size": size, "overwrite": overwrite}
        return _upload_in_parts(connection, f"/api/volumes/{target}/uploads", file, begin, report)
    response = connection.send("PUT", at, content=file.read_bytes(), params={"overwrite": overwrite})
    made = answer(response)
    report(size, size)
    return made


def _silent(done: int, total: int) -> None:
    """Report nothing."""


def _checksum(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _upload_in_parts(connection: Connection, uploads: str, file: Path, begin: dict[str, Any], report: Progress) -> Any:
    unfinished = _unfinished(connection, uploads, begin)
    if unfinished is not None:
        try:
            return _resume(connection, unfinished, file, report)
        except _WrongChecksum:
            # It has the bytes of another file.
            connection.request("DELETE", f"/api/uploads/{unfinished['id']}")
    try:
        return _resume(connection, connection.post(uploads, begin), file, report)
    except _WrongChecksum:
        raise Damaged(f"{file} changed during the upload; upload it again") from None


def _unfinished(connection: Connection, uploads: str, begin: dict[str, Any]) -> Any:
    """An interrupted upload of this file, or None."""
    for item in connection.get(uploads)["items"]:
        if all(item[name] == value for name, value in begin.items()):
            return item
    return None


def _resume(connection: Connection, upload: Any, file: Path, report: Progress) -> Any:
    _send_parts(connection, upload, file, report)
    return _finish(connection, upload, _checksum(file))


def _send_parts(connection: Connection, upload: Any, file: Path, report: Progress) -> None:
    at, size, backoff = f"/api/uploads/{upload['id']}", upload["size"], _Backoff()
    offset: int | None = upload["offset"]
    with file.open("rb") as source:
        while offset != size:
            try:
                if offset is None:
                    offset = int(connection.get(at)["offset"])
                report(offset, size)
                source.seek(offset)
                offset = _send_part(connection, at, offset, source.read(min(PART, size - offset)))
                backoff.succeeded()
            except Unreachable as error:
                backoff.failed(error)
                offset = None
    report(size, size)


def _send_part(connection: Connection, at: str, offset: int, part: bytes) -> int:
    """Send a part; the next offset, as the server says."""
    if not part:
        raise _WrongChecksum
    response = connection.send("PATCH", at, content=part, headers={"Upload-Offset": str(offset)})
    is_elsewhere = response.status_code == 409 and response.headers.get("upload-offset", str(offset)) != str(offset)
    return int(response.headers["upload-offset"] if is_elsewhere else answer(response)["offset"])


def _finish(connection: Connection, upload: Any, sha256: str) -> Any:
    at, backoff = f"/api/uploads/{upload['id']}/finish", _Backoff()
    while True:
        try:
            response = connection.send("POST", at, json={"sha256": sha256}, timeout=FINISH_SECONDS)
        except Unreachable as error:
            backoff.failed(error)
            continue
        if response.status_code == 422 and "sha256" in response.json():
            raise _WrongChecksum
        return answer(response)


# Downloads


def download(connection: Connection, volume: str, path: str, target: Path, progress: Progress | None = None) -> Path:
    """Download a file. The target is complete and has the right checksum, or is not changed."""
    at, report, backoff = url(volume_id(connection, volume), path), progress or _silent, _Backoff()
    head = connection.send("HEAD", at)
    if not head.is_success:
        connection.get(at)
    tag, size = head.headers["etag"], int(head.headers["content-length"])
    part = target.with_name(f".{target.name[:100]}.{tag.strip(chr(34))[:32]}.part")
    part.touch()
    while (offset := part.stat().st_size) < size:
        try:
            _download_rest(connection, at, part, size, tag, report)
        except Unreachable as error:
            if part.stat().st_size > offset:
                backoff.succeeded()
            backoff.failed(error)
    report(size, size)
    if part.stat().st_size != size or f'"{_checksum(part)}"' != tag:
        part.unlink()
        raise Damaged(f"{path}: the checksum of the downloaded file is wrong; download it again")
    return part.replace(target)


def _download_rest(connection: Connection, at: str, part: Path, size: int, tag: str, report: Progress) -> None:
    offset = part.stat().st_size
    headers = {"Range": f"bytes={offset}-", "If-Range": tag, "Accept-Encoding": "identity"}
    with connection.stream(at, headers) as response:
        if response.status_code != 206 or response.headers.get("etag") != tag:
            part.unlink()
            raise Damaged("the file was replaced during the download; download it again")
        with part.open("ab") as sink:
            for chunk in response.iter_bytes():
                offset += sink.write(chunk)
                report(offset, size)
