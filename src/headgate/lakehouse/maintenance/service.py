"""Start and view passes, for members who manage the settings."""

from typing import Any

from sqlalchemy.engine import RowMapping

from headgate.kit.errors import Conflict, NotFound
from headgate.lakehouse.maintenance import repository
from headgate.lakehouse.maintenance.schemas import PassDetail, PassIn, PassOut, SummaryOut, TableOut
from headgate.platform.unit_of_work.call import Call

ASKED = "maintenance.asked"
MOST_TABLES = 1000
MOST_OPEN = 10
_SHOWN = ("id", "state", "dry_run", "asked_at", "started_at", "ended_at", "tables", "looked_at", "error")
_SHOWN_OF_TABLES = ("outcome", "note", "snapshots", "files", "bytes", "small_files", "compaction")


def ask(call: Call, given: PassIn) -> str:
    """Queue a pass and return its id."""
    table = call.lookup.of("table", given.table) if given.table is not None else None
    if given.table is not None and (table is None or not call.may_see(table)):
        raise NotFound("There is no such table that you may see; name it as layer.table")
    if sum(row["state"] == "queued" for row in repository.newest(call.connection, MOST_OPEN)) == MOST_OPEN:
        raise Conflict(f"{MOST_OPEN} passes are already queued; wait until one has ended")
    result = repository.ask(call.connection, call.now, table_id=table, dry_run=given.dry_run, member=call.caller.member)
    assert result is not None  # noqa: S101 - only one that is due at some time can be there already
    about: dict[str, Any] = {"kind": "table", "resource_id": table} if table else {}
    after = {"pass": result, "dry_run": given.dry_run}
    call.record(call.event(ASKED, allowed=True, action="manage_settings", **about, after=after))
    return result


def shown(call: Call, row: RowMapping) -> PassOut:
    """A pass as an API schema."""
    summary = SummaryOut(**repository.summary(call.connection, row["id"]))
    fields = {name: row[name] for name in _SHOWN}
    return PassOut(**fields, table=row["table_id"], asked_by=row["asked_by_id"], summary=summary)


def detail(call: Call, pass_id: str) -> PassDetail:
    """A pass with its results per table; NotFound if it does not exist."""
    row = repository.one(call.connection, pass_id)
    if row is None:
        raise NotFound
    rows = repository.outcomes(call.connection, pass_id, MOST_TABLES)
    return PassDetail(**shown(call, row).model_dump(), items=[_table(row) for row in rows])


def _table(row: RowMapping) -> TableOut:
    fields = {name: row[name] for name in (*_SHOWN_OF_TABLES, "files_before", "files_after")}
    return TableOut(**fields, table=row["table_id"], name=f"{row['layer']}.{row['name']}" if row["name"] else None)
