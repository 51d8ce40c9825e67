"""The words that rule tables are written in: conditions about roles, ownership, sharing, levels and space roles."""

from datetime import datetime
from typing import Any

from headgate.access.actions import ADMINS, LEVEL_NAMES
from headgate.access.conditions import At, Atom
from headgate.access.facts import Subject
from headgate.kit.ids import ALL_GROUP

MEMBER, RESOURCE, BOTH = "member", "resource", "both"


def _quoted(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _or(values: tuple[str, ...]) -> str:
    return " or ".join(value.replace("_", " ") for value in values)


# About the member


def role_is(*roles: str) -> Atom:
    """The member's role is one of these."""
    return Atom(
        f"role:{','.join(roles)}",
        f"role {_or(roles)}",
        MEMBER,
        lambda s, r: s.role in roles,
        lambda at: f"{at.member}.role IN ({_quoted(roles)})",
    )


def security_role(*roles: str) -> Atom:
    """The member holds one of these security roles."""
    wanted = frozenset(roles)
    return Atom(
        f"security:{','.join(roles)}",
        f"security role {_or(roles)}",
        MEMBER,
        lambda s, r: not wanted.isdisjoint(s.security_roles),
        lambda at: (
            f"EXISTS (SELECT 1 FROM member_security_roles sr WHERE sr.member_id = {at.member}.id "
            f"AND sr.security_role IN ({_quoted(roles)}))"
        ),
    )


_PLAN = "(SELECT og.plan FROM organization og)"
ADMIN = role_is(*ADMINS)
ANYONE = Atom("anyone", "any member", MEMBER, lambda s, r: True, lambda at: "TRUE")
OPERATOR = Atom(
    "operator", "works on the installation's own machine", MEMBER, lambda s, r: s.operator, lambda at: "FALSE"
)
STARTER = Atom(
    "starter",
    "the plan is Starter, which ignores grants",
    MEMBER,
    lambda s, r: s.plan == "starter",
    lambda at: f"{_PLAN} = 'starter'",
)
GRANTS_COUNT = Atom(
    "grants count",
    "the plan is Growth or Custom; Starter ignores grants",
    MEMBER,
    lambda s, r: s.plan != "starter",
    lambda at: f"{_PLAN} <> 'starter'",
)


# About the resource


def state(name: str, text: str, column: str, *, is_not: bool = False) -> Atom:
    """A yes or no that the resource itself says."""
    return Atom(
        f"{'not ' if is_not else ''}{name}",
        text,
        RESOURCE,
        (lambda s, r: not getattr(r, name)) if is_not else (lambda s, r: bool(getattr(r, name))),
        (lambda at: f"NOT {at.thing}.{column}") if is_not else (lambda at: f"{at.thing}.{column}"),
    )


SHARED_FOR_USE = state("shared_for_use", "shared for use", "shared_for_use")
SHARED_FOR_REPORTING = state("shared_for_use", "shared for reporting", "shared_for_use")
SHARED_FOR_MAINTENANCE = state("shared_for_maintenance", "shared for maintenance", "shared_for_maintenance")
PUBLISHED = state("published", "is published", "published")
NOT_PERSONAL = state("personal", "is not a personal one", "personal", is_not=True)
LIVE = Atom(
    "live",
    "is not deleted",
    RESOURCE,
    lambda s, r: not r.deleted,
    lambda at: f"{at.thing}.deleted_at IS NULL",
)
DELETED = Atom(
    "deleted",
    "is deleted",
    RESOURCE,
    lambda s, r: r.deleted,
    lambda at: f"{at.thing}.deleted_at IS NOT NULL",
)
OWNERLESS = Atom(
    "ownerless",
    "is without an owner",
    RESOURCE,
    lambda s, r: r.owner is None,
    lambda at: f"{at.thing}.owner_id IS NULL",
)
NO_OUTPUT_LAYER = Atom(
    "no output layer",
    "there is no output layer",
    RESOURCE,
    lambda s, r: r.output_layer is None,
    lambda at: f"{at.thing}.output_layer_id IS NULL",
)
IS_DELIVERY = Atom(
    "is delivery",
    "it is a delivery",
    RESOURCE,
    lambda s, r: r.pipeline_kind == "delivery",
    lambda at: f"{at.thing}.pipeline_kind = 'delivery'",
)
INVITES_BY_ROLE = Atom(
    "invites by role",
    "members may invite by role",
    RESOURCE,
    lambda s, r: r.invites == "by-role",
    lambda at: f"{at.thing}.invites = 'by-role'",
)
NOT_AN_OWNER = Atom(
    "not an owner",
    "is not an owner of the organization",
    RESOURCE,
    lambda s, r: r.role != "owner",
    lambda at: f"{at.thing}.role <> 'owner'",
)
NOT_THE_LAST_OWNER = Atom(
    "not the last owner",
    "the organization keeps an owner",
    RESOURCE,
    lambda s, r: not r.last_owner,
    lambda at: (
        f"NOT ({at.thing}.role = 'owner' AND NOT EXISTS (SELECT 1 FROM members mo WHERE mo.role = 'owner' "
        f"AND mo.removed_at IS NULL AND mo.id <> {at.thing}.id))"
    ),
)
NOT_MADE_OWNER = Atom(
    "not made owner",
    "the new role is not owner",
    RESOURCE,
    lambda s, r: r.new_role != "owner",
    lambda at: "TRUE",
)
BELOW_MANAGER = Atom(
    "below manager", "the level is Viewer or Editor", RESOURCE, lambda s, r: r.level < 3, lambda at: "FALSE"
)


# About both


def owns(*ownerships: str) -> Atom:
    """The member is an owner of one of these sorts: owner, technical, business."""
    attributes = {"owner": "owners", "technical": "technical_owners", "business": "business_owners"}
    fields = tuple(attributes[ownership] for ownership in ownerships)
    labels = {"owner": "owner", "technical": "technical owner", "business": "business owner"}

    def holds(s: Subject, r: Any) -> bool:
        return any(s.id in getattr(r, field) for field in fields)

    first = fields[0]
    return Atom(
        f"owns:{','.join(ownerships)}",
        _or(tuple(labels[ownership] for ownership in ownerships)),
        BOTH,
        (lambda s, r: s.id in getattr(r, first)) if len(fields) == 1 else holds,
        lambda at: (
            f"EXISTS (SELECT 1 FROM owners ow WHERE ow.resource_id = {at.thing}.id "
            f"AND ow.member_id = {at.member}.id AND ow.ownership IN ({_quoted(ownerships)}))"
        ),
    )


IN_SCOPE = Atom(
    "in scope",
    "in scope (entire, or a context in common)",
    BOTH,
    lambda s, r: s.entire or not s.contexts.isdisjoint(r.contexts),
    lambda at: (
        f"({at.member}.scope = 'entire' OR EXISTS (SELECT 1 FROM member_contexts mc "
        f"JOIN resource_contexts rc ON rc.context_id = mc.context_id "
        f"WHERE mc.member_id = {at.member}.id AND rc.resource_id = {at.thing}.id))"
    ),
)
NOT_SELF = Atom(
    "not self",
    "not about oneself",
    BOTH,
    lambda s, r: s.id != r.id,
    lambda at: f"{at.member}.id <> {at.thing}.id",
)
NOT_TO_SELF = Atom("not to self", "to someone else", BOTH, lambda s, r: s.id != r.to, lambda at: "FALSE")
AUTHOR = Atom(
    "author",
    "its author",
    BOTH,
    lambda s, r: s.id == r.author,
    lambda at: f"{at.thing}.author_id = {at.member}.id",
)
CONNECTION_OWNER = Atom(
    "connection owner",
    "the connection's own owner",
    BOTH,
    lambda s, r: s.id == r.owner,
    lambda at: f"{at.thing}.owner_id = {at.member}.id",
)


def is_principal(column: str, member: str) -> str:
    """SQL: this column names the member, a group of theirs, or All."""
    return (
        f"({column} = {member}.id OR {column} = '{ALL_GROUP}' OR EXISTS (SELECT 1 FROM group_members gm "
        f"WHERE gm.group_id = {column} AND gm.member_id = {member}.id))"
    )


def unexpired(column: str) -> str:
    """SQL: an end that has not come yet."""
    return f"({column} IS NULL OR {column} > :now)"


def _alive(expires: datetime | None, now: datetime) -> bool:
    return expires is None or expires > now


def _reach(at: At) -> str:
    """SQL: the resources on which a grant counts for the row at hand."""
    columns = {"layer": "{t}.id", "ref": "{t}.item_id, {t}.layer_id"}
    return columns.get(at.kind, "{t}.id, {t}.layer_id").format(t=at.thing)


def granted(level: int) -> Atom:
    """An unexpired grant of at least this level, direct or by group, on the resource or its layer."""

    def holds(s: Subject, r: Any) -> bool:
        keys, now = s.keys, s.now
        return any(g.level >= level and g.grantee in keys and _alive(g.expires, now) for g in r.reach)

    return Atom(
        f"granted:{level}",
        LEVEL_NAMES[level].title(),
        BOTH,
        holds,
        lambda at: (
            f"EXISTS (SELECT 1 FROM grants g WHERE g.resource_id IN ({_reach(at)}) AND g.level >= {level} "
            f"AND {unexpired('g.expires_at')} AND {is_principal('g.grantee_id', at.member)})"
        ),
    )


def _inner_holds(s: Subject, r: Any) -> bool:
    return any(g.grantee in s.keys and _alive(g.expires, s.now) for g in r.inner)


GRANTED_INSIDE = Atom(
    "granted inside",
    "a grant on a table or volume in it",
    BOTH,
    _inner_holds,
    lambda at: (
        f"EXISTS (SELECT 1 FROM lake_items li JOIN grants g ON g.resource_id = li.id "
        f"WHERE li.layer_id = {at.thing}.id AND {unexpired('g.expires_at')} "
        f"AND {is_principal('g.grantee_id', at.member)})"
    ),
)
DATA_IS_KNOWN = Atom(
    "data is known",
    "the data exists",
    RESOURCE,
    lambda s, r: r.known,
    lambda at: f"{at.thing}.layer_id IS NOT NULL" if at.kind != "layer" else "TRUE",
)


def ends_with_own(level: int) -> Atom:
    """The grant being made ends no later than the best grant of this level that its maker holds."""

    def holds(s: Subject, r: Any) -> bool:
        ends = [
            g.expires for g in r.resource.reach if g.level >= level and g.grantee in s.keys and _alive(g.expires, s.now)
        ]
        if not ends:
            return False
        if None in ends:
            return True
        return r.expires is not None and r.expires <= max(end for end in ends if end is not None)

    return Atom(
        "ends with own",
        "its end is not after that of the Manager grant used",
        BOTH,
        holds,
        lambda at: "FALSE",
    )


def space_role(*roles: str) -> Atom:
    """The member owns the space, or holds one of these roles in it, directly or by group."""
    wanted = frozenset(roles)

    def holds(s: Subject, r: Any) -> bool:
        if s.id == r.owner:
            return True
        if r.personal:
            return False
        return any(not wanted.isdisjoint(r.roles[key]) for key in s.keys if key in r.roles)

    return Atom(
        f"space:{','.join(roles)}",
        "Is owner" + "".join(f", {role.replace('_', ' ').capitalize()}" for role in roles),
        BOTH,
        holds,
        lambda at: (
            f"({at.thing}.owner_id = {at.member}.id OR (NOT {at.thing}.personal AND EXISTS "
            f"(SELECT 1 FROM space_members sm WHERE sm.space_id = {at.thing}.id "
            f"AND sm.space_role IN ({_quoted(roles)}) AND {is_principal('sm.principal_id', at.member)})))"
            if roles
            else f"{at.thing}.owner_id = {at.member}.id"
        ),
    )
