"""The kinds of jobs. A kind defines where its jobs are stored, who may claim them, and what happens at their end."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import BaseModel
from sqlalchemy import Connection, Table, select
from sqlalchemy.engine import RowMapping

from headgate.contracts.jobs import LogLine
from headgate.kit.errors import NotFound
from headgate.kit.request_models import LooseInput
from headgate.platform.jobs.models import WAITING
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.settings.settings import Settings

LOOK_AT = 200
"""Number of queued jobs that a claim looks at."""
_LARGEST = 1 << 20
_ENVELOPE = 64 << 10


def result_bytes(settings: Settings) -> int:
    """Maximum size of a result part: with base64 and its envelope, it must fit into a request body."""
    body = settings.server.max_body_bytes
    return max(512, min(_LARGEST, (body - min(_ENVELOPE, body // 2)) * 3 // 4))


@dataclass(frozen=True, slots=True)
class WorkerSlots:
    """The free and total slots of a worker for one kind of job."""

    worker: str
    free: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """What a worker receives of a claimed job in addition to id and fence."""

    payload: BaseModel
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job, as its worker reports it."""

    state: str
    """succeeded, failed, lost (a transient fault, retried) or returned (the worker shuts down)."""
    error_code: str | None = None
    error: str | None = None
    result: Any = None
    """An instance of the kind's `result`."""


class CannotBegin(Exception):
    """A job that ends at its claim, with this state, code and message."""

    def __init__(self, state: str, code: str, message: str) -> None:
        super().__init__(message)
        self.state, self.code, self.message = state, code, message


class JobKind:
    """A kind of job. Each method works in the caller's write transaction, except where it says otherwise."""

    name: ClassVar[str]
    table: ClassVar[Table]
    """The table of its jobs, with `job_columns()` and an `id`."""
    result: ClassVar[type[BaseModel]] = LooseInput
    """The result that a worker reports for a successful job."""
    max_losses: ClassVar[int] = 1
    """Maximum retries of a job whose worker or Spark server died."""
    max_attempts: ClassVar[int | None] = 10
    """Maximum attempts of a job, including those that workers returned."""
    lost: ClassVar[tuple[str, str]]
    """The error code and message of a job that died with its last worker."""
    in_turn: ClassVar[bool] = False
    """Whether claims and reports usually conflict, so that those of one process are serialized."""
    rollbacks: ClassVar[tuple[type[Exception], ...]] = ()
    """Errors of `finish` after which the transaction is rolled back and `recover` runs in a new one."""

    @abstractmethod
    def lease(self, settings: Settings) -> timedelta:
        """The time without heartbeat after which a worker's jobs are taken back."""

    @abstractmethod
    def begin(self, call: Call, row: RowMapping) -> Begun:
        """Prepare a job that was just claimed; CannotBegin ends it instead."""

    @abstractmethod
    def finish(self, call: Call, row: RowMapping, outcome: Outcome) -> str:
        """End a job that succeeded or failed, or queue it again; returns its state."""

    def waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> Sequence[str]:
        """Jobs that this worker may claim, oldest first."""
        rows = self.table.c
        due = rows.not_before.is_(None) | (rows.not_before <= now)
        query = select(rows.id).where(rows.state == WAITING, due).order_by(rows.id)
        return connection.execute(query.limit(LOOK_AT)).scalars().all()

    def is_waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> bool:
        """Whether this worker would get a job now. It is called every 20 ms while a worker waits."""
        return bool(self.waiting(connection, now, slots))

    def log(self, call: Call, job: str, lines: Sequence[LogLine]) -> None:
        """Append lines to the job's log, if its kind has one."""

    def is_blocked(self, connection: Connection, row: RowMapping) -> bool:
        """Whether a job must wait for one that was claimed in this transaction."""
        return False

    def keep_alive(self, connection: Connection, now: datetime, jobs: Collection[str]) -> None:
        """Keep the credentials of running jobs valid."""

    def revoke(self, connection: Connection, now: datetime, job: str) -> None:
        """Revoke the credentials of a job: nothing more is committed for it."""

    def has_effects(self, connection: Connection, job: str) -> bool:
        """Whether a job has effects that a retry would repeat."""
        return False

    def isolates(self, outcome: Outcome) -> bool:
        """Whether a job runs on its own Spark server after this loss."""
        return True

    def loss(self, connection: Connection, row: RowMapping, outcome: Outcome) -> tuple[str, str]:
        """The error code and message of a job that is not retried after a loss."""
        code, message = self.lost
        return outcome.error_code or code, outcome.error or message

    def end_values(self, connection: Connection, now: datetime, job: str) -> dict[str, Any]:
        """Additional columns to set when a job ends."""
        return {}

    def tainted(self, connection: Connection, member: str) -> Sequence[RowMapping]:
        """Active jobs of a member that somebody else may have submitted; they end when the member becomes an owner."""
        return ()

    def ended(self, connection: Connection, now: datetime, row: RowMapping) -> None:
        """Follow up the end of a job: audit, notices, and the state of its subject."""

    def requeued(self, connection: Connection, now: datetime, row: RowMapping) -> None:
        """Clean up after an attempt before the job is queued again."""

    def recover(self, call: Call, row: RowMapping, error: Exception) -> str:
        """Decide the state of a job whose `finish` was rolled back; returns it."""
        raise error

    def finished(self, services: Services, job: str, fence: int, state: str) -> None:
        """Work on files after the end was committed; outside any transaction."""

    def is_outdated(self, connection: Connection, now: datetime) -> bool:
        """Whether `expire` has anything to do."""
        return False

    def expire(self, connection: Connection, now: datetime) -> None:
        """Fail or delete outdated jobs."""

    def clock_was_set(self, connection: Connection, now: datetime) -> None:
        """Limit future times to plausible values after the clock was set back or the scheduler started."""


_KINDS: dict[str, JobKind] = {}


def register(*kinds: JobKind) -> None:
    """Register kinds of jobs for workers to claim."""
    _KINDS.update({kind.name: kind for kind in kinds})


def kind_named(name: str) -> JobKind:
    """The kind with this name, or NotFound."""
    try:
        return _KINDS[name]
    except KeyError:
        raise NotFound(f"Unknown kind of job {name!r}; there are {', '.join(sorted(_KINDS))}") from None


def all_kinds() -> Iterable[JobKind]:
    """Every registered kind."""
    return _KINDS.values()
