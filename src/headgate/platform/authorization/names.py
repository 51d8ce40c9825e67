"""The resources with one name that a member may know. Hidden ones do not affect the result."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.access.sql import condition, rows, where
from headgate.kit.database import bound, fetch
from headgate.kit.names import name_key
from headgate.platform.authorization.repository import limits, narrowed

MOST = 10
"""Maximum number of results per name."""

_ITEMS = frozenset({"table", "volume"})


@dataclass(frozen=True, slots=True)
class Viewer:
    """The member who asks, with the limits of their token and the time."""

    member: str
    now: datetime
    narrowing: Narrowing = UNLIMITED


def visible(connection: Connection, viewer: Viewer, kind: str, name: str) -> list[str]:
    """The ids of the resources that the viewer sees; a table or volume is named layer.name."""
    return _ids(connection, viewer, kind, name, None)


def restorable(connection: Connection, viewer: Viewer, kind: str, name: str) -> list[str]:
    """The ids of deleted resources that the viewer may restore."""
    return _ids(connection, viewer, kind, name, "restore")


def _ids(connection: Connection, viewer: Viewer, kind: str, name: str, action: str | None) -> list[str]:
    layer, _, own = name.partition(".") if kind in _ITEMS else ("", "", name)
    parameters = {
        "member": viewer.member,
        "now": bound(connection, viewer.now),
        "key": name_key(own),
        "layer": name_key(layer),
        "most": MOST,
        **limits(connection, viewer.narrowing),
    }
    results: set[str] = set()
    for entry in rule_kinds(kind):
        text = _statement(connection, viewer, entry, action or BOOK.tables[entry].listed_by)
        results.update(row[0] for row in fetch(connection, text, parameters))
    return sorted(results)[:MOST]


def _statement(connection: Connection, viewer: Viewer, kind: str, action: str) -> Any:
    permitted = viewer.narrowing.permits_action(action, viewer.now)
    allowed = f"{narrowed(connection, viewer.narrowing, action, kind)} AND {condition(action, kind)}"
    # Names of layers, tables and volumes are unique in their scope; names of other kinds are not.
    namespace, scope = kind, "TRUE"
    if kind in _ITEMS:
        namespace, scope = "table", "rs.scope_id IN (SELECT ly.id FROM layers ly JOIN resources ln ON ln.id = ly.id "
        scope += "WHERE ln.namespace = 'layer' AND ln.name_key = :layer)"
    elif kind == "task":
        namespace = "pipeline"
    return (
        f"SELECT rs.id FROM {rows(kind)} JOIN resources rs ON rs.id = r.id WHERE rs.namespace = '{namespace}' "
        f"AND rs.name_key = :key AND {scope} AND m.id = :member AND {where(kind)} "
        f"AND {allowed if permitted else 'FALSE'} ORDER BY rs.id LIMIT :most"
    )
