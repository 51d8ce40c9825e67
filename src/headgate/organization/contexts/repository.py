"""Database access to the attachments of contexts, in a fixed number of statements."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, func, select

from headgate.organization.contexts.models import context_table
from headgate.organization.invitations.models import invitation_context_table, invitation_table
from headgate.organization.profile.repository import is_waiting
from headgate.platform.authorization.fact_tables import member_context_table, resource_context_table

NOUNS = {"resources": "resource", "members": "member", "invitations": "waiting invitation"}


def _attached(table: Table, ids: Sequence[str]) -> Any:
    return select(table.c.context_id, func.count()).where(table.c.context_id.in_(ids)).group_by(table.c.context_id)


def attachments(connection: Connection, ids: Sequence[str], now: datetime) -> dict[str, dict[str, int]]:
    """The number of resources, members and pending invitations to which each context is attached."""
    invited = invitation_context_table.join(
        invitation_table, invitation_table.c.id == invitation_context_table.c.invitation_id
    )
    queries = {
        "resources": _attached(resource_context_table, ids),
        "members": _attached(member_context_table, ids),
        "invitations": _attached(invitation_context_table, ids).select_from(invited).where(is_waiting(now)),
    }
    counts = {identifier: dict.fromkeys(NOUNS, 0) for identifier in ids}
    for name, query in queries.items():
        for context, count in connection.execute(query):
            counts[context][name] = count
    return counts


def context_names(connection: Connection, ids: Iterable[str]) -> dict[str, str]:
    """The names of contexts, by id."""
    query = select(context_table.c.id, context_table.c.name).where(context_table.c.id.in_(set(ids)))
    return {row.id: row.name for row in connection.execute(query)}


def in_words(counts: dict[str, int]) -> str:
    """Counts in words, without zeros."""
    parts = [f"{count} {NOUNS[name]}{'s' if count != 1 else ''}" for name, count in counts.items() if count]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
