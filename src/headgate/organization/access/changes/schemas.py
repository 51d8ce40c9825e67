"""API and command-line schemas of access changes."""

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
"""A time with a time zone, or a date."""
Level = Literal["viewer", "editor", "manager"]
Role = Literal["owner", "admin", "technical", "business"]
Scope = Literal["entire", "selected"]
SecurityRole = Literal["tenant_admin", "data_admin", "space_creator"]
SpaceRole = Literal["can_view", "can_view_data", "can_consume_data", "can_manage", "can_operate", "can_edit"]
Ownership = Literal["owner", "technical", "business"]


class ChangeBase(Input):
    """The common fields of all changes."""

    model_config = ConfigDict(frozen=True)


class Grant(ChangeBase):
    """Grant a level on a layer, table or volume."""

    change: Literal["grant"] = "grant"
    to: Principal
    resource: Target
    level: Level
    expires: Instant | None = None


class Revoke(ChangeBase):
    """Revoke a level."""

    change: Literal["revoke"] = "revoke"
    to: Principal
    resource: Target
    level: Level


class Share(ChangeBase):
    """Set the sharing toggles of a storage, data mart or destination; omitted ones stay unchanged."""

    change: Literal["share"] = "share"
    resource: Target
    for_use: bool | None = Field(
        None,
        validation_alias=AliasChoices("for_use", "for_reporting"),
        description="Shared for use; of a data mart it is called for reporting, and can be written for_reporting",
    )
    for_maintenance: bool | None = None


class AddOwner(ChangeBase):
    """Make a member an owner; for a data mart, technical or business owner."""

    change: Literal["add_owner"] = "add_owner"
    resource: Target
    member: Ref
    ownership: Ownership = "owner"


class RemoveOwner(ChangeBase):
    """Remove an owner."""

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
    """Change the role of a member. Becoming an admin clears scope and contexts; after leaving admin, no context is
    selected unless given.
    """

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
    """Revoke a security role of a member."""

    change: Literal["take_security_role"] = "take_security_role"
    member: Ref
    security_role: SecurityRole


class JoinGroup(ChangeBase):
    """Add a member to a group."""

    change: Literal["join_group"] = "join_group"
    group: Ref
    member: Ref


class LeaveGroup(ChangeBase):
    """Remove a member from a group."""

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
    """Revoke a role in a space."""

    change: Literal["take_space_role"] = "take_space_role"
    space: Ref
    to: Principal
    space_role: SpaceRole


class ChangeOwner(ChangeBase):
    """Change the owner of a space, project, data task or connection."""

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
    """Restore a deleted destination."""

    change: Literal["restore_destination"] = "restore_destination"
    destination: Ref


class RemoveMember(ChangeBase):
    """Remove a member: their tokens, ownerships, grants, group and space memberships end immediately."""

    change: Literal["remove_member"] = "remove_member"
    member: Ref


class SetPlan(ChangeBase):
    """Change the plan of the organization."""

    change: Literal["set_plan"] = "set_plan"
    plan: Literal["starter", "growth", "custom"]


class SetInvites(ChangeBase):
    """Set who may invite whom: by role, or admins only."""

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
