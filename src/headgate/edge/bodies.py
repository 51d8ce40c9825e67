"""Large bodies: taken piece by piece by the thread of a staged route, never whole in memory."""

from collections.abc import Iterator

import anyio
from anyio import from_thread
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headgate.errors import BadRequest, Problem, TooLarge, TooSlow

PIECE = 256 << 10
"""How many bytes go from the connection to the thread at once."""
PATIENCE = 60.0
"""Seconds in which a piece, or the end, must come: a client that sends next to nothing holds a thread no longer."""


class Body:
    """The body of a request, as an iterator of pieces; for the thread that a staged route runs in."""

    def __init__(self, request: Request, patience: float = PATIENCE) -> None:
        self._stream = request.stream()
        self._patience, self._ended = patience, False

    def __iter__(self) -> Iterator[bytes]:
        """Every piece that is left. What goes wrong on the way is a Problem."""
        while not self._ended:
            if piece := from_thread.run(self._next):
                yield piece

    async def _next(self) -> bytes:
        found = bytearray()
        try:
            with anyio.fail_after(self._patience):
                while len(found) < PIECE:
                    found += await anext(self._stream)
        except StopAsyncIteration:
            self._ended = True
        except TimeoutError:
            raise _closing(TooSlow()) from None
        except ClientDisconnect:
            raise BadRequest("The connection ended before the body did; send it again") from None
        except HTTPException as error:
            raise _closing(TooLarge(error.detail)) from None
        return bytes(found)


def _closing(problem: Problem) -> Problem:
    """A problem after which the connection ends, since nobody knows how much of the body is still to come."""
    problem.headers = {"Connection": "close"}  # type: ignore[attr-defined]
    return problem
