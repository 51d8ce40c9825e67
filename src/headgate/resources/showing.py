"""Resources of one kind as a caller sees them, for the slices that show more of them than the list of all kinds."""

from collections.abc import Iterable

from headgate.access.book import BOOK
from headgate.access.kinds import KINDS, rule_kinds
from headgate.edge.call import Call
from headgate.edge.pages import begins_after
from headgate.errors import Invalid, NotFound
from headgate.kit.ids import kind_of
from headgate.kit.names import is_text, name_key
from headgate.kit.paging import BadCursor
from headgate.resources.repository import Query, ResourceSort, details, page
from headgate.resources.schemas import Resource

SAME = 5
"""How many of one name are looked at: names sort before all that begin with them."""


def one(call: Call, identifier: str) -> Resource:
    """A resource with what the caller can do with it; the guard has let them see it."""
    found = details(call.connection, call.caller.member, [identifier], call.now, call.caller.narrowing)
    if not found:
        raise NotFound
    return found[0]


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
    """A page of those of a kind that the caller may see, or has an action on; and the cursor of the next."""
    if not is_text(prefix):
        raise Invalid("prefix: a name cannot hold control characters")
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
        found, following = page(call.connection, query)
    except BadCursor as error:
        raise Invalid(f"cursor: {error}") from None
    call.note_read(asked, kind, None)
    return found, following.encode(purpose) if following else None


def named(call: Call, kind: str, text: str, place: str) -> str:
    """The id of a resource that the caller names by its name or id, among those that they may see.

    What they may not see is not found, and makes no name ambiguous.
    """
    if kind_of(text) == kind:
        call.require(BOOK.tables[kind].listed_by, kind, text)
        return text
    found, _ = listed(call, kind, ResourceSort.name, text, SAME, None)
    same = [one.id for one in found if name_key(one.name) == name_key(text)]
    if not same:
        call.note_denial(BOOK.tables[kind].listed_by, kind, None)
        raise NotFound(f"There is no {kind.replace('_', ' ')} {text} that you may see")
    if len(same) > 1:
        raise Invalid(f"{place}: several of kind {kind} are called {text!r}; give the id")
    return same[0]


def allowed(call: Call, ids: Iterable[str | None]) -> dict[str, frozenset[str]]:
    """What the caller may do with each of these that they may see; a query a kind, whatever their number."""
    found: dict[str, frozenset[str]] = {}
    kinds: dict[str, list[str]] = {}
    for one in sorted({one for one in ids if one}):
        kinds.setdefault(kind_of(one) or "", []).append(one)
    for kind, some in kinds.items():
        listed_by = {BOOK.tables[one].listed_by for one in rule_kinds(kind)} if kind in KINDS else set()
        for row in details(call.connection, call.caller.member, some, call.now, call.caller.narrowing):
            if not listed_by.isdisjoint(row.allowed):
                found[row.id] = frozenset(row.allowed)
    return found
