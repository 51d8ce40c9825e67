"""From what a person writes, a name or an id, to the id of what exists."""

import re

from sqlalchemy import Connection

from headgate.access.kinds import stored_kind
from headgate.access.world_specs import GROUP
from headgate.kit.db import fetch
from headgate.kit.ids import kind_of
from headgate.kit.names import is_text, name_key


class Ambiguous(LookupError):
    """A name that several resources of a kind have; the id tells them apart."""


def likely(text: str) -> str:
    """What was probably meant by a name without its kind, as a part of a sentence; it need not exist."""
    return f", such as table:{text}," if re.fullmatch(r"[\w-]{1,255}\.[\w-]{1,255}", text) else ""


class Lookup:
    """Finds ids in one transaction. It does not decide what its caller may know of."""

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
        if kind in {"table", "volume"}:
            return self._in_layer(kind, name)
        if kind in {"member", "group", "context"}:
            alive = " AND removed_at IS NULL" if kind == "member" else ""
            rows = fetch(
                self.connection,
                f"SELECT id FROM {kind}s WHERE name_key = :key{alive}",
                {"key": name_key(name)},
            )
        else:
            rows = fetch(
                self.connection,
                "SELECT id FROM resources WHERE namespace = :kind AND name_key = :key LIMIT 2",
                {"kind": kind, "key": name_key(name)},
            )
        if len(rows) > 1:
            raise Ambiguous(f"several of kind {kind} are called {name!r}; give the id")
        return rows[0][0] if rows else None

    def _exists(self, kind: str, identifier: str) -> bool:
        tables = {"member": "members", "group": "groups", "context": "contexts"}
        table = tables.get(kind, "resources")
        alive = " AND removed_at IS NULL" if kind == "member" else ""
        return bool(fetch(self.connection, f"SELECT 1 FROM {table} WHERE id = :id{alive}", {"id": identifier}))

    def _in_layer(self, kind: str, name: str) -> str | None:
        layer, _, own = name.partition(".")
        rows = fetch(
            self.connection,
            "SELECT rs.id FROM resources rs JOIN lake_items li ON li.id = rs.id WHERE rs.namespace = 'table' "
            "AND rs.scope_id = :layer AND rs.name_key = :key AND li.kind = :kind",
            {"layer": self.of("layer", layer) or "", "key": name_key(own), "kind": kind},
        )
        return rows[0][0] if rows else None

    def principal(self, name: str) -> str | None:
        """The id of a member, or of a group written group:NAME."""
        if name.startswith(GROUP):
            return self.of("group", name.removeprefix(GROUP))
        return self.of("member", name) or (name if kind_of(name) == "group" and self._exists("group", name) else None)

    def table(self, ref: str) -> tuple[str | None, str | None]:
        """The ids of the table or volume that a name stands for, and of its layer; None where there is none."""
        layer = self.of("layer", ref.partition(".")[0])
        if "." not in ref or layer is None:
            return None, layer
        return self.of("table", ref) or self.of("volume", ref), layer
