"""Resolves a name or an id given by a person to the id of a resource."""

import re

from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds, stored_kind
from headgate.access.world_specs import GROUP
from headgate.kit.database import fetch
from headgate.kit.errors import Conflict
from headgate.kit.ids import kind_of
from headgate.kit.names import is_text, name_key, several
from headgate.platform.authorization.names import Viewer, restorable, visible

_PEOPLE = frozenset({"member", "group", "context"})


class Ambiguous(Conflict):
    """A name shared by several resources that the caller sees; use the id instead."""

    def __init__(self, kind: str, name: str, ids: list[str]) -> None:
        super().__init__(several(kind, name, ids), kind=kind, ids=ids)


def likely(text: str) -> str:
    """A guess at what a name without a kind means, as part of a sentence; the resource need not exist."""
    return f", such as table:{text}," if re.fullmatch(r"[\w-]{1,255}\.[\w-]{1,255}", text) else ""


class Lookup:
    """Finds ids among all resources, in one transaction: for the operator, for worlds and their loader.

    Names given by members are resolved by `VisibleLookup`.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def of(self, kind: str, name: str | None) -> str | None:
        """The id of a member, group, context or resource, or None."""
        kind = stored_kind(kind)
        if kind == "organization":
            return "organization"
        if not name or not is_text(name):
            return None
        if kind_of(name) == kind:
            return name if self._exists(kind, name) else None
        results = self._people(kind, name) if kind in _PEOPLE else self._named(kind, name)
        if len(results) > 1:
            raise Ambiguous(kind, name, results)
        return results[0] if results else None

    def _people(self, kind: str, name: str) -> list[str]:
        """Names of members, groups and contexts are unique and known to every member."""
        alive = " AND removed_at IS NULL" if kind == "member" else ""
        text = f"SELECT id FROM {kind}s WHERE name_key = :key{alive}"
        return [row[0] for row in fetch(self.connection, text, {"key": name_key(name)})]

    def _named(self, kind: str, name: str) -> list[str]:
        """The ids of the resources with this name."""
        if kind in {"table", "volume"}:
            return self._in_layer(kind, name)
        text = "SELECT id FROM resources WHERE namespace = :kind AND name_key = :key ORDER BY id LIMIT 10"
        return [row[0] for row in fetch(self.connection, text, {"kind": kind, "key": name_key(name)})]

    def _exists(self, kind: str, identifier: str) -> bool:
        tables = {"member": "members", "group": "groups", "context": "contexts"}
        table = tables.get(kind, "resources")
        alive = " AND removed_at IS NULL" if kind == "member" else ""
        return bool(fetch(self.connection, f"SELECT 1 FROM {table} WHERE id = :id{alive}", {"id": identifier}))

    def _in_layer(self, kind: str, name: str) -> list[str]:
        layer, _, own = name.partition(".")
        rows = fetch(
            self.connection,
            "SELECT rs.id FROM resources rs JOIN lake_items li ON li.id = rs.id WHERE rs.namespace = 'table' "
            "AND rs.scope_id = :layer AND rs.name_key = :key AND li.kind = :kind",
            {"layer": self.of("layer", layer) or "", "key": name_key(own), "kind": kind},
        )
        return [row[0] for row in rows]

    def principal(self, name: str) -> str | None:
        """The id of a member, or of a group written as group:NAME."""
        if name.startswith(GROUP):
            return self.of("group", name.removeprefix(GROUP))
        return self.of("member", name) or (name if kind_of(name) == "group" and self._exists("group", name) else None)

    def table(self, ref: str) -> tuple[str | None, str | None]:
        """The ids of the table or volume with this name and of its layer; None for missing ones."""
        layer = self.of("layer", ref.partition(".")[0])
        if "." not in ref or layer is None:
            return None, layer
        return self.of("table", ref) or self.of("volume", ref), layer


class VisibleLookup(Lookup):
    """Resolves names among the resources that a member sees, so hidden resources of the same name have no effect.

    An existing id is returned as is; the caller must still be authorized to know it.
    """

    def __init__(self, connection: Connection, viewer: Viewer) -> None:
        super().__init__(connection)
        self.viewer = viewer

    def _named(self, kind: str, name: str) -> list[str]:
        # Both queries always run, so that the response time does not reveal what exists.
        seen = visible(self.connection, self.viewer, kind, name)
        deleted = restorable(self.connection, self.viewer, kind, name) if self._can_be_restored(kind) else []
        return seen or deleted

    @staticmethod
    def _can_be_restored(kind: str) -> bool:
        return any("restore" in BOOK.actions(kind) for kind in rule_kinds(kind))

    def restorable(self, kind: str, name: str) -> str | None:
        """The id of a deleted resource with this name or id that the member may restore."""
        if kind_of(name) == kind or not is_text(name):
            return self.of(kind, name)
        results = restorable(self.connection, self.viewer, kind, name)
        if len(results) > 1:
            raise Ambiguous(kind, name, results)
        return results[0] if results else self.of(kind, name)
