"""Events that triggers wait for: successful pipelines and changed tables.

An event is stored with each trigger in the transaction in which it happens or is detected, so that none is lost or
counted twice. A trigger with all its events gets a due time, like a schedule.
"""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, exists, func, or_, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines.fields import duration
from headgate.kit.ids import kind_of
from headgate.lakehouse.catalog.models import commit_table
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.triggers import repository
from headgate.pipelines.triggers.models import trigger_source_table, trigger_table
from headgate.pipelines.triggers.schemas import Cron, stored_when

FOLLOW = "follow"
"""The action that a trigger's author needs on each table and pipeline that the trigger waits for."""

_triggers, _sources, _commits, _runs = trigger_table.c, trigger_source_table.c, commit_table.c, run_table.c


def note_success(connection: Connection, now: datetime, pipeline: str, run: str, depth: int) -> None:
    """Record the success of a pipeline for its triggers. Call it in the transaction that finishes the run."""
    waiting = select(_sources.trigger_id).join(trigger_table, _triggers.id == _sources.trigger_id)
    waiting = waiting.where(_sources.source_id == pipeline, _triggers.enabled)
    for trigger in connection.execute(waiting).scalars().all():
        place = (_sources.trigger_id == trigger, _sources.source_id == pipeline)
        deepest = func.coalesce(_sources.depth, 0)
        values = {"run_id": run, "depth": depth}
        connection.execute(update(trigger_source_table).where(*place, deepest <= depth).values(values))
        aim(connection, now, trigger)


def changed_tables() -> ColumnElement[bool]:
    """SQL condition on a source: a commit that it has not seen added or removed rows of the table."""
    moved = or_(_commits.parent_snapshot_id.is_(None), _commits.snapshot_id != _commits.parent_snapshot_id)
    rewritten = and_(_commits.operation == "replace", _commits.added_rows == _commits.deleted_rows)
    newer = (_commits.table_id == _sources.source_id, _commits.version > _sources.version)
    return exists().where(*newer, _commits.snapshot_id.is_not(None), moved, ~func.coalesce(rewritten, False))


def with_changed_tables(connection: Connection, now: datetime) -> list[str]:
    """Triggers that have all the table changes they wait for and no due time yet."""
    idle = (_triggers.enabled, _triggers.next_at.is_(None), _sources.version.is_not(None), changed_tables())
    joined = trigger_source_table.join(trigger_table, _triggers.id == _sources.trigger_id)
    query = select(_sources.trigger_id).select_from(joined).where(*idle).distinct()
    result = connection.execute(query).scalars().all()
    return [trigger for trigger in result if due_at(connection, now, trigger) is not None]


def aim(connection: Connection, now: datetime, trigger: str) -> None:
    """Set the due time of a trigger that has all its events: now, or the earliest permitted time."""
    at = due_at(connection, now, trigger)
    if at is not None:
        later = or_(_triggers.next_at.is_(None), _triggers.next_at > at)
        connection.execute(update(trigger_table).where(_triggers.id == trigger, later).values(next_at=at))


def due_at(connection: Connection, now: datetime, trigger: str) -> datetime | None:
    """The due time of an event trigger; None while events are missing."""
    row = repository.row(connection, trigger)
    if row is None or not row["enabled"] or row["spec"] is None:
        return None
    when = stored_when(row["spec"])
    if isinstance(when, Cron):
        return None
    met = {row["source_id"] for row in happened(connection, trigger)}
    if not (met.issuperset(when.sources) if when.which == "all" else met):
        return None
    last = repository.last_fire(connection, trigger) if when.at_most_every else None
    if when.at_most_every is None or last is None or last["at"] > now:
        return now
    soonest: datetime = last["at"] + duration(when.at_most_every)
    return max(now, soonest)


def happened(connection: Connection, trigger: str) -> list[RowMapping]:
    """The events of a trigger since its last fire."""
    query = select(trigger_source_table).where(
        _sources.trigger_id == trigger, or_(_sources.run_id.is_not(None), changed_tables())
    )
    return list(connection.execute(query).mappings())


def take(connection: Connection, trigger: str) -> tuple[list[str], int]:
    """Consume the events of a trigger; returns their sources and the length of the longest trigger chain."""
    rows, depth = happened(connection, trigger), 0
    for entry in rows:
        depth = max(depth, _depth(connection, entry))
        version = repository.newest(connection, entry["source_id"]) if kind_of(entry["source_id"]) == "table" else None
        place = (_sources.trigger_id == trigger, _sources.source_id == entry["source_id"])
        values = {"run_id": None, "depth": None, "version": version}
        connection.execute(update(trigger_source_table).where(*place).values(values))
    return [row["source_id"] for row in rows], depth


def _depth(connection: Connection, source: RowMapping) -> int:
    if source["run_id"] is not None:
        return source["depth"] or 0
    joined = commit_table.join(run_table, _runs.id == _commits.run_id)
    newer = (_commits.table_id == source["source_id"], _commits.version > source["version"])
    return connection.execute(select(func.max(_runs.depth)).select_from(joined).where(*newer)).scalar() or 0


def free_at(last: datetime, due: datetime) -> datetime:
    """A time for an event fire that is after the last one, even if the clock was set back."""
    return max(due, last + timedelta(microseconds=1))
