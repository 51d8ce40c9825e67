"""Finds who can do an action on a resource."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.kinds import KINDS, rule_kinds
from headgate.access.sql import condition, rows, where
from headgate.kit.database import bound, fetch
from headgate.kit.ids import kind_of
from headgate.kit.paging import Cursor
from headgate.platform.authorization.repository import Query


@dataclass(frozen=True, slots=True)
class Person:
    """A member's id and name."""

    id: str
    name: str
    key: str


def who_can(
    connection: Connection,
    action: str,
    resource: str,
    now: datetime,
    *,
    limit: int,
    after: Cursor | None = None,
) -> list[Person]:
    """Members with an action on a resource, by name; at most `limit`, after the cursor."""
    stored = "organization" if resource == "organization" else kind_of(resource) or ""
    persons: list[Person] = []
    for kind in rule_kinds(stored):
        if action == "fire" or action not in BOOK.actions(kind):
            continue
        chosen = "TRUE" if stored == "organization" else "r.id = :id"
        parameters: dict[str, Any] = {"id": resource, "now": bound(connection, now), "limit": limit}
        beyond = "TRUE"
        if after:
            parameters |= {"after_value": after.value, "after_id": after.id}
            beyond = "(m.name_key, m.id) > (:after_value, :after_id)"
        text = (
            f"SELECT m.id, m.name, m.name_key FROM members m CROSS JOIN {KINDS[kind].table} r WHERE {chosen} "
            f"AND {where(kind)} AND {beyond} AND {condition(action, kind)} ORDER BY m.name_key, m.id LIMIT :limit"
        )
        persons += [Person(*row) for row in fetch(connection, text, parameters)]
    return persons


def members_for(connection: Connection, query: Query) -> list[str]:
    """The names of the members on whom a member has an action."""
    if query.narrowing.only is not None:
        return []
    text = (
        f"SELECT r.name FROM {rows('member')} WHERE m.id = :member AND {where('member')} "
        f"AND {condition(query.action or '', 'member')} ORDER BY r.name_key"
    )
    return [row[0] for row in fetch(connection, text, {"member": query.member, "now": bound(connection, query.now)})]
