"""Triggers as shown to a caller: hidden sources are counted, not named."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.engine import RowMapping

from headgate.kit.errors import NotFound
from headgate.pipelines.triggers import events, repository
from headgate.pipelines.triggers.repository import KIND
from headgate.pipelines.triggers.schemas import (
    NEXT,
    Changed,
    Cron,
    CronOut,
    EventOut,
    Fire,
    Person,
    SourceOut,
    Succeeded,
    TriggerOut,
    TriggerShown,
    stored_when,
)
from headgate.platform.authorization.explanations import explain
from headgate.platform.authorization.questions import Question
from headgate.platform.authorization.repository import details
from headgate.platform.authorization.schemas import Resource
from headgate.platform.unit_of_work.call import Call


def of_pipeline(call: Call, pipeline: str) -> list[TriggerOut]:
    """The triggers of a pipeline that the caller may see, by name."""
    rows = repository.of_pipeline(call.connection, pipeline)
    seen = _seen(call, [row["id"] for row in rows])
    return [TriggerOut(**_shown(call, row, seen[row["id"]])) for row in rows if row["id"] in seen]


def one(call: Call, trigger: str) -> TriggerShown:
    """A trigger, and whether it could start its pipeline now."""
    row, seen = repository.row(call.connection, trigger), _seen(call, [trigger])
    if row is None or trigger not in seen:
        raise NotFound
    return TriggerShown(**_shown(call, row, seen[trigger]), blocked_by=_blocked_by(call, row))


def _seen(call: Call, triggers: Sequence[str]) -> dict[str, Resource]:
    resources = details(call.connection, call.caller.member, triggers, call.now, call.caller.narrowing)
    return {resource.id: resource for resource in resources if "see" in resource.allowed}


def _blocked_by(call: Call, row: RowMapping) -> list[str]:
    """What would block a fire now, in the words of the rule tables."""
    explanation = explain(call.facts, Question(call.caller.member, "fire", KIND, row["id"]), call.subject)
    is_task = call.facts.thing(row["parent_id"]).kind == "task"
    own = [way for way in explanation.ways if way.path.endswith("of a task") == is_task]
    return [missing for way in own for missing in way.missing]


def _shown(call: Call, row: RowMapping, resource: Resource) -> dict[str, Any]:
    spec, last = row["spec"] or {}, repository.last_fire(call.connection, row["id"])
    when = stored_when(spec) if spec else None
    return {
        "id": row["id"],
        "name": row["name"],
        "pipeline": row["parent_id"],
        "when": _when(call, row, when) if when else None,
        "full_refresh": spec.get("full_refresh", False),
        "parameters": spec.get("parameters", {}),
        "enabled": bool(row["enabled"]),
        "paused_because": row["paused_because"],
        "pipeline_active": row["pipeline_active"] is not False,
        "pipeline_inactive_because": row["pipeline_inactive_because"],
        "author": Person(id=row["author_id"], name=row["author_name"]) if row["author_name"] else None,
        "next": _next(row, when, call.now),
        "last": Fire(due_at=last["due_at"], at=last["at"], run=last["run_id"]) if last else None,
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "allowed": list(resource.allowed),
    }


def _next(row: RowMapping, when: Cron | Succeeded | Changed | None, now: datetime) -> list[datetime]:
    if not row["enabled"] or when is None or row["pipeline_active"] is False:
        return []
    if isinstance(when, Cron):
        return when.schedule.following(now, NEXT)
    return [row["next_at"]] if row["next_at"] else []


def _when(call: Call, row: RowMapping, when: Cron | Succeeded | Changed) -> CronOut | EventOut:
    if isinstance(when, Cron):
        return CronOut(cron=when.cron, time_zone=when.time_zone, catch_up=when.catch_up, says=when.schedule.says())
    met = {row["source_id"] for row in events.happened(call.connection, row["id"])}
    named = details(call.connection, call.caller.member, when.sources, call.now, call.caller.narrowing)
    known = [resource for resource in named if events.FOLLOW in resource.allowed]
    sources = [SourceOut(id=resource.id, name=resource.name, happened=resource.id in met) for resource in known]
    return EventOut(
        kind=when.kind,
        sources=sources,
        hidden=len(when.sources) - len(sources),
        which=when.which,
        at_most_every=when.at_most_every,
    )
