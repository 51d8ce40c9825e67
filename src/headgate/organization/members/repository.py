"""Lists of members with their contexts, groups and security roles, in a fixed number of statements."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, func, select, tuple_

from headgate.kit.paging import BadCursor, Cursor
from headgate.organization.contexts.models import context_table
from headgate.organization.groups.models import group_table
from headgate.organization.members.schemas import MemberSort
from headgate.platform.authorization.fact_tables import (
    group_member_table,
    member_context_table,
    member_security_role_table,
)
from headgate.platform.directory.models import member_table

_members = member_table.c
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

_COLUMNS: dict[str, Any] = {
    "name": _members.name_key,
    "email": func.coalesce(_members.email_key, ""),
    "role": _members.role,
    "scope": _members.scope,
    "created": _members.created_at,
    "last_seen": func.coalesce(_members.last_seen_at, _LONG_AGO),
}
_TIMES = frozenset({"created", "last_seen"})


def page(
    connection: Connection, sort: MemberSort, prefix: str, limit: int, after: Cursor | None
) -> tuple[Sequence[Any], Cursor | None]:
    """A page of members, and where the next one starts."""
    name = sort.value.removeprefix("-")
    column, descending = _COLUMNS[name], sort.value.startswith("-")
    query = select(member_table, column.label("sorted_by")).where(_members.removed_at.is_(None)).limit(limit + 1)
    if prefix:
        query = query.where(_members.name_key >= prefix, _members.name_key < prefix + "\U0010ffff")
    if after is not None:
        place = tuple_(column, _members.id)
        start = tuple_(_value(name, after), after.id)
        query = query.where(place < start if descending else place > start)
    order = (column.desc(), _members.id.desc()) if descending else (column, _members.id)
    rows = connection.execute(query.order_by(*order)).mappings().all()
    last = rows[limit - 1] if len(rows) > limit else None
    following = Cursor(_text(last["sorted_by"]), last["id"]) if last else None
    return rows[:limit], following


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _value(name: str, after: Cursor) -> Any:
    if name not in _TIMES:
        return after.value
    try:
        moment = datetime.fromisoformat(after.value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        raise BadCursor("invalid cursor; omit it to start from the first page") from None


def address(connection: Connection, member: str) -> str:
    """The mail address of a member, which identifies them in SQL; the name if they have none."""
    row = connection.execute(select(_members.email, _members.name).where(_members.id == member)).one()
    return str(row.email or row.name)


def one(connection: Connection, member: str) -> Any:
    """A member, or None."""
    where = (_members.id == member, _members.removed_at.is_(None))
    return connection.execute(select(member_table).where(*where)).mappings().one_or_none()


def was_member(connection: Connection, member: str) -> bool:
    """Whether this is a current or removed member."""
    return connection.execute(select(_members.id).where(_members.id == member)).first() is not None


def contexts_of(connection: Connection, ids: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """The contexts of each of these members."""
    inner = member_context_table.c
    joined = member_context_table.join(context_table, context_table.c.id == inner.context_id)
    query = select(inner.member_id, context_table.c.id, context_table.c.name).select_from(joined)
    return _grouped(connection.execute(query.where(inner.member_id.in_(ids)).order_by(context_table.c.name_key)))


def groups_of(connection: Connection, ids: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """The groups of each of these members, without All."""
    inner = group_member_table.c
    joined = group_member_table.join(group_table, group_table.c.id == inner.group_id)
    query = select(inner.member_id, group_table.c.id, group_table.c.name).select_from(joined)
    return _grouped(connection.execute(query.where(inner.member_id.in_(ids)).order_by(group_table.c.name_key)))


def _grouped(rows: Any) -> dict[str, list[dict[str, str]]]:
    groups: dict[str, list[dict[str, str]]] = {}
    for member, identifier, name in rows:
        groups.setdefault(member, []).append({"id": identifier, "name": name})
    return groups


def security_roles_of(connection: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """The security roles of each of these members."""
    inner = member_security_role_table.c
    query = select(inner.member_id, inner.security_role).where(inner.member_id.in_(ids)).order_by(inner.security_role)
    roles: dict[str, list[str]] = {}
    for member, role in connection.execute(query):
        roles.setdefault(member, []).append(role)
    return roles
