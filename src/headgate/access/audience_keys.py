"""Where a member and a resource meet, for each condition about both: which values each side has.

The audience index (audience.py) files a resource under its values and looks a member's values up.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.access.atoms import is_principal, unexpired
from headgate.access.conditions import Atom, SqlPosition, Term
from headgate.access.rules.terms import on_all_counted, on_all_listed
from headgate.kit.ids import ALL_GROUP

_FOREVER = "9999-12-31"


@dataclass(frozen=True, slots=True)
class Source:
    """SQL that gives the values of a resource: a join, the value, and when it ends."""

    value: str
    join: str = ""
    expires: str = "CAST(NULL AS TIMESTAMPTZ)"


@dataclass(frozen=True, slots=True)
class MemberValues:
    """SQL that gives values of a member `m`: a join, the value, and a condition."""

    value: str
    join: str = ""
    where: str = "TRUE"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where member and resource must meet: the values of each side."""

    name: str
    sources: tuple[Source, ...]
    holdings: tuple[MemberValues, ...]


_SELF = (MemberValues("m.id"),)
_OWN_KEYS = (
    *_SELF,
    MemberValues(f"'{ALL_GROUP}'"),
    MemberValues("gm.group_id", "JOIN group_members gm ON gm.member_id = m.id"),
)


def _quoted(options: str) -> str:
    return ", ".join(f"'{option}'" for option in options.split(","))


def _owns(options: str, at: SqlPosition) -> Meeting:
    join = f"JOIN owners ow ON ow.resource_id = {at.thing}.id AND ow.ownership IN ({_quoted(options)})"
    return Meeting(f"owns:{options}", (Source("ow.member_id", join),), _SELF)


def _in_scope(_: str, at: SqlPosition) -> Meeting:
    join = f"JOIN resource_contexts rc ON rc.resource_id = {at.thing}.id"
    holdings = (
        MemberValues("'*'", where="m.scope = 'entire'"),
        MemberValues("mc.context_id", "JOIN member_contexts mc ON mc.member_id = m.id", "m.scope = 'selected'"),
    )
    return Meeting("in scope", (Source("'*'"), Source("rc.context_id", join)), holdings)


def _author(_: str, at: SqlPosition) -> Meeting:
    return Meeting("author", (Source(f"{at.thing}.author_id"),), _SELF)


def _granted(options: str, at: SqlPosition) -> Meeting:
    join = f"JOIN grants g ON g.resource_id = {at.thing}.id AND g.level >= {options}"
    own = Source("g.grantee_id", join, "g.expires_at")
    if at.kind == "layer":
        return Meeting(f"granted:{options}", (own,), _OWN_KEYS)
    on_layer = (
        f"EXISTS (SELECT 1 FROM grants g WHERE g.resource_id = ly.id AND g.level >= {options} "
        f"AND {unexpired('g.expires_at')} AND {is_principal('g.grantee_id', 'm')})"
    )
    holdings = (*_OWN_KEYS, MemberValues("ly.id", f"JOIN layers ly ON {on_layer}"))
    return Meeting(f"granted:{options}", (own, Source(f"{at.thing}.layer_id")), holdings)


def _granted_inside(_: str, at: SqlPosition) -> Meeting:
    join = f"JOIN lake_items li ON li.layer_id = {at.thing}.id JOIN grants g ON g.resource_id = li.id"
    return Meeting("granted inside", (Source("g.grantee_id", join, "g.expires_at"),), _OWN_KEYS)


def _space(options: str, at: SqlPosition) -> Meeting:
    by_role = (
        f"JOIN space_members sm ON sm.space_role IN ({_quoted(options)}) AND {is_principal('sm.principal_id', 'm')} "
        "JOIN spaces sn ON sn.id = sm.space_id AND NOT sn.personal"
    )
    holdings = (MemberValues("so.id", "JOIN spaces so ON so.owner_id = m.id"), MemberValues("sm.space_id", by_role))
    return Meeting(f"space:{options}", (Source(f"{at.thing}.id"),), holdings)


_ATOMS: dict[str, Callable[[str, SqlPosition], Meeting]] = {
    "owns": _owns,
    "in scope": _in_scope,
    "author": _author,
    "granted": _granted,
    "granted inside": _granted_inside,
    "space": _space,
}

_LISTED = "SELECT resource_id, item_id, layer_id FROM table_refs WHERE enabled"
_COUNTED = (
    _LISTED + " UNION ALL SELECT pn.id, NULL, pn.output_layer_id FROM pipelines pn WHERE pn.output_layer_id IS NOT "
    "NULL AND NOT EXISTS (SELECT 1 FROM table_refs tn WHERE tn.resource_id = pn.id AND tn.enabled)"
)

_ON_ALL = """
(WITH need AS (
   SELECT resource_id, item_id, layer_id, ROW_NUMBER() OVER (PARTITION BY resource_id) AS nth,
          COUNT(*) OVER (PARTITION BY resource_id) AS n
   FROM ({counted}) counted_rows WHERE {only}
 ), cover AS (
   SELECT nd.resource_id, nd.nth, nd.n, g.grantee_id AS holder,
          MAX(COALESCE(g.expires_at, '{forever}')) AS ends
   FROM need nd JOIN grants g ON g.resource_id IN (nd.item_id, nd.layer_id) AND g.level >= {level}
   GROUP BY nd.resource_id, nd.nth, nd.n, g.grantee_id
 ), named AS (
   SELECT resource_id, nth, n, holder, ends FROM cover
   UNION ALL
   SELECT cv.resource_id, cv.nth, cv.n, gm.member_id, cv.ends
   FROM cover cv JOIN group_members gm ON gm.group_id = cv.holder WHERE cv.n > 1
 ), reach AS (
   SELECT resource_id, nth, n, holder, ends FROM named
   UNION ALL
   SELECT cv.resource_id, cv.nth, cv.n, nm.holder, cv.ends
   FROM cover cv JOIN (SELECT DISTINCT resource_id, holder FROM named) nm ON nm.resource_id = cv.resource_id
   WHERE cv.holder = '{everyone}' AND nm.holder <> '{everyone}'
 ), best AS (
   SELECT resource_id, n, nth, holder, MAX(ends) AS ends FROM reach GROUP BY resource_id, n, nth, holder
 )
 SELECT resource_id, holder, NULLIF(MIN(ends), '{forever}') AS ends FROM best
 GROUP BY resource_id, n, holder HAVING COUNT(*) = n
 UNION ALL
 SELECT resource_id, '*', CAST(NULL AS TIMESTAMPTZ) FROM need GROUP BY resource_id HAVING COUNT(*) = COUNT(layer_id)
)"""


def _on_all(term: Term, at: SqlPosition) -> Meeting:
    counted = _COUNTED if term.name == on_all_counted(1).name else _LISTED
    rows = _ON_ALL.format(counted=counted, level=term.level, forever=_FOREVER, everyone=ALL_GROUP, only="{only}")
    join = f"JOIN {rows} oa ON oa.resource_id = {at.thing}.id"
    on_starter = MemberValues("'*'", "JOIN organization og ON og.plan = 'starter'")
    source = Source("oa.holder", join, "oa.ends")
    return Meeting(f"{term.name}:{term.level}", (source,), (*_OWN_KEYS, on_starter))


def meeting_of(condition: Atom | Term, at: SqlPosition) -> Meeting | None:
    """Where the two sides of a condition meet, or None if nobody has said."""
    if isinstance(condition, Term):
        known = (on_all_counted(1).name, on_all_listed(1).name)
        return _on_all(condition, at) if condition.name in known else None
    family, _, options = condition.name.partition(":")
    return _ATOMS[family](options, at) if family in _ATOMS else None
