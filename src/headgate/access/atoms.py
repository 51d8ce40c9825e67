"""The words that rule tables are written in: conditions about roles, ownership, sharing, levels and space roles.

Each says the same twice, in Python over facts and in SQL over rows; tests compare the two on random worlds.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from headgate.access.actions import ADMINS, LEVEL_NAMES
from headgate.access.conditions import Atom, SqlPosition
from headgate.access.facts import Subject
from headgate.kit.ids import ALL_GROUP

MEMBER, RESOURCE, BOTH = "member", "resource", "both"


def _quoted(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _or(values: tuple[str, ...]) -> str:
    return " or ".join(value.replace("_", " ") for value in values)


def _atom(name: str, text: str, about: str, python: str, sql: str) -> Atom:
    """An atom from two texts, with `{m}` for the member and `{r}` for the resource."""
    return Atom(
        name,
        text,
        about,
        lambda at: python.format(m=at.member, r=at.thing),
        lambda at: sql.format(m=at.member, r=at.thing),
    )


# About the member


def role_is(*roles: str) -> Atom:
    """The member's role is one of these."""
    python = f"{{m}}.role == {roles[0]!r}" if len(roles) == 1 else f"{{m}}.role in {roles!r}"
    sql = f"{{m}}.role IN ({_quoted(roles)})"
    return _atom(f"role:{','.join(roles)}", f"role {_or(roles)}", MEMBER, python, sql)


def security_role(*roles: str) -> Atom:
    """The member holds one of these security roles."""
    return _atom(
        f"security:{','.join(roles)}",
        f"security role {_or(roles)}",
        MEMBER,
        f"not {{m}}.security_roles.isdisjoint({roles!r})",
        f"EXISTS (SELECT 1 FROM member_security_roles sr WHERE sr.member_id = {{m}}.id "
        f"AND sr.security_role IN ({_quoted(roles)}))",
    )


_PLAN = "(SELECT og.plan FROM organization og)"
ADMIN = role_is(*ADMINS)
ANYONE = _atom("anyone", "any member", MEMBER, "True", "TRUE")
OPERATOR = _atom("operator", "works on the installation's own machine", MEMBER, "{m}.operator", "FALSE")
STARTER = _atom(
    "starter",
    "the plan is Starter, which ignores grants",
    MEMBER,
    "{m}.plan == 'starter'",
    f"{_PLAN} = 'starter'",
)
GRANTS_COUNT = _atom(
    "grants count",
    "the plan is Growth or Custom; Starter ignores grants",
    MEMBER,
    "{m}.plan != 'starter'",
    f"{_PLAN} <> 'starter'",
)


# About the resource


SHARED_FOR_USE = _atom("shared_for_use", "shared for use", RESOURCE, "{r}.shared_for_use", "{r}.shared_for_use")
SHARED_FOR_REPORTING = _atom(
    "shared_for_use", "shared for reporting", RESOURCE, "{r}.shared_for_use", "{r}.shared_for_use"
)
SHARED_FOR_MAINTENANCE = _atom(
    "shared_for_maintenance",
    "shared for maintenance",
    RESOURCE,
    "{r}.shared_for_maintenance",
    "{r}.shared_for_maintenance",
)
PUBLISHED = _atom("published", "is published", RESOURCE, "{r}.published", "{r}.published")
NOT_PERSONAL = _atom("not personal", "is not a personal one", RESOURCE, "not {r}.personal", "NOT {r}.personal")
LIVE = _atom("live", "is not deleted", RESOURCE, "not {r}.deleted", "{r}.deleted_at IS NULL")
DELETED = _atom("deleted", "is deleted", RESOURCE, "{r}.deleted", "{r}.deleted_at IS NOT NULL")
ALLOWS_CODE = _atom(
    "allows code",
    "its owner allows code",
    RESOURCE,
    "{r}.allows_code",
    "({r}.code_allowed_by_id IS NOT NULL AND {r}.code_allowed_by_id = {r}.owner_id)",
)
OWNERLESS = _atom("ownerless", "is without an owner", RESOURCE, "{r}.owner is None", "{r}.owner_id IS NULL")
NO_OUTPUT_LAYER = _atom(
    "no output layer",
    "there is no output layer",
    RESOURCE,
    "{r}.output_layer is None",
    "{r}.output_layer_id IS NULL",
)
IS_DELIVERY = _atom(
    "is delivery", "it is a delivery", RESOURCE, "{r}.pipeline_kind == 'delivery'", "{r}.pipeline_kind = 'delivery'"
)
INVITES_BY_ROLE = _atom(
    "invites by role", "members may invite by role", RESOURCE, "{r}.invites == 'by-role'", "{r}.invites = 'by-role'"
)
NOT_AN_OWNER = _atom(
    "not an owner", "is not an owner of the organization", RESOURCE, "{r}.role != 'owner'", "{r}.role <> 'owner'"
)
NOT_THE_LAST_OWNER = _atom(
    "not the last owner",
    "the organization keeps an owner",
    RESOURCE,
    "not {r}.last_owner",
    "NOT ({r}.role = 'owner' AND NOT EXISTS (SELECT 1 FROM members mo WHERE mo.role = 'owner' "
    "AND mo.removed_at IS NULL AND mo.id <> {r}.id))",
)
NOT_MADE_OWNER = _atom("not made owner", "the new role is not owner", RESOURCE, "{r}.new_role != 'owner'", "TRUE")
BELOW_MANAGER = _atom("below manager", "the level is Viewer or Editor", RESOURCE, "{r}.level < 3", "FALSE")
DATA_IS_KNOWN = Atom(
    "data is known",
    "the data exists",
    RESOURCE,
    lambda at: f"{at.thing}.known",
    lambda at: f"{at.thing}.layer_id IS NOT NULL" if at.kind != "layer" else "TRUE",
)


# About both


def owns(*ownerships: str) -> Atom:
    """The member is an owner of one of these sorts: owner, technical, business."""
    attributes = {"owner": "owners", "technical": "technical_owners", "business": "business_owners"}
    labels = {"owner": "owner", "technical": "technical owner", "business": "business owner"}
    python = " or ".join(f"{{m}}.id in {{r}}.{attributes[ownership]}" for ownership in ownerships)
    return _atom(
        f"owns:{','.join(ownerships)}",
        _or(tuple(labels[ownership] for ownership in ownerships)),
        BOTH,
        f"({python})" if len(ownerships) > 1 else python,
        f"EXISTS (SELECT 1 FROM owners ow WHERE ow.resource_id = {{r}}.id "
        f"AND ow.member_id = {{m}}.id AND ow.ownership IN ({_quoted(ownerships)}))",
    )


IN_SCOPE = _atom(
    "in scope",
    "in scope (entire, or a context in common)",
    BOTH,
    "({m}.entire or not {m}.contexts.isdisjoint({r}.contexts))",
    "({m}.scope = 'entire' OR EXISTS (SELECT 1 FROM member_contexts mc "
    "JOIN resource_contexts rc ON rc.context_id = mc.context_id "
    "WHERE mc.member_id = {m}.id AND rc.resource_id = {r}.id))",
)
NOT_SELF = _atom("not self", "not about oneself", BOTH, "{m}.id != {r}.id", "{m}.id <> {r}.id")
NOT_TO_SELF = _atom("not to self", "to someone else", BOTH, "{m}.id != {r}.to", "FALSE")
HOLDER = _atom("holder", "it is their own", BOTH, "{m}.id == {r}.holder", "FALSE")
ASKED_FOR_IT = _atom("asked for it", "asked for it", BOTH, "{m}.id == {r}.asked_by", "FALSE")
ASKED_BY_ANOTHER = _atom("asked by another", "somebody else asked for it", BOTH, "{m}.id != {r}.asked_by", "FALSE")
ANSWERED_IT = _atom("answered it", "answered it", BOTH, "{m}.id == {r}.answered_by", "FALSE")
COULD_GIVE = _atom("could give", "may make a change that gives what it asks for", BOTH, "{r}.could_give", "FALSE")
ASKER_LEFT = _atom("asker left", "who asked is no longer a member", RESOURCE, "{r}.asked_by is None", "FALSE")
ABOUT_ORGANIZATION = _atom(
    "about the organization",
    "it is about the organization",
    RESOURCE,
    "({r}.about is not None and {r}.about.kind == 'organization')",
    "FALSE",
)
AUTHOR = _atom("author", "its author", BOTH, "{m}.id == {r}.author", "{r}.author_id = {m}.id")
CONNECTION_OWNER = _atom(
    "connection owner", "the connection's own owner", BOTH, "{m}.id == {r}.owner", "{r}.owner_id = {m}.id"
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


def _reach(at: SqlPosition) -> str:
    """SQL: the resources on which a grant counts for the row at hand."""
    columns = {"layer": "{t}.id", "ref": "{t}.item_id, {t}.layer_id"}
    return columns.get(at.kind, "{t}.id, {t}.layer_id").format(t=at.thing)


def granted(level: int) -> Atom:
    """An unexpired grant of at least this level, direct or by group, on the resource or its layer."""
    return Atom(
        f"granted:{level}",
        LEVEL_NAMES[level].title(),
        BOTH,
        lambda at: f"granted({at.member}, {at.thing}.reach, {level})",
        lambda at: (
            f"EXISTS (SELECT 1 FROM grants g WHERE g.resource_id IN ({_reach(at)}) AND g.level >= {level} "
            f"AND {unexpired('g.expires_at')} AND {is_principal('g.grantee_id', at.member)})"
        ),
    )


GRANTED_INSIDE = Atom(
    "granted inside",
    "a grant on a table or volume in it",
    BOTH,
    lambda at: f"granted({at.member}, {at.thing}.inner, 1)",
    lambda at: (
        f"EXISTS (SELECT 1 FROM lake_items li JOIN grants g ON g.resource_id = li.id "
        f"WHERE li.layer_id = {at.thing}.id AND {unexpired('g.expires_at')} "
        f"AND {is_principal('g.grantee_id', at.member)})"
    ),
)


def ends_with_own(level: int) -> Atom:
    """The grant being made ends no later than the best grant of this level that its maker holds."""
    text = "its end is not after that of the Manager grant used"
    return _atom("ends with own", text, BOTH, f"ends_with_own({{m}}, {{r}}, {level})", "FALSE")


def space_role(*roles: str) -> Atom:
    """The member owns the space, or holds one of these roles in it, directly or by group."""
    by_role = (
        "(NOT {r}.personal AND EXISTS (SELECT 1 FROM space_members sm WHERE sm.space_id = {r}.id "
        f"AND sm.space_role IN ({_quoted(roles)}) AND {is_principal('sm.principal_id', '{m}')}))"
    )
    return _atom(
        f"space:{','.join(roles)}",
        "Is owner" + "".join(f", {role.replace('_', ' ').capitalize()}" for role in roles),
        BOTH,
        f"has_space_role({{m}}, {{r}}, {roles!r})",
        f"({{r}}.owner_id = {{m}}.id OR {by_role})" if roles else "{r}.owner_id = {m}.id",
    )


# What Python texts call


def _granted(s: Subject, grants: Any, level: int) -> bool:
    keys, now = s.keys, s.now
    return any(g.level >= level and g.grantee in keys and _alive(g.expires, now) for g in grants)


def _alive(expires: datetime | None, now: datetime) -> bool:
    return expires is None or expires > now


def _ends_with_own(s: Subject, r: Any, level: int) -> bool:
    ends = [
        g.expires for g in r.resource.reach if g.level >= level and g.grantee in s.keys and _alive(g.expires, s.now)
    ]
    if None in ends:
        return True
    known = [end for end in ends if end is not None]
    return bool(known) and r.expires is not None and r.expires <= max(known)


def _has_space_role(s: Subject, r: Any, roles: tuple[str, ...]) -> bool:
    if s.id == r.owner:
        return True
    if r.personal:
        return False
    return any(not r.roles[key].isdisjoint(roles) for key in s.keys if key in r.roles)


def _parent(r: Any, kind: str) -> Any:
    return r.parent if r.parent is not None and r.parent.kind == kind else None


HELPERS: dict[str, Callable[..., Any]] = {
    "granted": _granted,
    "ends_with_own": _ends_with_own,
    "has_space_role": _has_space_role,
    "parent": _parent,
}
