"""Database access to layers, tables and volumes: texts, grants and dependents."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, literal, select, tuple_

from headgate.access.actions import LEVEL_NAMES
from headgate.access.book import BOOK
from headgate.access.narrowing import Narrowing
from headgate.access.sql import condition, rows, where
from headgate.kit.database import bound, fetch
from headgate.kit.errors import Invalid
from headgate.kit.paging import Cursor
from headgate.lakehouse.items.schemas import DependentOut, GrantOut, LakeResource
from headgate.lakehouse.models import lake_item_table, lake_text_table
from headgate.organization.groups.models import group_table
from headgate.organization.members.schemas import Named
from headgate.platform.authorization.fact_tables import grant_table
from headgate.platform.authorization.models import resource_table
from headgate.platform.authorization.schemas import Resource
from headgate.platform.directory.models import member_table

MAX_NUMBER = 2**63 - 1
Texts = dict[int, tuple[str | None, str | None]]
_texts, _items, _resources, _members = lake_text_table.c, lake_item_table.c, resource_table.c, member_table.c


def texts(connection: Connection, resource: str) -> Texts:
    """The title and description of a resource (0) and of its fields, by field id."""
    query = select(_texts.field_id, _texts.title, _texts.description).where(_texts.resource_id == resource)
    return {field: (title, description) for field, title, description in connection.execute(query)}


def shown(connection: Connection, result: Sequence[Resource]) -> list[LakeResource]:
    """Layers, tables or volumes with their texts and layers, in two statements regardless of their number."""
    ids = [resource.id for resource in result]
    own = select(_texts.resource_id, _texts.title, _texts.description)
    own = own.where(_texts.resource_id.in_(ids), _texts.field_id == 0)
    titles = {row[0]: (row[1], row[2]) for row in connection.execute(own)}
    layers = select(_items.id, _resources.id, _resources.name).join(resource_table, _resources.id == _items.layer_id)
    places = {row[0]: Named(id=row[1], name=row[2]) for row in connection.execute(layers.where(_items.id.in_(ids)))}
    return [_shown(resource, *titles.get(resource.id, (None, None)), places.get(resource.id)) for resource in result]


def _shown(resource: Resource, title: str | None, description: str | None, layer: Named | None) -> LakeResource:
    return LakeResource(
        id=resource.id,
        kind=resource.kind,
        name=resource.name,
        layer=layer,
        title=title,
        description=description,
        created_at=resource.created_at,
        updated_at=resource.updated_at,
        created_by=resource.created_by,
        allowed=resource.allowed,
        via=resource.via,
    )


def named(connection: Connection, member: str | None) -> Named | None:
    """A member by id; None if removed."""
    query = select(_members.id, _members.name).where(_members.id == member, _members.removed_at.is_(None))
    row = connection.execute(query).one_or_none()
    return Named(id=row.id, name=row.name) if row else None


# Grants


def grants_page(
    connection: Connection, resource: str, now: datetime, limit: int, after: Cursor | None, purpose: str
) -> tuple[list[GrantOut], str | None]:
    """A page of the grants on a resource, then of those on its layer."""
    grants, maker = grant_table.c, member_table.alias("maker")
    place = select(_items.layer_id).where(_items.id == resource).scalar_subquery()
    own = (grants.resource_id != resource).label("inherited")
    # False sorts before true on both databases.
    query = (
        select(
            grant_table,
            own,
            _resources.name.label("on_name"),
            _members.name.label("member_name"),
            group_table.c.name.label("group_name"),
            maker.c.name.label("maker_name"),
        )
        .join(resource_table, _resources.id == grants.resource_id)
        .outerjoin(member_table, _members.id == grants.grantee_id)
        .outerjoin(group_table, group_table.c.id == grants.grantee_id)
        .outerjoin(maker, (maker.c.id == grants.created_by_id) & maker.c.removed_at.is_(None))
        .where((grants.resource_id == resource) | (grants.resource_id == place))
        .order_by(own, grants.id)
        .limit(limit + 1)
    )
    if after is not None:
        query = query.where(tuple_(own, grants.id) > tuple_(literal(after.value == "1"), after.id))
    result = connection.execute(query).mappings().all()
    last = result[limit - 1] if len(result) > limit else None
    following = Cursor("1" if last["inherited"] else "0", last["id"]).encode(purpose) if last else None
    return [_grant(row, now) for row in result[:limit]], following


def _grant(row: Any, now: datetime) -> GrantOut:
    name, kind = (row["member_name"], "member") if row["member_name"] is not None else (row["group_name"], "group")
    ends = row["expires_at"]
    return GrantOut(
        id=row["id"],
        to=Named(id=row["grantee_id"], name=name or ""),
        to_kind=kind,
        level=LEVEL_NAMES[row["level"]],
        expires_at=ends,
        ended=ends is not None and ends <= now,
        on=Named(id=row["resource_id"], name=row["on_name"]),
        inherited=bool(row["inherited"]),
        created_at=row["created_at"],
        created_by=named_as(row["created_by_id"], row["maker_name"]),
    )


def named_as(identifier: str | None, name: str | None) -> Named | None:
    """A member or group with this name, or None."""
    return Named(id=identifier, name=name) if identifier and name is not None else None


def number_of(text: str) -> int:
    """The number in a cursor; Invalid for a forged cursor."""
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > MAX_NUMBER:
        raise Invalid("cursor: invalid cursor; omit it to start from the first page")
    return int(text)


def id_text(snapshot: int | None) -> str | None:
    """A snapshot id as text, because JavaScript rounds such large numbers."""
    return None if snapshot is None else str(snapshot)


# Dependents of a table

_DEPENDING = ("pipeline", "task", "data_mart", "integration")


@cache
def _dependents_statement(kind: str, *, after: bool) -> str:
    listed_by = BOOK.tables[kind].listed_by
    begins = "AND (rs.name_key, rs.id || tr.mode || tr.ref) > (:value, :place)" if after else ""
    return (
        "SELECT rs.id, rs.kind, rs.name, tr.mode, tr.enabled, rs.name_key, rs.id || tr.mode || tr.ref "
        f"FROM {rows(kind)} JOIN resources rs ON rs.id = r.id JOIN table_refs tr ON tr.resource_id = r.id "
        f"WHERE m.id = :member AND tr.item_id = :item AND {where(kind)} AND {condition(listed_by, kind)} {begins} "
        "ORDER BY rs.name_key, rs.id || tr.mode || tr.ref LIMIT :limit"
    )


def dependents_page(
    connection: Connection,
    item: str,
    member: str,
    narrowing: Narrowing,
    now: datetime,
    limit: int,
    after: Cursor | None,
    purpose: str,
) -> tuple[list[DependentOut], str | None]:
    """A page of the dependents of a table, by name, limited to those that a member may see with a token of these
    limits.
    """
    parameters = {"member": member, "item": item, "now": bound(connection, now), "limit": limit + 1}
    if after is not None:
        parameters |= {"value": after.value, "place": after.id}
    results: list[Any] = []
    for kind in _DEPENDING:
        if narrowing.reaches_id(BOOK.tables[kind].listed_by, kind, None, None):
            results += fetch(connection, _dependents_statement(kind, after=after is not None), parameters)
    results.sort(key=lambda row: (row[5], row[6]))
    last = results[limit - 1] if len(results) > limit else None
    following = Cursor(last[5], last[6]).encode(purpose) if last else None
    items = [
        DependentOut(id=row[0], kind=row[1], name=row[2], mode=row[3], enabled=bool(row[4])) for row in results[:limit]
    ]
    return items, following
