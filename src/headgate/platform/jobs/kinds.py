"""The kinds of jobs. A kind says where its jobs are stored, who may claim them, and what their end does."""

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
"""The number of waiting jobs that one claim looks at."""
_LARGEST = 1 << 20
_ENVELOPE = 64 << 10


def result_bytes(settings: Settings) -> int:
    """The largest piece of a result: in base64, with its envelope, it must fit into the body of a request."""
    body = settings.server.max_body_bytes
    return max(512, min(_LARGEST, (body - min(_ENVELOPE, body // 2)) * 3 // 4))


@dataclass(frozen=True, slots=True)
class WorkerSlots:
    """The slots of a worker for one kind of job: how many are free, and how many there are, if it says so."""

    worker: str
    free: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """What a worker gets of a claimed job beside its id and fence."""

    payload: BaseModel
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job, as its worker reports it."""

    state: str
    """succeeded, failed, lost (a fault that passes, retried) or returned (the worker shuts down)."""
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
    """What a worker reports of a job that succeeded."""
    max_losses: ClassVar[int] = 1
    """How often a job is retried whose worker or Spark died."""
    max_attempts: ClassVar[int | None] = 10
    """How often a job is claimed, also when workers gave it back."""
    lost: ClassVar[tuple[str, str]]
    """The error code and message of a job that died with its last worker."""
    in_turn: ClassVar[bool] = False
    """Whether claims and reports nearly always conflict, so that those of one process wait for each other."""
    rollbacks: ClassVar[tuple[type[Exception], ...]] = ()
    """Errors of `finish` after which nothing is committed and `recover` is called in a new transaction."""

    @abstractmethod
    def lease(self, settings: Settings) -> timedelta:
        """How long a worker may be silent before its jobs are taken back."""

    @abstractmethod
    def begin(self, call: Call, row: RowMapping) -> Begun:
        """Prepare a job that was just claimed; CannotBegin ends it instead."""

    @abstractmethod
    def finish(self, call: Call, row: RowMapping, outcome: Outcome) -> str:
        """End a job that succeeded or failed, or queue it again; its state then."""

    def waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> Sequence[str]:
        """Jobs that this worker may claim, in order: the oldest first."""
        rows = self.table.c
        due = rows.not_before.is_(None) | (rows.not_before <= now)
        query = select(rows.id).where(rows.state == WAITING, due).order_by(rows.id)
        return connection.execute(query.limit(LOOK_AT)).scalars().all()

    def is_waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> bool:
        """Whether this worker would get a job now. It is asked every 20 ms while a worker waits."""
        return bool(self.waiting(connection, now, slots))

    def log(self, call: Call, job: str, lines: Sequence[LogLine]) -> None:
        """Add lines to the log of a job, if its kind keeps one."""

    def is_blocked(self, connection: Connection, row: RowMapping) -> bool:
        """Whether a job must wait for one that was claimed in this transaction."""
        return False

    def keep_alive(self, connection: Connection, now: datetime, jobs: Collection[str]) -> None:
        """Keep the credentials of running jobs valid."""

    def revoke(self, connection: Connection, now: datetime, job: str) -> None:
        """End the credentials of a job: nothing is committed for it from here on."""

    def has_effects(self, connection: Connection, job: str) -> bool:
        """Whether a job has changed something that a retry would change again."""
        return False

    def isolates(self, outcome: Outcome) -> bool:
        """Whether a job runs on a Spark server of its own after this loss."""
        return True

    def loss(self, connection: Connection, row: RowMapping, outcome: Outcome) -> tuple[str, str]:
        """The error code and message of a job that is not retried after a loss."""
        code, message = self.lost
        return outcome.error_code or code, outcome.error or message

    def end_values(self, connection: Connection, now: datetime, job: str) -> dict[str, Any]:
        """Further columns to set when a job ends."""
        return {}

    def tainted(self, connection: Connection, member: str) -> Sequence[RowMapping]:
        """Active jobs of a member that somebody else may have submitted: they end when the member becomes an owner."""
        return ()

    def ended(self, connection: Connection, now: datetime, row: RowMapping) -> None:
        """Do what follows from the end of a job: audit, notices, the state of what it was for."""

    def requeued(self, connection: Connection, now: datetime, row: RowMapping) -> None:
        """Undo what an attempt left behind, since the job is queued again."""

    def recover(self, call: Call, row: RowMapping, error: Exception) -> str:
        """Decide what becomes of a job whose `finish` was rolled back; its state then."""
        raise error

    def finished(self, services: Services, job: str, fence: int, state: str) -> None:
        """Work on files after the end was committed; outside any transaction."""

    def is_outdated(self, connection: Connection, now: datetime) -> bool:
        """Whether `expire` has anything to do."""
        return False

    def expire(self, connection: Connection, now: datetime) -> None:
        """Give up or forget jobs that are too old."""

    def clock_was_set(self, connection: Connection, now: datetime) -> None:
        """Bring times in the future back to what they can be, after the clock was set back or the scheduler started."""


_KINDS: dict[str, JobKind] = {}


def register(*kinds: JobKind) -> None:
    """Let workers claim jobs of these kinds."""
    _KINDS.update({kind.name: kind for kind in kinds})


def kind_named(name: str) -> JobKind:
    """The kind of this name; NotFound if there is none."""
    try:
        return _KINDS[name]
    except KeyError:
        raise NotFound(f"Unknown kind of job {name!r}; there are {', '.join(sorted(_KINDS))}") from None


def all_kinds() -> Iterable[JobKind]:
    """Every registered kind."""
    return _KINDS.values()
