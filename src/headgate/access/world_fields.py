"""Which fields each kind of resource has in a world, and what they may hold."""

from dataclasses import dataclass

from headgate.access.actions import LEVELS, PIPELINE_KINDS, ROLES
from headgate.access.own import OWN_KINDS


@dataclass(frozen=True, slots=True)
class Field:
    """What a field holds: flag, member, members, contexts, tables, roles, word, instant, text, reference or target."""

    holds: str
    of: str = ""
    words: tuple[str, ...] = ()
    required: bool = False
    alias: str = ""
    """The name by which facts know it, where that differs."""


FLAG = Field("flag")
MEMBER = Field("member")
MEMBERS = Field("members")
CONTEXTS = Field("contexts")
TABLES = Field("tables")


def ref(kind: str, *, required: bool = False) -> Field:
    """A reference to a resource of this kind."""
    return Field("ref", of=kind, required=required)


_SHARED = {"shared_for_use": FLAG, "shared_for_maintenance": FLAG, "contexts": CONTEXTS}

FIELDS: dict[str, dict[str, Field]] = {
    "storage": {"owners": MEMBERS, **_SHARED},
    "data_mart": {
        "storage": ref("storage"),
        "technical_owners": MEMBERS,
        "business_owners": MEMBERS,
        "published": FLAG,
        "shared_for_reporting": Field("flag", alias="shared_for_use"),
        "shared_for_maintenance": FLAG,
        "contexts": CONTEXTS,
        "reads": TABLES,
        "acts_for": MEMBER,
    },
    "destination": {"owners": MEMBERS, **_SHARED, "deleted": FLAG},
    "report": {
        "data_mart": ref("data_mart", required=True),
        "destination": ref("destination"),
        "owners": MEMBERS,
        "acts_for": MEMBER,
    },
    "data_mart_trigger": {"data_mart": ref("data_mart", required=True), "author": MEMBER},
    "report_trigger": {"report": ref("report", required=True), "author": MEMBER},
    "pipeline_trigger": {"pipeline": ref("pipeline", required=True), "author": MEMBER},
    "run": {"report": ref("report"), "data_mart": ref("data_mart"), "pipeline": ref("pipeline")},
    "layer": {},
    "table": {},
    "volume": {},
    "pipeline": {
        "pipeline_kind": Field("word", words=PIPELINE_KINDS),
        "project": ref("project"),
        "output_layer": ref("layer"),
        "reads": TABLES,
        "writes": TABLES,
        "disabled": TABLES,
        "connections": Field("refs", of="connection"),
        "destination": ref("destination"),
        "acts_for": MEMBER,
        "owner": MEMBER,
    },
    "integration": {"reads": TABLES},
    "saved_query": {"author": MEMBER, "reads": TABLES},
    "space": {"owner": MEMBER, "personal": FLAG, "members": Field("roles")},
    "gateway": {"space": ref("space", required=True)},
    "connection": {
        "space": ref("space", required=True),
        "owner": MEMBER,
        "gateway": ref("gateway"),
        "allows_code": FLAG,
    },
    "project": {"space": ref("space", required=True), "owner": MEMBER, "target": ref("connection")},
}

ONE_OF = {"run": ("report", "data_mart", "pipeline")}
"""Kinds that need exactly one of these fields."""

_NAMES = {"name": Field("text"), "description": Field("text"), "active": FLAG, "schedule": Field("text")}

STATE: dict[str, dict[str, Field]] = {
    **{kind: {**fields, **_NAMES} for kind, fields in FIELDS.items()},
    "table": {"layer": ref("layer"), **_NAMES},
    "volume": {"layer": ref("layer"), **_NAMES},
    "member": {"role": Field("word", words=ROLES)},
    "organization": {},
    **{kind: {"holder": MEMBER} for kind in OWN_KINDS},
    "access_request": {
        "about": Field("target"),
        "asked_by": MEMBER,
        "answered_by": MEMBER,
        "could_give": FLAG,
    },
}
"""The fields that `with` may give: the place, or the state after."""

GRANT_STATE: dict[str, Field] = {
    "to": Field("principal", required=True),
    "level": Field("word", words=tuple(LEVELS), required=True),
    "expires": Field("instant"),
}
"""The fields that `with` may give for the actions grant and grant_manager."""
