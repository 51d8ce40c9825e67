"""Creates, revokes and identifies tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.kit.credentials import Sort, digest, is_well_formed, new_secret
from headgate.kit.database import bound, fetch, instant
from headgate.kit.errors import Conflict, NotFound
from headgate.kit.ids import new_id
from headgate.organization.tokens.models import token_reach_table, token_table
from headgate.platform.audit.events import Event, record
from headgate.platform.authorization.provenance import CredentialOrigin
from headgate.platform.directory.models import member_table

CREATED, REVOKED = "token.created", "token.revoked"
_tokens, _members = token_table, member_table


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token. The secret is shown once."""

    id: str
    secret: str
    member: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The member of a token, and its limits."""

    member: str
    token: str | None
    narrowing: Narrowing
    seen: datetime | None = None
    tainted: bool = True


def create(
    connection: Connection,
    member: str,
    name: str,
    now: datetime,
    *,
    read_only: bool = False,
    only: Sequence[str] | None = None,
    expires: datetime | None = None,
    by: str | None = None,
    origin: CredentialOrigin | None = None,
) -> CreatedToken:
    """Create a token for a member, narrowed to the ids in `only` if given. Without `by`, the operator creates it.

    A member who creates a token passes its origin; otherwise it counts as tainted.
    """
    origin = origin or CredentialOrigin(tainted=by is not None)
    identifier, secret = new_id("token"), new_secret(Sort.token)
    connection.execute(
        insert(token_table).values(
            id=identifier,
            member_id=member,
            name=name,
            digest=digest(secret),
            hint=secret[:8],
            read_only=read_only,
            listed=only is not None,
            created_at=now,
            expires_at=expires,
            origin_id=origin.id,
            tainted=origin.tainted,
        )
    )
    if only:
        rows = [{"token_id": identifier, "resource_id": resource} for resource in dict.fromkeys(only)]
        connection.execute(insert(token_reach_table), rows)
    after = {"member": member, "name": name, "read_only": read_only, "only": sorted(only) if only is not None else None}
    record(connection, [Event(now, CREATED, True, by, kind="token", resource_id=identifier, after=after)])  # noqa: FBT003
    return CreatedToken(identifier, secret, member)


def renarrow(connection: Connection, token: str | None, only: Sequence[str]) -> None:
    """Replace the list that a narrowed token is limited to."""
    connection.execute(delete(token_reach_table).where(token_reach_table.c.token_id == token))
    if token is not None and only:
        rows = [{"token_id": token, "resource_id": resource} for resource in dict.fromkeys(only)]
        connection.execute(insert(token_reach_table), rows)


def revoke(connection: Connection, token: str, now: datetime, *, by: str | None) -> None:
    """Revoke a token immediately and audit by whom; None stands for the operator."""
    row = connection.execute(select(_tokens.c.revoked_at).where(_tokens.c.id == token)).one_or_none()
    if row is None:
        raise NotFound(f"There is no token {token!r}; `headgate token list` shows them")
    if row.revoked_at is not None:
        raise Conflict("This token is already revoked")
    connection.execute(update(token_table).where(_tokens.c.id == token).values(revoked_at=now))
    record(connection, [Event(now, REVOKED, allowed=True, actor_id=by, kind="token", resource_id=token)])


def listing(connection: Connection) -> Sequence[Any]:
    """All tokens, newest first, with their members' names, without secrets."""
    columns = (_tokens.c.id, _tokens.c.hint, _tokens.c.name, _members.c.name.label("member"))
    limits = (_tokens.c.read_only, _tokens.c.listed)
    times = (_tokens.c.created_at, _tokens.c.last_used_at, _tokens.c.expires_at, _tokens.c.revoked_at)
    joined = _tokens.join(_members, _members.c.id == _tokens.c.member_id)
    return (
        connection.execute(select(*columns, *limits, *times).select_from(joined).order_by(_tokens.c.id.desc()))
        .mappings()
        .all()
    )


_IDENTIFY = (
    "SELECT tk.id, tk.member_id, tk.read_only, tk.listed, tk.expires_at, tk.last_used_at, tk.tainted FROM tokens tk "
    "JOIN members m ON m.id = tk.member_id AND m.removed_at IS NULL WHERE tk.digest = :digest "
    "AND tk.revoked_at IS NULL AND (tk.expires_at IS NULL OR tk.expires_at > :now)"
)
_REACH = (
    "SELECT tr.resource_id, li.layer_id FROM token_reach tr "
    "LEFT JOIN lake_items li ON li.id = tr.resource_id WHERE tr.token_id = :token"
)


def identify(connection: Connection, secret: str, now: datetime) -> Identity | None:
    """The member and limits of this secret; None if it is malformed, unknown, revoked, or of a removed member."""
    if not is_well_formed(secret, Sort.token):
        return None
    rows = fetch(connection, _IDENTIFY, {"digest": digest(secret), "now": bound(connection, now)})
    if not rows:
        return None
    token, member, read_only, listed, expires, used, tainted = rows[0]
    limits = narrowing(connection, token, read_only=read_only, listed=listed, expires=expires)
    return Identity(member, token, limits, instant(used) if used else None, bool(tainted))


def narrowing(connection: Connection, token: str, *, read_only: Any, listed: Any, expires: Any) -> Narrowing:
    """The limits of a token from raw columns of its row."""
    if not (read_only or listed or expires):
        return UNLIMITED
    only: frozenset[str] | None = None
    layers: frozenset[str] = frozenset()
    if listed:
        reach = fetch(connection, _REACH, {"token": token})
        only = frozenset(row[0] for row in reach)
        layers = frozenset(row[1] for row in reach if row[1])
    return Narrowing(bool(read_only), only, layers, instant(expires) if expires else None)
