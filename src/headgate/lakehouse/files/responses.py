"""A file as an HTTP answer: whole or a range of it, read as fast as the client takes it."""

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
"""Seconds in which a client must take a piece; one that takes nothing holds a file open no longer."""
READING = CapacityLimiter(16)
"""Threads that read files, of all downloads together."""
POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"

_RANGE = re.compile(r"bytes=(?P<first>[0-9]{1,18})?-(?P<last>[0-9]{1,18})?", re.IGNORECASE)


def is_among(sha256: str, header: str, *, weakly: bool = False) -> bool:
    """Whether a list of entity tags names this sum; `*` names each."""
    tags = {tag.strip().removeprefix("W/" if weakly else "") for tag in header.split(",")}
    return "*" in tags or f'"{sha256}"' in tags


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of a file: where they begin, and how many they are."""

    begins: int
    length: int


def span_of(header: str | None, size: int) -> ByteRange | None:
    """The one range that a header asks for; None for all: of no range, more than one, or one in another unit."""
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
    """What an answer with a file says of it; every file is saved, none is shown."""
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
    """An open file, sent piece by piece; closed at the end, whatever that is."""

    def __init__(self, file: BinaryIO, row: Any, span: ByteRange | None) -> None:
        self._file, self._span = file, span or ByteRange(0, row["size"])
        self.status_code, self.background = 206 if span else 200, None
        self.body = b""
        self.init_headers(headers_of(row, span))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
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
