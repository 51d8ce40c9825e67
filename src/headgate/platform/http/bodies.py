"""Large request bodies: streamed to the thread of a staged route, never held in memory as a whole."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from anyio import from_thread
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headgate.kit.errors import BadRequest, Problem, TooLarge, TooManyAttempts, TooSlow

PIECE = 256 << 10
"""Bytes passed from the connection to the thread at once."""
PATIENCE = 60.0
"""Seconds in which the next chunk must arrive, so that a slow client cannot hold a thread."""


class Seats:
    """Limits how many of a number of threads one member may use, so that some remain for others."""

    def __init__(self, most: int) -> None:
        self._most, self._lock, self._taken = most, threading.Lock(), Counter[str]()

    @contextmanager
    def taken_by(self, member: str) -> Iterator[None]:
        """Hold a thread slot; raises TooManyAttempts."""
        with self._lock:
            if self._taken[member] >= self._most:
                raise TooManyAttempts(
                    f"You have {self._most} uploads at the same time; wait until one has ended", seconds=5
                )
            self._taken[member] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[member] -= 1
                if not self._taken[member]:
                    del self._taken[member]


class Body:
    """The body of a request as an iterator of chunks, for the thread of a staged route."""

    def __init__(self, request: Request, patience: float = PATIENCE) -> None:
        self._stream = request.stream()
        self._patience, self._ended = patience, False

    def __iter__(self) -> Iterator[bytes]:
        """The remaining chunks. Errors are raised as Problems."""
        while not self._ended:
            if piece := from_thread.run(self._next):
                yield piece

    async def _next(self) -> bytes:
        body = bytearray()
        try:
            with anyio.fail_after(self._patience):
                while len(body) < PIECE:
                    body += await anext(self._stream)
        except StopAsyncIteration:
            self._ended = True
        except TimeoutError:
            raise _closing(TooSlow()) from None
        except ClientDisconnect:
            raise BadRequest("The connection was closed before the whole body arrived; send it again") from None
        except HTTPException as error:
            raise _closing(TooLarge(error.detail)) from None
        return bytes(body)


def _closing(problem: Problem) -> Problem:
    """A problem after which the connection is closed, because the length of the remaining body is unknown."""
    problem.headers = {"Connection": "close"}  # type: ignore[attr-defined]
    return problem
