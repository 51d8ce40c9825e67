"""Saved queries. A save is a job: a probe finds the tables that the query reads, then one transaction stores it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.engine import RowMapping

from headgate.kit.names import name_key
from headgate.lakehouse.catalog.models import work_load_table, work_token_table
from headgate.lakehouse.models import lake_item_table, table_ref_table
from headgate.lakehouse.saved_queries.models import saved_query_table
from headgate.lakehouse.sql.saves import NotSaved
from headgate.platform.audit.events import DENIED, Event, record
from headgate.platform.authorization import writer
from headgate.platform.authorization.models import resource_table
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.unit_of_work.call import Call

SAVED, RENAMED, DELETED = "saved_query.saved", "saved_query.renamed", "saved_query.deleted"
KIND = "saved_query"
_resources, _queries, _items, _refs = resource_table.c, saved_query_table.c, lake_item_table.c, table_ref_table.c
_loads, _works = work_load_table.c, work_token_table.c


def name_taken(connection: Connection, author: str, name: str, own: str | None = None) -> str | None:
    """The name of another saved query of the author that looks the same, or None."""
    same = (_resources.namespace == KIND, _resources.scope_id == author, _resources.name_key == name_key(name))
    return connection.execute(select(_resources.name).where(*same, _resources.id != (own or ""))).scalar()


def save_query(call: Call, row: RowMapping, tables: list[str], missing: str | None) -> str:
    """Write the saved query that a probe was for."""
    if missing is not None:
        raise NotSaved(missing)
    return save_probed(call.connection, call.now, row, tables)


def save_probed(connection: Connection, now: datetime, row: RowMapping, tables: Sequence[str]) -> str:
    """Store the probed query with the tables that it loaded; returns its id or raises NotSaved."""
    wanted: dict[str, Any] = row["save"]
    author, reads = row["member_id"], _named(connection, tables)
    if len(reads) < len(tables):
        raise NotSaved("A table of the query was deleted during the save; save the query again")
    refs = tuple(ref for ref, _, _ in reads)
    if not decide(connection, Question(author, "create", KIND, None, state={"reads": refs}), now):
        who = {"actor_id": author, "token_id": row["token_id"], "action": "create", "kind": KIND}
        raise NotSaved(_unreadable(connection, now, row["id"], author), [Event(now, DENIED, allowed=False, **who)])
    own = wanted.get("saved_query")
    taken = name_taken(connection, author, wanted["name"], own)
    if taken is not None:
        raise NotSaved(f"You already have a saved query called {taken!r}; names that look alike are the same")
    if own is None:
        with writer.new_resource(connection, KIND, wanted["name"], now, author, scope=author) as own:
            connection.execute(insert(saved_query_table).values(id=own, author_id=author, sql=row["sql"]))
            _write_reads(connection, own, reads)
    elif decide(connection, Question(author, "edit", KIND, own), now):
        connection.execute(update(saved_query_table).where(_queries.id == own).values(sql=row["sql"]))
        _write_reads(connection, own, reads)
        writer.save(connection, own, now, wanted["name"])
    else:
        raise NotSaved("The saved query was deleted during the save")
    event = Event(now, SAVED, True, author, row["token_id"], kind=KIND, resource_id=own, after={"reads": list(refs)})  # noqa: FBT003
    record(connection, [event])
    return own


def _unreadable(connection: Connection, now: datetime, statement: str, author: str) -> str:
    """The tables that the author may no longer read, by the names in the statement."""
    joined = work_load_table.join(work_token_table, _works.id == _loads.work_id)
    query = select(_loads.ref, _loads.table_id).select_from(joined).where(_works.statement_id == statement).distinct()
    rows = connection.execute(query.where(_loads.table_id.is_not(None)).order_by(_loads.ref)).all()
    lost = [ref for ref, table in rows if not decide(connection, Question(author, "execute", "table", table), now)]
    if not lost:
        return "You may not save queries any more"
    what = f"{'is no table' if len(lost) == 1 else 'are no tables'} {', '.join(lost)}"
    return f"There {what} that you may read; ask for Viewer on it, or remove it from the query"


def _named(connection: Connection, tables: Sequence[str]) -> list[tuple[str, str, str]]:
    """The (current name, id, layer id) of each table."""
    layers = resource_table.alias()
    joined = lake_item_table.join(resource_table, _resources.id == _items.id).join(
        layers, layers.c.id == _items.layer_id
    )
    query = select(layers.c.name, _resources.name, _items.id, _items.layer_id).select_from(joined)
    rows = connection.execute(query.where(_items.id.in_(tables)).order_by(_items.id)).all()
    return [(f"{layer}.{name}", item, layer_id) for layer, name, item, layer_id in rows]


def _write_reads(connection: Connection, identifier: str, reads: Sequence[tuple[str, str, str]]) -> None:
    connection.execute(delete(table_ref_table).where(_refs.resource_id == identifier))
    lines = [
        {"resource_id": identifier, "mode": "read", "ref": ref, "item_id": item, "layer_id": layer, "enabled": True}
        for ref, item, layer in reads
    ]
    if lines:
        connection.execute(insert(table_ref_table), lines)


def rows(connection: Connection, identifiers: Sequence[str]) -> dict[str, RowMapping]:
    """Saved queries by id: name, SQL and times."""
    joined = resource_table.join(saved_query_table, _queries.id == _resources.id)
    columns = (_resources.id, _resources.name, _queries.sql, _resources.created_at, _resources.updated_at)
    query = select(*columns).select_from(joined).where(_resources.id.in_(identifiers))
    return {row["id"]: row for row in connection.execute(query).mappings()}


def reads(connection: Connection, identifier: str) -> list[tuple[str, str | None]]:
    """The tables that a saved query reads, by name, with the id if the table exists."""
    query = select(_refs.ref, _refs.item_id).where(_refs.resource_id == identifier).order_by(_refs.ref)
    return [(ref, item) for ref, item in connection.execute(query)]
