"""What the tests of groups, contexts and the organization share."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from structlog.testing import capture_logs
from typer import Typer
from typer.testing import CliRunner, Result

from headgate.cli import client
from headgate.client import Headgate
from tests.support.company import Company

EVERYONE = ("Olga", "Adam", "Tess", "Tom", "Ana", "Ben", "Bea", "Dora")
ADMINS = ("Olga", "Adam")
BATCHES = ("audit events", "times of use")
"""The threads that write what need not wait for a transaction of its own."""
OTHERS = tuple(name for name in EVERYONE if name not in ADMINS)


def told(millrace: Company, sort: str = "access.changed") -> Any:
    """The newest event of a sort in the audit log."""
    return millrace.as_("Adam").get("/api/audit", event=sort, limit=1).json()["items"][0]


def changes(millrace: Company) -> list[Any]:
    """How many changes the audit log tells of."""
    return millrace.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'access.changed'")


def at_once(*works: Callable[[], Any]) -> list[int]:
    """The statuses of requests that are sent at the same moment, sorted."""
    barrier, answers = threading.Barrier(len(works)), list[int]()

    def run(work: Callable[[], Any]) -> None:
        barrier.wait()
        answers.append(work().status_code)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(answers)


@contextmanager
def counted(millrace: Company) -> Iterator[list[str]]:
    """The statements that are sent meanwhile, but for those that nobody waits for: they come when they come."""
    found: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        if not statement.startswith("BEGIN") and threading.current_thread().name not in BATCHES:
            found.append(statement)

    event.listen(millrace.database.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(millrace.database.engine, "before_cursor_execute", note)


class Commands:
    """Commands, as a member runs them."""

    def __init__(self, millrace: Company, commands: Typer, patch: pytest.MonkeyPatch) -> None:
        self.millrace, self.commands, self.patch = millrace, commands, patch

    def __call__(self, member: str, *arguments: str, typed: str | None = None) -> Result:
        http, token = self.millrace.client, self.millrace.token(member)

        @contextmanager
        def connect() -> Iterator[Headgate]:
            http.headers["Authorization"] = f"Bearer {token}"
            try:
                yield Headgate(str(http.base_url), http=http)
            finally:
                del http.headers["Authorization"]

        self.patch.setattr(client, "connect", connect)
        with capture_logs():
            return CliRunner().invoke(self.commands, arguments, input=typed)
