"""How what a member solely owns goes to somebody else, before they are removed or after."""

from collections.abc import Sequence
from typing import Any

from headgate.kit.errors import Conflict, Denied
from headgate.organization.access.changes.schemas import AddOwner, ChangeOwner
from headgate.organization.access.service import apply
from headgate.organization.members.holdings import Held, solely_owned
from headgate.platform.http.call import Call


def reassign(call: Call, member: str, to: str, chosen: Sequence[str] | None) -> list[Held]:
    """Give what they solely own to somebody else: ordinary changes, by the caller's rights; all or nothing."""
    mine = {one.id: one for one in solely_owned(call.connection, member)}
    ids = list(mine) if chosen is None else list(dict.fromkeys(chosen))
    unknown = [one for one in ids if one not in mine]
    if unknown:
        raise Conflict(f"{unknown[0]} is not solely theirs; `headgate member holdings {member}` lists what is")
    for identifier in ids:
        held = mine[identifier]
        try:
            apply(call, _change(held, to))
        except Denied as problem:
            raise Denied(f"{held.kind.replace('_', ' ')} {held.name}: {problem.detail}") from None
    return [mine[one] for one in ids]


def _change(held: Held, to: str) -> Any:
    if held.kind in {"space", "project", "connection", "pipeline"}:
        return ChangeOwner(resource=held.id, owner=to)
    return AddOwner.model_validate({"resource": held.id, "member": to, "ownership": held.holds})
