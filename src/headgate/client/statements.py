"""SQL statements: submit, wait, cancel, and read the rows."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from headgate.client.connection import Connection
from headgate.client.errors import StatementFailed

STATEMENTS = "/api/sql/statements"
ARROW = "application/vnd.apache.arrow.stream"
FINAL = frozenset({"succeeded", "failed", "cancelled"})
_POLL_SECONDS = 0.5
_LONG_POLL_SECONDS = 20.0

Watch = Callable[[dict[str, Any]], None]
"""Called with the statement after each poll."""


class Rows:
    """The rows of a statement, fetched page by page. `statement` has its other fields."""

    def __init__(self, connection: Connection, statement: dict[str, Any]) -> None:
        self._connection, self.statement = connection, statement

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column["name"] for column in self.statement["columns"] or ()]

    @property
    def truncated(self) -> bool:
        """Whether a limit cut off rows."""
        return bool(self.statement["truncated"])

    def __len__(self) -> int:
        return int(self.statement["rows"] or 0)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Each row, with values as in JSON: decimals and times are strings."""
        for number in range(self.statement["pages"] or 0):
            page = self.statement if number == 0 else self._connection.get(self._page(number))
            yield from map(tuple, page["data"] or ())

    def arrow(self) -> Any:
        """All rows as one pyarrow.Table, with exact types."""
        import pyarrow as pa

        return pa.concat_tables(self.arrow_pages())

    def arrow_pages(self) -> Iterator[Any]:
        """The pages, each as a pyarrow.Table."""
        import pyarrow as pa

        for number in range(self.statement["pages"] or 0):
            content = b"".join(self._connection.read(self._page(number), accept=ARROW))
            yield pa.ipc.open_stream(content).read_all()

    def _page(self, number: int) -> str:
        return f"{STATEMENTS}/{self.statement['id']}/pages/{number}"


def run(
    connection: Connection,
    sql: str,
    max_rows: int | None = None,
    *,
    watch: Watch | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Submit SQL and wait for its end; the statement, or StatementFailed. An interruption cancels the statement."""
    statement = connection.post(STATEMENTS, {"sql": sql, "max_rows": max_rows})
    try:
        return wait(connection, statement, watch=watch, seconds=seconds)
    except BaseException as error:
        if not isinstance(error, StatementFailed):
            cancel(connection, statement["id"])
        raise


def wait(
    connection: Connection, statement: dict[str, Any], *, watch: Watch | None = None, seconds: float | None = None
) -> dict[str, Any]:
    """Wait for the end of a statement: StatementFailed if it does not succeed, TimeoutError after these seconds."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while statement["state"] not in FINAL:
        pause = _POLL_SECONDS if watch else _LONG_POLL_SECONDS
        if deadline is not None:
            pause = min(pause, deadline - time.monotonic())
            if pause <= 0:
                raise TimeoutError(f"the statement exceeded the timeout of {seconds:g} seconds")
        statement = connection.get(f"{STATEMENTS}/{statement['id']}", wait=pause)
        if watch:
            watch(statement)
    if statement["state"] != "succeeded":
        raise StatementFailed(statement)
    return statement


def cancel(connection: Connection, statement: str) -> str:
    """Cancel a statement and wait up to ten seconds; its state."""
    response = connection.post(f"{STATEMENTS}/{statement}/cancel")
    if response["state"] == "cancelling":
        response = connection.get(f"{STATEMENTS}/{statement}", wait=10)
    return str(response["state"])
