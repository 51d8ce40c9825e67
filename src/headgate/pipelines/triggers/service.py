"""Saves triggers of pipelines. The member who saves or resumes a trigger is its author; each fire is authorized for the
author.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError

from headgate.access.decision import Decision
from headgate.kit.errors import Conflict, Invalid, NotFound
from headgate.kit.ids import kind_of
from headgate.lakehouse.items.service import find
from headgate.pipelines.triggers import cycles, events, repository
from headgate.pipelines.triggers.models import trigger_table
from headgate.pipelines.triggers.repository import KIND
from headgate.pipelines.triggers.schemas import Changed, Cron, Succeeded, TriggerChange, TriggerIn, stored_when
from headgate.platform.authorization import writer
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.creation import require_new

MOST = 100
"""Maximum number of triggers per pipeline."""


def create(call: Call, pipeline: str, body: TriggerIn) -> str:
    """Create a trigger of a pipeline and return its id."""
    require_pipeline(call, pipeline)
    decision = require_new(call, "create", KIND, {"pipeline": pipeline})
    if repository.count(call.connection, pipeline) >= MOST:
        raise Conflict(f"A pipeline has at most {MOST} triggers; delete one first")
    spec = {
        "when": _stored(call, pipeline, body.when),
        "full_refresh": body.full_refresh,
        "parameters": body.parameters,
    }
    row = {"kind": KIND, "parent_id": pipeline, "enabled": True, **_saved(call, spec)}
    resource = writer.new_resource(call.connection, KIND, body.name, call.now, call.caller.member, scope=pipeline)
    with _uniquely(body.name), resource as trigger:
        call.connection.execute(insert(trigger_table).values(id=trigger, **row))
        repository.wait_anew(call.connection, trigger, _sources(spec))
    _tell(call, decision, "create", trigger, after={"name": body.name, "pipeline": pipeline, **spec})
    return trigger


def change(call: Call, trigger: str, body: TriggerChange) -> None:
    """Change a trigger; the caller becomes its author. A blocked trigger resumes."""
    decision, row = _require(call, trigger)
    given = body.model_fields_set
    before = row["spec"] or {}
    if body.when is None and not before:
        raise Invalid("when: this trigger has no condition yet; give one")
    when = body.when or stored_when(before)
    spec = {
        "when": _stored(call, row["parent_id"], when, trigger),
        "full_refresh": body.full_refresh if body.full_refresh is not None else before.get("full_refresh", False),
        "parameters": body.parameters if body.parameters is not None else before.get("parameters", {}),
    }
    is_on = bool(row["enabled"]) or row["paused_because"] is not None
    _go_on(call, trigger, spec, is_on=is_on, anew="when" in given or not row["enabled"])
    with _uniquely(body.name or ""):
        writer.save(call.connection, trigger, call.now, body.name)
    after = {"name": body.name or row["name"], **spec}
    _tell(call, decision, "change", trigger, before={"name": row["name"], **before}, after=after)


def pause(call: Call, trigger: str) -> None:
    """Pause a trigger until it is resumed."""
    decision, row = _require(call, trigger)
    if not row["enabled"]:
        raise Conflict("This trigger is already paused")
    repository.save(call.connection, trigger, enabled=False, paused_because=None, next_at=None)
    _tell(call, decision, "pause", trigger, after={"enabled": False})


def resume(call: Call, trigger: str) -> None:
    """Resume a paused trigger with the caller as its author. Missed fires are not caught up."""
    decision, row = _require(call, trigger)
    if row["enabled"]:
        raise Conflict("This trigger is not paused")
    if row["spec"] is None:
        raise Conflict("This trigger has no condition yet; save one first")
    spec = {**row["spec"], "when": _stored(call, row["parent_id"], stored_when(row["spec"]), trigger)}
    _go_on(call, trigger, spec, is_on=True, anew=True)
    _tell(call, decision, "resume", trigger, before={"author": row["author_id"]}, after={"enabled": True})


def delete(call: Call, trigger: str) -> str:
    """Delete a trigger and return its name. Runs that it started remain."""
    decision, row = _require(call, trigger)
    writer.remove(call.connection, [trigger])
    _tell(call, decision, "delete", trigger, before={"name": row["name"], "pipeline": row["parent_id"]}, after={})
    return str(row["name"])


# Helpers


def require_pipeline(call: Call, pipeline: str) -> None:
    """Raise NotFound if the caller may not see the pipeline."""
    if not call.may_see(pipeline):
        call.refuse("see", "pipeline", pipeline)


def _require(call: Call, trigger: str) -> tuple[Decision, RowMapping]:
    decision = call.require("manage", KIND, trigger)
    row = repository.row(call.connection, trigger)
    if row is None:
        raise NotFound
    return decision, row


def _saved(call: Call, spec: dict[str, Any]) -> dict[str, Any]:
    when = stored_when(spec)
    return {
        "author_id": call.caller.member,
        "sort": "cron" if isinstance(when, Cron) else "event",
        "spec": spec,
        "saved_at": call.now,
        "paused_because": None,
        "next_at": repository.next_at(spec, call.now),
    }


def _go_on(call: Call, trigger: str, spec: dict[str, Any], *, is_on: bool, anew: bool) -> None:
    """Save the condition of a trigger. Events so far still count, unless `anew`."""
    saved = _saved(call, spec)
    if not is_on:
        saved["next_at"] = None
    elif not anew:
        saved.pop("next_at")
    repository.save(call.connection, trigger, enabled=is_on, **saved)
    if anew:
        repository.wait_anew(call.connection, trigger, _sources(spec))


def _sources(spec: dict[str, Any]) -> tuple[str, ...]:
    when = stored_when(spec)
    return () if isinstance(when, Cron) else when.sources


def _stored(call: Call, pipeline: str, when: Cron | Succeeded | Changed, trigger: str | None = None) -> dict[str, Any]:
    """The condition of a trigger with ids instead of names; the caller must see all its sources."""
    if isinstance(when, Cron):
        return when.model_dump()
    if isinstance(when, Changed):
        tables = tuple(dict.fromkeys(_table(call, table) for table in when.tables))
        when = when.model_copy(update={"tables": tables})
    else:
        for entry in when.pipelines:
            _require_known(call, "pipeline", entry, entry)
    cycles.refuse_cycle(call, pipeline, when.sources, trigger)
    return when.model_dump(mode="json")


def _table(call: Call, text: str) -> str:
    layer, _, name = text.partition(".")
    result = text if kind_of(text) == "table" else find(call.connection, layer, name, "table")
    return _require_known(call, "table", result, text)


def _require_known(call: Call, kind: str, identifier: str | None, text: str) -> str:
    """Raise NotFound for a source whose events the caller may not follow."""
    if identifier is None or not call.decide(events.FOLLOW, kind, identifier):
        call.note_denial(events.FOLLOW, kind, identifier)
        seen = "whose runs you may see" if kind == "pipeline" else "that you may see"
        raise Invalid(f"when.{kind}s: there is no {kind} {text} {seen}")
    return identifier


@contextmanager
def _uniquely(name: str) -> Iterator[None]:
    """Context manager around writing a name; raises Conflict if another trigger of the pipeline has that name."""
    try:
        yield
    except IntegrityError:
        message = f"This pipeline already has a trigger called {name!r}; names that look alike are the same"
        raise Conflict(message) from None


def _tell(
    call: Call,
    decision: Decision,
    what: str,
    trigger: str,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any],
) -> None:
    action, told = "create" if what == "create" else "manage", {"change": f"{what}_trigger", **after}
    call.record_change(decision, action, KIND, trigger, before=before or {}, after=told)
