"""The requirements and row changes of each access change."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select

from headgate.access import facts
from headgate.access.actions import ADMINS, LEVEL_NAMES
from headgate.access.decision import Decision
from headgate.access.invitations import is_subscribed_on_joining
from headgate.kit.clock import iso
from headgate.kit.errors import Conflict, Invalid, NotFound
from headgate.kit.ids import ALL_GROUP, new_id
from headgate.organization.access.changes import schemas as s
from headgate.organization.access.changes.delta import Delta
from headgate.organization.access.changes.removal import remove_member
from headgate.organization.access.changes.targets import Targets, level_number
from headgate.platform.authorization.fact_tables import (
    grant_table,
    group_member_table,
    member_context_table,
    member_security_role_table,
    owner_table,
    resource_context_table,
    space_member_table,
)
from headgate.platform.authorization.resource_tables import resource_table_of
from headgate.platform.directory.models import member_table, organization_table
from headgate.platform.notifications.models import receiver_table

SHAREABLE = ("storage", "data_mart", "destination")
OWNED = ("space", "project", "task", "connection")


@dataclass(slots=True)
class Plan:
    """An access change that is authorized and planned, but not applied."""

    action: str
    thing: facts.Thing
    decision: Decision
    delta: Delta = field(default_factory=Delta)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    grant: facts.GrantDraft | None = None
    """The new grant, if the change is one."""
    new_owner: str | None = None
    """The member who becomes an owner, if any: their credentials that somebody else may know are revoked."""


def plan(change: Any, t: Targets) -> Plan:
    """Plan a change for the member who requests it; raises a Problem if it is invalid in the current state."""
    return _HANDLERS[type(change)](change, t)


def _new(t: Targets, action: str, thing: Any) -> Plan:
    return Plan(action, thing, t.decide(action, thing))


# Lakehouse


def _stored_grant(t: Targets, resource: str, grantee: str, level: int) -> Any:
    grants = grant_table
    where = (grants.c.resource_id == resource, grants.c.grantee_id == grantee, grants.c.level == level)
    return t.facts.connection.execute(select(grants).where(*where)).mappings().one_or_none()


def _grant_values(to: str, level: int, expires: Any) -> dict[str, Any]:
    return {"to": to, "level": LEVEL_NAMES[level], "expires": iso(expires) if expires else None}


def _grant(change: s.Grant, t: Targets) -> Plan:
    thing = t.resource(change.resource, "layer", "table", "volume")
    to, level = t.principal(change.to), level_number(change.level)
    if change.expires and change.expires <= t.facts.now:
        raise Invalid("the end of a grant lies in the future; leave it out for a grant without end")
    draft = facts.GrantDraft(resource=thing, to=to, level=level, expires=change.expires)
    action = "grant_manager" if level == 3 else "grant"
    plan = Plan(action, thing, t.decide("create", draft, on=thing, as_=action), grant=draft)
    stored = _stored_grant(t, thing.id, to, level)
    creator = None if t.actor.operator else t.actor.id
    created = {"id": new_id("grant"), "created_at": t.facts.now, "created_by_id": creator}
    kept = {name: stored[name] for name in created} if stored else created
    row = {"resource_id": thing.id, "grantee_id": to, "level": level, "expires_at": change.expires}
    plan.delta.put(grant_table, {**kept, **row})
    plan.before = _grant_values(to, level, stored["expires_at"]) if stored else {}
    plan.after = _grant_values(to, level, change.expires)
    return plan


def _revoke(change: s.Revoke, t: Targets) -> Plan:
    thing = t.resource(change.resource, "layer", "table", "volume")
    to, level = t.principal(change.to), level_number(change.level)
    plan = _new(t, "grant_manager" if level == 3 else "grant", thing)
    stored = _stored_grant(t, thing.id, to, level)
    if plan.decision and stored is None:
        raise NotFound(f"{change.to} has no grant of {change.level} on {change.resource}")
    if stored:
        plan.delta.drop(grant_table, {"id": stored["id"]})
        plan.before = _grant_values(to, level, stored["expires_at"])
    return plan


# Marts


def _share(change: s.Share, t: Targets) -> Plan:
    thing = t.resource(change.resource, *SHAREABLE)
    plan = _new(t, "configure_sharing", thing)
    wanted = {"shared_for_use": change.for_use, "shared_for_maintenance": change.for_maintenance}
    values = {name: value for name, value in wanted.items() if value is not None}
    if not values:
        raise Invalid("say which toggle to turn: for_use, for_maintenance, or both")
    plan.delta.change(t.facts.connection, resource_table_of(thing.kind), {"id": thing.id}, **values)
    plan.before = {name: getattr(thing, name) for name in values}
    plan.after = values
    return plan


def _owners(thing: Any, ownership: str) -> frozenset[str]:
    fields = {"owner": "owners", "technical": "technical_owners", "business": "business_owners"}
    if not hasattr(thing, fields[ownership]):
        sorts = "technical or business" if thing.kind == "data_mart" else "owner"
        raise Invalid(f"the ownership of a {thing.kind.replace('_', ' ')} is {sorts}, not {ownership}")
    results: frozenset[str] = getattr(thing, fields[ownership])
    return results


def _owner_row(change: s.AddOwner | s.RemoveOwner, t: Targets) -> tuple[Plan, dict[str, Any], frozenset[str]]:
    thing = t.resource(change.resource, "storage", "data_mart", "destination", "report")
    plan = _new(t, "manage_owners", thing)
    member = t.member(change.member)
    row = {"resource_id": thing.id, "member_id": member, "ownership": change.ownership}
    return plan, row, _owners(thing, change.ownership)


def _add_owner(change: s.AddOwner, t: Targets) -> Plan:
    plan, row, _ = _owner_row(change, t)
    plan.delta.put(owner_table, row)
    plan.after = {"member": row["member_id"], "ownership": change.ownership}
    return plan


def _remove_owner(change: s.RemoveOwner, t: Targets) -> Plan:
    plan, row, owners = _owner_row(change, t)
    if plan.decision and row["member_id"] not in owners:
        raise NotFound(f"{change.member} is no such owner of {change.resource}")
    needed = "technical" if plan.thing.kind == "data_mart" else "owner"
    if plan.decision and change.ownership == needed and owners == {row["member_id"]}:
        raise Conflict("this is the last owner; add another first")
    plan.delta.drop(owner_table, row)
    plan.before = {"member": row["member_id"], "ownership": change.ownership}
    return plan


def _context(change: s.AttachContext | s.DetachContext, t: Targets) -> tuple[Plan, dict[str, Any]]:
    thing = t.resource(change.resource, *SHAREABLE)
    plan = _new(t, "manage_owners", thing)
    return plan, {"resource_id": thing.id, "context_id": t.context(change.context)}


def _attach_context(change: s.AttachContext, t: Targets) -> Plan:
    plan, row = _context(change, t)
    plan.delta.put(resource_context_table, row)
    plan.after = {"context": row["context_id"]}
    return plan


def _detach_context(change: s.DetachContext, t: Targets) -> Plan:
    plan, row = _context(change, t)
    plan.delta.drop(resource_context_table, row)
    plan.before = {"context": row["context_id"]}
    return plan


def _destination_state(t: Targets, thing: facts.Destination, action: str, deleted_at: Any) -> Plan:
    plan = _new(t, action, thing)
    plan.delta.change(t.facts.connection, resource_table_of("destination"), {"id": thing.id}, deleted_at=deleted_at)
    plan.before, plan.after = {"deleted": thing.deleted}, {"deleted": deleted_at is not None}
    return plan


def _delete_destination(change: s.DeleteDestination, t: Targets) -> Plan:
    return _destination_state(t, t.named("destination", change.destination), "delete", t.facts.now)


def _restore_destination(change: s.RestoreDestination, t: Targets) -> Plan:
    return _destination_state(t, t.restorable("destination", change.destination), "restore", None)


# Members


def _organization(t: Targets, action: str) -> Plan:
    return _new(t, action, t.facts.organization())


def _scope_rows(plan: Plan, t: Targets, member: str, scope: str, contexts: list[str]) -> None:
    if scope == "entire" and contexts:
        raise Invalid("an entire scope has no contexts; set the scope to selected")
    plan.delta.drop_all(t.facts.connection, member_context_table, {"member_id": member})
    for context in dict.fromkeys(contexts):
        plan.delta.put(member_context_table, {"member_id": member, "context_id": t.context(context)})


def _member_values(t: Targets, member: str) -> dict[str, Any]:
    subject = t.facts.subject(member)
    assert subject is not None  # noqa: S101 - looked up just before
    contexts = sorted(subject.contexts)
    return {"role": subject.role, "scope": "entire" if subject.entire else "selected", "contexts": contexts}


def _set_role(change: s.SetRole, t: Targets) -> Plan:
    member = t.member(change.member)
    thing = t.facts.thing(member)
    target = facts.MemberThing(
        id=member, name=thing.name, role=thing.role, last_owner=thing.last_owner, new_role=change.role
    )
    plan = Plan("change_role", thing, t.decide("change_role", target))
    before = _member_values(t, member)
    scope, contexts = before["scope"], before["contexts"]
    if change.role in ADMINS:
        scope, contexts = "entire", []
    elif change.scope or change.contexts:
        scope, contexts = change.scope or "selected", change.contexts or []
    elif before["role"] in ADMINS:
        scope, contexts = "selected", []
    _scope_rows(plan, t, member, scope, contexts)
    plan.delta.change(t.facts.connection, member_table, {"id": member}, role=change.role, scope=scope)
    if change.role == "owner" != before["role"]:
        plan.new_owner = member
    if is_subscribed_on_joining(before["role"]) and not is_subscribed_on_joining(change.role):
        plan.delta.drop_all(t.facts.connection, receiver_table, {"member_id": member})
    plan.before, plan.after = before, {"role": change.role, "scope": scope, "contexts": contexts}
    return plan


def _set_scope(change: s.SetScope, t: Targets) -> Plan:
    member = t.member(change.member)
    plan = _organization(t, "manage_members")
    before = _member_values(t, member)
    if plan.decision and before["role"] in ADMINS:
        raise Conflict("owners and admins reach everything; a scope would mean nothing")
    _scope_rows(plan, t, member, change.scope, change.contexts)
    plan.delta.change(t.facts.connection, member_table, {"id": member}, scope=change.scope)
    plan.before = {"member": member, **before}
    plan.after = {"member": member, "scope": change.scope, "contexts": change.contexts}
    return plan


def _security_role(change: s.GiveSecurityRole | s.TakeSecurityRole, t: Targets) -> Plan:
    member = t.member(change.member)
    plan = _organization(t, "manage_members")
    row = {"member_id": member, "security_role": change.security_role}
    if isinstance(change, s.GiveSecurityRole):
        plan.delta.put(member_security_role_table, row)
        plan.after = row
    else:
        plan.delta.drop(member_security_role_table, row)
        plan.before = row
    return plan


def _group(change: s.JoinGroup | s.LeaveGroup, t: Targets) -> Plan:
    group, member = t.group(change.group), t.member(change.member)
    plan = _organization(t, "manage_groups")
    if plan.decision and group == ALL_GROUP:
        raise Conflict("every member is in All, always")
    row = {"group_id": group, "member_id": member}
    if isinstance(change, s.JoinGroup):
        plan.delta.put(group_member_table, row)
        plan.after = row
    else:
        plan.delta.drop(group_member_table, row)
        plan.before = row
    return plan


def _remove_member(change: s.RemoveMember, t: Targets) -> Plan:
    member = t.member(change.member)
    plan = _new(t, "remove", t.facts.thing(member))
    plan.before, plan.after = remove_member(t.facts, member, plan.delta)
    return plan


def _set_plan(change: s.SetPlan, t: Targets) -> Plan:
    plan = _organization(t, "manage_billing")
    plan.delta.change(t.facts.connection, organization_table, {"id": 1}, plan=change.plan)
    plan.before, plan.after = {"plan": t.facts.organization().plan}, {"plan": change.plan}
    return plan


def _set_invites(change: s.SetInvites, t: Targets) -> Plan:
    plan = _organization(t, "manage_settings")
    plan.delta.change(t.facts.connection, organization_table, {"id": 1}, invites=change.invites)
    plan.before, plan.after = {"invites": t.facts.organization().invites}, {"invites": change.invites}
    return plan


# Spaces


def _space_role(change: s.GiveSpaceRole | s.TakeSpaceRole, t: Targets) -> Plan:
    thing = t.named("space", change.space)
    plan = _new(t, "manage_members", thing)
    row = {"space_id": thing.id, "principal_id": t.principal(change.to), "space_role": change.space_role}
    if isinstance(change, s.GiveSpaceRole):
        plan.delta.put(space_member_table, row)
        plan.after = row
    else:
        plan.delta.drop(space_member_table, row)
        plan.before = row
    return plan


def _change_owner(change: s.ChangeOwner, t: Targets) -> Plan:
    thing = t.resource(change.resource, *OWNED)
    plan = _new(t, "change_owner", thing)
    owner = t.member(change.owner)
    # The permission for code that an earlier owner gave does not return with them.
    ends: dict[str, None] = {"code_allowed_by_id": None} if thing.kind == "connection" else {}
    plan.delta.change(t.facts.connection, resource_table_of(thing.kind), {"id": thing.id}, owner_id=owner, **ends)
    old = thing.owner
    plan.before = {"owner": old.id if isinstance(old, facts.Subject) else old}
    plan.after = {"owner": owner}
    return plan


def _change_space(change: s.ChangeSpace, t: Targets) -> Plan:
    thing, space = t.named("connection", change.connection), t.named("space", change.space)
    plan = Plan("change_space", thing, t.decide("change_space", replace(thing, new_space=(space,))))
    plan.delta.change(t.facts.connection, resource_table_of("connection"), {"id": thing.id}, space_id=space.id)
    plan.before = {"space": thing.space.id if thing.space else None}
    plan.after = {"space": space.id}
    return plan


_HANDLERS: dict[type, Callable[[Any, Targets], Plan]] = {
    s.Grant: _grant,
    s.Revoke: _revoke,
    s.Share: _share,
    s.AddOwner: _add_owner,
    s.RemoveOwner: _remove_owner,
    s.AttachContext: _attach_context,
    s.DetachContext: _detach_context,
    s.SetRole: _set_role,
    s.SetScope: _set_scope,
    s.GiveSecurityRole: _security_role,
    s.TakeSecurityRole: _security_role,
    s.JoinGroup: _group,
    s.LeaveGroup: _group,
    s.GiveSpaceRole: _space_role,
    s.TakeSpaceRole: _space_role,
    s.ChangeOwner: _change_owner,
    s.ChangeSpace: _change_space,
    s.DeleteDestination: _delete_destination,
    s.RestoreDestination: _restore_destination,
    s.RemoveMember: _remove_member,
    s.SetPlan: _set_plan,
    s.SetInvites: _set_invites,
}
