"""Pointers of tables, and the commits that moved them."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select

from headgate.kit.paging import Cursor
from headgate.lakehouse.catalog.models import commit_table, table_pointer_table
from headgate.lakehouse.items.repository import id_text, named_as, number_of
from headgate.lakehouse.items.schemas import CommitOut
from headgate.platform.directory.models import member_table

_members = member_table.c


def pointer(connection: Connection, table: str) -> Any:
    """The pointer of a table with the name of its last committer; None before the first commit."""
    query = (
        select(table_pointer_table, _members.name.label("committed_by"))
        .outerjoin(member_table, (_members.id == table_pointer_table.c.committed_by_id) & _members.removed_at.is_(None))
        .where(table_pointer_table.c.table_id == table)
    )
    return connection.execute(query).mappings().one_or_none()


def pointers(connection: Connection, tables: Iterable[str]) -> dict[str, Any]:
    """The pointers of some tables."""
    query = select(table_pointer_table).where(table_pointer_table.c.table_id.in_(list(tables)))
    return {row["table_id"]: row for row in connection.execute(query).mappings()}


def commits_page(
    connection: Connection, table: str, limit: int, after: Cursor | None, purpose: str
) -> tuple[list[CommitOut], str | None]:
    """A page of the commits to a table, newest first."""
    commits = commit_table.c
    query = (
        select(commit_table, _members.name.label("member_name"))
        .outerjoin(member_table, (_members.id == commits.member_id) & _members.removed_at.is_(None))
        .where(commits.table_id == table)
        .order_by(commits.version.desc())
        .limit(limit + 1)
    )
    if after is not None:
        query = query.where(commits.version < number_of(after.value))
    result = connection.execute(query).mappings().all()
    last = result[limit - 1] if len(result) > limit else None
    following = Cursor(str(last["version"]), last["id"]).encode(purpose) if last else None
    return [_commit(row) for row in result[:limit]], following


def _commit(row: Any) -> CommitOut:
    return CommitOut(
        version=row["version"],
        at=row["at"],
        by=named_as(row["member_id"], row["member_name"]),
        operation=row["operation"],
        snapshot=id_text(row["snapshot_id"]),
        parent=id_text(row["parent_snapshot_id"]),
        added_rows=row["added_rows"],
        deleted_rows=row["deleted_rows"],
    )
