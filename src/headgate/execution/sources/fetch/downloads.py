"""Downloads to the worker, with retries, resumption, and size limits."""

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
    """The limits of a stream's downloads."""

    max_bytes: int
    seconds: float
    log: Callable[[str], None]
    stopping: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, context: Context) -> "Terms":
        """The limits of a run on a worker."""
        return cls(context.settings.sources.max_bytes, context.job.seconds, context.log, context.stopping)

    def wait(self, seconds: float) -> None:
        """Sleep; Stopped as soon as the run ends."""
        if self.stopping.wait(seconds):
            raise RunStopped


class ByteBudget:
    """The remaining bytes of a stream, shared by threads."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._lock = threading.Lock()
        self.taken, self._told = 0, time.monotonic()

    def take(self, size: int) -> None:
        """Count downloaded bytes; StepFailed over the limit, Stopped if the run ends."""
        self._terms.wait(0)
        with self._lock:
            self.taken += size
            taken, tells = self.taken, time.monotonic() > self._told + TELL_SECONDS
            if tells:
                self._told = time.monotonic()
        if taken > self._terms.max_bytes:
            raise too_many(self._terms.max_bytes)
        if tells:
            self._terms.log(f"{taken // _MB:,} MB downloaded")

    def give_back(self, size: int) -> None:
        """Return bytes of a discarded download."""
        with self._lock:
            self.taken -= size


def too_many(most: int) -> StepFailed:
    """The failure of a stream over its size limit."""
    told = (
        f"This stream downloads more than {most:,} bytes in one run; narrow the stream, or ask the operator to raise "
    )
    return StepFailed("TOO_MANY_BYTES", f"{told}sources.max_bytes")


@dataclass(frozen=True)
class Fetched:
    """A downloaded file."""

    path: Path
    size: int
    sha256: str
    content_type: str
    url: str


class Downloads:
    """Downloads files; can be shared by threads."""

    def __init__(self, outgoing: Outgoing, terms: Terms, *, retries: int = RETRIES) -> None:
        self._outgoing, self._terms, self._retries = outgoing, terms, retries
        self._until = time.monotonic() + terms.seconds
        self.budget = ByteBudget(terms)

    def file(self, url: str, target: Path, *, headers: Headers, name: str, judge: Judge | None = None) -> Fetched:
        """Download a file; `name` is its name for members."""
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
                    raise StepFailed(trouble.code, f"{trouble} ({tried} attempts)", passing=True) from None
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
            raise StepFailed("ADDRESS_REFUSED", f"Could not download {part.name}: {error}") from None
        except Unreachable as error:
            raise _Passing("FILE_UNREACHABLE", f"The download of {part.name} was incomplete: {error}") from None
        except OutgoingError as error:
            raise StepFailed("FILE_REFUSED", f"Could not download {part.name}: {error}") from None
        finally:
            self.budget.give_back(part.dropped - dropped)

    def _rest(self, seconds: float, trouble: "_Passing") -> None:
        if seconds > Limits().longest_wait or time.monotonic() + seconds > self._until:
            told = f"{trouble}; the server asks to wait {seconds:,.0f} seconds, so configure retries for the pipeline"
            raise StepFailed(trouble.code, told, passing=True) from None
        self._terms.wait(seconds)


class _Passing(Exception):
    """A transient error; `seconds` is the Retry-After delay."""

    def __init__(self, code: str, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.code, self.seconds = code, seconds


class _Part:
    """A partially downloaded file."""

    def __init__(self, url: str, target: Path, name: str, headers: Headers, judge: Judge | None) -> None:
        self.url, self.target, self.name = url, target, name
        self._headers, self._judge = headers, judge
        self.dropped = 0
        self._begin()

    def _begin(self) -> None:
        self.size, self._hash, self._mark = 0, hashlib.sha256(), ""

    def asking(self) -> dict[str, str]:
        """The request headers: with a range if the server can confirm that the file is unchanged."""
        if self.size and not self._mark:
            self._again()
        rest = {"Range": f"bytes={self.size}-", "If-Range": self._mark} if self.size else {}
        return {**self._headers(), **rest}

    def look(self, answer: StreamedResponse) -> None:
        """Check the status and headers of a response."""
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
            raise _Passing("FILE_UNREACHABLE", f"{self.name} changed during the download")
        raise self._trouble(answer)

    def add(self, piece: bytes) -> None:
        """Record a written chunk."""
        self.size += len(piece)
        self._hash.update(piece)

    def whole(self, answer: StreamedResponse) -> Fetched:
        """The complete file."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        return Fetched(self.target, self.size, self._hash.hexdigest(), kind, answer.url)

    def _again(self) -> None:
        self.dropped += self.size
        self._begin()

    def _trouble(self, answer: StreamedResponse) -> Exception:
        status = answer.status
        if status in (408, 425, 429) or status >= 500:
            told = "is rate limited" if status == 429 else "is unavailable"
            return _Passing("FILE_UNREACHABLE", f"{self.name} {told} ({status})", retry_after(answer.headers))
        if self._judge is not None and (step_failed := self._judge(answer)) is not None:
            return step_failed
        words = {
            401: "the server rejects the credentials; set the connection's secret again",
            403: "the connection has no permission to read it; grant it on the server",
            404: "it does not exist; check the connection's address and the stream's name",
        }
        code = {401: "FILE_UNAUTHORIZED", 403: "FILE_FORBIDDEN", 404: "FILE_NOT_FOUND"}.get(status, "FILE_REFUSED")
        return StepFailed(
            code, f"Could not download {self.name} ({status}): {words.get(status, 'the server refused the request')}"
        )


@contextmanager
def to_disk(target: Path, mode: str = "wb") -> Iterator[BinaryIO]:
    """A file to write; StepFailed if the disk is full."""
    try:
        with target.open(mode) as file:
            yield cast("BinaryIO", file)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            told = "The worker's disk is full, so nothing was landed; the operator must free space in `data_dir`"
            raise StepFailed("DISK_FULL", told, passing=True) from None
        raise
