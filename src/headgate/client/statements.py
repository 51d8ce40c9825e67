"""Runs a statement over the API to its end: for the command line and the Python client."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from headgate.kit.errors import Problem

STATEMENTS = "/api/sql/statements"
OVER = frozenset({"succeeded", "failed", "cancelled"})
_LOOK_EVERY = 0.5
_PATIENT = 20.0


class Request(Protocol):
    """How the API is asked."""

    def __call__(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """A request; its answer."""


class StatementFailed(Problem):
    """A statement that did not succeed: `error_code` is Spark's, or one of ours."""

    status, code, title = 422, "statement_failed", "The statement failed"

    def __init__(self, statement: dict[str, Any]) -> None:
        error = statement.get("error") or {}
        self.statement, self.error_code = statement, str(error.get("code") or statement["state"].upper())
        sentence = error.get("message") or f"The statement was {statement['state']}"
        super().__init__(f"[{self.error_code}] {sentence}" if error else sentence)


def run(
    request: Request,
    sql: str,
    max_rows: int | None = None,
    *,
    seen: Callable[[dict[str, Any]], None] | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Submit SQL and wait for its end; the statement, or StatementFailed. Whatever breaks this off cancels it."""
    found = request("POST", STATEMENTS, {"sql": sql, "max_rows": max_rows})
    try:
        return followed(request, found, seen=seen, seconds=seconds)
    except BaseException as error:
        if not isinstance(error, StatementFailed):
            cancel(request, found["id"])
        raise


def followed(
    request: Request,
    found: dict[str, Any],
    *,
    seen: Callable[[dict[str, Any]], None] | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Wait for the end of a statement; `seen` gets it each time that it is looked at."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while found["state"] not in OVER:
        wait = _LOOK_EVERY if seen else _PATIENT
        if deadline is not None:
            wait = min(wait, deadline - time.monotonic())
            if wait <= 0:
                raise TimeoutError(f"the statement ran longer than {seconds:g} seconds")
        found = request("GET", f"{STATEMENTS}/{found['id']}", wait=wait)
        if seen:
            seen(found)
    if found["state"] != "succeeded":
        raise StatementFailed(found)
    return found


def cancel(request: Request, statement: str) -> str:
    """Cancel a statement and wait a little for that; its state."""
    found = request("POST", f"{STATEMENTS}/{statement}/cancel")
    if found["state"] == "cancelling":
        found = request("GET", f"{STATEMENTS}/{statement}", wait=10)
    return str(found["state"])
