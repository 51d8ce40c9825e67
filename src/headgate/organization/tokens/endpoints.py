"""API token endpoints: the caller's own; members who manage members also see and revoke those of others."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query

from headgate.kit.errors import Conflict, Invalid
from headgate.kit.names import BadName, check_name
from headgate.kit.paging import DEFAULT_LIMIT, Cursor
from headgate.organization.access.changes.targets import Hidden, Targets
from headgate.organization.tokens import repository, service
from headgate.organization.tokens.repository import TokenRow
from headgate.organization.tokens.schemas import TokenIn, TokenMade, TokenOut, TokenPage
from headgate.platform.http.guards import OwnCredentials
from headgate.platform.http.paging import After, Limit, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/tokens", tags=["tokens"])

TokenId = Annotated[str, Path(pattern="^tok_[0-9a-z]{20}$", examples=["tok_01k6x3v9c2m4n8p0q7rs"])]


@router.governed("POST", "", OwnCredentials("makes a token of their own"), Audit.changes)
def create_token(call: Call, body: TokenIn) -> TokenMade:
    """Create a token that acts as the caller, narrowed as requested. Only this response contains its secret."""
    try:
        name = check_name(body.name)
    except BadName as error:
        raise Invalid(f"name: {error}") from None
    if body.expires is not None and body.expires <= call.now:
        raise Invalid("expires: give a time in the future")
    only: list[str] | None = None
    if body.only is not None:
        only = _listed(call, body.only)
    made = service.create(
        call.connection,
        call.caller.member,
        name,
        call.now,
        read_only=body.read_only,
        only=only,
        expires=body.expires,
        by=call.caller.member,
        origin=call.caller.origin,
    )
    return TokenMade(id=made.id, token=made.secret)


def _listed(call: Call, names: list[str]) -> list[str]:
    """The ids of the items that a token is narrowed to, among those the caller sees."""
    targets = Targets(call.facts, call.subject)
    try:
        return [targets.resource(text, "layer", "table", "volume").id for text in names]
    except Hidden as problem:
        call.note_denial("see", problem.kind, problem.resource)
        raise


@router.governed("GET", "", OwnCredentials("sees their own; all with manage_members"), Audit.nothing)
def list_tokens(
    call: Call,
    all_: Annotated[bool, Query(alias="all", description="Tokens of all members; requires manage_members")] = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> TokenPage:
    """List tokens, newest first, without their secrets."""
    if all_:
        call.require("manage_members", "organization", "organization")
    purpose = f"tokens {all_}"
    after = begins_after(cursor, purpose)
    member = None if all_ else call.caller.member
    rows = repository.page(call.connection, member, limit + 1, after.id if after else None)
    following = Cursor("", rows[limit - 1].id).encode(purpose) if len(rows) > limit else None
    return TokenPage(items=_shown(call, rows[:limit]), next_cursor=following)


def _shown(call: Call, rows: Sequence[TokenRow]) -> list[TokenOut]:
    only = repository.reach(call.connection, [row.id for row in rows if row.listed])
    return [TokenOut(**{**asdict(row), "only": only.get(row.id)}) for row in rows]


@router.governed(
    "DELETE", "/{token_id}", OwnCredentials("ends their own; any with manage_members"), Audit.changes, errors=[Conflict]
)
def revoke_token(call: Call, token_id: TokenId) -> TokenOut:
    """Revoke a token immediately."""
    token = repository.by_id(call.connection, token_id)
    if token is None or not call.may_handle("revoke", "token", token.member_id):
        call.hide("revoke_token", "token", token_id)
    service.revoke(call.connection, token_id, call.now, by=call.caller.member)
    revoked = repository.by_id(call.connection, token_id)
    return _shown(call, [revoked or token])[0]
