"""Facts loaded from the database for decisions in memory: explanations, drafts, and states after a save."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from headgate.access import facts
from headgate.access.facts import Grant, Item, Layer, Stream, Subject, Thing
from headgate.kit.database import among, fetch, instant, many
from headgate.kit.ids import kind_of

T = TypeVar("T", bound=Thing)
_TRIGGERS = {
    "data_mart_trigger": facts.DataMartTrigger,
    "report_trigger": facts.ReportTrigger,
    "pipeline_trigger": facts.PipelineTrigger,
}


class Facts:
    """The facts at one moment; each is read once."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self.connection, self.now = connection, now
        self._things: dict[str, Thing | None] = {}
        self._subjects: dict[str, Subject | None] = {}
        self._organization: facts.Organization | None = None

    def _rows(self, text: str, **parameters: Any) -> Any:
        return fetch(self.connection, text, parameters)

    def _row(self, table: str, columns: str, identifier: str) -> Any:
        result = self._rows(
            f"SELECT rs.name, {columns} FROM {table} t JOIN resources rs ON rs.id = t.id WHERE t.id = :id",
            id=identifier,
        )
        return result[0] if result else None

    # People

    def organization(self) -> facts.Organization:
        """The organization."""
        if self._organization is None:
            rows = self._rows("SELECT plan, invites FROM organization")
            plan, invites = rows[0] if rows else ("growth", "admins-only")
            self._organization = facts.Organization(id="organization", plan=plan, invites=invites)
        return self._organization

    def subject(self, member: str | None) -> Subject | None:
        """A member as the subject of a decision; None for a removed or unknown one."""
        if member is None:
            return None
        if member not in self._subjects:
            self._subjects[member] = self._load_subject(member)
        return self._subjects[member]

    def _load_subject(self, member: str) -> Subject | None:
        rows = self._rows("SELECT role, scope, name FROM members WHERE id = :id AND removed_at IS NULL", id=member)
        if not rows:
            return None
        role, scope, name = rows[0]
        return Subject(
            member,
            role,
            self.now,
            plan=self.organization().plan,
            entire=scope == "entire",
            contexts=self._set("SELECT context_id FROM member_contexts WHERE member_id = :id", member),
            groups=self._set("SELECT group_id FROM group_members WHERE member_id = :id", member),
            security_roles=self._set("SELECT security_role FROM member_security_roles WHERE member_id = :id", member),
            name=name,
        )

    def _set(self, text: str, identifier: str) -> frozenset[str]:
        return frozenset(row[0] for row in self._rows(text, id=identifier))

    def _member(self, identifier: str) -> facts.MemberThing | None:
        rows = self._rows("SELECT role, name FROM members WHERE id = :id AND removed_at IS NULL", id=identifier)
        if not rows:
            return None
        others = "SELECT 1 FROM members WHERE role = 'owner' AND removed_at IS NULL AND id <> :id"
        last = rows[0][0] == "owner" and not self._rows(others, id=identifier)
        return facts.MemberThing(id=identifier, name=rows[0][1], role=rows[0][0], last_owner=last)

    # Resources

    def thing(self, identifier: str | None) -> Any:
        """A resource by id, with everything it depends on; None if it does not exist."""
        if identifier is None:
            return None
        if identifier == "organization":
            return self.organization()
        if identifier not in self._things:
            kind = kind_of(identifier)
            load = getattr(self, f"_{kind}", None) if kind else None
            if kind in _TRIGGERS:
                self._things[identifier] = self._trigger(kind, identifier)
            else:
                self._things[identifier] = load(identifier) if load else None
        return self._things[identifier]

    def _owners(self, identifier: str) -> Mapping[str, frozenset[str]]:
        values: dict[str, set[str]] = {"owner": set(), "technical": set(), "business": set()}
        for member, ownership in self._rows(
            "SELECT member_id, ownership FROM owners WHERE resource_id = :id", id=identifier
        ):
            values[ownership].add(member)
        return {ownership: frozenset(members) for ownership, members in values.items()}

    def _contexts(self, identifier: str) -> frozenset[str]:
        return self._set("SELECT context_id FROM resource_contexts WHERE resource_id = :id", identifier)

    def _storage(self, identifier: str) -> facts.Storage | None:
        row = self._row("storages", "t.shared_for_use, t.shared_for_maintenance", identifier)
        return row and facts.Storage(
            id=identifier,
            name=row[0],
            shared_for_use=bool(row[1]),
            shared_for_maintenance=bool(row[2]),
            owners=self._owners(identifier)["owner"],
            contexts=self._contexts(identifier),
        )

    def _destination(self, identifier: str) -> facts.Destination | None:
        row = self._row("destinations", "t.shared_for_use, t.shared_for_maintenance, t.deleted_at", identifier)
        return row and facts.Destination(
            id=identifier,
            name=row[0],
            shared_for_use=bool(row[1]),
            shared_for_maintenance=bool(row[2]),
            deleted=row[3] is not None,
            owners=self._owners(identifier)["owner"],
            contexts=self._contexts(identifier),
        )

    def _data_mart(self, identifier: str) -> facts.DataMart | None:
        row = self._row(
            "data_marts",
            "t.shared_for_use, t.shared_for_maintenance, t.published, t.storage_id, t.acts_for_id",
            identifier,
        )
        if row is None:
            return None
        owners = self._owners(identifier)
        return facts.DataMart(
            id=identifier,
            name=row[0],
            shared_for_use=bool(row[1]),
            shared_for_maintenance=bool(row[2]),
            published=bool(row[3]),
            storage=self.thing(row[4]),
            acts_for=self.subject(row[5]),
            technical_owners=owners["technical"],
            business_owners=owners["business"],
            contexts=self._contexts(identifier),
            reads=tuple(stream.item for stream in self._streams(identifier)),
        )

    def _report(self, identifier: str) -> facts.Report | None:
        row = self._row("reports", "t.data_mart_id, t.destination_id, t.acts_for_id", identifier)
        return row and facts.Report(
            id=identifier,
            name=row[0],
            owners=self._owners(identifier)["owner"],
            data_mart=self.thing(row[1]),
            destination=self.thing(row[2]),
            acts_for=self.subject(row[3]),
        )

    def _trigger(self, kind: str, identifier: str) -> Thing | None:
        row = self._row("triggers", "t.parent_id, t.author_id", identifier)
        return row and _TRIGGERS[kind](
            id=identifier, name=row[0], parent=self.thing(row[1]), author=self.subject(row[2])
        )

    def _run(self, identifier: str) -> facts.Run | None:
        row = self._row("runs", "t.parent_id", identifier)
        return row and facts.Run(id=identifier, name=row[0], parent=self.thing(row[1]))

    # Lakehouse

    def _grants(self, where: str, **parameters: Any) -> tuple[Grant, ...]:
        rows = self._rows(f"SELECT g.grantee_id, g.level, g.expires_at FROM grants g {where}", **parameters)
        return tuple(Grant(row[0], row[1], instant(row[2]) if row[2] else None) for row in rows)

    def _layer(self, identifier: str) -> Layer | None:
        row = self._row("layers", "t.id", identifier)
        inner = "JOIN lake_items li ON li.id = g.resource_id WHERE li.layer_id = :id"
        return row and Layer(
            id=identifier,
            name=row[0],
            grants=self._grants("WHERE g.resource_id = :id", id=identifier),
            inner=self._grants(inner, id=identifier),
        )

    def _table(self, identifier: str) -> Item | None:
        row = self._row("lake_items", "t.layer_id, t.kind", identifier)
        if row is None:
            return None
        layer = self.thing(row[1])
        return (facts.Table if row[2] == "table" else facts.Volume)(
            id=identifier,
            name=f"{layer.name}.{row[0]}",
            layer=layer,
            grants=self._grants("WHERE g.resource_id = :id", id=identifier),
        )

    _volume = _table

    def missing(self, ref: str, layer: str | None) -> Item:
        """The name of a missing table in a layer that may exist, or of a layer itself."""
        return Item(id=None if "." in ref else layer, name=ref, layer=self.thing(layer))

    def _streams(self, identifier: str) -> tuple[Stream, ...]:
        rows = self._rows(
            "SELECT ref, mode, item_id, layer_id, enabled FROM table_refs WHERE resource_id = :id ORDER BY mode, ref",
            id=identifier,
        )
        self._load_items([row[2] for row in rows if row[2]])
        return tuple(
            Stream(self.thing(item) if item else self.missing(ref, layer), mode == "write", bool(enabled))
            for ref, mode, item, layer, enabled in rows
        )

    def _load_items(self, identifiers: list[str]) -> None:
        """Load many tables and volumes at once, so that a pipeline with many streams stays fast."""
        wanted = [identifier for identifier in identifiers if identifier not in self._things]
        if not wanted:
            return
        bound = {"ids": many(self.connection, wanted)}
        grants: dict[str, list[Grant]] = {}
        for resource, grantee, level, expires in self._rows(
            "SELECT resource_id, grantee_id, level, expires_at FROM grants "
            f"WHERE {among(self.connection, 'resource_id', 'ids')}",
            **bound,
        ):
            grant = Grant(grantee, level, instant(expires) if expires else None)
            grants.setdefault(resource, []).append(grant)
        for identifier, name, kind, layer in self._rows(
            "SELECT li.id, rs.name, li.kind, li.layer_id FROM lake_items li JOIN resources rs ON rs.id = li.id "
            f"WHERE {among(self.connection, 'li.id', 'ids')}",
            **bound,
        ):
            result = self.thing(layer)
            self._things[identifier] = (facts.Table if kind == "table" else facts.Volume)(
                id=identifier,
                name=f"{result.name}.{name}",
                layer=result,
                grants=tuple(grants.get(identifier, ())),
            )

    def _pipeline(self, identifier: str) -> Thing | None:
        row = self._row(
            "pipelines",
            "t.pipeline_kind, t.project_id, t.output_layer_id, t.destination_id, t.acts_for_id, t.owner_id",
            identifier,
        )
        if row is None:
            return None
        name, pipeline_kind, project, output_layer, destination, acts_for, owner = row
        connections = self._rows(
            "SELECT connection_id FROM pipeline_connections WHERE pipeline_id = :id", id=identifier
        )
        common: dict[str, Any] = {
            "id": identifier,
            "name": name,
            "pipeline_kind": pipeline_kind,
            "streams": self._streams(identifier),
            "output_layer": self.thing(output_layer),
            "destination": self.thing(destination),
            "acts_for": self.subject(acts_for),
            "connections": tuple(self.thing(connection[0]) for connection in connections),
        }
        if project is None:
            return facts.Pipeline(**common)
        return facts.Task(project=self.thing(project), owner=owner, **common)

    def _integration(self, identifier: str) -> facts.Integration | None:
        row = self._row("integrations", "t.id", identifier)
        items = tuple(stream.item for stream in self._streams(identifier))
        return row and facts.Integration(id=identifier, name=row[0], counted=items)

    def _saved_query(self, identifier: str) -> facts.SavedQuery | None:
        row = self._row("saved_queries", "t.author_id", identifier)
        items = tuple(stream.item for stream in self._streams(identifier))
        return row and facts.SavedQuery(id=identifier, name=row[0], author=row[1], reads=items)

    # Spaces

    def _space(self, identifier: str) -> facts.Space | None:
        row = self._row("spaces", "t.owner_id, t.personal", identifier)
        if row is None:
            return None
        roles: dict[str, set[str]] = {}
        for principal, role in self._rows(
            "SELECT principal_id, space_role FROM space_members WHERE space_id = :id", id=identifier
        ):
            roles.setdefault(principal, set()).add(role)
        return facts.Space(
            id=identifier,
            name=row[0],
            owner=row[1],
            personal=bool(row[2]),
            roles={principal: frozenset(held) for principal, held in roles.items()},
        )

    def _gateway(self, identifier: str) -> facts.Gateway | None:
        row = self._row("gateways", "t.space_id", identifier)
        return row and facts.Gateway(id=identifier, name=row[0], space=self.thing(row[1]))

    def _connection(self, identifier: str) -> facts.Connection | None:
        row = self._row("connections", "t.space_id, t.owner_id, t.gateway_id, t.code_allowed_by_id", identifier)
        return row and facts.Connection(
            id=identifier,
            name=row[0],
            space=self.thing(row[1]),
            owner=row[2],
            gateway=self.thing(row[3]),
            allows_code=row[4] is not None and row[4] == row[2],
        )

    def _project(self, identifier: str) -> facts.Project | None:
        row = self._row("projects", "t.space_id, t.owner_id, t.target_id", identifier)
        return row and facts.Project(
            id=identifier,
            name=row[0],
            space=self.thing(row[1]),
            owner=self.subject(row[2]),
            target=self.thing(row[3]),
        )
