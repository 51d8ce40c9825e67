"""Fair scheduling of statements: members with the fewest running statements first, and one slot per worker is never
used by a single member alone.

A worker with several slots gives its last free slot only to a member who runs nothing on it. So long statements of one
member cannot block others. A worker runs one isolated statement at a time, because each has its own Spark server.
"""

from sqlalchemy import ColumnElement, Connection, Select, exists, func, not_, or_, select

from headgate.kit.database import fetch
from headgate.lakehouse.sql.models import statement_table
from headgate.platform.jobs.kinds import WorkerSlots
from headgate.platform.jobs.models import HELD

_rows = statement_table.c


def choose(connection: Connection, slots: WorkerSlots) -> list[str]:
    """The ids of the queued statements that a worker should claim now, in at most three queries."""
    everyone = slots.free
    if slots.total != 1:
        everyone = min(slots.free, max(_free(connection, slots) - 1, 0))
    chosen = connection.execute(_waiting(slots).limit(everyone)).all() if everyone else []
    if everyone == slots.free:
        return [row.id for row in chosen]
    here = select(_rows.member_id).where(_rows.worker_id == slots.worker, _rows.state.in_(HELD))
    members = {row.member_id for row in chosen}
    others = _waiting(slots).where(_rows.member_id.not_in(here)).limit(len(chosen) + 1)
    last = [row.id for row in connection.execute(others) if row.member_id not in members]
    return [row.id for row in chosen] + last[:1]


def _free(connection: Connection, slots: WorkerSlots) -> int:
    """The number of free slots now; some may have become free since the request."""
    if slots.total is None:
        return slots.free
    return slots.total - int(fetch(connection, _HELD, {"worker": slots.worker})[0][0])


def _may_begin(slots: WorkerSlots) -> ColumnElement[bool]:
    """Allow one queued isolated statement if the worker runs none."""
    waiting, running = statement_table.alias(), statement_table.alias()
    oldest = select(func.min(waiting.c.id)).where(waiting.c.state == "queued", waiting.c.isolated)
    here = exists().where(running.c.worker_id == slots.worker, running.c.state.in_(HELD), running.c.isolated)
    return or_(not_(_rows.isolated), (_rows.id == oldest.scalar_subquery()) & not_(here))


def _waiting(slots: WorkerSlots) -> Select[tuple[str, str]]:
    """Queued statements, ordered by the number of running statements of their member, then by age."""
    running = (
        select(_rows.member_id, func.count().label("count"))
        .where(_rows.state.in_(HELD))
        .group_by(_rows.member_id)
        .subquery()
    )
    turn = func.row_number().over(partition_by=_rows.member_id, order_by=_rows.id)
    return (
        select(_rows.id, _rows.member_id)
        .outerjoin(running, running.c.member_id == _rows.member_id)
        .where(_rows.state == "queued", _may_begin(slots))
        .order_by(func.coalesce(running.c.count, 0) + turn, _rows.id)
    )


_MAY = (
    "(NOT isolated OR id = (SELECT MIN(i.id) FROM statements i WHERE i.state = 'queued' AND i.isolated) "
    "AND NOT EXISTS (SELECT 1 FROM statements o WHERE o.worker_id = :worker AND o.isolated "
    "AND o.state IN ('running', 'cancelling')))"
)
_ANY = f"SELECT 1 FROM statements WHERE state = 'queued' AND {_MAY} LIMIT 1"
_HELD = "SELECT COUNT(*) FROM statements WHERE worker_id = :worker AND state IN ('running', 'cancelling')"
_OTHERS = (
    f"SELECT 1 FROM statements WHERE state = 'queued' AND {_MAY} "
    "AND member_id NOT IN (SELECT member_id FROM statements "
    "WHERE worker_id = :worker AND state IN ('running', 'cancelling')) LIMIT 1"
)


def is_waiting(connection: Connection, slots: WorkerSlots) -> bool:
    """Whether a statement is queued that this worker would get, so that other work does not make it poll again
    immediately.
    """
    if not fetch(connection, _ANY, {"worker": slots.worker}):
        return False
    if slots.total == 1 or _free(connection, slots) > 1:
        return True
    return bool(fetch(connection, _OTHERS, {"worker": slots.worker}))
