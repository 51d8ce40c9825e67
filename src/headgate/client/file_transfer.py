"""Sends files to volumes and fetches them, for the command line and the Python client; what breaks off is gone on with.

Nothing is kept on this side: an upload is found again by its path and size, and proven by the sum of the whole; a
download goes on in a file that is named by the sum that it will have.
"""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx

from headgate.lakehouse.files.paths import check_path

PART = 8 << 20
"""What is larger is sent in parts of this size."""
ATTEMPTS = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
FINISH_SECONDS = 3600.0
"""How long the server may take to make the parts one file."""

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are done."""


class Damaged(OSError):
    """What came is not what was sent."""


class _WrongSum(Exception):
    """The parts of an upload are not those of the file."""


def _sum_of(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


class _Patience:
    """Tries again after a broken connection, a little later each time; gives up after some in a row."""

    def __init__(self) -> None:
        self._failures = 0

    def failed(self, error: httpx.TransportError) -> None:
        """Wait, or raise the error."""
        self._failures += 1
        if self._failures > ATTEMPTS:
            raise error
        time.sleep(min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE))

    def went_on(self) -> None:
        """Forget the failures: something was done."""
        self._failures = 0


class Transfer:
    """Files of volumes over one connection. `answer` gives the values of a response, or raises what it refuses."""

    def __init__(self, http: httpx.Client, answer: Callable[[httpx.Response], Any]) -> None:
        self._http, self._answer = http, answer

    def volume_id(self, text: str) -> str:
        """The id of a volume that is given by its id, or as layer.name."""
        if text.startswith("vol_"):
            return text
        name, cursor = text.removeprefix("volume:").casefold(), None
        while True:
            asked: dict[str, Any] = {"kind": "volume", "prefix": name, "limit": 200}
            asked |= {"cursor": cursor} if cursor else {}
            page = self._answer(self._http.get("/api/resources", params=asked))
            for item in page["items"]:
                if item["name"].casefold() == name:
                    return str(item["id"])
            cursor = page["next_cursor"]
            if cursor is None:
                body = {"code": "not_found", "detail": f"There is no volume {text} that you may see"}
                return str(self._answer(httpx.Response(404, json=body)))

    @staticmethod
    def url(volume: str, path: str) -> str:
        """The address of a file, or BadName: a path with `..` would be that of something else on its way."""
        return f"/api/volumes/{quote(volume, safe='')}/files/{quote(check_path(path), safe='/')}"

    # Sending

    def send(self, volume: str, file: Path, path: str, progress: Progress, *, overwrite: bool = False) -> Any:
        """Upload a file: small ones in one request, others in parts. What the API says of the new file."""
        size = file.stat().st_size
        if size > PART:
            return self._send_in_parts(volume, file, path, progress, overwrite=overwrite)
        query = {"overwrite": overwrite}
        response = self._http.put(self.url(volume, path), content=file.read_bytes(), params=query)
        found = self._answer(response)
        progress(size, size)
        return found

    def _send_in_parts(self, volume: str, file: Path, path: str, progress: Progress, *, overwrite: bool) -> Any:
        begin = {"path": check_path(path), "size": file.stat().st_size, "overwrite": overwrite}
        uploads = f"/api/volumes/{volume}/uploads"
        found = self._under_way(uploads, begin)
        if found is not None:
            try:
                return self._go_on(found, file, progress)
            except _WrongSum:
                # It was begun with other bytes; nobody needs those now.
                self._http.delete(f"/api/uploads/{found['id']}")
        begun = self._answer(self._http.post(uploads, json=begin))
        try:
            return self._go_on(begun, file, progress)
        except _WrongSum:
            raise Damaged(f"{file} changed while it was sent; send it again") from None

    def _under_way(self, uploads: str, begin: dict[str, Any]) -> Any:
        """An upload of this file that was begun before and broke off, or None."""
        for item in self._answer(self._http.get(uploads))["items"]:
            if all(item[name] == value for name, value in begin.items()):
                return item
        return None

    def _go_on(self, upload: Any, file: Path, progress: Progress) -> Any:
        self._send_parts(upload, file, progress)
        return self._finish(upload, _sum_of(file))

    def _send_parts(self, upload: Any, file: Path, progress: Progress) -> None:
        at, size, patience = f"/api/uploads/{upload['id']}", upload["size"], _Patience()
        offset: int | None = upload["offset"]
        with file.open("rb") as source:
            while offset != size:
                try:
                    if offset is None:
                        offset = int(self._answer(self._http.get(at))["offset"])
                    progress(offset, size)
                    source.seek(offset)
                    offset = self._send_part(at, offset, source.read(min(PART, size - offset)))
                    patience.went_on()
                except httpx.TransportError as error:
                    patience.failed(error)
                    offset = None
        progress(size, size)

    def _send_part(self, at: str, offset: int, part: bytes) -> int:
        """Send a part; where to go on, which the server knows best."""
        if not part:
            raise _WrongSum
        response = self._http.patch(at, content=part, headers={"Upload-Offset": str(offset)})
        is_elsewhere = response.status_code == 409 and response.headers.get("upload-offset", str(offset)) != str(offset)
        return int(response.headers["upload-offset"] if is_elsewhere else self._answer(response)["offset"])

    def _finish(self, upload: Any, sha256: str) -> Any:
        patience = _Patience()
        while True:
            try:
                at = f"/api/uploads/{upload['id']}/finish"
                response = self._http.post(at, json={"sha256": sha256}, timeout=FINISH_SECONDS)
            except httpx.TransportError as error:
                patience.failed(error)
                continue
            if response.status_code == 422 and "sha256" in response.json():
                raise _WrongSum
            return self._answer(response)

    # Fetching

    def fetch(self, volume: str, path: str, target: Path, progress: Progress) -> Path:
        """Download a file; it is there whole, with its own sum, or not at all."""
        url = self.url(volume, path)
        head = self._http.head(url)
        if not head.is_success:
            self._answer(self._http.get(url))
        tag, size = head.headers["etag"], int(head.headers["content-length"])
        part = target.with_name(f".{target.name[:100]}.{tag.strip(chr(34))[:32]}.part")
        patience = _Patience()
        part.touch()
        while (have := part.stat().st_size) < size:
            try:
                self._fetch_rest(url, part, (have, size), tag, progress)
            except httpx.TransportError as error:
                if part.stat().st_size > have:
                    patience.went_on()
                patience.failed(error)
        progress(size, size)
        if part.stat().st_size != size or f'"{_sum_of(part)}"' != tag:
            part.unlink()
            raise Damaged(f"{path}: what came has another sum than the file; fetch it again")
        return part.replace(target)

    def _fetch_rest(self, url: str, part: Path, span: tuple[int, int], tag: str, progress: Progress) -> None:
        have, size = span
        headers = {"Range": f"bytes={have}-", "If-Range": tag, "Accept-Encoding": "identity"}
        with self._http.stream("GET", url, headers=headers) as response:
            if response.status_code != 206 or response.headers.get("etag") != tag:
                response.read()
                part.unlink()
                self._answer(response)
                raise Damaged("the file was replaced while it was fetched; fetch it again")
            with part.open("ab") as file:
                for piece in response.iter_bytes():
                    have += file.write(piece)
                    progress(have, size)
