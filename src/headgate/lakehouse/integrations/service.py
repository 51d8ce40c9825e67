"""Creates integrations, issues their tokens and reports their usage."""

from datetime import datetime, timedelta

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import RowMapping

from headgate.kit.errors import Invalid, NotFound
from headgate.kit.ids import kind_of
from headgate.lakehouse.integrations.models import integration_table, integration_token_table
from headgate.lakehouse.integrations.schemas import (
    IntegrationChange,
    IntegrationIn,
    IntegrationItem,
    IntegrationOut,
    TableUseOut,
)
from headgate.lakehouse.models import table_ref_table
from headgate.organization.tokens import service as tokens
from headgate.organization.tokens.models import token_table
from headgate.platform.audit.events import READ
from headgate.platform.audit.models import audit_event_table
from headgate.platform.authorization import writer
from headgate.platform.authorization.schemas import Resource
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.creation import require_new

KIND = "integration"
MADE, CHANGED, DELETED, RENEWED = (
    "integration.made",
    "integration.changed",
    "integration.deleted",
    "integration.token_renewed",
)
SINCE = timedelta(days=30)
_integrations, _refs, _tokens, _events = integration_table.c, table_ref_table.c, token_table.c, audit_event_table.c
_own = integration_token_table.c


def make(call: Call, body: IntegrationIn) -> tuple[str, str]:
    """Create an integration with a token that has its creator's rights on its tables; returns its id and the token's
    secret.
    """
    require_new(call, "add", KIND, {"reads": tuple(body.tables)})
    results = _tables(call, body.tables)
    with writer.new_resource(call.connection, KIND, body.name, call.now, call.caller.member) as identifier:
        call.connection.execute(insert(integration_table).values(id=identifier, description=body.description))
        _list(call, identifier, results)
    secret = _token(call, identifier, body.name, [item for _, item, _ in results], body.expires)
    _tell(call, MADE, "add", identifier, tables=list(body.tables))
    return identifier, secret


def _tables(call: Call, names: list[str]) -> list[tuple[str, str, str]]:
    """The (name, id, layer id) of each table; only tables that the caller may see."""
    result = []
    for name in dict.fromkeys(names):
        item, layer = call.lookup.table(name)
        if item is None or layer is None or kind_of(item) != "table" or not call.may_see(item):
            raise Invalid(f"body.tables: there is no table {name} that you may see")
        result.append((name, item, layer))
    return result


def _list(call: Call, identifier: str, result: list[tuple[str, str, str]]) -> None:
    call.connection.execute(delete(table_ref_table).where(_refs.resource_id == identifier))
    rows = [
        {"resource_id": identifier, "mode": "read", "ref": ref, "item_id": item, "layer_id": layer, "enabled": True}
        for ref, item, layer in result
    ]
    call.connection.execute(insert(table_ref_table), rows)


def _token(call: Call, identifier: str, name: str, tables: list[str], expires: datetime | None) -> str:
    """Issue a read-only token for these tables and revoke the previous one."""
    if expires is not None and (expires.tzinfo is None or expires <= call.now):
        raise Invalid("body.expires: give a time in the future with a time zone, as 2027-01-31T00:00:00Z")
    before = _row(call, identifier)["token_id"]
    made = tokens.create(
        call.connection,
        call.caller.member,
        name,
        call.now,
        read_only=True,
        only=tables,
        expires=expires,
        by=call.caller.member,
        origin=call.caller.origin,
    )
    values = update(integration_table).where(_integrations.id == identifier).values(token_id=made.id)
    call.connection.execute(values)
    kept = insert(integration_token_table).values(token_id=made.id, integration_id=identifier)
    call.connection.execute(kept)
    _end(call, before)
    return made.secret


def _end(call: Call, token: str | None) -> None:
    lives = select(_tokens.id).where(_tokens.id == token, _tokens.revoked_at.is_(None))
    if token is not None and call.connection.execute(lives).first() is not None:
        tokens.revoke(call.connection, token, call.now, by=call.caller.member)


def renew(call: Call, identifier: str, expires: datetime | None) -> str:
    """Issue another token, with the caller's rights."""
    tables = [row["item_id"] for row in _listed(call, identifier) if row["item_id"]]
    secret = _token(call, identifier, presentation.one(call, identifier).name, tables, expires)
    _tell(call, RENEWED, "edit", identifier)
    return secret


def change(call: Call, identifier: str, body: IntegrationChange) -> None:
    """Change the name, the description, or the readable tables; the token changes immediately."""
    if body.tables is not None:
        results = _tables(call, body.tables)
        _list(call, identifier, results)
        tokens.renarrow(call.connection, _row(call, identifier)["token_id"], [item for _, item, _ in results])
    if body.description is not None:
        values = update(integration_table).where(_integrations.id == identifier).values(description=body.description)
        call.connection.execute(values)
    writer.save(call.connection, identifier, call.now, body.name)
    _tell(call, CHANGED, "edit", identifier, **body.model_dump(exclude_unset=True))


def remove(call: Call, identifier: str) -> str:
    """Delete an integration and revoke its token; returns its name."""
    name = presentation.one(call, identifier).name
    _end(call, _row(call, identifier)["token_id"])
    writer.remove(call.connection, [identifier])
    _tell(call, DELETED, "delete", identifier, name=name)
    return name


def _tell(call: Call, event: str, action: str, identifier: str, **after: object) -> None:
    call.record(call.event(event, allowed=True, action=action, kind=KIND, resource_id=identifier, after=after))


def _row(call: Call, identifier: str) -> RowMapping:
    rows = call.connection.execute(select(integration_table).where(_integrations.id == identifier)).mappings()
    row = rows.one_or_none()
    if row is None:
        raise NotFound
    return row


def _listed(call: Call, identifier: str) -> list[RowMapping]:
    query = select(table_ref_table).where(_refs.resource_id == identifier).order_by(_refs.ref)
    return list(call.connection.execute(query).mappings())


def items(call: Call, page: list[Resource]) -> list[IntegrationItem]:
    """The integrations of a list, with one additional query."""
    joined = integration_token_table.join(token_table, _tokens.id == _own.token_id)
    query = select(_own.integration_id, func.max(_tokens.last_used_at)).select_from(joined)
    mine = _own.integration_id.in_([resource.id for resource in page])
    rows = call.connection.execute(query.where(mine).group_by(_own.integration_id))
    used = {row[0]: row[1] for row in rows}
    return [
        IntegrationItem(
            id=resource.id,
            name=resource.name,
            created_at=resource.created_at,
            updated_at=resource.updated_at,
            last_used_at=used.get(resource.id),
            allowed=list(resource.allowed),
        )
        for resource in page
    ]


def shown(call: Call, identifier: str) -> IntegrationOut:
    """An integration with its recent usage."""
    [item] = items(call, [presentation.one(call, identifier)])
    row = _row(call, identifier)
    lives = select(token_table).where(_tokens.id == row["token_id"], _tokens.revoked_at.is_(None))
    token = call.connection.execute(lives).mappings().one_or_none()
    listed = _listed(call, identifier)
    seen = presentation.allowed(call, (row["item_id"] for row in listed))
    return IntegrationOut(
        **item.model_dump(),
        description=row["description"] or "",
        tables=[row["ref"] for row in listed if row["item_id"] in seen],
        acts_for=token["member_id"] if token else None,
        token=token["id"] if token else None,
        token_expires_at=token["expires_at"] if token else None,
        uses=_uses(call, identifier, {row["item_id"]: row["ref"] for row in listed if row["item_id"] in seen}),
    )


def _uses(call: Call, identifier: str, names: dict[str, str]) -> list[TableUseOut]:
    """Reads from the audit log by its current and former tokens."""
    mine = select(_own.token_id).where(_own.integration_id == identifier).scalar_subquery()
    query = (
        select(_events.resource_id, func.count(), func.max(_events.at))
        .where(_events.token_id.in_(mine), _events.event == READ, _events.at > call.now - SINCE)
        .where(_events.resource_id.in_(names))
        .group_by(_events.resource_id)
    )
    rows = call.connection.execute(query)
    table_uses = [TableUseOut(table=names[table], reads=reads, last_at=last) for table, reads, last in rows if table]
    return sorted(table_uses, key=lambda table_use: table_use.table)
