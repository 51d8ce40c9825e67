"""What-if analysis: who would gain and lose access by a change, without making it. It takes no lock.

The statements of the rule tables run twice: on the current tables, and with the changed rows laid over them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.kinds import KINDS, stored_kind
from headgate.access.sql import mask, rows, where
from headgate.kit.database import among, bound, fetch, many
from headgate.kit.errors import Invalid
from headgate.kit.ids import kind_of
from headgate.organization.access.changes.delta import Delta
from headgate.organization.access.changes.reach import AffectedAccess, reach

MAX_PAIRS = 3_000_000
KINDS_ASKED = tuple(kind for kind in BOOK.tables if kind in KINDS)


@dataclass(frozen=True, slots=True)
class Effect:
    """The actions that one member would gain and lose on one resource."""

    member: str
    kind: str
    resource: str
    gains: tuple[str, ...]
    loses: tuple[str, ...]


def effects(connection: Connection, delta: Delta, now: datetime, *, member: str | None = None) -> list[Effect]:
    """The effects on all members, or on one."""
    effects: list[Effect] = []
    concerned = reach(connection, delta)
    for kind in KINDS_ASKED:
        scopes = [*_scopes(connection, kind, concerned, member)]
        if not scopes:
            continue
        _check_size(connection, kind, concerned, member)
        before = _masks(connection, kind, scopes, now, None)
        after = _masks(connection, kind, scopes, now, delta)
        effects += _differences(kind, before, after)
    return effects


Scope = tuple[str, dict[str, Any]]


def _scopes(connection: Connection, kind: str, concerned: AffectedAccess, member: str | None) -> Iterator[Scope]:
    """SQL for the pairs of members and resources to compare."""
    values = {"one_member": member} if member else {}
    only_one = "m.id = :one_member" if member else "TRUE"
    if concerned.everything:
        yield only_one, values
        return
    members = sorted(concerned.members & {member} if member else concerned.members)
    if members:
        yield among(connection, "m.id", "members"), {"members": many(connection, members)}
    stored = stored_kind(kind)
    resources = sorted(one_id for one_id in concerned.resources if kind_of(one_id) == stored)
    if resources:
        yield (
            f"{only_one} AND {among(connection, 'r.id', 'resources')}",
            {
                "resources": many(connection, resources),
                **values,
            },
        )


def _check_size(connection: Connection, kind: str, concerned: AffectedAccess, member: str | None) -> None:
    """Refuse an analysis that would take too long, with advice on how to narrow it."""
    if member is not None or not concerned.everything:
        return
    members = fetch(connection, "SELECT COUNT(*) FROM members WHERE removed_at IS NULL", {})[0][0]
    resources = fetch(connection, f"SELECT COUNT(*) FROM {KINDS[kind].table}", {})[0][0]
    if members * resources > MAX_PAIRS:
        raise Invalid("this concerns everyone on everything, which is too much to look at; ask about one member")


def _masks(
    connection: Connection, kind: str, scopes: list[Scope], now: datetime, delta: Delta | None
) -> dict[tuple[str, str], int]:
    prefix, parameters = delta.overlay(connection.dialect.name) if delta else ("", {})
    values: dict[tuple[str, str], int] = {}
    identifier = "'organization'" if kind == "organization" else "r.id"
    for scope, more in scopes:
        text = (
            f"{prefix}SELECT * FROM (SELECT m.id AS member, {identifier} AS resource, {mask(kind)} AS open_paths "
            f"FROM {rows(kind)} WHERE {where(kind)} AND {scope}) asked WHERE open_paths <> 0"
        )
        for who, what, bits in fetch(connection, text, {**parameters, **more, "now": bound(connection, now)}):
            values[who, what] = bits
    return values


def _differences(kind: str, before: dict[tuple[str, str], int], after: dict[tuple[str, str], int]) -> Iterator[Effect]:
    for pair in sorted(before.keys() | after.keys()):
        if before.get(pair) == after.get(pair):
            continue
        had = BOOK.allowed_actions(kind, before.get(pair, 0))
        has = BOOK.allowed_actions(kind, after.get(pair, 0))
        gains, loses = tuple(a for a in has if a not in had), tuple(a for a in had if a not in has)
        if gains or loses:
            yield Effect(pair[0], stored_kind(kind), pair[1], gains, loses)
