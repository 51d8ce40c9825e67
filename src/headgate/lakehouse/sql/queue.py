"""The life of a statement between a member and a worker: claimed, kept alive, finished, given back, or lost.

Each function works in one write transaction. A claim counts the fence up; whatever comes with an older one is refused.
The work token lives from claim to end, so that nothing is committed for a statement that no longer runs.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update
from sqlalchemy.engine import RowMapping

from headgate.kit.errors import Conflict
from headgate.kit.leases import is_over
from headgate.lakehouse.catalog.declared_tables import ANALYSED
from headgate.lakehouse.catalog.errors import NotWritten
from headgate.lakehouse.catalog.models import commit_table, work_load_table, work_token_table
from headgate.lakehouse.catalog.work_tokens import end_work, open_work
from headgate.lakehouse.saved_queries import service as saving
from headgate.lakehouse.sql.fair_share import WorkerSlots, choose
from headgate.lakehouse.sql.models import statement_read_table, statement_table
from headgate.organization.members.repository import address
from headgate.organization.tokens.models import token_table
from headgate.platform.audit.events import DENIED, Event, record
from headgate.platform.directory.models import member_table
from headgate.settings.settings import Settings

LEASE = timedelta(seconds=20)
SPARE = timedelta(seconds=30)
"""How long a work token outlives the time limit: the worker interrupts before, the token is the last word."""

RETURNS = 10
"""How often a statement is begun at most."""

ENDED = ("succeeded", "failed", "cancelled")
LOST = "The worker that ran this statement was lost; nothing was written. Run it again"
LOST_AFTER_COMMIT = (
    "The worker that ran this statement was lost after it had written: look at the table's history before you run it "
    "again"
)
MISSING = "TABLE_OR_VIEW_NOT_FOUND"
REFUSED = "REFUSED"
"""The code of a statement that the guard in Spark refused."""
CREDENTIALS_ENDED = "The token by which this statement was submitted has ended"

_rows = statement_table.c
_loads, _works = work_load_table.c, work_token_table.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """A statement for a worker, with the token for its work, which nobody keeps."""

    id: str
    fence: int
    purpose: str
    sql: str
    token: str
    user: str
    """Whom it runs as: the member's mail address."""
    max_rows: int
    more: tuple[str, ...] = ()
    """Of a probe: what else it analyses."""
    tells: bool = False
    """Of a probe: whether it tells what its SQL would give, before it analyses the rest."""
    windowed: bool = False
    """Of a probe: whether its SQL may name the ends of a window."""
    isolated: bool = False
    """Whether it runs on a Spark of its own, since one was lost under it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a statement, as its worker says."""

    state: str
    """succeeded, failed, lost (a fault of ours, to be tried again) or returned (the worker stops)."""
    columns: list[dict[str, Any]] | None = None
    rows: int | None = None
    size: int | None = None
    pages: int | None = None
    truncated: bool | None = None
    first_page: bytes | None = None
    error_code: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker says of a statement that it runs."""

    id: str
    fence: int
    progress: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker must do: interrupt these, and forget those, which are no longer its own."""

    cancel: list[str]
    lost: list[str]


def claim(connection: Connection, now: datetime, settings: Settings, room: WorkerSlots) -> list[Claimed]:
    """Take those of the waiting statements whose turn it is, up to a worker's free slots."""
    chosen = choose(connection, room)
    # Another worker may have chosen the same: what it has, or is about to have, is left to it.
    waiting = select(statement_table).where(_rows.id.in_(chosen), _rows.state == "queued")
    rows = connection.execute(waiting.with_for_update(skip_locked=True)).mappings().all()
    result = sorted(rows, key=lambda row: chosen.index(row["id"]))
    claimed = []
    for row in result:
        if not _is_known(connection, row, now):
            _end(connection, now, row["id"], "failed", "TOKEN_ENDED", CREDENTIALS_ENDED)
            continue
        claimed.append(_take(connection, now, settings, room.worker, row))
    return claimed


def _is_known(connection: Connection, row: RowMapping, now: datetime) -> bool:
    """Whether who submitted it is still a member, and the token by which they did still lives."""
    members, tokens = member_table.c, token_table.c
    here = select(members.id).where(members.id == row["member_id"], members.removed_at.is_(None))
    if connection.execute(here).first() is None:
        return False
    if row["token_id"] is None:
        return True
    lives = tokens.expires_at.is_(None) | (tokens.expires_at > now)
    query = select(tokens.id).where(tokens.id == row["token_id"], tokens.revoked_at.is_(None), lives)
    return connection.execute(query).first() is not None


def _take(connection: Connection, now: datetime, settings: Settings, worker: str, row: RowMapping) -> Claimed:
    fence = row["fence"] + 1
    values = {"state": "running", "fence": fence, "worker_id": worker, "lease_until": now + LEASE, "started_at": now}
    connection.execute(update(statement_table).where(_rows.id == row["id"]).values(**values, progress=None))
    _, secret = open_work(
        connection,
        now,
        purpose=row["purpose"],
        member=row["member_id"],
        token_id=row["token_id"],
        statement_id=row["id"],
        fence=fence,
        expires=now + timedelta(seconds=settings.sql.statement_seconds) + SPARE,
    )
    save = row["save"] or {}
    told = {
        "more": tuple(save.get("more", ())),
        "tells": bool(save.get("tells")),
        "windowed": save.get("windowed", False),
        "isolated": row["isolated"],
    }
    user = address(connection, row["member_id"])
    return Claimed(row["id"], fence, row["purpose"], row["sql"], secret, user, row["max_rows"], **told)


def beat(connection: Connection, now: datetime, worker: str, beats: Sequence[Beat]) -> Orders:
    """Keep what a worker runs alive, and say what it must interrupt."""
    query = select(_rows.id, _rows.fence, _rows.state).where(
        _rows.worker_id == worker, _rows.state.in_(("running", "cancelling"))
    )
    own = {row.id: row for row in connection.execute(query)}
    told = {beat.id: beat for beat in beats if beat.id in own and own[beat.id].fence == beat.fence}
    for entry in told.values():
        values: dict[str, Any] = {"lease_until": now + LEASE}
        if entry.progress is not None:
            values["progress"] = entry.progress
        connection.execute(update(statement_table).where(_rows.id == entry.id).values(values))
    if told:
        # Only a clock that was set forward makes a token of a statement end before its worker ends the statement.
        early = (_works.statement_id.in_(told), _works.ended_at.is_(None), _works.expires_at < now + SPARE)
        connection.execute(update(work_token_table).where(*early).values(expires_at=now + 2 * SPARE))
    cancel = sorted(row.id for row in own.values() if row.state == "cancelling")
    return Orders(cancel, sorted(beat.id for beat in beats if beat.id not in told))


def owned(connection: Connection, statement: str, worker: str, fence: int) -> RowMapping:
    """The row of a statement that a worker runs with this fence; Conflict for any other."""
    row = connection.execute(select(statement_table).where(_rows.id == statement)).mappings().one_or_none()
    is_owned = (
        row is not None
        and row["worker_id"] == worker
        and row["fence"] == fence
        and row["state"] in {"running", "cancelling"}
    )
    if row is None or not is_owned:
        raise Conflict("This statement is no longer this worker's; drop it")
    return row


def note_analysed(connection: Connection, row: RowMapping, told: dict[str, Any]) -> None:
    """Write down what the SQL of a probe would give, for what is analysed next and for what is saved in the end."""
    if not (row["save"] or {}).get("tells"):
        raise Conflict("This statement is no probe that tells its columns")
    save = {**row["save"], ANALYSED: told}
    connection.execute(update(statement_table).where(_rows.id == row["id"]).values(save=save))


Save = Callable[[Connection, datetime, RowMapping, list[str], str | None], str]
"""Writes what a probe was for: takes its row, the tables that it has loaded, and what it did not find; gives the id."""


def save_query(connection: Connection, now: datetime, row: RowMapping, tables: list[str], missing: str | None) -> str:
    """Write the saved query that a probe was for."""
    if missing is not None:
        raise saving.NotSaved(missing)
    return saving.save_probed(connection, now, row, tables)


def finish(
    connection: Connection,
    now: datetime,
    settings: Settings,
    row: RowMapping,
    outcome: Outcome,
    save: Save = save_query,
) -> str:
    """End a statement with what came of it, or put it back to be begun again; its state then."""
    if outcome.state in {"lost", "returned"}:
        return give_back(connection, now, row, outcome)
    _end_works(connection, now, row["id"])
    if row["state"] == "cancelling" and not has_committed(connection, row["id"]):
        return _end(connection, now, row["id"], "cancelled")
    if outcome.error_code == MISSING:
        outcome = _of_missing(connection, row["id"], outcome)
    if row["purpose"] == "probe" and outcome.error_code in {None, MISSING}:
        return _finish_probe(connection, now, row, outcome, save)
    if outcome.state != "succeeded":
        _note_refusal(connection, now, row, outcome)
        return _end(connection, now, row["id"], "failed", outcome.error_code or "FAILED", outcome.error)
    _note_reads(connection, row["id"])
    values: dict[str, Any] = {
        "columns": outcome.columns,
        "rows": outcome.rows,
        "bytes": outcome.size,
        "pages": outcome.pages,
        "truncated": outcome.truncated,
        "first_page": outcome.first_page,
        "results_expire_at": now + timedelta(hours=settings.sql.results_hours),
    }
    return _end(connection, now, row["id"], "succeeded", **values)


def _of_missing(connection: Connection, statement: str, outcome: Outcome) -> Outcome:
    """What came of a statement for which a table was not there: one that its member sees may only have no data yet."""
    joined = work_load_table.join(work_token_table, _works.id == _loads.work_id)
    empty = _loads.table_id.is_(None) & _loads.layer_id.is_not(None)
    query = select(_loads.ref).select_from(joined).where(_works.statement_id == statement, empty)
    for ref in connection.execute(query.order_by(_loads.ref)).scalars():
        if re.search(rf"(?<![\w.]){re.escape(ref)}(?!\w)", outcome.error or "", re.IGNORECASE):
            return replace(outcome, error=NotWritten(ref).detail)
    return outcome


def _note_refusal(connection: Connection, now: datetime, row: RowMapping, outcome: Outcome) -> None:
    """Write down what the guard refused: the catalog, which writes down its own refusals, was never asked."""
    if outcome.error_code != REFUSED:
        return
    what = {"code": REFUSED, "why": (outcome.error or "")[:500]}
    who = {"actor_id": row["member_id"], "token_id": row["token_id"]}
    about = {"action": "execute", "kind": "statement", "resource_id": row["id"]}
    record(connection, [Event(now, DENIED, allowed=False, **who, **about, after=what)])


def _finish_probe(connection: Connection, now: datetime, row: RowMapping, outcome: Outcome, save: Save) -> str:
    """Save what the probe was for, whose reads are known now, in this transaction, or say why not."""
    missing = (outcome.error or MISSING) if outcome.error_code == MISSING else None
    try:
        with connection.begin_nested():
            saved = save(connection, now, row, loaded(connection, row["id"]), missing)
    except saving.NotSaved as error:
        record(connection, list(error.denials))
        code = MISSING if missing is not None and str(error) == missing else "NOT_SAVED"
        return _end(connection, now, row["id"], "failed", code, str(error))
    return _end(connection, now, row["id"], "succeeded", saved_query_id=saved)


def loaded(connection: Connection, statement: str) -> list[str]:
    """The ids of the tables that a statement has loaded."""
    joined = work_load_table.join(work_token_table, _works.id == _loads.work_id)
    query = (
        select(_loads.table_id)
        .select_from(joined)
        .where(_works.statement_id == statement, _loads.table_id.is_not(None))
    )
    return sorted(set(connection.execute(query).scalars()))


def _note_reads(connection: Connection, statement: str) -> None:
    rows = [{"statement_id": statement, "table_id": table} for table in loaded(connection, statement)]
    if rows:
        connection.execute(insert(statement_read_table), rows)


def has_committed(connection: Connection, statement: str) -> bool:
    """Whether anything was committed for a statement."""
    joined = commit_table.join(work_token_table, _works.id == commit_table.c.work_id)
    query = select(commit_table.c.id).select_from(joined).where(_works.statement_id == statement)
    return connection.execute(query.limit(1)).first() is not None


def _writes(connection: Connection, statement: str) -> list[dict[str, Any]]:
    """What was committed for a statement, and how many rows that added and removed, as far as the ledger knows."""
    row, joined = commit_table.c, commit_table.join(work_token_table, _works.id == commit_table.c.work_id)
    query = (
        select(row.table_id, row.operation, row.added_rows, row.deleted_rows)
        .select_from(joined)
        .where(_works.statement_id == statement)
        .order_by(row.at, row.id)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def give_back(connection: Connection, now: datetime, row: RowMapping, outcome: Outcome) -> str:
    """Have a statement begun again, if it has certainly written nothing and was not begun too often; its state.

    What ran when Spark died may be what killed it: it is begun again alone, where another death takes nobody along and
    shows whose it was.
    """
    _end_works(connection, now, row["id"])
    has_written = has_committed(connection, row["id"])
    if row["state"] == "cancelling" and not has_written:
        return _end(connection, now, row["id"], "cancelled")
    is_lost = outcome.state == "lost"
    if has_written or (is_lost and row["isolated"]) or row["fence"] >= RETURNS:
        message = LOST_AFTER_COMMIT if has_written else (outcome.error or LOST)
        return _end(connection, now, row["id"], "failed", outcome.error_code or "WORKER_LOST", message)
    values = {"state": "queued", "worker_id": None, "lease_until": None, "started_at": None, "progress": None}
    isolated = row["isolated"] or is_lost
    connection.execute(update(statement_table).where(_rows.id == row["id"]).values(**values, isolated=isolated))
    return "queued"


def _end_works(connection: Connection, now: datetime, statement: str) -> None:
    """End the tokens by which a statement works, so that nothing is committed for it from here on."""
    alive = select(_works.id).where(_works.statement_id == statement, _works.ended_at.is_(None))
    for work in connection.execute(alive).scalars().all():
        end_work(connection, work, now)


def _end(
    connection: Connection,
    now: datetime,
    statement: str,
    state: str,
    code: str | None = None,
    message: str | None = None,
    **values: Any,
) -> str:
    fixed = {"state": state, "finished_at": now, "lease_until": None, "error_code": code and code[:120]}
    fixed["writes"] = _writes(connection, statement)
    text = message and message[:20_000]
    connection.execute(update(statement_table).where(_rows.id == statement).values(**fixed, error=text, **values))
    return state


def cancel(connection: Connection, now: datetime, row: RowMapping) -> str:
    """Cancel a statement: at once if no worker has it; else its token ends now, and the worker is told. Its state."""
    if row["state"] == "queued":
        connection.execute(update(statement_table).where(_rows.id == row["id"]).values(cancelled_at=now))
        return _end(connection, now, row["id"], "cancelled")
    if row["state"] == "running":
        _end_works(connection, now, row["id"])
        values = {"state": "cancelling", "cancelled_at": now}
        connection.execute(update(statement_table).where(_rows.id == row["id"]).values(values))
        return "cancelling"
    return str(row["state"])


def _over(now: datetime) -> ColumnElement[bool]:
    return _rows.state.in_(("running", "cancelling")) & is_over(_rows.lease_until, now, LEASE)


def sweep(connection: Connection, now: datetime) -> Iterable[str]:
    """Take back what dead workers held; the ids."""
    return _take_back(connection, now, _over(now))


def release(connection: Connection, now: datetime, worker: str) -> list[str]:
    """Take back what a worker held that is certainly dead; the ids."""
    return _take_back(connection, now, _rows.state.in_(("running", "cancelling")) & (_rows.worker_id == worker))


def _take_back(connection: Connection, now: datetime, which: ColumnElement[bool]) -> list[str]:
    rows = connection.execute(select(statement_table).where(which)).mappings().all()
    for row in rows:
        give_back(connection, now, row, Outcome("lost"))
    return [row["id"] for row in rows]


def has_expired(connection: Connection, now: datetime) -> bool:
    """Whether there is anything to sweep."""
    return connection.execute(select(_rows.id).where(_over(now)).limit(1)).first() is not None
