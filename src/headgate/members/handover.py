"""What a member leaves behind: what only they own, what runs with their rights, and how it goes to somebody else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from headgate.edge.call import Call
from headgate.errors import Conflict, Denied
from headgate.governance.changes.schemas import AddOwner, ChangeOwner
from headgate.governance.service import apply
from headgate.kit.db import fetch

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
_ONE_OWNER = ("spaces", "projects", "connections", "pipelines")
_ACTING = {"data_marts": "acts_for_id", "reports": "acts_for_id", "pipelines": "acts_for_id", "triggers": "author_id"}


@dataclass(frozen=True, slots=True)
class Held:
    """Something that a member holds, and what they are to it."""

    id: str
    kind: str
    name: str
    holds: str


def _rows(connection: Connection, statements: Iterable[str], member: str) -> list[Held]:
    rows = [Held(*row) for text in statements for row in fetch(connection, text, {"member": member})]
    return sorted(rows, key=lambda one: (one.kind, one.name, one.id))


def solely_owned(connection: Connection, member: str) -> list[Held]:
    """What would have no owner without them."""
    owned = (_OWNED.format(word="owner", table=table, column="owner_id") for table in _ONE_OWNER)
    return _rows(connection, [_SOLE, *owned], member)


def acting_for(connection: Connection, member: str) -> list[Held]:
    """What runs with their rights, and the schedules that they saved last."""
    found: list[Held] = []
    for table, column in _ACTING.items():
        found += _rows(connection, [_OWNED.format(word=column.removesuffix("_id"), table=table, column=column)], member)
    return found


def reassign(call: Call, member: str, to: str, chosen: Sequence[str] | None) -> list[Held]:
    """Give what they solely own to somebody else: ordinary changes, by the caller's rights; all or nothing."""
    mine = {one.id: one for one in solely_owned(call.connection, member)}
    ids = list(mine) if chosen is None else list(dict.fromkeys(chosen))
    unknown = [one for one in ids if one not in mine]
    if unknown:
        raise Conflict(f"{unknown[0]} is not solely theirs; look again at what a removal would leave behind")
    for identifier in ids:
        held = mine[identifier]
        try:
            apply(call, _change(held, to))
        except Denied as problem:
            raise Denied(f"{held.kind.replace('_', ' ')} {held.name}: {problem.detail}") from None
    return [mine[one] for one in ids]


def _change(held: Held, to: str) -> Any:
    if held.kind in {"space", "project", "connection", "pipeline"}:
        return ChangeOwner(resource=held.id, owner=to)
    return AddOwner.model_validate({"resource": held.id, "member": to, "ownership": held.holds})
