"""Files from outside, each brought to this machine: tried again, gone on with where it broke off, bounded in bytes."""

import errno
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from headgate.execution.sources.rest.http_calls import pause, retry_after
from headgate.execution.sources.rest.requests import Limits
from headgate.execution.steps.context import Context, RunStopped, StepFailed
from headgate.kit.call_errors import CallRefused, OutgoingError, Unreachable
from headgate.outgoing.client import Outgoing, StreamedResponse

RETRIES = 5
TELL_SECONDS = 15.0
_MB = 1 << 20
Headers = Callable[[], Mapping[str, str]]
"""The headers of a request, made anew for each: signatures and tokens end."""

Judge = Callable[[StreamedResponse], StepFailed | None]
"""What is wrong with an answer that is neither a file nor passing trouble; None to let the usual words be said."""


@dataclass(frozen=True)
class Terms:
    """What holds for all that a stream brings."""

    max_bytes: int
    seconds: float
    log: Callable[[str], None]
    stopping: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, context: Context) -> "Terms":
        """Those of a run on a worker."""
        return cls(context.settings.sources.max_bytes, context.job.seconds, context.log, context.stopping)

    def wait(self, seconds: float) -> None:
        """Wait; Stopped as soon as the run is to end."""
        if self.stopping.wait(seconds):
            raise RunStopped


class ByteBudget:
    """The bytes that a stream may still bring; threads share it."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._lock = threading.Lock()
        self.taken, self._told = 0, time.monotonic()

    def take(self, size: int) -> None:
        """Count bytes in; StepFailed if there are too many, Stopped if the run is to end."""
        self._terms.wait(0)
        with self._lock:
            self.taken += size
            taken, tells = self.taken, time.monotonic() > self._told + TELL_SECONDS
            if tells:
                self._told = time.monotonic()
        if taken > self._terms.max_bytes:
            raise too_many(self._terms.max_bytes)
        if tells:
            self._terms.log(f"{taken // _MB:,} MB are here")

    def give_back(self, size: int) -> None:
        """Count bytes out again that are of no use."""
        with self._lock:
            self.taken -= size


def too_many(most: int) -> StepFailed:
    """That a stream is too large."""
    told = f"This stream has more than {most:,} bytes in one run; read less of it, or an operator raises "
    return StepFailed("TOO_MANY_BYTES", f"{told}sources.max_bytes")


@dataclass(frozen=True)
class Fetched:
    """A file that is here."""

    path: Path
    size: int
    sha256: str
    content_type: str
    url: str


class Downloads:
    """Brings files. Threads may share one."""

    def __init__(self, outgoing: Outgoing, terms: Terms, *, retries: int = RETRIES) -> None:
        self._outgoing, self._terms, self._retries = outgoing, terms, retries
        self._until = time.monotonic() + terms.seconds
        self.budget = ByteBudget(terms)

    def file(self, url: str, target: Path, *, headers: Headers, name: str, judge: Judge | None = None) -> Fetched:
        """Bring a file; `name` is what members call it."""
        part = _Part(url, target, name, headers, judge)
        tried = 0
        while True:
            had = part.size
            try:
                return self._once(part)
            except _Passing as trouble:
                # A file that goes on, if only a piece at a time, is not given up.
                tried = 1 if part.size > had else tried + 1
                if tried > self._retries:
                    raise StepFailed(trouble.code, f"{trouble} (tried {tried} times)", passing=True) from None
                self._rest(trouble.seconds if trouble.seconds is not None else pause(tried, Limits()), trouble)

    def _once(self, part: "_Part") -> Fetched:
        with self._plainly(part):
            seconds = max(self._until - time.monotonic(), 0.001)
            with self._outgoing.stream(part.url, headers=part.asking(), seconds=seconds) as answer:
                part.look(answer)
                with to_disk(part.target, "ab" if part.size else "wb") as file:
                    for piece in answer.pieces:
                        self.budget.take(len(piece))
                        file.write(piece)
                        part.add(piece)
                return part.whole(answer)

    @contextmanager
    def _plainly(self, part: "_Part") -> Iterator[None]:
        dropped = part.dropped
        try:
            yield
        except CallRefused as error:
            raise StepFailed("ADDRESS_REFUSED", f"{part.name} was not fetched: {error}") from None
        except Unreachable as error:
            raise _Passing("FILE_UNREACHABLE", f"{part.name} did not come whole: {error}") from None
        except OutgoingError as error:
            raise StepFailed("FILE_REFUSED", f"{part.name} was not fetched: {error}") from None
        finally:
            self.budget.give_back(part.dropped - dropped)

    def _rest(self, seconds: float, trouble: "_Passing") -> None:
        if seconds > Limits().longest_wait or time.monotonic() + seconds > self._until:
            told = f"{trouble}; it asks to wait {seconds:,.0f} seconds, so let the run retry later"
            raise StepFailed(trouble.code, told, passing=True) from None
        self._terms.wait(seconds)


class _Passing(Exception):
    """Trouble that may pass; `seconds` is how long the other side asks to wait."""

    def __init__(self, code: str, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.code, self.seconds = code, seconds


class _Part:
    """A file, as far as it is here."""

    def __init__(self, url: str, target: Path, name: str, headers: Headers, judge: Judge | None) -> None:
        self.url, self.target, self.name = url, target, name
        self._headers, self._judge = headers, judge
        self.dropped = 0
        self._begin()

    def _begin(self) -> None:
        self.size, self._hash, self._mark = 0, hashlib.sha256(), ""

    def asking(self) -> dict[str, str]:
        """The headers to ask with: for the rest, if the other side can tell that the file is the same still."""
        if self.size and not self._mark:
            self._again()
        rest = {"Range": f"bytes={self.size}-", "If-Range": self._mark} if self.size else {}
        return {**self._headers(), **rest}

    def look(self, answer: StreamedResponse) -> None:
        """Look at an answer's head."""
        begins = answer.headers.get("content-range", "").startswith(f"bytes {self.size}-")
        if answer.status == 206 and self.size and begins:
            return
        if answer.status == 200:
            if self.size:
                self._again()
            tag = answer.headers.get("etag", "")
            # What was unpacked on the way cannot be gone on with by a count of bytes.
            is_plain = answer.headers.get("content-encoding", "identity") == "identity"
            self._mark = tag if is_plain and tag and not tag.startswith("W/") else ""
            return
        if answer.status in (206, 416):
            self._again()
            raise _Passing("FILE_UNREACHABLE", f"{self.name} changed while it was fetched")
        raise self._trouble(answer)

    def add(self, piece: bytes) -> None:
        """Note a piece that was written."""
        self.size += len(piece)
        self._hash.update(piece)

    def whole(self, answer: StreamedResponse) -> Fetched:
        """The file, which is here now."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        return Fetched(self.target, self.size, self._hash.hexdigest(), kind, answer.url)

    def _again(self) -> None:
        self.dropped += self.size
        self._begin()

    def _trouble(self, answer: StreamedResponse) -> Exception:
        status = answer.status
        if status in (408, 425, 429) or status >= 500:
            told = "is asked for too often" if status == 429 else "cannot be given now"
            return _Passing("FILE_UNREACHABLE", f"{self.name} {told} ({status})", retry_after(answer.headers))
        if self._judge is not None and (step_failed := self._judge(answer)) is not None:
            return step_failed
        words = {
            401: "the other side does not know who asks; give the connection its secret again",
            403: "the connection's secret may not read it; have it be given that right there",
            404: "it is not there; check the connection's address and the stream's name",
        }
        code = {401: "FILE_UNAUTHORIZED", 403: "FILE_FORBIDDEN", 404: "FILE_NOT_FOUND"}.get(status, "FILE_REFUSED")
        return StepFailed(
            code, f"{self.name} was not fetched ({status}): {words.get(status, 'the other side refused')}"
        )


@contextmanager
def to_disk(target: Path, mode: str = "wb") -> Iterator[BinaryIO]:
    """A file to write; StepFailed if the disk is full."""
    try:
        with target.open(mode) as file:
            yield cast("BinaryIO", file)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            told = "The worker's disk is full, so nothing was landed; an operator makes room below `data_dir`"
            raise StepFailed("DISK_FULL", told, passing=True) from None
        raise
