"""Transfers what a member solely owns to another member, before or after their removal."""

from collections.abc import Sequence
from typing import Any

from headgate.kit.errors import Conflict, Denied
from headgate.organization.access.changes.schemas import AddOwner, ChangeOwner
from headgate.organization.access.service import apply
from headgate.organization.members.holdings import OwnedResource, solely_owned
from headgate.platform.unit_of_work.call import Call


def reassign(call: Call, member: str, to: str, chosen: Sequence[str] | None) -> list[OwnedResource]:
    """Transfer what they solely own, by ordinary access changes with the caller's rights; all or nothing."""
    owned = {holding.id: holding for holding in solely_owned(call.connection, member)}
    ids = list(owned) if chosen is None else list(dict.fromkeys(chosen))
    unknown = [identifier for identifier in ids if identifier not in owned]
    if unknown:
        raise Conflict(
            f"{unknown[0]} is not solely owned by this member; `headgate member holdings {member}` lists what is"
        )
    for identifier in ids:
        holding = owned[identifier]
        try:
            apply(call, _change(holding, to))
        except Denied as problem:
            raise Denied(f"{holding.kind.replace('_', ' ')} {holding.name}: {problem.detail}") from None
    return [owned[identifier] for identifier in ids]


def _change(holding: OwnedResource, to: str) -> Any:
    if holding.kind in {"space", "project", "connection", "pipeline"}:
        return ChangeOwner(resource=holding.id, owner=to)
    return AddOwner.model_validate({"resource": holding.id, "member": to, "ownership": holding.holds})
