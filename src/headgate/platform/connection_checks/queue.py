"""The life of an errand between a member and a worker: claimed, finished, or lost.

Each function works in one write transaction. A claim counts the fence up; whatever comes with an older one is refused.
Secrets leave the database here, for a worker, after the member who asked was judged once more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.kit.errors import Conflict, Problem
from headgate.kit.ids import kind_of
from headgate.kit.leases import is_over
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.connection_checks import unsaved
from headgate.platform.connection_checks.models import errand_table
from headgate.platform.external_systems.repository import place_of
from headgate.platform.http.services import Services

SECONDS = 60.0
"""How long a worker may take."""
LEASE = timedelta(seconds=SECONDS + 30)
KEPT = timedelta(hours=1)
BEGUN = 2
"""How often an errand whose worker was lost is begun at most."""
RETURNED = 10
"""How often one is begun at most that workers gave back because they were stopped."""
TEST = "test"
"""What an errand needs of who asks for it, whatever it is about."""
LOST = "The worker that ran this errand was lost; ask again"

_rows = errand_table.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """An errand for a worker."""

    id: str
    fence: int
    errand: str
    question: dict[str, Any]
    writes: bool
    endpoint: Endpoint


def may_ask(connection: Connection, now: datetime, row: RowMapping) -> bool:
    """Whether who asked may still do so: with a place or secrets that are not stored, only if they could store them."""
    place = row["place_id"]
    actions = (TEST, "edit") if row["place"] or row["sealed"] else (TEST,)
    asked = (Question(row["member_id"], action, kind_of(place) or "", place) for action in actions)
    return all(decide(connection, question, now) for question in asked)


def is_waiting(connection: Connection) -> bool:
    """Whether there is anything to claim."""
    return connection.execute(select(_rows.id).where(_rows.state == "queued").limit(1)).first() is not None


def claim(connection: Connection, now: datetime, services: Services, worker: str, slots: int) -> list[Claimed]:
    """Take the errands that have waited longest, up to a worker's free slots."""
    waiting = select(errand_table).where(_rows.state == "queued").order_by(_rows.id).limit(slots)
    rows = connection.execute(waiting.with_for_update(skip_locked=True)).mappings().all()
    result = (_take(connection, now, services, worker, row) for row in rows)
    return [claimed for claimed in result if claimed is not None]


def _take(connection: Connection, now: datetime, services: Services, worker: str, row: RowMapping) -> Claimed | None:
    place, endpoint = row["place_id"], None
    pointing = place_of(connection, place)
    code, told = "DENIED", "You may not use this any more"
    if may_ask(connection, now, row):
        code, told = "MOVED", "It was pointed somewhere else after you asked; ask again"
        if pointing is not None and pointing.version == row["place_version"]:
            try:
                endpoint = unsaved.endpoint(connection, services, row)
            except Problem as problem:
                code, told = "CANNOT_OPEN", problem.detail
    if endpoint is None:
        end(connection, now, row["id"], "failed", error_code=code, error=told)
        return None
    fence = row["fence"] + 1
    values = {"state": "running", "fence": fence, "worker_id": worker, "lease_until": now + LEASE}
    connection.execute(update(errand_table).where(_rows.id == row["id"]).values(values))
    return Claimed(row["id"], fence, row["errand"], row["question"], kind_of(place) == "destination", endpoint)


def finish(connection: Connection, now: datetime, errand: str, worker: str, fence: int, **told: Any) -> str:
    """Write what a worker says; the state then. Conflict if the errand is not, or no longer, its own."""
    row = connection.execute(select(errand_table).where(_rows.id == errand)).mappings().one_or_none()
    owned = row is not None and (row["worker_id"], row["fence"], row["state"]) == (worker, fence, "running")
    if not owned:
        raise Conflict("This errand is not this worker's; drop it")
    if told["state"] == "returned":
        return _give_back(connection, now, errand, fence, RETURNED)
    end(connection, now, errand, **told)
    return str(told["state"])


def _give_back(connection: Connection, now: datetime, errand: str, fence: int, most: int) -> str:
    """Have an errand begun again, unless it was begun so often before; its state then."""
    if fence >= most:
        end(connection, now, errand, "failed", error_code="LOST", error=LOST)
        return "failed"
    again = {"state": "queued", "worker_id": None, "lease_until": None}
    connection.execute(update(errand_table).where(_rows.id == errand).values(again))
    return "queued"


def end(connection: Connection, now: datetime, errand: str, state: str, **told: Any) -> None:
    """End an errand; what came of it is kept for a while."""
    values = {"state": state, "finished_at": now, "expires_at": now + KEPT, "lease_until": None, "sealed": None, **told}
    connection.execute(update(errand_table).where(_rows.id == errand).values(values))


def _lost(now: datetime) -> ColumnElement[bool]:
    return (_rows.state == "running") & is_over(_rows.lease_until, now, LEASE)


def has_expired(connection: Connection, now: datetime) -> bool:
    """Whether there is anything to sweep."""
    over = _lost(now) | (_rows.expires_at < now)
    return connection.execute(select(_rows.id).where(over).limit(1)).first() is not None


def sweep(connection: Connection, now: datetime) -> Iterable[str]:
    """Take back what dead workers held, to be begun again once, and forget what is too old; what was taken back."""
    connection.execute(delete(errand_table).where(_rows.expires_at < now))
    return _take_back(connection, now, _lost(now))


def release(connection: Connection, now: datetime, worker: str) -> list[str]:
    """Take back what a worker held that is certainly dead, to be begun again once; the ids."""
    return _take_back(connection, now, (_rows.state == "running") & (_rows.worker_id == worker))


def _take_back(connection: Connection, now: datetime, which: ColumnElement[bool]) -> list[str]:
    lost = connection.execute(select(_rows.id, _rows.fence).where(which)).all()
    for row in lost:
        _give_back(connection, now, row.id, row.fence, BEGUN)
    return [row.id for row in lost]
