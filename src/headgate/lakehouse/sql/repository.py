"""Database access to statements of a member."""

from collections.abc import Sequence

from sqlalchemy import Connection, Select, delete, func, select
from sqlalchemy.engine import RowMapping

from headgate.kit.database import fetch
from headgate.lakehouse.sql.models import statement_read_table, statement_table
from headgate.platform.jobs.models import ACTIVE

_rows = statement_table.c
_LISTED = tuple(
    column for column in statement_table.columns if column.name not in {"first_page", "columns", "progress"}
)


def own(connection: Connection, member: str, statement: str) -> RowMapping | None:
    """A member's statement, with the first page of its result."""
    query = select(statement_table).where(_rows.id == statement, _rows.member_id == member)
    return connection.execute(query).mappings().one_or_none()


def active(connection: Connection, member: str) -> int:
    """The number of a member's queued and running statements."""
    query = select(func.count()).where(_rows.state.in_(ACTIVE), _rows.member_id == member)
    return int(connection.execute(query).scalar_one())


def page(
    connection: Connection, member: str, *, token: str | None, is_active: bool, before: str | None, limit: int
) -> Sequence[RowMapping]:
    """Statements of a member, newest first; optionally of one token only."""
    query: Select[tuple[object, ...]] = select(*_LISTED).where(_rows.member_id == member)
    if token is not None:
        query = query.where(_rows.token_id == token)
    if is_active:
        query = query.where(_rows.state.in_(ACTIVE))
    if before is not None:
        query = query.where(_rows.id < before)
    return connection.execute(query.order_by(_rows.id.desc()).limit(limit)).mappings().all()


def tables_read(connection: Connection, statement: str) -> Sequence[str]:
    """The ids of the tables that a statement read."""
    reads = statement_read_table.c
    query = select(reads.table_id).where(reads.statement_id == statement).order_by(reads.table_id)
    return connection.execute(query).scalars().all()


def remove(connection: Connection, statement: str) -> None:
    """Delete a statement."""
    connection.execute(delete(statement_table).where(_rows.id == statement))


_STATE = "SELECT state FROM statements WHERE id = :id AND member_id = :member"


def has_ended(connection: Connection, member: str, statement: str) -> bool:
    """Whether there is nothing to wait for: the statement has ended or is not the member's."""
    rows = fetch(connection, _STATE, {"id": statement, "member": member})
    return not rows or rows[0][0] not in ACTIVE
