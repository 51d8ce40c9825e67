"""Database access to API tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, Select, select

from headgate.kit.rows import fetch_all, fetch_one
from headgate.organization.tokens.models import token_reach_table, token_table
from headgate.platform.directory.models import member_table

_tokens, _reach = token_table.c, token_reach_table.c


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token, without its digest."""

    id: str
    name: str
    hint: str | None
    member_id: str
    member: str
    read_only: bool
    listed: bool
    tainted: bool
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None


def _query() -> Select[tuple[object, ...]]:
    columns = [token_table.c[field.name] for field in fields(TokenRow) if field.name != "member"]
    joined = token_table.join(member_table, member_table.c.id == _tokens.member_id)
    return select(*columns, member_table.c.name.label("member")).select_from(joined)


def page(connection: Connection, member: str | None, limit: int, before: str | None) -> list[TokenRow]:
    """Tokens of a member, or of all, newest first."""
    query = _query()
    if member is not None:
        query = query.where(_tokens.member_id == member)
    if before is not None:
        query = query.where(_tokens.id < before)
    return fetch_all(connection, query.order_by(_tokens.id.desc()).limit(limit), TokenRow)


def by_id(connection: Connection, token: str) -> TokenRow | None:
    """A token."""
    return fetch_one(connection, _query().where(_tokens.id == token), TokenRow)


def reach(connection: Connection, tokens: Sequence[str]) -> dict[str, list[str]]:
    """The items that each of these tokens is narrowed to."""
    only: dict[str, list[str]] = {token: [] for token in tokens}
    query = select(_reach.token_id, _reach.resource_id).where(_reach.token_id.in_(tokens)).order_by(_reach.resource_id)
    for token, resource in connection.execute(query):
        only[token].append(resource)
    return only
