"""The changes of access that can be asked for, as the API and the command line take them."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, AwareDatetime, BeforeValidator, ConfigDict, Field

from headgate.kit.clock import in_utc
from headgate.kit.request_models import Input
from headgate.platform.resources.names import LONGEST, Ref

Target = Annotated[
    str,
    Field(min_length=3, max_length=LONGEST, examples=["data_mart:Sales"], description="kind:name, or an id"),
]
Principal = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST,
        examples=["ana", "group:analysts"],
        description="A member, or group:NAME",
    ),
]


def _of_day(value: Any) -> Any:
    """A date means 00:00 UTC of that day."""
    is_date = isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value.strip())
    return f"{value.strip()}T00:00:00Z" if is_date else value


Instant = Annotated[AwareDatetime, BeforeValidator(_of_day), AfterValidator(in_utc)]
"""A time with its zone, or a date."""
Level = Literal["viewer", "editor", "manager"]
Role = Literal["owner", "admin", "technical", "business"]
Scope = Literal["entire", "selected"]
SecurityRole = Literal["tenant_admin", "data_admin", "space_creator"]
SpaceRole = Literal["can_view", "can_view_data", "can_consume_data", "can_manage", "can_operate", "can_edit"]
Ownership = Literal["owner", "technical", "business"]


class ChangeBase(Input):
    """What every change has."""

    model_config = ConfigDict(frozen=True)


class Grant(ChangeBase):
    """Give a level on a layer, table or volume."""

    change: Literal["grant"] = "grant"
    to: Principal
    resource: Target
    level: Level
    expires: Instant | None = None


class Revoke(ChangeBase):
    """Take a level back."""

    change: Literal["revoke"] = "revoke"
    to: Principal
    resource: Target
    level: Level


class Share(ChangeBase):
    """Turn the sharing toggles of a storage, data mart or destination; those left out stay as they are."""

    change: Literal["share"] = "share"
    resource: Target
    for_use: bool | None = Field(
        None,
        validation_alias=AliasChoices("for_use", "for_reporting"),
        description="Shared for use; of a data mart it is called for reporting, and can be written for_reporting",
    )
    for_maintenance: bool | None = None


class AddOwner(ChangeBase):
    """Make a member an owner; of a data mart, say whether technical or business."""

    change: Literal["add_owner"] = "add_owner"
    resource: Target
    member: Ref
    ownership: Ownership = "owner"


class RemoveOwner(ChangeBase):
    """Take ownership back."""

    change: Literal["remove_owner"] = "remove_owner"
    resource: Target
    member: Ref
    ownership: Ownership = "owner"


class AttachContext(ChangeBase):
    """Attach a context to a storage, data mart or destination."""

    change: Literal["attach_context"] = "attach_context"
    resource: Target
    context: Ref


class DetachContext(ChangeBase):
    """Detach a context from a storage, data mart or destination."""

    change: Literal["detach_context"] = "detach_context"
    resource: Target
    context: Ref


class SetRole(ChangeBase):
    """Give a member another role. Becoming admin clears scope and contexts; leaving admin selects none unless given."""

    change: Literal["set_role"] = "set_role"
    member: Ref
    role: Role
    scope: Scope | None = None
    contexts: list[Ref] | None = None


class SetScope(ChangeBase):
    """Set the scope and contexts of a member."""

    change: Literal["set_scope"] = "set_scope"
    member: Ref
    scope: Scope
    contexts: list[Ref] = Field([])


class GiveSecurityRole(ChangeBase):
    """Give a member a security role."""

    change: Literal["give_security_role"] = "give_security_role"
    member: Ref
    security_role: SecurityRole


class TakeSecurityRole(ChangeBase):
    """Take a security role back."""

    change: Literal["take_security_role"] = "take_security_role"
    member: Ref
    security_role: SecurityRole


class JoinGroup(ChangeBase):
    """Put a member into a group."""

    change: Literal["join_group"] = "join_group"
    group: Ref
    member: Ref


class LeaveGroup(ChangeBase):
    """Take a member out of a group."""

    change: Literal["leave_group"] = "leave_group"
    group: Ref
    member: Ref


class GiveSpaceRole(ChangeBase):
    """Give a member or group a role in a space."""

    change: Literal["give_space_role"] = "give_space_role"
    space: Ref
    to: Principal
    space_role: SpaceRole


class TakeSpaceRole(ChangeBase):
    """Take a role in a space back."""

    change: Literal["take_space_role"] = "take_space_role"
    space: Ref
    to: Principal
    space_role: SpaceRole


class ChangeOwner(ChangeBase):
    """Give a space, project, data task or connection another owner."""

    change: Literal["change_owner"] = "change_owner"
    resource: Target
    owner: Ref


class ChangeSpace(ChangeBase):
    """Move a connection to another space."""

    change: Literal["change_space"] = "change_space"
    connection: Ref
    space: Ref


class DeleteDestination(ChangeBase):
    """Delete a destination; it can be restored."""

    change: Literal["delete_destination"] = "delete_destination"
    destination: Ref


class RestoreDestination(ChangeBase):
    """Bring a deleted destination back."""

    change: Literal["restore_destination"] = "restore_destination"
    destination: Ref


class RemoveMember(ChangeBase):
    """Remove a member: ends their tokens, ownerships, grants, group and space memberships at once."""

    change: Literal["remove_member"] = "remove_member"
    member: Ref


class SetPlan(ChangeBase):
    """Change the plan of the organization."""

    change: Literal["set_plan"] = "set_plan"
    plan: Literal["starter", "growth", "custom"]


class SetInvites(ChangeBase):
    """Say who may invite whom: by role, or admins only."""

    change: Literal["set_invites"] = "set_invites"
    invites: Literal["by-role", "admins-only"]


Change = Annotated[
    Grant
    | Revoke
    | Share
    | AddOwner
    | RemoveOwner
    | AttachContext
    | DetachContext
    | SetRole
    | SetScope
    | GiveSecurityRole
    | TakeSecurityRole
    | JoinGroup
    | LeaveGroup
    | GiveSpaceRole
    | TakeSpaceRole
    | ChangeOwner
    | ChangeSpace
    | DeleteDestination
    | RestoreDestination
    | RemoveMember
    | SetPlan
    | SetInvites,
    Field(discriminator="change"),
]
