"""The life cycle of a job of any kind: claimed, renewed, finished, returned, lost or cancelled.

Each function works in one write transaction. A claim increments the fence, and messages with an older fence are
refused. A cancel changes the row first, so nothing more is committed for the job; its worker is notified afterwards.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.jobs import MAX_LINE, BeatIn, InstructionsOut, JobOut, LogLine
from headgate.kit.database import fetch
from headgate.kit.errors import Conflict
from headgate.kit.leases import is_over
from headgate.platform.jobs.kinds import CannotBegin, JobKind, Outcome, WorkerSlots
from headgate.platform.jobs.models import CANCELLING, ENDED, HELD, RUNNING, WAITING
from headgate.platform.unit_of_work.call import Call
from headgate.settings.settings import Settings

# Claims


def claim(kind: JobKind, call: Call, slots: WorkerSlots, only: str | None = None) -> list[JobOut]:
    """Claim queued jobs up to a worker's free slots, or a single one; jobs that cannot begin are ended."""
    claimed: list[JobOut] = []
    for job in kind.waiting(call.connection, call.now, slots):
        if len(claimed) == slots.free:
            break
        row = locked(kind, call.connection, job) if only in {None, job} else None
        if row is None or (claimed and kind.is_blocked(call.connection, row)):
            continue
        begun = _begin(kind, call, slots.worker, row)
        if begun is not None:
            claimed.append(begun)
    return claimed


def locked(kind: JobKind, connection: Connection, job: str) -> RowMapping | None:
    """A queued job, locked for this transaction; None if another worker has claimed it or is about to."""
    rows = kind.table.c
    query = select(kind.table).where(rows.id == job, rows.state == WAITING).with_for_update(skip_locked=True)
    return connection.execute(query).mappings().one_or_none()


def _begin(kind: JobKind, call: Call, worker: str, row: RowMapping) -> JobOut | None:
    job = row["id"]
    values = {
        "state": RUNNING,
        "fence": row["fence"] + 1,
        "worker_id": worker,
        "lease_until": call.now + kind.lease(call.settings),
        "started_at": row["started_at"] or call.now,
        "progress": None,
    }
    _update(kind, call.connection, job, values)
    row = job_row(kind, call.connection, job)
    try:
        begun = kind.begin(call, row)
    except CannotBegin as refusal:
        fail_to_begin(kind, call, job, refusal)
        return None
    return JobOut(
        id=job,
        fence=row["fence"],
        seconds=begun.seconds,
        isolated=row["isolated"],
        payload=begun.payload.model_dump(mode="json"),
    )


def fail_to_begin(kind: JobKind, call: Call, job: str, refusal: CannotBegin) -> None:
    """End a job that cannot begin, with the reason in its log."""
    end(kind, call.connection, call.now, job, refusal.state, refusal.code, refusal.message)
    kind.log(call, job, [LogLine(at=call.now, level="error", text=refusal.message[:MAX_LINE])])


# Messages of workers


def owned(kind: JobKind, connection: Connection, job: str, worker: str, fence: int) -> RowMapping:
    """The row of a job that a worker holds with this fence; otherwise Conflict."""
    row = connection.execute(select(kind.table).where(kind.table.c.id == job)).mappings().one_or_none()
    if row is None or (row["worker_id"], row["fence"]) != (worker, fence) or row["state"] not in HELD:
        raise Conflict(f"The {kind.name} {job} is no longer held by this worker; drop it")
    return row


def ended_by(kind: JobKind, connection: Connection, job: str, worker: str, fence: int) -> str | None:
    """The state of a job that this worker has ended with this fence, if its first response was lost."""
    rows = kind.table.c
    mine = (rows.id == job, rows.worker_id == worker, rows.fence == fence, rows.state.in_(ENDED))
    return connection.execute(select(rows.state).where(*mine)).scalar()


def beat(
    kind: JobKind, connection: Connection, now: datetime, settings: Settings, worker: str, beats: Sequence[BeatIn]
) -> InstructionsOut:
    """Renew the leases of a worker's jobs; returns which to interrupt and which it no longer holds."""
    rows = kind.table.c
    query = select(rows.id, rows.fence, rows.state).where(rows.worker_id == worker, rows.state.in_(HELD))
    held = {row.id: row for row in connection.execute(query)}
    kept = {beat.id: beat for beat in beats if beat.id in held and held[beat.id].fence == beat.fence}
    for message in kept.values():
        values: dict[str, Any] = {"lease_until": now + kind.lease(settings)}
        if message.progress is not None:
            values["progress"] = message.progress.model_dump()
        _update(kind, connection, message.id, values)
    if kept:
        kind.keep_alive(connection, now, kept)
    cancel = sorted(row.id for row in held.values() if row.state == CANCELLING)
    return InstructionsOut(cancel=cancel, lost=sorted(message.id for message in beats if message.id not in kept))


def is_cancelling(kind: JobKind, connection: Connection, worker: str) -> bool:
    """Whether a worker has a job to interrupt."""
    text = f"SELECT 1 FROM {kind.table.name} WHERE worker_id = :worker AND state = '{CANCELLING}' LIMIT 1"
    return bool(fetch(connection, text, {"worker": worker}))


def finish(kind: JobKind, call: Call, row: RowMapping, outcome: Outcome) -> str:
    """End a job with its outcome, or queue it again; returns its state."""
    if outcome.state in {"lost", "returned"}:
        return give_back(kind, call.connection, call.now, row, outcome)
    if row["state"] == CANCELLING and not kind.has_effects(call.connection, row["id"]):
        return end(kind, call.connection, call.now, row["id"], "cancelled")
    return kind.finish(call, row, outcome)


# Ends


def end(
    kind: JobKind,
    connection: Connection,
    now: datetime,
    job: str,
    state: str,
    code: str | None = None,
    message: str | None = None,
    **values: Any,
) -> str:
    """End a job and run the follow-up of its kind; returns its state."""
    kind.revoke(connection, now, job)
    fixed = {"state": state, "ended_at": now, "lease_until": None, "error_code": code and code[:120]}
    fixed |= {"error": message and message[:20_000], **kind.end_values(connection, now, job)}
    _update(kind, connection, job, {**fixed, **values})
    kind.ended(connection, now, job_row(kind, connection, job))
    return state


def cancel(kind: JobKind, connection: Connection, now: datetime, row: RowMapping, **values: Any) -> str:
    """Cancel a job: immediately if no worker holds it, otherwise revoke its credentials and notify its worker; returns
    its state.
    """
    if row["state"] == WAITING:
        return end(kind, connection, now, row["id"], "cancelled", cancelled_at=now, **values)
    if row["state"] == RUNNING:
        kind.revoke(connection, now, row["id"])
        _update(kind, connection, row["id"], {"state": CANCELLING, "cancelled_at": now, **values})
        return CANCELLING
    return str(row["state"])


def give_back(kind: JobKind, connection: Connection, now: datetime, row: RowMapping, outcome: Outcome) -> str:
    """Queue a job again that its worker lost or returned, unless it has effects or too many attempts; returns its
    state.

    A job during which Spark or a worker died may have caused it, so it runs in isolation from then on.
    """
    has_effects, is_lost = kind.has_effects(connection, row["id"]), outcome.state == "lost"
    if row["state"] == CANCELLING and not has_effects:
        return end(kind, connection, now, row["id"], "cancelled")
    losses = row["losses"] + is_lost
    is_last = kind.max_attempts is not None and row["fence"] >= kind.max_attempts
    if has_effects or losses > kind.max_losses or is_last:
        code, message = kind.loss(connection, row, outcome)
        return end(kind, connection, now, row["id"], "failed", code, message)
    isolated = row["isolated"] or (is_lost and kind.isolates(outcome))
    return requeue(kind, connection, now, row, losses=losses, isolated=isolated)


def requeue(
    kind: JobKind,
    connection: Connection,
    now: datetime,
    row: RowMapping,
    *,
    until: datetime | None = None,
    **values: Any,
) -> str:
    """Queue a job again, optionally delayed; returns its state."""
    kind.revoke(connection, now, row["id"])
    fixed = {"state": WAITING, "worker_id": None, "lease_until": None, "progress": None, "not_before": until}
    _update(kind, connection, row["id"], {**fixed, **values})
    kind.requeued(connection, now, row)
    return WAITING


# Lost workers


def _lost(kind: JobKind, now: datetime, settings: Settings) -> ColumnElement[bool]:
    rows = kind.table.c
    return rows.state.in_(HELD) & is_over(rows.lease_until, now, kind.lease(settings))


def has_lost(kind: JobKind, connection: Connection, now: datetime, settings: Settings) -> bool:
    """Whether `sweep` has anything to do."""
    query = select(kind.table.c.id).where(_lost(kind, now, settings)).limit(1)
    return connection.execute(query).first() is not None


def sweep(kind: JobKind, connection: Connection, now: datetime, settings: Settings) -> list[str]:
    """Take back the jobs with expired leases; returns their ids."""
    return _take_back(kind, connection, now, _lost(kind, now, settings))


def release(kind: JobKind, connection: Connection, now: datetime, worker: str) -> list[str]:
    """Take back the jobs of a worker that is certainly dead; returns their ids."""
    rows = kind.table.c
    return _take_back(kind, connection, now, rows.state.in_(HELD) & (rows.worker_id == worker))


def _take_back(kind: JobKind, connection: Connection, now: datetime, which: ColumnElement[bool]) -> list[str]:
    rows = connection.execute(select(kind.table).where(which)).mappings().all()
    for row in rows:
        give_back(kind, connection, now, row, Outcome("lost"))
    return [row["id"] for row in rows]


# Rows


def job_row(kind: JobKind, connection: Connection, job: str) -> RowMapping:
    """The row of an existing job."""
    return connection.execute(select(kind.table).where(kind.table.c.id == job)).mappings().one()


def _update(kind: JobKind, connection: Connection, job: str, values: dict[str, Any]) -> None:
    connection.execute(update(kind.table).where(kind.table.c.id == job).values(values))
