"""What the tests of the lakehouse share: calls of a member without HTTP, and what the database then holds."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Table, insert, select

from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.kit.clock import now
from headgate.kit.columns import UtcDateTime
from headgate.lakehouse.trash.retained_rows import ITSELF
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.unit_of_work.call import Call, Caller
from headgate.schema import METADATA
from tests.support.company import Company

T = TypeVar("T")


def acting(millrace: Company, member: str, work: Callable[[Call], T], narrowing: Narrowing = UNLIMITED) -> T:
    """Do some work in one transaction, as a member."""
    who, services = millrace.id("member", member), millrace.client.app.state.services  # type: ignore[attr-defined]
    caller = Caller(who, narrowing=narrowing)
    return millrace.database.write(lambda connection: work(Call(connection, now(), caller, services)))


def put(millrace: Company, table: Table, **values: Any) -> None:
    """Write a row; what a column must have and is not given is something plain."""
    plain: dict[type, Any] = {str: "x", int: 0, bool: False}
    needed = [one for one in table.columns if not one.nullable and one.name not in values]
    row = {
        one.name: now() if isinstance(one.type, UtcDateTime) else plain[one.type.python_type] for one in needed
    } | values
    millrace.database.write(lambda connection: connection.execute(insert(table).values(row)))


def everything(millrace: Company) -> dict[str, list[Any]]:
    """Every row of every table but the audit log, without when somebody was seen, which is written a little later."""
    found = {}
    with millrace.database.read() as connection:
        for table in METADATA.sorted_tables:
            if table.name not in {"audit_events", "tokens", "leases"}:
                columns = [column for column in table.columns if column.name != "last_seen_at"]
                rows = connection.execute(select(*columns)).all()
                found[table.name] = sorted(rows, key=repr)
    return found


def traces(millrace: Company, identifier: str) -> set[str]:
    """The tables that name an id in any of their columns."""
    return {name for name, rows in everything(millrace).items() if any(identifier in row for row in rows)}


def is_indexed(millrace: Company) -> bool:
    """Whether the audience index is what it would be if it were written anew."""
    before = everything(millrace)["audience"]
    millrace.database.write(rebuild)
    return before == everything(millrace)["audience"]


__all__ = ["ITSELF", "acting", "everything", "is_indexed", "put", "traces"]
