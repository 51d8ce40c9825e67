"""`headgate access export`: the stored organization as a world, with what each member sees now as its assertions."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import yaml
from sqlalchemy import Connection

from headgate.access.actions import LEVEL_NAMES
from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds
from headgate.access.world_fields import FIELDS
from headgate.access.world_specs import GROUP
from headgate.kit.clock import iso
from headgate.kit.database import fetch, instant
from headgate.kit.ids import ALL_GROUP
from headgate.platform.authorization.repository import Query, page

RawWorld = dict[str, Any]
_PAGE = 200


class Exporter:
    """Reads everything once, by kind, and puts names in place of ids."""

    def __init__(self, connection: Connection, now: datetime, *, reader: str | None = None) -> None:
        """`reader` leaves out what that member may not see: the saved queries of others."""
        self.connection, self.now, self.reader = connection, now, reader
        self.names: dict[str, str] = {}
        self.members: dict[str, str] = {}
        self.tables: set[str] = set()

    def _rows(self, text: str) -> Any:
        return fetch(self.connection, text, {})

    def _grouped(self, text: str) -> dict[str, list[Any]]:
        """Rows by their first column."""
        values: dict[str, list[Any]] = {}
        for first, *rest in self._rows(text):
            values.setdefault(first, []).append(rest[0] if len(rest) == 1 else tuple(rest))
        return values

    def world(self, *, assertions: bool = True) -> RawWorld:
        """The organization as plain data, in the order of the world format."""
        organization = self._rows("SELECT plan, invites FROM organization")
        plan, invites = organization[0] if organization else ("growth", "by-role")
        contexts = dict(self._rows("SELECT id, name FROM contexts ORDER BY name_key"))
        self.names.update(contexts)
        members = self._members(contexts)
        self._name_resources()
        values: RawWorld = {
            "now": iso(self.now),
            "organization": {"plan": plan, "invites": invites},
            "contexts": list(contexts.values()),
            "groups": self._groups(),
            "members": members,
            "resources": [resource for kind in FIELDS for resource in self._resources(kind)],
            "grants": list(self._grants()),
        }
        if assertions:
            values["lists"] = list(self._lists())
        return values

    def _members(self, contexts: dict[str, str]) -> RawWorld:
        held = self._grouped("SELECT member_id, context_id FROM member_contexts")
        security = self._grouped("SELECT member_id, security_role FROM member_security_roles")
        values: RawWorld = {}
        rows = self._rows("SELECT id, name, role, scope FROM members WHERE removed_at IS NULL ORDER BY name_key")
        for identifier, name, role, scope in rows:
            self.members[identifier] = name
            values[name] = {"role": role}
            if scope != "entire":
                values[name]["scope"] = scope
            if identifier in held:
                values[name]["contexts"] = sorted(contexts[value] for value in held[identifier])
            if identifier in security:
                values[name]["security_roles"] = sorted(security[identifier])
        self.names.update(self.members)
        return values

    def _groups(self) -> RawWorld:
        inside = self._grouped("SELECT group_id, member_id FROM group_members")
        results: RawWorld = {}
        for identifier, name in self._rows("SELECT id, name FROM groups ORDER BY name_key"):
            self.names[identifier] = f"{GROUP}{name}"
            if identifier != ALL_GROUP:
                results[name] = sorted(
                    self.members[value] for value in inside.get(identifier, ()) if value in self.members
                )
        return results

    def _name_resources(self) -> None:
        """A name for each resource, made unique in its kind by the id where two scopes use the same one."""
        layers = dict(self._rows("SELECT rs.id, rs.name FROM resources rs JOIN layers ly ON ly.id = rs.id"))
        seen: set[tuple[str, str]] = set()
        for identifier, kind, scope, name, key in self._rows(
            "SELECT id, kind, scope_id, name, name_key FROM resources ORDER BY id"
        ):
            full = f"{layers[scope]}.{name}" if kind in {"table", "volume"} else name
            label = (kind, f"{scope}.{key}" if kind in {"table", "volume"} else key)
            self.names[identifier] = full if label not in seen else f"{full} ({identifier})"
            seen.add(label)
            if kind in {"table", "volume"}:
                self.tables.add(full)

    def _resources(self, kind: str) -> Iterator[RawWorld]:
        readers: dict[str, Callable[[], Iterator[tuple[str, RawWorld]]]] = {
            "storage": self._storages,
            "data_mart": self._data_marts,
            "destination": self._destinations,
            "report": self._reports,
            "data_mart_trigger": lambda: self._triggers("data_mart"),
            "report_trigger": lambda: self._triggers("report"),
            "pipeline_trigger": lambda: self._triggers("pipeline"),
            "run": self._runs,
            "layer": lambda: self._bare("layers"),
            "table": lambda: self._bare("lake_items WHERE kind = 'table'"),
            "volume": lambda: self._bare("lake_items WHERE kind = 'volume'"),
            "pipeline": self._pipelines,
            "integration": self._integrations,
            "saved_query": self._saved_queries,
            "space": self._spaces,
            "gateway": self._gateways,
            "connection": self._connections,
            "project": self._projects,
        }
        for identifier, fields in readers[kind]():
            kept = {name: value for name, value in fields.items() if value not in (None, [], False, {})}
            yield {"kind": kind, "name": self.names[identifier], **kept}

    def _name(self, identifier: str | None) -> str | None:
        return self.names.get(identifier) if identifier else None

    def _people(self, identifiers: list[str]) -> list[str]:
        return sorted(self.members[identifier] for identifier in identifiers if identifier in self.members)

    def _owned(self) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        owners = self._grouped("SELECT resource_id, ownership, member_id FROM owners")
        return owners, self._grouped("SELECT resource_id, context_id FROM resource_contexts")

    def _storages(self) -> Iterator[tuple[str, RawWorld]]:
        owners, contexts = self._owned()
        for identifier, use, maintenance in self._rows(
            "SELECT id, shared_for_use, shared_for_maintenance FROM storages ORDER BY id"
        ):
            yield (
                identifier,
                {
                    "owners": self._people([value for _, value in owners.get(identifier, ())]),
                    "shared_for_use": bool(use),
                    "shared_for_maintenance": bool(maintenance),
                    "contexts": sorted(self.names[value] for value in contexts.get(identifier, ())),
                },
            )

    def _destinations(self) -> Iterator[tuple[str, RawWorld]]:
        owners, contexts = self._owned()
        for identifier, use, maintenance, deleted in self._rows(
            "SELECT id, shared_for_use, shared_for_maintenance, deleted_at FROM destinations ORDER BY id"
        ):
            yield (
                identifier,
                {
                    "owners": self._people([value for _, value in owners.get(identifier, ())]),
                    "shared_for_use": bool(use),
                    "shared_for_maintenance": bool(maintenance),
                    "contexts": sorted(self.names[value] for value in contexts.get(identifier, ())),
                    "deleted": deleted is not None,
                },
            )

    def _data_marts(self) -> Iterator[tuple[str, RawWorld]]:
        owners, contexts = self._owned()
        refs = self._refs()
        for identifier, storage, published, use, maintenance, acts_for in self._rows(
            "SELECT id, storage_id, published, shared_for_use, shared_for_maintenance, acts_for_id "
            "FROM data_marts ORDER BY id"
        ):
            mine = owners.get(identifier, ())
            yield (
                identifier,
                {
                    "storage": self._name(storage),
                    "technical_owners": self._people([value for sort, value in mine if sort == "technical"]),
                    "business_owners": self._people([value for sort, value in mine if sort == "business"]),
                    "published": bool(published),
                    "shared_for_reporting": bool(use),
                    "shared_for_maintenance": bool(maintenance),
                    "contexts": sorted(self.names[value] for value in contexts.get(identifier, ())),
                    "reads": refs(identifier, "read"),
                    "acts_for": self.members.get(acts_for),
                },
            )

    def _reports(self) -> Iterator[tuple[str, RawWorld]]:
        owners, _ = self._owned()
        for identifier, mart, destination, acts_for in self._rows(
            "SELECT id, data_mart_id, destination_id, acts_for_id FROM reports ORDER BY id"
        ):
            yield (
                identifier,
                {
                    "data_mart": self._name(mart),
                    "destination": self._name(destination),
                    "owners": self._people([value for _, value in owners.get(identifier, ())]),
                    "acts_for": self.members.get(acts_for),
                },
            )

    def _triggers(self, parent: str) -> Iterator[tuple[str, RawWorld]]:
        for identifier, of, author in self._rows(
            f"SELECT id, parent_id, author_id FROM triggers WHERE kind = '{parent}_trigger' ORDER BY id"
        ):
            yield identifier, {parent: self._name(of), "author": self.members.get(author)}

    def _runs(self) -> Iterator[tuple[str, RawWorld]]:
        for identifier, parent, kind in self._rows(
            "SELECT ru.id, ru.parent_id, rs.kind FROM runs ru JOIN resources rs ON rs.id = ru.parent_id ORDER BY ru.id"
        ):
            yield identifier, {kind: self._name(parent)}

    def _bare(self, source: str) -> Iterator[tuple[str, RawWorld]]:
        for (identifier,) in self._rows(f"SELECT id FROM {source} ORDER BY id"):
            yield identifier, {}

    def _refs(self) -> Callable[[str, str], list[str]]:
        values = self._grouped("SELECT resource_id, mode, ref, item_id FROM table_refs ORDER BY resource_id, ref")

        def of(identifier: str, mode: str) -> list[str]:
            return [self._ref(ref, item) for value, ref, item in values.get(identifier, ()) if value == mode]

        return of

    def _ref(self, ref: str, item: str | None) -> str:
        """A reference goes by id: a table renamed since has its new name; a new one with the old name is another."""
        if item:
            return self.names[item]
        return f"{ref}__gone" if ref in self.tables else ref

    def _pipelines(self) -> Iterator[tuple[str, RawWorld]]:
        refs = self._refs()
        disabled = self._grouped("SELECT resource_id, ref, item_id FROM table_refs WHERE NOT enabled")
        connections = self._grouped("SELECT pipeline_id, connection_id FROM pipeline_connections")
        for identifier, kind, project, layer, destination, acts_for, owner in self._rows(
            "SELECT id, pipeline_kind, project_id, output_layer_id, destination_id, acts_for_id, owner_id "
            "FROM pipelines ORDER BY id"
        ):
            yield (
                identifier,
                {
                    "pipeline_kind": kind,
                    "project": self._name(project),
                    "output_layer": self._name(layer),
                    "reads": refs(identifier, "read"),
                    "writes": refs(identifier, "write"),
                    "disabled": sorted({self._ref(*value) for value in disabled.get(identifier, ())}),
                    "connections": sorted(self.names[value] for value in connections.get(identifier, ())),
                    "destination": self._name(destination),
                    "acts_for": self.members.get(acts_for),
                    "owner": self.members.get(owner) if project else None,
                },
            )

    def _integrations(self) -> Iterator[tuple[str, RawWorld]]:
        refs = self._refs()
        for (identifier,) in self._rows("SELECT id FROM integrations ORDER BY id"):
            yield identifier, {"reads": refs(identifier, "read")}

    def _saved_queries(self) -> Iterator[tuple[str, RawWorld]]:
        refs = self._refs()
        for identifier, author in self._rows("SELECT id, author_id FROM saved_queries ORDER BY id"):
            if self.reader in (None, author):
                yield identifier, {"author": self.members.get(author), "reads": refs(identifier, "read")}

    def _spaces(self) -> Iterator[tuple[str, RawWorld]]:
        roles = self._grouped("SELECT space_id, principal_id, space_role FROM space_members")
        for identifier, owner, personal in self._rows("SELECT id, owner_id, personal FROM spaces ORDER BY id"):
            inside: RawWorld = {}
            for principal, role in sorted(roles.get(identifier, ())):
                inside.setdefault(self.names[principal], []).append(role)
            yield identifier, {"owner": self.members.get(owner), "personal": bool(personal), "members": inside}

    def _gateways(self) -> Iterator[tuple[str, RawWorld]]:
        for identifier, space in self._rows("SELECT id, space_id FROM gateways ORDER BY id"):
            yield identifier, {"space": self._name(space)}

    def _connections(self) -> Iterator[tuple[str, RawWorld]]:
        for identifier, space, owner, gateway, allowed_by in self._rows(
            "SELECT id, space_id, owner_id, gateway_id, code_allowed_by_id FROM connections ORDER BY id"
        ):
            yield (
                identifier,
                {
                    "space": self._name(space),
                    "owner": self.members.get(owner),
                    "gateway": self._name(gateway),
                    "allows_code": owner in self.members and owner == allowed_by,
                },
            )

    def _projects(self) -> Iterator[tuple[str, RawWorld]]:
        for identifier, space, owner, target in self._rows(
            "SELECT id, space_id, owner_id, target_id FROM projects ORDER BY id"
        ):
            fields = {"space": self._name(space), "owner": self.members.get(owner), "target": self._name(target)}
            yield identifier, fields

    def _grants(self) -> Iterator[RawWorld]:
        rows = self._rows(
            "SELECT g.grantee_id, g.resource_id, rs.kind, g.level, g.expires_at FROM grants g "
            "JOIN resources rs ON rs.id = g.resource_id ORDER BY g.id"
        )
        for grantee, resource, kind, level, expires in rows:
            grant = {"to": self.names[grantee], "resource": f"{kind}:{self.names[resource]}"}
            grant["level"] = LEVEL_NAMES[level]
            yield {**grant, "expires": iso(instant(expires))} if expires else grant

    def _lists(self) -> Iterator[RawWorld]:
        for identifier, name in self.members.items():
            for kind in FIELDS:
                if kind == "saved_query" and self.reader not in (None, identifier):
                    continue
                for action in sorted({BOOK.tables[kind].listed_by for kind in rule_kinds(kind)}):
                    expect = [self.names[value] for value in self._listed(identifier, kind, action)]
                    yield {"member": name, "action": action, "kind": kind, "expect": expect}

    def _listed(self, member: str, kind: str, action: str) -> Iterator[str]:
        query = Query(member, kind, self.now, limit=_PAGE, action=action)
        while True:
            rows, after = page(self.connection, query)
            yield from (row.id for row in rows)
            if after is None:
                return
            query = replace(query, after=after)


def as_yaml(world: RawWorld) -> str:
    """A world as text: sections as blocks, each element in one line."""
    parts = []
    for name, value in world.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = "".join(f"  - {_flow(value)}\n" for value in value)
            parts.append(f"{name}:\n{lines}")
        elif name == "members":
            lines = "".join(f"  {_flow(member)}: {_flow(fields)}\n" for member, fields in value.items())
            parts.append(f"{name}:\n{lines}" if lines else f"{name}: {{}}\n")
        else:
            parts.append(f"{name}: {_flow(value)}\n")
    return "".join(parts)


def _flow(value: Any) -> str:
    text = yaml.dump(
        value, Dumper=yaml.SafeDumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1_000_000
    )
    return text.removesuffix("...\n").rstrip("\n")
