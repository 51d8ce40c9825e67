"""Creates, renames and deletes contexts in the transaction of the call, with audit events."""

from sqlalchemy import delete, insert, update
from sqlalchemy.exc import IntegrityError

from headgate.access.decision import Decision
from headgate.kit.errors import Conflict
from headgate.kit.ids import new_id
from headgate.kit.names import name_key
from headgate.organization.contexts import repository
from headgate.organization.contexts.models import context_table
from headgate.organization.invitations.models import invitation_context_table
from headgate.platform.resources.names import one, uniquely
from headgate.platform.unit_of_work.call import Call

_contexts = context_table.c


def _require(call: Call) -> Decision:
    return call.require("manage_contexts", "organization", "organization")


def create(call: Call, name: str) -> str:
    """Create a context without attachments and return its id."""
    decision, context = _require(call), new_id("context")
    with uniquely(call.connection, context_table, "context", name):
        row = {"id": context, "name": name, "name_key": name_key(name), "created_at": call.now}
        call.connection.execute(insert(context_table).values(row))
    call.record_change(
        decision, "manage_contexts", "context", context, before={}, after={"change": "create_context", "name": name}
    )
    return context


def rename(call: Call, context: str, name: str) -> None:
    """Rename a context; its attachments remain."""
    decision = _require(call)
    before = {"name": one(call.connection, context_table, context)["name"]}
    with uniquely(call.connection, context_table, "context", name, own=context):
        values = {"name": name, "name_key": name_key(name)}
        call.connection.execute(update(context_table).where(_contexts.id == context).values(values))
    call.record_change(
        decision, "manage_contexts", "context", context, before=before, after={"change": "rename_context", "name": name}
    )


def remove(call: Call, context: str) -> str:
    """Delete a context without attachments; returns its name."""
    decision = _require(call)
    name: str = one(call.connection, context_table, context)["name"]
    counts = repository.attachments(call.connection, [context], call.now)[context]
    if any(counts.values()):
        raise Conflict(f"{name!r} is attached to {repository.in_words(counts)}; detach it first", **counts)
    # Invitations that are no longer pending may still refer to it; if sent again, they no longer do.
    in_context = invitation_context_table.c.context_id == context
    call.connection.execute(delete(invitation_context_table).where(in_context))
    try:
        call.connection.execute(delete(context_table).where(_contexts.id == context))
    except IntegrityError:
        raise Conflict(f"{name!r} was attached to a resource at the same moment; check it, and try again") from None
    call.record_change(
        decision, "manage_contexts", "context", context, before={"name": name}, after={"change": "delete_context"}
    )
    return name
