"""Statements as jobs: claimed in fair order, run with their member's current rights, results stored.

The work token is valid from claim to end, so nothing is committed for a statement that has ended.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.statements import StatementPayload, StatementResult
from headgate.kit.errors import Conflict, Invalid
from headgate.lakehouse.catalog.declared_tables import ANALYSED
from headgate.lakehouse.catalog.errors import NotWritten
from headgate.lakehouse.catalog.models import commit_table, work_load_table, work_token_table
from headgate.lakehouse.catalog.work_tokens import end_work, open_work
from headgate.lakehouse.sql import fair_share
from headgate.lakehouse.sql.models import statement_read_table, statement_table
from headgate.lakehouse.sql.saves import NotSaved, Save
from headgate.organization.members.repository import address
from headgate.organization.tokens.models import token_table
from headgate.platform.audit.events import DENIED, Event, record
from headgate.platform.directory.models import member_table
from headgate.platform.jobs import queue
from headgate.platform.jobs.kinds import Begun, CannotBegin, JobKind, Outcome, WorkerSlots, result_bytes
from headgate.platform.jobs.models import ACTIVE
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.settings.settings import Settings

LEASE = timedelta(seconds=20)
SPARE = timedelta(seconds=30)
"""Extra lifetime of a work token beyond the time limit. The worker interrupts earlier; the token is the hard limit."""

RETURNS = 10
"""Maximum attempts for a statement whose worker died."""

LOST = "The worker that ran this statement was lost; nothing was written. Run it again"
LOST_AFTER_COMMIT = (
    "The worker that ran this statement was lost after it had written: look at the table's history before you run it "
    "again"
)
MISSING = "TABLE_OR_VIEW_NOT_FOUND"
REFUSED = "REFUSED"
"""The error code of a statement refused by the guard in Spark."""
CREDENTIALS_ENDED = "The token by which this statement was submitted has ended"

_rows = statement_table.c
_loads, _works = work_load_table.c, work_token_table.c


class Statements(JobKind):
    """Members' SQL. Statements that were running when Spark died run once more in isolation; another crash identifies
    the cause.
    """

    name = "statement"
    table = statement_table
    result = StatementResult
    max_attempts = RETURNS
    lost = ("WORKER_LOST", LOST)

    def __init__(self) -> None:
        self.savers: dict[str, Save] = {}
        """How to save each kind of subject, by the name of its field in `save`."""

    def lease(self, settings: Settings) -> timedelta:
        return LEASE

    def waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> Sequence[str]:
        return fair_share.choose(connection, slots)

    def is_waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> bool:
        return fair_share.is_waiting(connection, slots)

    def begin(self, call: Call, row: RowMapping) -> Begun:
        if not _is_known(call.connection, row, call.now):
            raise CannotBegin("failed", "TOKEN_ENDED", CREDENTIALS_ENDED)
        sql = call.settings.sql
        _, secret = open_work(
            call.connection,
            call.now,
            purpose=row["purpose"],
            member=row["member_id"],
            token_id=row["token_id"],
            statement_id=row["id"],
            fence=row["fence"],
            expires=call.now + timedelta(seconds=sql.statement_seconds) + SPARE,
        )
        save = row["save"] or {}
        payload = StatementPayload(
            purpose=row["purpose"],
            sql=row["sql"],
            token=secret,
            user=address(call.connection, row["member_id"]),
            max_rows=row["max_rows"],
            max_bytes=sql.max_bytes,
            page_bytes=result_bytes(call.settings),
            more=save.get("more", []),
            tells=bool(save.get("tells")),
            windowed=save.get("windowed", False),
        )
        return Begun(payload, sql.statement_seconds)

    def finish(self, call: Call, row: RowMapping, outcome: Outcome) -> str:
        statement = row["id"]
        queue_end = (self, call.connection, call.now, statement)
        self.revoke(call.connection, call.now, statement)
        if outcome.error_code == MISSING:
            outcome = _of_missing(call.connection, statement, outcome)
        if row["purpose"] == "probe" and outcome.error_code in {None, MISSING}:
            return self._finish_probe(call, row, outcome)
        if outcome.state != "succeeded":
            _note_refusal(call.connection, call.now, row, outcome)
            return queue.end(*queue_end, "failed", outcome.error_code or "FAILED", outcome.error)
        result: StatementResult = outcome.result
        if result.first_page is None or result.columns is None or result.pages is None:
            raise Invalid("a statement that succeeded requires columns, pages and a first page")
        _note_reads(call.connection, statement)
        expires = call.now + timedelta(hours=call.settings.sql.results_hours)
        return queue.end(*queue_end, "succeeded", **_stored(result), results_expire_at=expires)

    def _finish_probe(self, call: Call, row: RowMapping, outcome: Outcome) -> str:
        """Save the subject of a probe in this transaction, or report why not."""
        connection, statement = call.connection, row["id"]
        missing = (outcome.error or MISSING) if outcome.error_code == MISSING else None
        saver = next(self.savers[name] for name in row["save"] if name in self.savers)
        try:
            with connection.begin_nested():
                saved = saver(call, row, loaded(connection, statement), missing)
        except NotSaved as error:
            record(connection, list(error.denials))
            code = MISSING if missing is not None and str(error) == missing else "NOT_SAVED"
            return queue.end(self, connection, call.now, statement, "failed", code, str(error))
        return queue.end(self, connection, call.now, statement, "succeeded", saved_query_id=saved)

    def keep_alive(self, connection: Connection, now: datetime, jobs: Collection[str]) -> None:
        # A token can expire before its worker ends the statement only if the clock was set forward.
        early = (_works.statement_id.in_(jobs), _works.ended_at.is_(None), _works.expires_at < now + SPARE)
        connection.execute(update(work_token_table).where(*early).values(expires_at=now + 2 * SPARE))

    def tainted(self, connection: Connection, member: str) -> Sequence[RowMapping]:
        mine = (_rows.member_id == member, _rows.tainted, _rows.state.in_(ACTIVE))
        return connection.execute(select(statement_table).where(*mine)).mappings().all()

    def revoke(self, connection: Connection, now: datetime, job: str) -> None:
        alive = select(_works.id).where(_works.statement_id == job, _works.ended_at.is_(None))
        for work in connection.execute(alive).scalars().all():
            end_work(connection, work, now)

    def has_effects(self, connection: Connection, job: str) -> bool:
        joined = commit_table.join(work_token_table, _works.id == commit_table.c.work_id)
        query = select(commit_table.c.id).select_from(joined).where(_works.statement_id == job)
        return connection.execute(query.limit(1)).first() is not None

    def loss(self, connection: Connection, row: RowMapping, outcome: Outcome) -> tuple[str, str]:
        code, message = super().loss(connection, row, outcome)
        return code, LOST_AFTER_COMMIT if self.has_effects(connection, row["id"]) else message

    def end_values(self, connection: Connection, now: datetime, job: str) -> dict[str, Any]:
        return {"writes": _writes(connection, job)}

    def finished(self, services: Services, job: str, fence: int, state: str) -> None:
        if state != "succeeded":
            services.store.delete_folder(f"results/{job}/{fence}")


STATEMENTS = Statements()


def _stored(result: StatementResult) -> dict[str, Any]:
    """A result as column values of its table."""
    return {**result.model_dump(exclude={"first_page"}), "first_page": result.first_page}


def _is_known(connection: Connection, row: RowMapping, now: datetime) -> bool:
    """Whether the submitter is still a member and their token is still valid."""
    members, tokens = member_table.c, token_table.c
    here = select(members.id).where(members.id == row["member_id"], members.removed_at.is_(None))
    if connection.execute(here).first() is None:
        return False
    if row["token_id"] is None:
        return True
    lives = tokens.expires_at.is_(None) | (tokens.expires_at > now)
    query = select(tokens.id).where(tokens.id == row["token_id"], tokens.revoked_at.is_(None), lives)
    return connection.execute(query).first() is not None


def note_analysed(connection: Connection, row: RowMapping, told: dict[str, Any]) -> None:
    """Store the analysed columns of a probe, for its next analysis and for the save."""
    if not (row["save"] or {}).get("tells"):
        raise Conflict("This statement is no probe that tells its columns")
    save = {**row["save"], ANALYSED: told}
    connection.execute(update(statement_table).where(_rows.id == row["id"]).values(save=save))


def _of_missing(connection: Connection, statement: str, outcome: Outcome) -> Outcome:
    """The outcome of a statement with a missing table, which may be visible to the member but have no data yet."""
    joined = work_load_table.join(work_token_table, _works.id == _loads.work_id)
    empty = _loads.table_id.is_(None) & _loads.layer_id.is_not(None)
    query = select(_loads.ref).select_from(joined).where(_works.statement_id == statement, empty)
    for ref in connection.execute(query.order_by(_loads.ref)).scalars():
        if re.search(rf"(?<![\w.]){re.escape(ref)}(?!\w)", outcome.error or "", re.IGNORECASE):
            return replace(outcome, error=NotWritten(ref).detail)
    return outcome


def _note_refusal(connection: Connection, now: datetime, row: RowMapping, outcome: Outcome) -> None:
    """Audit a refusal of the guard, because the catalog, which audits its own refusals, was not called."""
    if outcome.error_code != REFUSED:
        return
    what = {"code": REFUSED, "why": (outcome.error or "")[:500]}
    who = {"actor_id": row["member_id"], "token_id": row["token_id"]}
    about = {"action": "execute", "kind": "statement", "resource_id": row["id"]}
    record(connection, [Event(now, DENIED, allowed=False, **who, **about, after=what)])


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


def _writes(connection: Connection, statement: str) -> list[dict[str, Any]]:
    """The commits of a statement, with the added and removed rows as far as the ledger has them."""
    row, joined = commit_table.c, commit_table.join(work_token_table, _works.id == commit_table.c.work_id)
    query = (
        select(row.table_id, row.operation, row.added_rows, row.deleted_rows)
        .select_from(joined)
        .where(_works.statement_id == statement)
        .order_by(row.at, row.id)
    )
    return [dict(row) for row in connection.execute(query).mappings()]
