"""Database access to triggers, their sources and their fires."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.engine import MappingResult, RowMapping

from headgate.kit.ids import kind_of
from headgate.lakehouse.catalog.models import commit_table
from headgate.pipelines.models import pipeline_definition_table
from headgate.pipelines.triggers.models import trigger_fire_table, trigger_source_table, trigger_table
from headgate.pipelines.triggers.schemas import Cron, stored_when
from headgate.platform.authorization.models import resource_table
from headgate.platform.directory.models import member_table

KIND = "pipeline_trigger"
_triggers, _sources, _fires = trigger_table.c, trigger_source_table.c, trigger_fire_table.c
_resources, _members, _commits = resource_table.c, member_table.c, commit_table.c
_definitions = pipeline_definition_table.c


def row(connection: Connection, trigger: str) -> RowMapping | None:
    """A trigger with its name, fire times and author."""
    return _rows(connection, _triggers.id == trigger).one_or_none()


def to_fire(connection: Connection, triggers: Sequence[str]) -> list[RowMapping]:
    """Triggers with the activation of their pipelines, in the given order."""
    joined = trigger_table.outerjoin(pipeline_definition_table, _definitions.pipeline_id == _triggers.parent_id)
    query = select(trigger_table, _definitions.active).select_from(joined).where(_triggers.id.in_(triggers))
    values = {row["id"]: row for row in connection.execute(query).mappings()}
    return [values[trigger] for trigger in triggers if trigger in values]


def of_pipeline(connection: Connection, pipeline: str) -> Sequence[RowMapping]:
    """The triggers of a pipeline, by name."""
    return _rows(connection, _triggers.parent_id == pipeline, _triggers.kind == KIND).all()


def _rows(connection: Connection, *where: Any) -> MappingResult:
    joined = trigger_table.join(resource_table, _resources.id == _triggers.id).outerjoin(
        member_table, (_members.id == _triggers.author_id) & _members.removed_at.is_(None)
    )
    joined = joined.outerjoin(pipeline_definition_table, _definitions.pipeline_id == _triggers.parent_id)
    names = (_resources.name, _resources.created_at, _resources.updated_at, _members.name.label("author_name"))
    active = _definitions.active.label("pipeline_active")
    because = _definitions.inactive_because.label("pipeline_inactive_because")
    query = select(trigger_table, *names, active, because).select_from(joined).where(*where)
    return connection.execute(query.order_by(_resources.name_key, _triggers.id)).mappings()


def count(connection: Connection, pipeline: str) -> int:
    """How many triggers a pipeline has."""
    query = select(func.count()).select_from(trigger_table).where(_triggers.parent_id == pipeline)
    return int(connection.execute(query).scalar_one())


_SAVE = update(trigger_table).where(_triggers.id == bindparam("trigger"))


def save(connection: Connection, trigger: str, **values: Any) -> None:
    """Update columns of a trigger."""
    connection.execute(_SAVE, {"trigger": trigger, **values})


# Sources


def sources(connection: Connection, trigger: str) -> Sequence[RowMapping]:
    """The sources of a trigger, with their events."""
    query = select(trigger_source_table).where(_sources.trigger_id == trigger).order_by(_sources.source_id)
    return connection.execute(query).mappings().all()


def wait_anew(connection: Connection, trigger: str, wanted: Iterable[str]) -> None:
    """Set the sources of a trigger and discard earlier events."""
    connection.execute(delete(trigger_source_table).where(_sources.trigger_id == trigger))
    rows = [
        {
            "trigger_id": trigger,
            "source_id": value,
            "version": newest(connection, value) if kind_of(value) == "table" else None,
        }
        for value in wanted
    ]
    if rows:
        connection.execute(insert(trigger_source_table), rows)


def newest(connection: Connection, table: str) -> int:
    """The number of a table's last commit; 0 if there is none."""
    query = select(func.max(_commits.version)).where(_commits.table_id == table)
    return connection.execute(query).scalar() or 0


# Fires


def last_fire(connection: Connection, trigger: str) -> RowMapping | None:
    """The last fire time of a trigger."""
    query = select(trigger_fire_table).where(_fires.trigger_id == trigger).order_by(_fires.due_at.desc()).limit(1)
    return connection.execute(query).mappings().one_or_none()


def next_at(spec: dict[str, Any], now: datetime) -> datetime | None:
    """The next due time of a schedule; None for events."""
    when = stored_when(spec)
    return when.schedule.after(now) if isinstance(when, Cron) else None
