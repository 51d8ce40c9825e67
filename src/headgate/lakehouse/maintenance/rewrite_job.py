"""Compactions as jobs: a worker rewrites one table on Spark, with a token for that table only.

A failed compaction is not retried; the next maintenance pass checks the table again.
"""

from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.table_rewrites import RewritePayload, RewriteResult
from headgate.kit.credentials import Sort, digest, new_secret
from headgate.kit.leases import CLOCKS_APART
from headgate.lakehouse.maintenance.models import table_rewrite_table
from headgate.lakehouse.maintenance.retained_metadata import skip_reason
from headgate.lakehouse.maintenance.table_maintenance import pointer_of
from headgate.platform.authorization.models import resource_table
from headgate.platform.jobs import queue
from headgate.platform.jobs.kinds import Begun, CannotBegin, JobKind, Outcome
from headgate.platform.jobs.models import ACTIVE, WAITING, worker_table
from headgate.platform.unit_of_work.call import Call
from headgate.settings.settings import Settings

LEASE = timedelta(minutes=2)
LONGEST = timedelta(hours=12)
"""Maximum time that a table waits for a worker."""
NO_WORKER = "There is no worker to rewrite the table; the next pass tries again"
LATE = "No worker rewrote the table in time; the next pass tries again"
ENDED = "The maintenance pass ended before the table was rewritten"
GONE = "the table was deleted"
_rows, _workers, _resources = table_rewrite_table.c, worker_table.c, resource_table.c


class TableRewrites(JobKind):
    """Compactions of tables with many small files."""

    name = "table_rewrite"
    table = table_rewrite_table
    result = RewriteResult
    max_losses = 0
    max_attempts = 1
    lost = ("WORKER_LOST", "The worker that rewrote the table died; the next pass tries again")

    def lease(self, settings: Settings) -> timedelta:
        return LEASE

    def begin(self, call: Call, row: RowMapping) -> Begun:
        table, settings = row["table_id"], call.settings.maintenance
        name = _name(call.connection, table)
        reason = skip_reason(call.connection, table) if name else GONE
        if name is None or reason is not None or pointer_of(call.connection, table) is None:
            raise CannotBegin("failed", "NOT_NOW", reason or GONE)
        secret = new_secret(Sort.work)
        call.connection.execute(update(table_rewrite_table).where(_rows.id == row["id"]).values(digest=digest(secret)))
        payload = RewritePayload(
            table_id=table,
            token=secret,
            layer=name[0],
            name=name[1],
            min_files=settings.compact_min_files,
            target_mib=settings.compact_target_mib,
        )
        return Begun(payload, timedelta(minutes=settings.compact_minutes).total_seconds())

    def finish(self, call: Call, row: RowMapping, outcome: Outcome) -> str:
        counts = outcome.result.model_dump() if outcome.result else {}
        return queue.end(
            self, call.connection, call.now, row["id"], outcome.state, outcome.error_code, outcome.error, **counts
        )

    def revoke(self, connection: Connection, now: datetime, job: str) -> None:
        connection.execute(update(table_rewrite_table).where(_rows.id == job).values(digest=None))

    def is_outdated(self, connection: Connection, now: datetime) -> bool:
        return bool(_outdated(connection, now, limit=1))

    def expire(self, connection: Connection, now: datetime) -> None:
        for job, reason in _outdated(connection, now):
            queue.end(self, connection, now, job, "failed", "NOT_CLAIMED", reason)

    def clock_was_set(self, connection: Connection, now: datetime) -> None:
        ahead = (_rows.state == WAITING, _rows.queued_at > now)
        connection.execute(update(table_rewrite_table).where(*ahead).values(queued_at=now))


TABLE_REWRITES = TableRewrites()


def _outdated(connection: Connection, now: datetime, limit: int | None = None) -> list[tuple[str, str]]:
    """Compactions that have waited too long, with the reason; the limit is shorter if no worker is alive."""
    alive = select(_workers.id).where(_workers.seen_at > now - LEASE, _workers.seen_at < now + CLOCKS_APART).limit(1)
    is_alone = connection.execute(alive).first() is None
    waits, reason = (LEASE, NO_WORKER) if is_alone else (LONGEST, LATE)
    query = select(_rows.id).where(_rows.state == WAITING, _rows.queued_at < now - waits).limit(limit)
    return [(job, reason) for job in connection.execute(query).scalars()]


def _name(connection: Connection, table_id: str) -> tuple[str, str] | None:
    layers = resource_table.alias()
    joined = resource_table.join(layers, layers.c.id == _resources.scope_id)
    query = select(layers.c.name, _resources.name).select_from(joined).where(_resources.id == table_id)
    row = connection.execute(query).one_or_none()
    return (row[0], row[1]) if row else None


def give_up(connection: Connection, now: datetime, pass_id: str) -> None:
    """Cancel the compactions of a pass that ends."""
    query = select(_rows.id).where(_rows.pass_id == pass_id, _rows.state.in_(ACTIVE))
    for job in connection.execute(query).scalars().all():
        queue.end(TABLE_REWRITES, connection, now, job, "failed", "PASS_ENDED", ENDED)
