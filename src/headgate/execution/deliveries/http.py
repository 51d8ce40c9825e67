"""HTTP deliveries: POST batches of JSON rows, at least once. The order of rows is deterministic, so a retried run sends
the same batches. The `Idempotency-Key` of a batch consists of run, step, snapshot and batch number; a receiver that
honors it takes each batch once. Confirmed batches are reported to the server from time to time, and a retried run
continues after them.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from urllib.parse import urlencode

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.external_systems.kinds import Http
from headgate.contracts.pipelines.delivery_targets import path_of
from headgate.execution.deliveries.export import exported
from headgate.execution.deliveries.rows import SnapshotRows
from headgate.execution.sources.fetch.credentials import authorized, posted
from headgate.execution.sources.rest.auth import Credentials
from headgate.execution.sources.rest.failures import ApiFailed, redact
from headgate.execution.sources.rest.http_calls import below, pause, retry_after
from headgate.execution.sources.rest.requests import Limits
from headgate.execution.steps.context import Result, RunStopped, StepFailed
from headgate.kit.call_errors import CallRefused, OutgoingError
from headgate.kit.crash_points import crash_point
from headgate.outgoing.client import Outgoing, Response

LINES = "lines"
BATCHES, SECONDS = "batches", 2.0
"""The minimum interval between checkpoints of the confirmed batches."""

_AGAIN = frozenset({408, 409, 425, 429})
_EXCERPT, _LOOKED_AT = 300, 64 << 10


def deliver(rows: SnapshotRows, endpoint: Endpoint) -> Result:
    """Send all rows, starting after the last confirmed batch."""
    rows.context.log("HTTP deliveries are at least once: use the Idempotency-Key of each batch to detect duplicates")
    outgoing = Outgoing(rows.context.settings.outgoing)
    try:
        return _Sender(rows, endpoint, outgoing).sent()
    except ApiFailed as error:
        raise StepFailed(error.code, error.message, passing=error.passing) from None
    finally:
        outgoing.close()


class _Sender:
    """Sends the batches of one step."""

    def __init__(self, rows: SnapshotRows, endpoint: Endpoint, outgoing: Outgoing) -> None:
        self._rows, self._outgoing = rows, outgoing
        self._place = Http.model_validate(endpoint.config)
        auth = authorized(self._place, endpoint.secrets)
        self._credentials = Credentials(auth, lambda *sent: posted(outgoing, *sent))
        self._url = below(self._place.base_url, path_of(rows.step.sending.target))
        self._told = self._turn = time.monotonic()

    def sent(self) -> Result:
        """Send all batches."""
        sending = self._rows.step.sending
        done = int(self._rows.memory.get(BATCHES, 0))
        result = exported(self._rows, LINES)
        crash_point("delivery: rows exported")
        if done:
            self._rows.context.log(f"An earlier attempt of this run has already delivered {done} batches")
        batches = size = 0
        for number, lines in enumerate(_batches(result.files, sending.batch)):
            batches = number + 1
            if number < done:
                continue
            body = b"[" + b",".join(lines) + b"]"
            try:
                self._send(number, body)
            except StepFailed:
                with suppress(RunStopped):
                    self._note(number, is_last=True)
                raise
            crash_point(f"delivery: batch {number} sent")
            size += len(body)
            self._note(batches)
        self._note(batches, is_last=True)
        self._rows.context.log(f"Delivered {result.rows} rows in {batches} batches")
        detail = {**self._rows.detail, "batches": batches}
        return Result(rows_in=result.rows, rows_out=result.rows, bytes=size, detail=detail)

    def _note(self, batches: int, *, is_last: bool = False) -> None:
        """Report the number of confirmed batches to the server, at most once per interval."""
        if is_last or time.monotonic() > self._told + SECONDS:
            self._rows.remember(**{BATCHES: batches})
            self._told = time.monotonic()

    def _send(self, number: int, body: bytes) -> None:
        """Send a batch until it is confirmed, rejected, or out of attempts."""
        context, tried, renewed = self._rows.context, 0, False
        while True:
            self._await_turn()
            context.check_stopped()
            failure, wait = self._tried(number, body)
            if failure is None:
                return
            if failure.code == "API_UNAUTHORIZED" and not renewed and self._credentials.refused():
                renewed = True
                continue
            tried += 1
            if not failure.passing or tried > self._place.retries:
                raise failure
            seconds = pause(tried, Limits()) if wait is None else wait
            if seconds > Limits().longest_wait:
                told = f"{failure.message}. The receiver asks to wait {seconds:,.0f} seconds; resume the run later"
                raise StepFailed(failure.code, told, passing=True)
            context.log(f"{failure.message}; batch {number} is retried in {seconds:.1f} seconds", "warning")
            context.stopping.wait(seconds)

    def _await_turn(self) -> None:
        """Wait for the rate limit; Stopped if the run ends."""
        now = time.monotonic()
        if self._turn > now:
            self._rows.context.stopping.wait(self._turn - now)
        gap = 1 / self._place.per_second if self._place.per_second else 0.0
        self._turn = max(self._turn, now) + gap

    def _tried(self, number: int, body: bytes) -> tuple[StepFailed | None, float | None]:
        """Send a batch once; return the failure, and the Retry-After delay if the receiver sends one."""
        try:
            answer = self._posted(number, body)
        except CallRefused as error:
            return StepFailed("ADDRESS_REFUSED", f"Could not send to {self._place.base_url}: {error}"), None
        except OutgoingError as error:
            return StepFailed("UNREACHABLE", f"Batch {number} was not confirmed: {error}", passing=True), None
        return self._judged(number, answer), retry_after(answer.headers)

    def _posted(self, number: int, body: bytes) -> Response:
        headers = {**self._place.headers, **self._credentials.headers(), "Content-Type": "application/json"}
        parameters = self._credentials.parameters()
        url = f"{self._url}?{urlencode(parameters)}" if parameters else self._url
        return self._outgoing.request(
            "POST", url, headers=headers, content=body, idempotency_key=self._key(number), redirects=False
        )

    def _key(self, number: int) -> str:
        """The idempotency key of a batch, the same at every attempt."""
        return f"{self._rows.context.job.id}-{self._rows.number}-{self._rows.snapshot or 0}-{number}"

    def _judged(self, number: int, answer: Response) -> StepFailed | None:
        status, where = answer.status, f"{self._place.base_url} answered batch {number} with status {answer.status}"
        if 200 <= status < 300:
            return None
        said = self._said(answer)
        if 300 <= status < 400:
            told = f"{where}, a redirect, which is not followed; set this address in the destination"
            return StepFailed("REDIRECTED", told)
        if status == 401:
            return StepFailed("API_UNAUTHORIZED", f"{where}: it rejects the credentials{said}; set the secret again")
        if status == 403:
            return StepFailed(
                "API_FORBIDDEN", f"{where}: the credentials lack the permission to send{said}; grant it at the receiver"
            )
        if status == 413:
            return StepFailed("TOO_LARGE", f"{where}: the batch is too large; set a smaller `batch`")
        if status in _AGAIN or status >= 500:
            return StepFailed("API_BUSY" if status in _AGAIN else "API_DOWN", f"{where}{said}", passing=True)
        return StepFailed("API_REFUSED", f"{where}{said}; check the target, and the format that it accepts")

    def _said(self, answer: Response) -> str:
        text = answer.body[:_LOOKED_AT].decode(errors="replace")
        plain = " ".join(redact(text, self._credentials.secrets()).split())
        shown = "".join(value if value.isprintable() else " " for value in plain)[:_EXCERPT]
        return f', with the message "{shown}"' if shown else ""


def _batches(files: Sequence[Path], size: int) -> Iterator[list[bytes]]:
    """Batches of lines from files."""
    lines = _lines(files)
    while batch := list(islice(lines, size)):
        yield batch


def _lines(files: Sequence[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as source:
            for line in source:
                yield line.rstrip(b"\n")
