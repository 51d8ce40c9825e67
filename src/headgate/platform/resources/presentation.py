"""Resources of one kind as shown to a caller, for packages that show more than the general list."""

from collections.abc import Iterable

from sqlalchemy import select

from headgate.access.book import BOOK
from headgate.access.kinds import KINDS, rule_kinds
from headgate.kit.errors import Conflict, Invalid, NotFound
from headgate.kit.ids import kind_of
from headgate.kit.names import is_text
from headgate.kit.paging import BadCursor
from headgate.platform.authorization.models import resource_table
from headgate.platform.authorization.names import Viewer, restorable, visible
from headgate.platform.authorization.repository import Query, ResourceSort, details, page
from headgate.platform.authorization.schemas import Resource
from headgate.platform.http.paging import begins_after
from headgate.platform.unit_of_work.call import Call


def one(call: Call, identifier: str) -> Resource:
    """A resource with the caller's actions; the guard has checked *see*."""
    resources = details(call.connection, call.caller.member, [identifier], call.now, call.caller.narrowing)
    if not resources:
        raise NotFound
    return resources[0]


def listed(
    call: Call,
    kind: str,
    sort: ResourceSort,
    prefix: str,
    limit: int,
    cursor: str | None,
    *,
    action: str | None = None,
) -> tuple[list[Resource], str | None]:
    """A page of the resources of a kind that the caller may see or has an action on, and the next cursor."""
    if not is_text(prefix):
        raise Invalid("prefix: a name cannot contain control characters")
    purpose, asked = f"{kind} {sort.value} {action or ''} {prefix}", action or BOOK.tables[kind].listed_by
    if not call.caller.narrowing.permits_action(asked, call.now):
        return [], None
    query = Query(
        call.caller.member,
        kind,
        call.now,
        sort,
        prefix,
        limit,
        begins_after(cursor, purpose),
        action,
        call.caller.narrowing,
    )
    try:
        resources, following = page(call.connection, query)
    except BadCursor as error:
        raise Invalid(f"cursor: {error}") from None
    call.note_read(asked, kind, None)
    return resources, following.encode(purpose) if following else None


def named(call: Call, kind: str, text: str) -> str:
    """The id of a resource by name or id, among those that the caller may see."""
    if kind_of(text) == kind:
        call.require(BOOK.tables[kind].listed_by, kind, text)
        return text
    result = call.lookup.of(kind, text)
    if result is None:
        call.note_denial(BOOK.tables[kind].listed_by, kind, None)
        raise NotFound(f"There is no {kind.replace('_', ' ')} {text} that you may see")
    return result


def refuse_twin(call: Call, kind: str, name: str, own: str | None = None) -> None:
    """Reject a name if the caller created another resource with it and still sees that one, deleted or not.

    Resources hidden from the caller never conflict, because a conflict would confirm their names.
    """
    viewer = Viewer(call.caller.member, call.now, call.caller.narrowing)
    known = {*visible(call.connection, viewer, kind, name), *restorable(call.connection, viewer, kind, name)}
    created_here = resource_table.c.created_by_id == call.caller.member
    query = select(resource_table.c.id).where(resource_table.c.id.in_(known - {own}), created_here)
    twin = call.connection.execute(query.order_by(resource_table.c.id).limit(1)).scalar()
    if twin is not None:
        deleted = "" if call.decide(BOOK.tables[kind].listed_by, kind, twin) else ", which is deleted"
        raise Conflict(f"You have already created a {kind} named {name!r} ({twin}{deleted}). Choose another name")


def allowed(call: Call, ids: Iterable[str | None]) -> dict[str, frozenset[str]]:
    """The caller's actions on each of these resources that they may see; one query per kind."""
    values: dict[str, frozenset[str]] = {}
    kinds: dict[str, list[str]] = {}
    for value in sorted({id_ for id_ in ids if id_}):
        kinds.setdefault(kind_of(value) or "", []).append(value)
    for kind, some in kinds.items():
        listed_by = {BOOK.tables[kind].listed_by for kind in rule_kinds(kind)} if kind in KINDS else set()
        for row in details(call.connection, call.caller.member, some, call.now, call.caller.narrowing):
            if not listed_by.isdisjoint(row.allowed):
                values[row.id] = frozenset(row.allowed)
    return values
