"""Saved query endpoints. A saved query is visible only to its author."""

from typing import Annotated

from fastapi import Path

from headgate.kit.errors import Conflict, Denied, Invalid, TooManyAttempts
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.lakehouse.saved_queries import service as saving
from headgate.lakehouse.sql import service
from headgate.lakehouse.sql.schemas import SavedChange, SavedDeleted, SavedIn, SavedItem, SavedOut, SavedPage, Saving
from headgate.platform.authorization import repository as resources
from headgate.platform.authorization import writer
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import OnResource, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/api/sql/saved", tags=["sql"])

SavedId = Annotated[str, Path(pattern=r"^sq_[0-9a-z]{20}$", examples=["sq_01k6x3v9c2m4n8p0q7rs"])]


def _require_name(call: Call, name: str, own: str | None) -> None:
    """Refuse a token that may not save queries, and a name that another query of the caller has."""
    limits = call.caller.narrowing
    if not (limits.permits_action("create", call.now) and limits.reaches_id("create", saving.KIND, own, None)):
        call.note_denial("create", saving.KIND, own)
        raise Denied("This token is restricted and may not save queries; use a token without restrictions")
    taken = saving.name_taken(call.connection, call.caller.member, name, own)
    if taken is not None:
        raise Conflict(f"You already have a saved query called {taken!r}; names that look alike are the same")


def _submit(call: Call, name: str, sql: str, own: str | None) -> Saving:
    """Submit a probe of a query. When it finishes, the query is saved if its author may read all its tables."""
    _require_name(call, name, own)
    statement = service.submit(call, sql, None, save={"name": name, "saved_query": own})
    return Saving(statement=statement, state="queued")


@router.governed(
    "POST",
    "",
    SignedIn("keeps a query of their own, if they may read all that it reads"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
    staged=True,
)
def save_query(stages: Stages, body: SavedIn) -> Saving:
    """Save a query. It is analysed first to find the tables it reads: follow the statement in the response. If it
    succeeds, its `saved_query` names the saved query; if it fails, nothing is saved.
    """
    saving = stages.write(lambda call: _submit(call, body.name, body.sql, None))
    stages.services.watch.ring()
    return saving


@router.governed("GET", "", SignedIn("sees their own"), Audit.nothing)
def list_saved_queries(
    call: Call, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> SavedPage:
    """List the caller's saved queries by name."""
    if "\0" in prefix:
        raise Invalid("prefix: a name cannot contain control characters")
    purpose = f"saved {prefix}"
    query = resources.Query(
        call.caller.member,
        saving.KIND,
        call.now,
        ResourceSort.name,
        prefix,
        limit,
        begins_after(cursor, purpose),
        None,
        call.caller.narrowing,
    )
    page, following = resources.page(call.connection, query)
    rows = saving.rows(call.connection, [resource.id for resource in page])
    items = [SavedItem(**rows[resource.id]) for resource in page]
    return SavedPage(items=items, next_cursor=following.encode(purpose) if following else None)


@router.governed("GET", "/{saved_query_id}", OnResource("see", "saved_query_id"), Audit.nothing)
def get_saved_query(call: Call, saved_query_id: SavedId) -> SavedOut:
    """Get one of the caller's saved queries, with those of its tables that the caller may see."""
    return _shown(call, saved_query_id)


def _shown(call: Call, identifier: str) -> SavedOut:
    row = saving.rows(call.connection, [identifier])[identifier]
    reads = [ref for ref, item in saving.reads(call.connection, identifier) if item and call.may_see(item)]
    result = resources.details(call.connection, call.caller.member, [identifier], call.now, call.caller.narrowing)
    return SavedOut(**row, reads=reads, allowed=list(result[0].allowed))


@router.governed(
    "PATCH",
    "/{saved_query_id}",
    OnResource("edit", "saved_query_id"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
    staged=True,
)
def change_saved_query(stages: Stages, saved_query_id: SavedId, body: SavedChange) -> Saving:
    """Rename a saved query, or change its SQL, which is analysed first."""

    def work(call: Call) -> Saving:
        row = saving.rows(call.connection, [saved_query_id])[saved_query_id]
        name = body.name or row["name"]
        if body.sql is not None:
            return _submit(call, name, body.sql, saved_query_id)
        _require_name(call, name, saved_query_id)
        writer.save(call.connection, saved_query_id, call.now, name)
        call.record(call.event(saving.RENAMED, allowed=True, kind=saving.KIND, resource_id=saved_query_id))
        return Saving(statement=None, state="succeeded")

    result = stages.write(work)
    stages.services.watch.ring()
    return result


@router.governed("DELETE", "/{saved_query_id}", OnResource("delete", "saved_query_id"), Audit.changes)
def delete_saved_query(call: Call, saved_query_id: SavedId) -> SavedDeleted:
    """Delete one of the caller's saved queries; requires Editor on every table that it reads."""
    row = saving.rows(call.connection, [saved_query_id])[saved_query_id]
    writer.remove(call.connection, [saved_query_id])
    call.record(call.event(saving.DELETED, allowed=True, kind=saving.KIND, resource_id=saved_query_id))
    return SavedDeleted(id=row["id"], name=row["name"])
