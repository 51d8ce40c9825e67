"""One fire of a trigger, in one transaction: its row, its judgment, and the run that it starts.

Whatever stops the transaction takes all of it back, and the trigger is due still; once it is committed, the trigger's
next time has moved on, and the row keeps this one from firing again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import RowMapping

from headgate.access.book import BOOK
from headgate.audit.events import DENIED, Event, record
from headgate.governance.facts import Facts
from headgate.governance.people import who_can
from headgate.governance.questions import Question, decide, decide_in_memory
from headgate.kit.ids import kind_of
from headgate.notifications.service import Notice, tell
from headgate.pipelines.models import pipeline_definition_table
from headgate.runs.models import trigger_fire_table
from headgate.runs.starting import MAX_DEPTH, CannotStart, Start, record_blocked, record_skipped, start, startable
from headgate.triggers import events, repository
from headgate.triggers.repository import KIND
from headgate.triggers.schemas import Cron, stored_when

MOST_CAUGHT_UP = 100
"""How many missed fires are caught up at most; and how many runs that a trigger started may wait by then."""
LATE = timedelta(minutes=1)
"""A fire that is later than this was missed."""
EVERYONE = (1 << 31) - 1
MISSED = "Nothing ran when this was due, and its trigger does not catch up"
WAITS = "A run that this trigger started before still waits"
TAKE_OVER = "someone who may start the pipeline takes the trigger over by resuming or saving it"

_definitions, _fires = pipeline_definition_table.c, trigger_fire_table.c


@dataclass(frozen=True, slots=True)
class _Due:
    """What a fire is to do."""

    trigger: RowMapping
    due_at: datetime
    next_at: datetime | None
    depth: int = 0
    sources: tuple[str, ...] = ()
    missed: bool = False
    may_wait: int = 1

    @property
    def how(self) -> Start:
        """How the run is started."""
        spec = self.trigger["spec"]
        return Start(
            trigger=self.trigger["id"],
            due_at=self.due_at,
            full_refresh=bool(spec.get("full_refresh")),
            parameters=spec.get("parameters") or {},
            depth=self.depth,
        )


def fire(connection: Connection, now: datetime, trigger: str) -> str | None:
    """Fire a trigger if it is due, and have it wait for its next time; the run, if there is one."""
    row = repository.row(connection, trigger)
    if row is None or not row["enabled"] or row["spec"] is None or row["next_at"] is None or row["next_at"] > now:
        return None
    due = _due(connection, now, row)
    repository.save(connection, trigger, next_at=due.next_at if due else repository.next_at(row["spec"], now))
    if due is None or not _is_active(connection, row["parent_id"]) or not _claim(connection, now, due):
        return None
    run = _run(connection, now, due)
    mine = (_fires.trigger_id == trigger, _fires.due_at == due.due_at)
    connection.execute(update(trigger_fire_table).where(*mine).values(run_id=run))
    return run


def _due(connection: Connection, now: datetime, row: RowMapping) -> _Due | None:
    """What is to be fired now; None if nothing is, after all."""
    when = stored_when(row["spec"])
    if not isinstance(when, Cron):
        sources, depth = events.take(connection, row["id"])
        last = repository.last_fire(connection, row["id"])
        at = events.free_at(last["due_at"], now) if last else now
        return _Due(row, at, None, depth + 1, tuple(sources)) if sources else None
    catches_all = when.catch_up == "all"
    found = when.schedule.between(row["next_at"], now, MOST_CAUGHT_UP if catches_all else 1)
    if not found:
        return None
    due = found[0]
    missed = when.catch_up == "skip" and now - due > LATE
    most = MOST_CAUGHT_UP if catches_all else 1
    return _Due(row, due, when.schedule.after(due), missed=missed, may_wait=most)


def _is_active(connection: Connection, pipeline: str) -> bool:
    """Whether a pipeline is on; the triggers of one that is off let their times pass."""
    query = select(_definitions.active).where(_definitions.pipeline_id == pipeline)
    return connection.execute(query).scalar() is not False


def _claim(connection: Connection, now: datetime, due: _Due) -> bool:
    """Write the fire down; False if it was already."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {"trigger_id": due.trigger["id"], "due_at": due.due_at, "at": now}
    statement = dialect.insert(trigger_fire_table).values(row).on_conflict_do_nothing().returning(_fires.due_at)
    return connection.execute(statement).first() is not None


def _run(connection: Connection, now: datetime, due: _Due) -> str:
    """The run of a fire: it waits, or it was left out, or it was blocked; then the trigger pauses."""
    trigger, pipeline = due.trigger["id"], due.trigger["parent_id"]
    if due.missed:
        return record_skipped(connection, now, pipeline, due.how, MISSED)
    refusal = _refusal(connection, now, due)
    if refusal is not None:
        return _block(connection, now, due, refusal)
    if repository.queued_runs(connection, trigger) >= due.may_wait:
        return record_skipped(connection, now, pipeline, due.how, WAITS)
    try:
        return start(connection, now, startable(connection, pipeline), due.how)
    except CannotStart as error:
        return record_skipped(connection, now, pipeline, due.how, str(error))


# Judgment


def _refusal(connection: Connection, now: datetime, due: _Due) -> str | None:
    """Why a fire may not start its pipeline; None if it may. It names nothing that some reader may not see."""
    if due.depth > MAX_DEPTH:
        return f"{MAX_DEPTH} pipelines have started one another in a row, which looks like a loop without an end"
    facts = Facts(connection, now)
    thing = facts.thing(due.trigger["id"])
    if not decide_in_memory(facts, Question(None, "fire", KIND, due.trigger["id"])):
        return _why(thing)
    author = due.trigger["author_id"]
    for source in due.sources:
        kind = kind_of(source) or ""
        asked = (Question(author, action, kind, source) for action in events.TO_KNOW[kind])
        if not any(decide(connection, one, now) for one in asked):
            return f"The trigger's author may not see what it waits for any more; {TAKE_OVER}"
    return None


def _why(thing: Any) -> str:
    if thing.author is None:
        return f"The trigger's author is no longer a member; {TAKE_OVER}"
    needed = "update" if thing.parent.kind == "task" else "trigger"
    if not BOOK.decide(thing.author, needed, thing.parent):
        return f"The trigger's author may not start this pipeline any more; {TAKE_OVER}"
    return (
        "Whom this pipeline acts for may not read all that it reads, write all that it writes, or use its connection "
        "or destination any more; someone who may saves it again, and resumes the trigger"
    )


def _block(connection: Connection, now: datetime, due: _Due, reason: str) -> str:
    """Write a blocked run, pause the trigger, and have those told who could take it over."""
    trigger, pipeline = due.trigger["id"], due.trigger["parent_id"]
    run = record_blocked(connection, now, pipeline, due.how, reason)
    repository.save(connection, trigger, enabled=False, paused_because=reason, next_at=None)
    after = {"run": run, "pipeline": pipeline, "author": due.trigger["author_id"], "reason": reason}
    record(connection, [Event(now, DENIED, allowed=False, action="fire", kind=KIND, resource_id=trigger, after=after)])
    _tell_blocked(connection, now, due, run)
    return run


def _tell_blocked(connection: Connection, now: datetime, due: _Due, run: str) -> None:
    """Have those told who could take a trigger over; whether each still may is asked again when they are."""
    trigger, pipeline = due.trigger["id"], due.trigger["parent_id"]
    people = tuple(person.id for person in who_can(connection, "manage", trigger, now, limit=EVERYONE))
    parent = Facts(connection, now).thing(pipeline)
    notice = Notice(
        "runs",
        "run.blocked",
        kind="pipeline",
        resource=pipeline,
        needs="edit_attributes" if parent.kind == "task" else "edit",
        recipients=people,
        facts={"trigger": trigger, "run": run},
    )
    tell(connection, notice, now)
