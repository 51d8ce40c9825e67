"""Resource endpoints: lists, and single resources."""

from typing import Annotated

from fastapi import Path, Query

from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds
from headgate.kit.errors import Invalid
from headgate.kit.ids import PATTERN, kind_of
from headgate.kit.paging import DEFAULT_LIMIT, MAX_TOTAL, BadCursor
from headgate.platform.authorization import repository
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.authorization.schemas import Kind, Resource, ResourcePage
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.paging import After, Limit, Prefix, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/resources", tags=["resources"])

ResourceId = Annotated[
    str,
    Path(pattern=f"^{PATTERN.pattern.replace('?P<prefix>', '')}$", examples=["dm_01k6x3v9c2m4n8p0q7rs"]),
]


def total_text(count: int) -> str:
    """A total as text, exact up to the limit."""
    return f"{MAX_TOTAL:,}+" if count > MAX_TOTAL else f"{count:,}"


@router.governed(
    "GET",
    "",
    SignedIn("sees the resources on which they have the action"),
    Audit.reads,
    quick=lambda parameters: parameters["action"] is None,
)
def list_resources(
    call: Call,
    kind: Annotated[Kind, Query(description="The kind to list", examples=["data_mart"])],
    sort: Annotated[ResourceSort, Query(description="The sort order; a leading minus reverses it")] = ResourceSort.name,
    prefix: Prefix = "",
    action: Annotated[
        str | None,
        Query(
            description="Only those on which you have this action; omit it for all that you may see", examples=["edit"]
        ),
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
    total: Annotated[bool, Query(description="Also count them all, which is slower")] = False,
) -> ResourcePage:
    """List the resources of a kind that the caller may see, or on which they have an action."""
    if action is not None and not any(action in BOOK.actions(kind) for kind in rule_kinds(kind.value)):
        known = sorted({action for rules in rule_kinds(kind.value) for action in BOOK.actions(rules)})
        raise Invalid(f"action: a {kind.value} has no action {action!r}; it has {', '.join(known)}")
    if "\0" in prefix:
        raise Invalid("prefix: a name cannot contain control characters")
    purpose = f"{kind.value} {sort.value} {action or ''} {prefix}"
    try:
        after = begins_after(cursor, purpose)
        query = repository.Query(
            call.caller.member,
            kind.value,
            call.now,
            sort,
            prefix,
            limit,
            after,
            action,
            call.caller.narrowing,
        )
        return _page(call, query, purpose, counted=total)
    except BadCursor as error:
        raise Invalid(f"cursor: {error}") from None


def _page(call: Call, query: repository.Query, purpose: str, *, counted: bool) -> ResourcePage:
    asked = query.action or BOOK.tables[query.kinds[0]].listed_by
    if not query.narrowing.permits_action(asked, call.now):
        return ResourcePage(items=[], next_cursor=None, total="0" if counted else None)
    rows, following = repository.page(call.connection, query)
    count = repository.total(call.connection, query) if counted else None
    call.note_read(asked, query.kind, None)
    return ResourcePage.model_construct(
        items=rows,
        next_cursor=following.encode(purpose) if following else None,
        total=None if count is None else total_text(count),
    )


@router.governed("GET", "/{resource_id}", SignedIn("sees the resource if they may list it"), Audit.reads, quick=True)
def get_resource(call: Call, resource_id: ResourceId) -> Resource:
    """Get a resource that the caller may see."""
    kind = kind_of(resource_id) or ""
    rows: list[Resource] = []
    if kind in Kind.__members__:
        rows = repository.details(call.connection, call.caller.member, [resource_id], call.now, call.caller.narrowing)
    listed_by = [BOOK.tables[kind].listed_by for kind in rule_kinds(kind)] if kind in Kind.__members__ else ["see"]
    if not rows or not set(listed_by) & set(rows[0].allowed):
        call.refuse(listed_by[0], kind if kind in Kind.__members__ else "resource", resource_id)
    call.note_read(listed_by[0], kind, resource_id)
    return rows[0]
