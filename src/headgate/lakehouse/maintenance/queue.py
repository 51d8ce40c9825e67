"""Tables that a worker is to rewrite on Spark: claimed, finished, or given up.

Each function works in one write transaction. A claim makes a token for this one table, which dies with the work. What
fails is not begun again: the next pass looks at the table anew.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Select, select, update
from sqlalchemy.engine import RowMapping

from headgate.kit.credentials import Sort, digest, new_secret
from headgate.kit.errors import Conflict
from headgate.kit.leases import CLOCKS_APART
from headgate.lakehouse.maintenance.models import maintenance_table_table
from headgate.lakehouse.maintenance.retained_metadata import why_not
from headgate.lakehouse.maintenance.table_maintenance import pointer_of
from headgate.platform.authorization.models import resource_table
from headgate.platform.jobs.models import worker_table
from headgate.settings.maintenance import MaintenanceSettings
from headgate.settings.settings import Settings

SPARE = timedelta(minutes=2)
SILENT = timedelta(minutes=2)
"""After which a worker that was not heard of counts as lost."""
LONGEST = timedelta(hours=12)
"""How long a table waits for a worker at most."""
OPEN = ("queued", "running")
NO_WORKER = "there is no worker to rewrite it; the next pass tries again"
LOST = "the worker that rewrote it was lost; the next pass tries again"
LATE = "no worker rewrote it in time; the next pass tries again"
ENDED = "the pass ended before it was rewritten"
_rows, _workers, _resources = maintenance_table_table.c, worker_table.c, resource_table.c
_Rows = Select[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A table for a worker to rewrite, with the token for it, which nobody keeps."""

    pass_id: str
    table_id: str
    fence: int
    token: str
    layer: str
    name: str
    seconds: float
    min_files: int
    target_mib: int


def is_waiting(connection: Connection) -> bool:
    """Whether there is anything to claim."""
    return connection.execute(select(_rows.pass_id).where(_rows.compaction == "queued").limit(1)).first() is not None


def claim(connection: Connection, now: datetime, settings: Settings, worker: str) -> Claimed | None:
    """Take the table that has waited longest; None if there is none that can be rewritten now."""
    waiting = (
        select(maintenance_table_table).where(_rows.compaction == "queued").order_by(_rows.queued_at, _rows.table_id)
    )
    for row in connection.execute(waiting.limit(20).with_for_update(skip_locked=True)).mappings().all():
        layer, name = _name(connection, row["table_id"])
        reason = why_not(connection, row["table_id"]) if name else "it is gone"
        if reason is None and pointer_of(connection, row["table_id"]) is None:
            reason = "it is gone"
        if reason is None:
            return _take(connection, now, settings.maintenance, worker, row, (layer, name))
        _change(connection, row, compaction="failed", note=reason)
    return None


def _name(connection: Connection, table_id: str) -> tuple[str, str]:
    layers = resource_table.alias()
    joined = resource_table.join(layers, layers.c.id == _resources.scope_id)
    query = select(layers.c.name, _resources.name).select_from(joined).where(_resources.id == table_id)
    row = connection.execute(query).one_or_none()
    return (row[0], row[1]) if row else ("", "")


def _take(
    connection: Connection,
    now: datetime,
    settings: MaintenanceSettings,
    worker: str,
    row: RowMapping,
    name: tuple[str, str],
) -> Claimed:
    secret, fence, limit = new_secret(Sort.work), row["fence"] + 1, timedelta(minutes=settings.compact_minutes)
    values = {"worker_id": worker, "lease_until": now + lease(settings), "digest": digest(secret)}
    _change(connection, row, compaction="running", fence=fence, **values)
    return Claimed(
        row["pass_id"],
        row["table_id"],
        fence,
        secret,
        *name,
        seconds=limit.total_seconds(),
        min_files=settings.compact_min_files,
        target_mib=settings.compact_target_mib,
    )


def _change(connection: Connection, row: RowMapping, **values: object) -> None:
    place = (_rows.pass_id == row["pass_id"], _rows.table_id == row["table_id"])
    connection.execute(update(maintenance_table_table).where(*place).values(values))


def finish(
    connection: Connection,
    pass_id: str,
    table_id: str,
    worker: str,
    fence: int,
    *,
    files_before: int | None = None,
    files_after: int | None = None,
    error: str | None = None,
) -> None:
    """Write what a worker says of a table; its token is dead from here on. Conflict if it is not the worker's."""
    place = (_rows.pass_id == pass_id, _rows.table_id == table_id)
    mine = (_rows.worker_id == worker, _rows.fence == fence, _rows.compaction == "running")
    state = "done" if error is None else "failed"
    values = {"compaction": state, "note": error, "digest": None, "lease_until": None}
    counts = {"files_before": files_before, "files_after": files_after}
    done = connection.execute(update(maintenance_table_table).where(*place, *mine).values(**values, **counts))
    if done.rowcount != 1:
        raise Conflict("This table is not this worker's to rewrite; drop it")


def lease(settings: MaintenanceSettings) -> timedelta:
    """How long a worker may have a table."""
    return timedelta(minutes=settings.compact_minutes) + SPARE


def has_expired(connection: Connection, now: datetime, length: timedelta) -> bool:
    """Whether there is anything to sweep."""
    given = select(_rows.table_id).where(_rows.compaction.in_(OPEN)).limit(1)
    if connection.execute(given).first() is None:
        return False
    over = [query for query, _ in _over(connection, now)]
    return any(connection.execute(query.limit(1)).first() is not None for query in (*over, *_ahead(now, length)))


def sweep(connection: Connection, now: datetime, length: timedelta) -> list[str]:
    """Give up what nobody rewrites: what silent workers have, what took too long, and what no worker is there for.
    Which of them lost their workers.

    What lasts longer than it can, since the clock was set back, lasts no longer than if it began now.
    """
    waits, leases = _ahead(now, length)
    for row in connection.execute(waits).mappings().all():
        _change(connection, row, queued_at=now)
    for row in connection.execute(leases).mappings().all():
        _change(connection, row, lease_until=now + length)
    gone = {why: _give_up(connection, query, why) for query, why in _over(connection, now)}
    return gone[LOST]


def _ahead(now: datetime, length: timedelta) -> tuple[_Rows, _Rows]:
    """What waits, and what workers have, by a clock that was ahead of this one."""
    rows = select(maintenance_table_table)
    waits = rows.where(_rows.compaction == "queued", _rows.queued_at > now + CLOCKS_APART)
    return waits, rows.where(_rows.compaction == "running", _rows.lease_until > now + length + CLOCKS_APART)


def _over(connection: Connection, now: datetime) -> list[tuple[_Rows, str]]:
    """What is to be given up, and why."""
    heard = select(_workers.id).where(_workers.seen_at > now - SILENT, _workers.seen_at < now + CLOCKS_APART)
    rows = select(maintenance_table_table)
    running, queued = rows.where(_rows.compaction == "running"), rows.where(_rows.compaction == "queued")
    results = [
        (running.where(_rows.worker_id.not_in(heard)), LOST),
        (running.where(_rows.lease_until < now), LATE),
        (queued.where(_rows.queued_at < now - LONGEST), LATE),
    ]
    if connection.execute(heard.limit(1)).first() is None:
        results.append((queued.where(_rows.queued_at < now - SILENT), NO_WORKER))
    return results


def release(connection: Connection, worker: str) -> list[str]:
    """Give up what a worker had that is certainly dead; the next pass tries again. The tables."""
    held = (_rows.compaction == "running", _rows.worker_id == worker)
    return _give_up(connection, select(maintenance_table_table).where(*held), LOST)


def give_up(connection: Connection, pass_id: str) -> None:
    """Leave the rest of a pass that ends."""
    rest = (_rows.pass_id == pass_id, _rows.compaction.in_(OPEN))
    _give_up(connection, select(maintenance_table_table).where(*rest), ENDED)


def _give_up(connection: Connection, query: _Rows, why: str) -> list[str]:
    rows = connection.execute(query).mappings().all()
    for row in rows:
        _change(connection, row, compaction="failed", note=why, digest=None, lease_until=None)
    return [row["table_id"] for row in rows]
