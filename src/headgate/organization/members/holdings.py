"""Holdings of a member that need another owner, and resources that a removed member left without an owner."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from headgate.kit.database import fetch, instant

_ONE_OWNER = ("spaces", "projects", "connections", "pipelines")
_ACTING = {"data_marts": "acts_for_id", "reports": "acts_for_id", "pipelines": "acts_for_id", "triggers": "author_id"}

_SOLE = """
SELECT rs.id, rs.kind, rs.name, ow.ownership FROM owners ow JOIN resources rs ON rs.id = ow.resource_id
WHERE ow.member_id = :member AND ow.ownership <> 'business' AND NOT EXISTS (
  SELECT 1 FROM owners other WHERE other.resource_id = ow.resource_id AND other.ownership = ow.ownership
  AND other.member_id <> ow.member_id)
"""
_OWNED = (
    "SELECT rs.id, rs.kind, rs.name, '{word}' FROM {table} t JOIN resources rs ON rs.id = t.id "
    "WHERE t.{column} = :member"
)
_OWNED_BY_ANOTHER = " UNION ALL ".join(
    [
        "SELECT 1 FROM owners ow WHERE ow.resource_id = fo.resource_id AND ow.ownership = fo.ownership",
        *(f"SELECT 1 FROM {table} t WHERE t.id = fo.resource_id AND t.owner_id IS NOT NULL" for table in _ONE_OWNER),
    ]
)
_LEFT = (
    "SELECT rs.id, rs.kind, rs.name, fo.ownership, fo.member_id FROM former_owners fo "
    f"JOIN resources rs ON rs.id = fo.resource_id WHERE NOT EXISTS ({_OWNED_BY_ANOTHER})"
)
"""Resources of removed sole owners that have no owner since."""
_PRESENT = "NOT EXISTS (SELECT 1 FROM destinations de WHERE de.id = {id} AND de.deleted_at IS NOT NULL)"
"""A deleted destination cannot get an owner until it is restored; then it is listed again."""
_LEFT_BY = f"SELECT lo.id, lo.kind, lo.name, lo.ownership FROM ({_LEFT}) lo WHERE lo.member_id = :member"


@dataclass(frozen=True, slots=True)
class OwnedResource:
    """A resource of a current or removed member, and the kind of ownership."""

    id: str
    kind: str
    name: str
    holds: str


@dataclass(frozen=True, slots=True)
class RemovedOwner:
    """A removed member with a resource that has no owner since."""

    id: str
    removed_at: datetime
    count: int


def _rows(connection: Connection, statements: Iterable[str], member: str) -> list[OwnedResource]:
    rows = [OwnedResource(*row) for text in statements for row in fetch(connection, text, {"member": member})]
    return sorted(rows, key=lambda holding: (holding.kind, holding.name, holding.id))


def solely_owned(connection: Connection, member: str, *, with_deleted: bool = False) -> list[OwnedResource]:
    """What would have no owner without them; for a removed member, what has had none since."""
    owned = (_OWNED.format(word="owner", table=table, column="owner_id") for table in _ONE_OWNER)
    if with_deleted:
        return _rows(connection, [_SOLE, *owned, _LEFT_BY], member)
    present = _PRESENT.format(id="rs.id"), _PRESENT.format(id="lo.id")
    return _rows(connection, [f"{_SOLE} AND {present[0]}", *owned, f"{_LEFT_BY} AND {present[1]}"], member)


def acting_for(connection: Connection, member: str) -> list[OwnedResource]:
    """What runs with their rights, and the schedules they last saved."""
    holdings: list[OwnedResource] = []
    for table, column in _ACTING.items():
        holdings += _rows(
            connection, [_OWNED.format(word=column.removesuffix("_id"), table=table, column=column)], member
        )
    return holdings


def removed(connection: Connection, limit: int, after: str | None) -> list[RemovedOwner]:
    """Removed members who left a resource without an owner, oldest first; at most `limit`."""
    text = (
        f"SELECT m.id, m.removed_at, COUNT(*) FROM members m JOIN ({_LEFT}) lo "
        f"ON lo.member_id = m.id WHERE m.removed_at IS NOT NULL AND m.id > :after AND {_PRESENT.format(id='lo.id')} "
        "GROUP BY m.id, m.removed_at ORDER BY m.id LIMIT :limit"
    )
    rows = fetch(connection, text, {"after": after or "", "limit": limit})
    return [RemovedOwner(identifier, instant(when), count) for identifier, when, count in rows]
