"""Fires a trigger in one transaction: the fire's row, its authorization and the run it starts.

If the transaction fails, it is rolled back and the trigger stays due. After the commit, the trigger has its next due
time, and the row prevents a second fire.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import RowMapping

from headgate.access.book import BOOK
from headgate.kit.ids import new_id
from headgate.pipelines.runs.start import (
    MAX_DEPTH,
    CannotStart,
    Start,
    record_blocked,
    record_skipped,
    start,
    startable,
    waiting_of,
)
from headgate.pipelines.triggers import events, repository
from headgate.pipelines.triggers.models import trigger_fire_table
from headgate.pipelines.triggers.repository import KIND
from headgate.pipelines.triggers.schemas import Cron, stored_when
from headgate.platform.audit.events import DENIED, Event, record
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.questions import Question, check, decide_in_memory, is_ready
from headgate.platform.authorization.who_can import who_can
from headgate.platform.notifications.service import Notice, notify

MOST_CAUGHT_UP = 100
"""Maximum number of missed fires to catch up, and of queued runs per trigger while catching up."""
LATE = timedelta(minutes=1)
"""A fire that is later than this counts as missed."""
EVERYONE = (1 << 31) - 1
SECRETS = (
    "The code of this notebook may not read the secrets of its connections: their owners do not allow code, or "
    "the member as whom the pipeline runs may no longer use them. When this is fixed, resume the trigger"
)
MISSED = "The scheduler was not running at this time, and the trigger does not catch up"
WAITS = "An earlier run of this trigger is still queued"
TAKE_OVER = "a member who may start the pipeline can take over the trigger by resuming or saving it"

_fires = trigger_fire_table.c
_CLAIM = {
    name: dialect.insert(trigger_fire_table).on_conflict_do_nothing().returning(_fires.due_at)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}


@dataclass(frozen=True, slots=True)
class _Due:
    """A due fire."""

    run: str
    trigger: RowMapping
    due_at: datetime
    next_at: datetime | None
    depth: int = 0
    sources: tuple[str, ...] = ()
    missed: bool = False
    may_wait: int = 1

    @property
    def how(self) -> Start:
        """The start parameters of the run."""
        spec = self.trigger["spec"]
        return Start(
            trigger=self.trigger["id"],
            due_at=self.due_at,
            full_refresh=bool(spec.get("full_refresh")),
            parameters=spec.get("parameters") or {},
            depth=self.depth,
            run=self.run,
        )


def fire(connection: Connection, now: datetime, triggers: Sequence[str]) -> None:
    """Fire the due triggers among these and set their next due times. They share their authorization data, which no
    fire changes.
    """
    known = Facts(connection, now)
    for row in repository.to_fire(connection, triggers):
        if row["enabled"] and row["spec"] is not None and row["next_at"] is not None and row["next_at"] <= now:
            _fire(known, row)


def _fire(known: Facts, row: RowMapping) -> None:
    connection, now = known.connection, known.now
    due = _due(connection, now, row)
    repository.save(connection, row["id"], next_at=due.next_at if due else repository.next_at(row["spec"], now))
    # Triggers of a disabled pipeline skip their fire times.
    if due is not None and row["active"] is not False and _claim(connection, now, due):
        _run(known, due)


def _due(connection: Connection, now: datetime, row: RowMapping) -> _Due | None:
    """The fire that is due now, or None."""
    when = stored_when(row["spec"])
    if not isinstance(when, Cron):
        sources, depth = events.take(connection, row["id"])
        last = repository.last_fire(connection, row["id"])
        at = events.free_at(last["due_at"], now) if last else now
        return _Due(new_id("run"), row, at, None, depth + 1, tuple(sources)) if sources else None
    catches_all = when.catch_up == "all"
    moments = when.schedule.between(row["next_at"], now, MOST_CAUGHT_UP if catches_all else 1)
    if not moments:
        return None
    due = moments[0]
    missed = when.catch_up == "skip" and now - due > LATE
    most = MOST_CAUGHT_UP if catches_all else 1
    return _Due(new_id("run"), row, due, when.schedule.after(due), missed=missed, may_wait=most)


def _claim(connection: Connection, now: datetime, due: _Due) -> bool:
    """Record the fire; False if it was already recorded."""
    row = {"trigger_id": due.trigger["id"], "due_at": due.due_at, "at": now, "run_id": due.run}
    return connection.execute(_CLAIM[connection.dialect.name], row).first() is not None


def _run(known: Facts, due: _Due) -> str:
    """The run of a fire: queued, skipped, or blocked, which pauses the trigger."""
    connection, now = known.connection, known.now
    trigger, pipeline = due.trigger["id"], due.trigger["parent_id"]
    if due.missed:
        return record_skipped(connection, now, pipeline, due.how, MISSED)
    refusal = _refusal(known, due)
    if refusal is not None:
        return _block(connection, now, due, refusal)
    waiting = waiting_of(connection, pipeline)
    # A retry does not count: it continues from what it read before, so it may miss data that a new run would read.
    if sum(row["trigger_id"] == trigger and row["fence"] == 0 for row in waiting) >= due.may_wait:
        return record_skipped(connection, now, pipeline, due.how, WAITS)
    try:
        return start(connection, now, startable(connection, pipeline), due.how, waiting)
    except CannotStart as error:
        return record_skipped(connection, now, pipeline, due.how, str(error))


# Authorization


def _refusal(known: Facts, due: _Due) -> str | None:
    """The reason why a fire may not start its pipeline, or None. It names nothing that a reader may not see."""
    if due.depth > MAX_DEPTH:
        return f"A chain of {MAX_DEPTH} pipelines have triggered each other, which looks like an endless loop"
    thing = known.thing(due.trigger["id"])
    if not decide_in_memory(known, Question(None, "fire", KIND, due.trigger["id"])):
        return _why(thing)
    if not is_ready(known, due.trigger["parent_id"]):
        return SECRETS
    author = due.trigger["author_id"]
    followed = [check(known.connection, author, events.FOLLOW, source, known.now) for source in due.sources]
    return (
        None
        if all(followed)
        else f"The trigger's author may no longer see the pipelines or tables that it waits for; {TAKE_OVER}"
    )


def _why(thing: Any) -> str:
    if thing.author is None:
        return f"The trigger's author is no longer a member; {TAKE_OVER}"
    needed = "update" if thing.parent.kind == "task" else "trigger"
    if not BOOK.decide(thing.author, needed, thing.parent):
        return f"The trigger's author may no longer start this pipeline; {TAKE_OVER}"
    return (
        "Whom this pipeline acts for may not read all that it reads, write all that it writes, or use its connection "
        "or destination any more; someone who may saves it again, and resumes the trigger"
    )


def _block(connection: Connection, now: datetime, due: _Due, reason: str) -> str:
    """Insert a blocked run, pause the trigger, and notify the members who could take it over."""
    trigger, pipeline = due.trigger["id"], due.trigger["parent_id"]
    run = record_blocked(connection, now, pipeline, due.how, reason)
    repository.save(connection, trigger, enabled=False, paused_because=reason, next_at=None)
    after = {"run": run, "pipeline": pipeline, "author": due.trigger["author_id"], "reason": reason}
    record(connection, [Event(now, DENIED, allowed=False, action="fire", kind=KIND, resource_id=trigger, after=after)])
    _tell_blocked(connection, now, due, run)
    return run


def _tell_blocked(connection: Connection, now: datetime, due: _Due, run: str) -> None:
    """Notify the members who could take over a trigger; their access is checked again on delivery."""
    trigger, pipeline = due.trigger["id"], due.trigger["parent_id"]
    people = tuple(person.id for person in who_can(connection, "manage", trigger, now, limit=EVERYONE))
    parent = Facts(connection, now).thing(pipeline)
    code = "LOOP" if due.depth > MAX_DEPTH else "BLOCKED"
    notice = Notice(
        "runs",
        "run.blocked",
        kind="pipeline",
        resource=pipeline,
        needs="edit_attributes" if parent.kind == "task" else "edit",
        recipients=people,
        facts={"trigger": trigger, "run": run, "state": "blocked", "code": code},
    )
    notify(connection, notice, now)
