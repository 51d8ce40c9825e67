"""File downloads: the whole file or a range, streamed at the client's speed."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import anyio
from anyio import CapacityLimiter, to_thread
from fastapi import Response
from starlette.types import Receive, Scope, Send

from headgate.kit.errors import NoSuchRange
from headgate.lakehouse.files.media_types import disposition, safe_type
from headgate.platform.http.middleware import IS_HEAD

PIECE = 256 << 10
PATIENCE = 120.0
"""Seconds in which a client must read the next chunk; then the file is closed."""
READING = CapacityLimiter(16)
"""Threads that read files, for all downloads together."""
POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"

_RANGE = re.compile(r"bytes=(?P<first>[0-9]{1,18})?-(?P<last>[0-9]{1,18})?", re.IGNORECASE)


def is_among(sha256: str, header: str, *, weakly: bool = False) -> bool:
    """Whether an entity tag list contains this hash; `*` matches any."""
    tags = {tag.strip().removeprefix("W/" if weakly else "") for tag in header.split(",")}
    return "*" in tags or f'"{sha256}"' in tags


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A byte range: offset and length."""

    begins: int
    length: int


def span_of(header: str | None, size: int) -> ByteRange | None:
    """The single range in a header; None for no range, several ranges, or another unit."""
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or (match["first"] is None and match["last"] is None):
        return None
    if match["first"] is None:
        length = min(int(match["last"]), size)
        begins = size - length
    else:
        begins, last = int(match["first"]), int(match["last"] or size - 1)
        if match["last"] is not None and last < begins:
            return None
        length = min(last, size - 1) - begins + 1
    if length <= 0:
        raise NoSuchRange(size)
    return ByteRange(begins, length)


def headers_of(row: Any, span: ByteRange | None) -> dict[str, str]:
    """The response headers of a file; files are always attachments."""
    size = row["size"]
    values = {
        "ETag": f'"{row["sha256"]}"',
        "Accept-Ranges": "bytes",
        "Content-Type": safe_type(row["media_type"]),
        "Content-Disposition": disposition(row["path"]),
        "Content-Security-Policy": POLICY,
        "Content-Length": str(span.length if span else size),
    }
    if span:
        values["Content-Range"] = f"bytes {span.begins}-{span.begins + span.length - 1}/{size}"
    return values


class FileAnswer(Response):
    """Streams an open file and closes it in any case."""

    def __init__(self, file: BinaryIO, row: Any, span: ByteRange | None) -> None:
        self._file, self._span = file, span or ByteRange(0, row["size"])
        self.status_code, self.background = 206 if span else 200, None
        self.body = b""
        self.init_headers(headers_of(row, span))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if not scope.get(IS_HEAD):
                await self._send_pieces(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._file.close, limiter=READING)

    async def _send_pieces(self, send: Send) -> None:
        await to_thread.run_sync(self._file.seek, self._span.begins, limiter=READING)
        left = self._span.length
        while left:
            piece = await to_thread.run_sync(partial(self._file.read, min(PIECE, left)), limiter=READING)
            if not piece:
                raise OSError("a file of a volume is shorter than recorded")
            left -= len(piece)
            with anyio.fail_after(PATIENCE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
