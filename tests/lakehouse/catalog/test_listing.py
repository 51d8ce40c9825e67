"""Lists of tables: the same number of statements at any length, and no load waits for them."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from headgate.kit.clock import now
from headgate.lakehouse.catalog import listing
from headgate.lakehouse.catalog.endpoints import LISTS, LOADS
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.pointers import Counts, Move, Pointer, create
from headgate.lakehouse.items.service import create_item
from headgate.platform.unit_of_work.call import Call, Caller
from tests.lakehouse.catalog.support import ROWS, Lake
from tests.support.installation import eventually

pytestmark = pytest.mark.both_databases

LAYER = Ident(("raw",))
WAITING = 24
"""More requests than there are threads for loads."""


def add_tables(lake: Lake, count: int) -> None:
    """Give raw this many tables that have a pointer."""
    layer, tess, services = lake.company.id("layer", "raw"), member(lake), lake.company.services

    def work(connection: Connection) -> None:
        call = Call(connection, now(), Caller(tess), services)
        for number in range(count):
            table = create_item(call, "table", layer, f"t{number}_{count}")
            pointer = Pointer(f"uuid {number}", 1, "file", "sum")
            create(connection, Move(table, None, pointer, Counts(), "create"), now(), tess)

    lake.company.database.write(work)


def member(lake: Lake) -> str:
    return lake.company.id("member", "Tess")


def statements_of(lake: Lake, patch: pytest.MonkeyPatch, work: Callable[[Call], Any]) -> int:
    """How many statements this work sends to the database."""
    sent: list[str] = []
    with lake.company.database.read() as connection:
        call = Call(connection, now(), Caller(member(lake)), lake.company.services)
        raw: Any = connection.connection.driver_connection
        with patch.context() as counting:
            if connection.dialect.name == "sqlite":
                raw.set_trace_callback(sent.append)
            else:
                execute = psycopg.Cursor.execute

                def note(cursor: Any, query: Any, *more: Any, **options: Any) -> Any:
                    if cursor.connection is raw:
                        sent.append(str(query))
                    return execute(cursor, query, *more, **options)

                counting.setattr(psycopg.Cursor, "execute", note)
            try:
                work(call)
            finally:
                if connection.dialect.name == "sqlite":
                    raw.set_trace_callback(None)
    return len(sent)


@pytest.mark.parametrize("token", [None, ""])
def test_a_list_sends_the_same_number_of_statements_at_any_length(
    served: Lake, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    def tables(call: Call) -> None:
        found.append(len(listing.tables(call, LAYER, token, None).items))

    def namespaces(call: Call) -> None:
        listing.namespaces(call, token, None)

    found: list[int] = []
    add_tables(served, 2)
    few = [statements_of(served, monkeypatch, work) for work in (tables, namespaces)]
    add_tables(served, 60)
    many = [statements_of(served, monkeypatch, work) for work in (tables, namespaces)]
    assert found == [2, 62]
    assert few == many
    assert all(0 < count <= 10 for count in many), many


def test_loads_pass_while_lists_take_long(served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, release = served_on_sqlite, threading.Event()
    lake.engine("Tess").create_table("raw.events", ROWS.schema)
    tess, tables = lake.api("Tess"), listing.tables
    lists: list[int] = []
    loads: list[int] = []

    def get(answers: list[int], path: str) -> None:
        answers.append(tess.get(f"/iceberg/v1/namespaces/raw/tables{path}").status_code)

    def slow(*arguments: Any) -> Any:
        assert release.wait(300)
        return tables(*arguments)

    def requests() -> int:
        """How many requests have a thread, or wait for one."""
        found = [limiter.statistics() for limiter in (LISTS, LOADS)]
        return sum(one.borrowed_tokens + one.tasks_waiting for one in found)

    monkeypatch.setattr(listing, "tables", slow)
    threads = [threading.Thread(target=get, args=(lists, "")) for _ in range(WAITING)]
    load = threading.Thread(target=get, args=(loads, "/events"))
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: requests() == WAITING)
        load.start()
        load.join(60)
        assert loads == [200]
        assert not lists
    finally:
        release.set()
        for thread in (*threads, load):
            thread.join()
    assert lists == [200] * WAITING
