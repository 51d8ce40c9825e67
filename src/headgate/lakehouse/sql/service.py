"""Statements of a member: submitted within limits, visible only to the member, with access to the rows checked at each
read.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import RowMapping

from headgate.access.decision import Decision
from headgate.contracts.jobs import ProgressOut
from headgate.contracts.sql_script import split
from headgate.contracts.statements import ColumnOut
from headgate.kit.errors import Conflict, Denied, Expired, NotFound, TooManyAttempts
from headgate.kit.ids import new_id
from headgate.lakehouse.items.service import full_name
from headgate.lakehouse.sql import repository, results
from headgate.lakehouse.sql.job import STATEMENTS
from headgate.lakehouse.sql.models import statement_table
from headgate.lakehouse.sql.schemas import StatementError, StatementItem, StatementOut, WriteOut
from headgate.platform.jobs import queue
from headgate.platform.jobs.models import ACTIVE, WAITING
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.locations import result_page
from headgate.warehouse.store import Missing

SUBMITTED, CANCELLED, FORGOTTEN = "statement.submitted", "statement.cancelled", "statement.deleted"
KIND = "statement"
EXPIRED = "The rows of this statement have expired (`sql.results_hours`); run it again"


def submit(call: Call, sql: str, max_rows: int | None, *, save: dict[str, Any] | None = None) -> str:
    """Submit SQL as the caller, with the caller's rights at execution time; returns the id. With `save`, only analyse
    it.

    Raises Invalid for a SET statement that is not allowed.
    """
    split(sql)
    limit = call.settings.sql.concurrent
    waiting = repository.active(call.connection, call.caller.member)
    if waiting >= limit:
        raise TooManyAttempts(
            f"You have {waiting} queued or running statements, and the limit is {limit} (`sql.concurrent`); wait "
            "until one has ended, or cancel one",
            seconds=2,
        )
    most = call.settings.sql.max_rows
    identifier = new_id(KIND)
    row = {
        "id": identifier,
        "member_id": call.caller.member,
        "token_id": call.caller.token,
        "purpose": "statement" if save is None else "probe",
        "sql": sql,
        "state": WAITING,
        "queued_at": call.now,
        "max_rows": min(max_rows or most, most),
        "save": save,
        "origin_id": call.caller.origin.id,
        "tainted": call.caller.tainted,
    }
    call.connection.execute(insert(statement_table).values(row))
    call.record(call.event(SUBMITTED, allowed=True, kind=KIND, resource_id=identifier))
    return identifier


def own(call: Call, statement: str) -> RowMapping:
    """A statement of the caller; otherwise NotFound. A token narrowed to listed tables sees only its own statements."""
    row = repository.own(call.connection, call.caller.member, statement)
    if row is None or (_is_listed(call) and row["token_id"] != call.caller.token):
        call.hide("see", KIND, statement)
    return row


def _is_listed(call: Call) -> bool:
    return not call.caller.narrowing.reaches_id("see", KIND, None, None)


def history(call: Call, *, is_active: bool, before: str | None, limit: int) -> list[StatementItem]:
    """A page of the caller's statements, newest first."""
    token = call.caller.token if _is_listed(call) else None
    rows = repository.page(
        call.connection, call.caller.member, token=token, is_active=is_active, before=before, limit=limit
    )
    return [StatementItem(**_common(row)) for row in rows]


def _common(row: RowMapping) -> dict[str, Any]:
    names = ("id", "sql", "purpose", "state", "started_at", "rows", "bytes", "pages")
    more = ("truncated", "max_rows", "results_expire_at")
    error = StatementError(code=row["error_code"], message=row["error"] or "") if row["error_code"] else None
    values = {name: row[name] for name in (*names, *more)}
    times = {"submitted_at": row["queued_at"], "finished_at": row["ended_at"]}
    return {**values, **times, "error": error, "saved_query": row["saved_query_id"]}


def shown(call: Call, row: RowMapping) -> StatementOut:
    """A statement, with the first page of rows if the caller may still read the tables behind them."""
    columns, data, is_withheld = None, None, False
    if row["state"] == "succeeded" and row["first_page"] is not None:
        is_withheld = not all(_judged(call, row["id"]))
        if not is_withheld:
            columns = [ColumnOut(**value) for value in row["columns"] or ()]
            data = results.rows(results.open_page(row["first_page"]))
    is_active = row["state"] in ACTIVE
    progress = ProgressOut(**row["progress"]) if row["progress"] and is_active else None
    values = _common(row)
    return StatementOut(
        **values, progress=progress, columns=columns, data=data, writes=_writes(call, row), withheld=is_withheld
    )


def _writes(call: Call, row: RowMapping) -> list[WriteOut]:
    """The commits of a statement, with current table names if the caller may see them."""
    result = []
    for value in row["writes"] or ():
        table = value["table_id"]
        name = full_name(call.connection, table) if call.may_see(table) else None
        result.append(WriteOut(table=name, **{key: value[key] for key in ("operation", "added_rows", "deleted_rows")}))
    return result


def _judged(call: Call, statement: str) -> Iterator[Decision]:
    """The decision for each table that a statement read; reads and refusals are audited."""
    for table in repository.tables_read(call.connection, statement):
        decision = call.decide("execute", "table", table)
        if decision:
            call.note_data("execute", "table", table, decision, statement=statement)
        else:
            call.note_denial("execute", "table", table)
        yield decision


def require_rows(call: Call, statement: str) -> RowMapping:
    """A statement with rows that the caller may read now; otherwise raises the refusal."""
    row = own(call, statement)
    if row["state"] != "succeeded":
        raise Conflict(f"This statement has no rows; its state is {row['state']}")
    if row["first_page"] is None:
        raise Expired(EXPIRED)
    for table in repository.tables_read(call.connection, statement):
        decision = call.require("execute", "table", table)
        call.note_data("execute", "table", table, decision, statement=statement)
    return row


def read_page(stages: Stages, statement: str, number: int) -> tuple[bytes, int]:
    """A result page as Arrow, authorized now, and the number of pages."""
    row = stages.read(lambda call: require_rows(call, statement))
    if number >= row["pages"]:
        raise NotFound(f"There is no page {number}; the last page is {row['pages'] - 1}")
    if number == 0:
        return row["first_page"], row["pages"]
    try:
        return stages.services.store.read(result_page(f"{statement}/{row['fence']}", number)), row["pages"]
    except Missing:
        raise Expired(EXPIRED) from None


def cancel(call: Call, statement: str) -> str:
    """Cancel a statement of the caller; returns its state. A finished statement is not changed."""
    row = own(call, statement)
    state = queue.cancel(STATEMENTS, call.connection, call.now, row)
    if state != row["state"]:
        call.record(call.event(CANCELLED, allowed=True, kind=KIND, resource_id=statement))
    return state


def require_forgettable(call: Call, statement: str) -> None:
    """Refuse to delete a running statement, or one that this token may not delete."""
    row = own(call, statement)
    if not call.caller.narrowing.permits_action("delete", call.now):
        call.note_denial("delete", KIND, statement)
        raise Denied("This token is read-only; use another token to delete statements")
    if row["state"] in ACTIVE:
        raise Conflict("This statement has not ended; cancel it first")


def forget(call: Call, statement: str) -> None:
    """Delete a statement from its member's history."""
    require_forgettable(call, statement)
    repository.remove(call.connection, statement)
    call.record(call.event(FORGOTTEN, allowed=True, kind=KIND, resource_id=statement))
