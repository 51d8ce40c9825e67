"""Capture what a cell and its child processes write to standard output and error, up to a limit."""

import io
import os
import sys
import threading
import uuid

CHUNK = 1 << 16
MARK_SECONDS = 5.0


class Stream:
    """One captured stream: everything is read, and kept up to a limit."""

    def __init__(self, number: int) -> None:
        reading, writing = os.pipe()
        os.dup2(writing, number)
        os.close(writing)
        self._number, self._reading = number, reading
        self._lock = threading.Lock()
        self._kept, self._room, self._tail = bytearray(), 0, b""
        self._mark: bytes | None = None
        self._seen = threading.Event()
        self.is_cut = False
        threading.Thread(target=self._read, daemon=True).start()

    def begin(self, room: int) -> None:
        """Keep so many bytes from now on."""
        with self._lock:
            self._kept, self._room, self.is_cut = bytearray(), room, False

    def end(self) -> str:
        """The output since `begin`."""
        mark = uuid.uuid4().hex.encode()
        with self._lock:
            self._mark, self._tail = mark, b""
            self._seen.clear()
        os.write(self._number, mark)
        self._seen.wait(MARK_SECONDS)
        with self._lock:
            self._mark = None
            return bytes(self._kept).replace(mark, b"").decode("utf-8", "replace")

    def _read(self) -> None:
        while chunk := os.read(self._reading, CHUNK):
            with self._lock:
                if self._mark is not None:
                    recent = self._tail + chunk
                    self._tail = recent[-len(self._mark) :]
                    if self._mark in recent:
                        chunk = chunk.replace(self._mark, b"")
                        self._seen.set()
                room = self._room - len(self._kept)
                self._kept += chunk[: max(room, 0)]
                self.is_cut = self.is_cut or len(chunk) > room


class Capture:
    """Standard output and error of this process and of all that it starts from now on."""

    def __init__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._out, self._err = Stream(1), Stream(2)
        sys.stdout = self._stdout = _text(1)
        sys.stderr = self._stderr = _text(2)

    def begin(self, room: int) -> None:
        """Keep so many bytes of each from now on."""
        self._out.begin(room)
        self._err.begin(room)

    def end(self) -> tuple[str, str, bool]:
        """What was written since, and whether a part of it was left out."""
        for stream in (self._stdout, self._stderr):
            stream.flush()
        out, err = self._out.end(), self._err.end()
        return out, err, self._out.is_cut or self._err.is_cut


def _text(number: int) -> io.TextIOWrapper:
    raw = os.fdopen(number, "wb", buffering=0, closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", write_through=True)
