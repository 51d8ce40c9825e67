"""Writes a world into a database, through the same tables that the product uses."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, delete, insert

from headgate.access.kinds import stored_kind
from headgate.access.world_specs import ALL, GROUP, ResourceSpec, World
from headgate.kit.ids import ALL_GROUP, new_id
from headgate.kit.names import name_key
from headgate.lakehouse.integrations.models import integration_table
from headgate.lakehouse.models import lake_item_table, layer_table, table_ref_table
from headgate.lakehouse.saved_queries.models import saved_query_table
from headgate.marts.models import data_mart_table, destination_table, report_table, storage_table
from headgate.organization.contexts.models import context_table
from headgate.organization.groups.models import group_table
from headgate.pipelines.models import pipeline_table
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.triggers.models import trigger_table
from headgate.platform.authorization.fact_tables import (
    grant_table,
    group_member_table,
    member_context_table,
    member_security_role_table,
    owner_table,
    resource_context_table,
    space_member_table,
)
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.authorization.models import resource_table
from headgate.platform.directory.models import member_table, organization_table, principal_table
from headgate.spaces.connections.models import connection_table, pipeline_connection_table
from headgate.spaces.spaces.models import gateway_table, project_table, space_table

_ORDER: tuple[Table, ...] = (
    organization_table,
    principal_table,
    member_table,
    member_security_role_table,
    group_table,
    group_member_table,
    context_table,
    member_context_table,
    resource_table,
    owner_table,
    resource_context_table,
    storage_table,
    data_mart_table,
    destination_table,
    report_table,
    layer_table,
    lake_item_table,
    space_table,
    space_member_table,
    gateway_table,
    connection_table,
    project_table,
    pipeline_table,
    pipeline_connection_table,
    table_ref_table,
    integration_table,
    saved_query_table,
    trigger_table,
    run_table,
    grant_table,
)


@dataclass(slots=True)
class Names:
    """The ids that names of a world got."""

    ids: dict[tuple[str, str], str] = field(default_factory=dict)

    def of(self, kind: str, name: str | None) -> str | None:
        """The id of what a kind and name stand for, or None."""
        if kind == "organization":
            return "organization"
        return self.ids.get((stored_kind(kind), name_key(name))) if name else None

    def principal(self, name: str) -> str | None:
        """The id of a member, or of a group written group:NAME."""
        if name.startswith(GROUP):
            return self.of("group", name.removeprefix(GROUP))
        return self.of("member", name)

    def table(self, ref: str) -> tuple[str | None, str | None]:
        """The ids of the table or volume that a name stands for, and of its layer; None where there is none."""
        layer = self.of("layer", ref.partition(".")[0])
        return (self.of("table", ref) or self.of("volume", ref) if "." in ref else None), layer


def load(connection: Connection, world: World, now: datetime, *, name: str = "Headgate") -> Names:
    """Write the world into a database without members; the ids that its names got."""
    connection.execute(delete(organization_table))
    connection.execute(delete(group_table).where(group_table.c.id == ALL_GROUP))
    connection.execute(delete(principal_table).where(principal_table.c.id == ALL_GROUP))
    connection.execute(delete(resource_table).where(resource_table.c.kind == "layer"))
    loader = _Loader(world, now)
    loader.people(name)
    loader.resources()
    loader.grants()
    for table in _ORDER:
        if rows := loader.rows.get(table):
            connection.execute(insert(table), rows)
    rebuild(connection)
    return loader.names


class _Loader:
    def __init__(self, world: World, now: datetime) -> None:
        self.world, self.now = world, now
        self.names = Names()
        self.rows: dict[Table, list[dict[str, Any]]] = {}

    def add(self, table: Table, **values: Any) -> None:
        self.rows.setdefault(table, []).append(values)

    def new(self, kind: str, name: str) -> str:
        identifier = ALL_GROUP if (kind, name) == ("group", ALL) else new_id(kind)
        self.names.ids[kind, name_key(name)] = identifier
        return identifier

    def people(self, organization: str) -> None:
        world = self.world
        self.add(organization_table, id=1, name=organization, plan=world.plan, invites=world.invites)
        for name in world.contexts:
            key = name_key(name)
            self.add(context_table, id=self.new("context", name), name=name, name_key=key, created_at=self.now)
        for spec in world.members.values():
            member = self.new("member", spec.name)
            self.add(principal_table, id=member)
            self.add(
                member_table,
                id=member,
                name=spec.name,
                name_key=name_key(spec.name),
                role=spec.role,
                scope=spec.scope,
                created_at=self.now,
                removed_at=None,
            )
            for context in spec.contexts:
                self.add(member_context_table, member_id=member, context_id=self.names.of("context", context))
            for role in spec.security_roles:
                self.add(member_security_role_table, member_id=member, security_role=role)
        for name, members in {ALL: [], **world.groups}.items():
            group = self.new("group", name)
            self.add(principal_table, id=group)
            self.add(group_table, id=group, name=name, name_key=name_key(name), created_at=self.now)
            for member_name in members:
                self.add(group_member_table, group_id=group, member_id=self.names.of("member", member_name))

    def resources(self) -> None:
        specs = [*self._undeclared_layers(), *self.world.resources]
        for spec in specs:
            self.new(spec.kind, spec.name)
        for spec in specs:
            self._resource(spec)

    def _undeclared_layers(self) -> Iterable[ResourceSpec]:
        """The layer of a declared table exists, whether it is declared or not."""
        declared = {spec.name for spec in self.world.resources if spec.kind == "layer"}
        tables = (spec.name for spec in self.world.resources if spec.kind in {"table", "volume"})
        used = dict.fromkeys(name.partition(".")[0] for name in tables)
        return [ResourceSpec("layer", name) for name in used if name not in declared]

    def _resource(self, spec: ResourceSpec) -> None:
        identifier = self.names.of(spec.kind, spec.name)
        own_name = spec.name.partition(".")[2] if spec.kind in {"table", "volume"} else spec.name
        self.add(
            resource_table,
            id=identifier,
            kind=spec.kind,
            namespace="table" if spec.kind == "volume" else spec.kind,
            scope_id=self._scope(spec),
            name=own_name,
            name_key=name_key(own_name),
            created_at=self.now,
            updated_at=self.now,
            created_by_id=self._creator(spec),
        )
        getattr(self, f"_{spec.kind}")(identifier, spec.fields)

    def _scope(self, spec: ResourceSpec) -> str:
        """Within what its name is unique, as where the product creates one."""
        if spec.kind in {"table", "volume"}:
            return self.names.of("layer", spec.name.partition(".")[0]) or ""
        parents = {"pipeline_trigger": ("pipeline", "pipeline"), "saved_query": ("member", "author")}
        kind, attribute = parents.get(spec.kind, (spec.kind, ""))
        own = "" if spec.kind == "layer" else self.names.of(spec.kind, spec.name) or ""
        return self.names.of(kind, spec.fields.get(attribute)) or own

    def _creator(self, spec: ResourceSpec) -> str | None:
        """A world does not say who created what; its first owner, author or saver is the best guess."""
        fields = ("owners", "technical_owners", "owner", "author", "acts_for")
        for value in (spec.fields.get(name) for name in fields):
            if value:
                return self.names.of("member", value if isinstance(value, str) else value[0])
        return None

    def _owned(self, identifier: str, fields: dict[str, Any]) -> None:
        sorts = {"owners": "owner", "technical_owners": "technical", "business_owners": "business"}
        for name, ownership in sorts.items():
            for member in fields.get(name, ()):
                member_id = self.names.of("member", member)
                self.add(owner_table, resource_id=identifier, member_id=member_id, ownership=ownership)
        for context in fields.get("contexts", ()):
            context_id = self.names.of("context", context)
            self.add(resource_context_table, resource_id=identifier, context_id=context_id)

    def _toggles(self, fields: dict[str, Any]) -> dict[str, bool]:
        return {
            "shared_for_use": fields.get("shared_for_use", fields.get("shared_for_reporting", False)),
            "shared_for_maintenance": fields.get("shared_for_maintenance", False),
        }

    def _refs(self, identifier: str, fields: dict[str, Any]) -> None:
        disabled = set(fields.get("disabled", ()))
        for mode, name in (("read", "reads"), ("write", "writes")):
            for ref in fields.get(name, ()):
                item, layer = self.names.table(ref)
                self.add(
                    table_ref_table,
                    resource_id=identifier,
                    mode=mode,
                    ref=ref,
                    item_id=item,
                    layer_id=layer,
                    enabled=ref not in disabled,
                )

    def _storage(self, identifier: str, fields: dict[str, Any]) -> None:
        self._owned(identifier, fields)
        self.add(storage_table, id=identifier, **self._toggles(fields))

    def _data_mart(self, identifier: str, fields: dict[str, Any]) -> None:
        self._owned(identifier, fields)
        self._refs(identifier, fields)
        self.add(
            data_mart_table,
            id=identifier,
            storage_id=self.names.of("storage", fields.get("storage")),
            published=fields.get("published", False),
            acts_for_id=self.names.of("member", fields.get("acts_for")),
            **self._toggles(fields),
        )

    def _destination(self, identifier: str, fields: dict[str, Any]) -> None:
        self._owned(identifier, fields)
        deleted_at = self.now if fields.get("deleted") else None
        self.add(destination_table, id=identifier, deleted_at=deleted_at, **self._toggles(fields))

    def _report(self, identifier: str, fields: dict[str, Any]) -> None:
        self._owned(identifier, fields)
        self.add(
            report_table,
            id=identifier,
            data_mart_id=self.names.of("data_mart", fields["data_mart"]),
            destination_id=self.names.of("destination", fields.get("destination")),
            acts_for_id=self.names.of("member", fields.get("acts_for")),
        )

    def _trigger(self, kind: str, parent: str, identifier: str, fields: dict[str, Any]) -> None:
        self.add(
            trigger_table,
            id=identifier,
            kind=kind,
            parent_id=self.names.of(parent, fields[parent]),
            author_id=self.names.of("member", fields.get("author")),
        )

    def _data_mart_trigger(self, identifier: str, fields: dict[str, Any]) -> None:
        self._trigger("data_mart_trigger", "data_mart", identifier, fields)

    def _report_trigger(self, identifier: str, fields: dict[str, Any]) -> None:
        self._trigger("report_trigger", "report", identifier, fields)

    def _pipeline_trigger(self, identifier: str, fields: dict[str, Any]) -> None:
        self._trigger("pipeline_trigger", "pipeline", identifier, fields)

    def _run(self, identifier: str, fields: dict[str, Any]) -> None:
        parent, name = next(iter(fields.items()))
        self.add(run_table, id=identifier, parent_id=self.names.of(parent, name), state="succeeded")

    def _layer(self, identifier: str, fields: dict[str, Any]) -> None:
        self.add(layer_table, id=identifier)

    def _item(self, kind: str, identifier: str) -> None:
        resource = self.rows[resource_table][-1]
        self.add(lake_item_table, id=identifier, kind=kind, layer_id=resource["scope_id"])

    def _table(self, identifier: str, fields: dict[str, Any]) -> None:
        self._item("table", identifier)

    def _volume(self, identifier: str, fields: dict[str, Any]) -> None:
        self._item("volume", identifier)

    def _pipeline(self, identifier: str, fields: dict[str, Any]) -> None:
        self._refs(identifier, fields)
        self.add(
            pipeline_table,
            id=identifier,
            pipeline_kind=fields.get("pipeline_kind", "source"),
            project_id=self.names.of("project", fields.get("project")),
            output_layer_id=self.names.of("layer", fields.get("output_layer")),
            destination_id=self.names.of("destination", fields.get("destination")),
            acts_for_id=self.names.of("member", fields.get("acts_for")),
            owner_id=self.names.of("member", fields.get("owner")),
        )
        for connection in fields.get("connections", ()):
            connection_id = self.names.of("connection", connection)
            self.add(pipeline_connection_table, pipeline_id=identifier, connection_id=connection_id)

    def _integration(self, identifier: str, fields: dict[str, Any]) -> None:
        self._refs(identifier, fields)
        self.add(integration_table, id=identifier)

    def _saved_query(self, identifier: str, fields: dict[str, Any]) -> None:
        self._refs(identifier, fields)
        self.add(saved_query_table, id=identifier, author_id=self.names.of("member", fields.get("author")))

    def _space(self, identifier: str, fields: dict[str, Any]) -> None:
        owner = self.names.of("member", fields.get("owner"))
        self.add(space_table, id=identifier, owner_id=owner, personal=fields.get("personal", False))
        for principal, roles in fields.get("members", {}).items():
            for role in roles:
                principal_id = self.names.principal(principal)
                self.add(space_member_table, space_id=identifier, principal_id=principal_id, space_role=role)

    def _gateway(self, identifier: str, fields: dict[str, Any]) -> None:
        self.add(gateway_table, id=identifier, space_id=self.names.of("space", fields["space"]))

    def _connection(self, identifier: str, fields: dict[str, Any]) -> None:
        owner = self.names.of("member", fields.get("owner"))
        self.add(
            connection_table,
            id=identifier,
            space_id=self.names.of("space", fields["space"]),
            owner_id=owner,
            gateway_id=self.names.of("gateway", fields.get("gateway")),
            code_allowed_by_id=owner if fields.get("allows_code") else None,
        )

    def _project(self, identifier: str, fields: dict[str, Any]) -> None:
        self.add(
            project_table,
            id=identifier,
            space_id=self.names.of("space", fields["space"]),
            owner_id=self.names.of("member", fields.get("owner")),
            target_id=self.names.of("connection", fields.get("target")),
        )

    def grants(self) -> None:
        for grant in self.world.grants:
            self.add(
                grant_table,
                id=new_id("grant"),
                resource_id=self.names.of(grant.kind, grant.name),
                grantee_id=self.names.principal(grant.to),
                level=grant.level,
                expires_at=grant.expires,
                created_at=self.now,
                created_by_id=None,
            )
