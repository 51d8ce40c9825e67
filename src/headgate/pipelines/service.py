"""View and change pipelines for members."""

from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines import definitions
from headgate.contracts.pipelines.steps import LakeItem, title
from headgate.kit.errors import Conflict, NotFound
from headgate.kit.ids import kind_of
from headgate.lakehouse.models import table_ref_table
from headgate.pipelines import (
    confirmation,
    deferred_checks,
    planner,
    save,
    source_reads,
)
from headgate.pipelines.models import pipeline_definition_table, pipeline_table
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.runs.start import UNRESOLVED, CannotStart, NotResolved, startable
from headgate.pipelines.schemas import (
    LastRun,
    NeededOut,
    PipelineChange,
    PipelineItem,
    PipelineOut,
    PlanOut,
    StepOut,
)
from headgate.pipelines.triggers.models import trigger_table
from headgate.platform.authorization import writer
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.questions import Question, decide, is_ready
from headgate.platform.authorization.schemas import Resource
from headgate.platform.jobs.models import HELD, WAITING
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.spaces.spaces.models import project_table

_pipelines, _definitions, _refs, _runs = pipeline_table.c, pipeline_definition_table.c, table_ref_table.c, run_table.c
LEVELS = {"read": "viewer", "write": "editor"}


def stored(call: Call, pipeline_id: str) -> RowMapping:
    """The row of a pipeline, joined with its definition if it has one."""
    joined = pipeline_table.outerjoin(pipeline_definition_table, _definitions.pipeline_id == _pipelines.id)
    joined = joined.outerjoin(project_table, project_table.c.id == _pipelines.project_id)
    columns: list[Any] = [*_pipelines, *(definition for definition in _definitions if definition.name != "pipeline_id")]
    columns.append(project_table.c.owner_id.label("project_owner"))
    query = select(*columns).select_from(joined).where(_pipelines.id == pipeline_id)
    row = call.connection.execute(query).mappings().one_or_none()
    if row is None:
        raise NotFound
    return row


def items(call: Call, page: list[Resource]) -> list[PipelineItem]:
    """The pipelines of a list, in three queries regardless of their number."""
    ids = [resource.id for resource in page]
    joined = pipeline_table.outerjoin(pipeline_definition_table, _definitions.pipeline_id == _pipelines.id)
    query = select(_pipelines.id, _pipelines.pipeline_kind, _definitions.active).select_from(joined)
    rows = {row.id: row for row in call.connection.execute(query.where(_pipelines.id.in_(ids)))}
    runs = _last_runs(call, ids)
    return [
        PipelineItem(
            id=resource.id,
            name=resource.name,
            kind=rows[resource.id].pipeline_kind,
            active=bool(rows[resource.id].active),
            created_at=resource.created_at,
            updated_at=resource.updated_at,
            last_run=runs.get(resource.id),
            allowed=list(resource.allowed),
        )
        for resource in page
        if resource.id in rows
    ]


def _last_runs(call: Call, ids: list[str]) -> dict[str, LastRun]:
    newest = select(func.max(_runs.id)).where(_runs.parent_id.in_(ids)).group_by(_runs.parent_id)
    query = select(_runs.id, _runs.parent_id, _runs.state, _runs.queued_at, _runs.ended_at)
    rows = call.connection.execute(query.where(_runs.id.in_(newest.scalar_subquery())))
    return {
        row.parent_id: LastRun(id=row.id, state=row.state, queued_at=row.queued_at, ended_at=row.ended_at)
        for row in rows
    }


def refs(call: Call, pipeline_id: str) -> list[RowMapping]:
    """The inputs and outputs of a pipeline."""
    query = select(table_ref_table).where(_refs.resource_id == pipeline_id).order_by(_refs.mode, _refs.ref)
    return list(call.connection.execute(query).mappings())


def _seen(call: Call, every: list[RowMapping]) -> set[str]:
    """The names of the items that the caller may see."""
    visible = presentation.allowed(call, (row["item_id"] for row in every))
    return {row["ref"] for row in every if (row["item_id"] in visible if row["item_id"] else _reads(call, row["ref"]))}


def _reads(call: Call, ref: str) -> bool:
    """Whether the caller could read a table of this name if it existed; seeing its layer is not sufficient."""
    limits = call.caller.narrowing
    question = Question(call.caller.member, "create", "saved_query", None, {"reads": (ref,)}, limits)
    return bool(decide(call.connection, question, call.now))


def shown(call: Call, pipeline_id: str) -> PipelineOut:
    """A pipeline, limited to the references that the caller may see."""
    [item] = items(call, [presentation.one(call, pipeline_id)])
    row = stored(call, pipeline_id)
    every = refs(call, pipeline_id)
    seen = _seen(call, every)
    names: dict[str, list[str]] = {"read": [], "write": []}
    for entry in every:
        if entry["ref"] in seen:
            names[entry["mode"]].append(entry["ref"])
    hidden = sum(row["ref"] not in seen for row in every)
    whole = hidden == 0
    return PipelineOut(
        **item.model_dump(),
        description=row["description"] or "",
        definition=row["definition"] if whole else None,
        version=row["version"],
        unresolved=row["unresolved"] if whole else None,
        notes=_notes(call, row) if whole else [],
        inactive_because=row["inactive_because"],
        deactivate_after=row["deactivate_after"],
        failures=row["failures"] or 0,
        saved_at=row["saved_at"],
        saved_by=row["saved_by_id"],
        acts_for=_acts_for(row),
        reads=names["read"],
        writes=names["write"],
        hidden=hidden,
        endpoints=confirmation.shown(call, row["place_versions"] or {}),
    )


def _notes(call: Call, row: RowMapping) -> list[str]:
    try:
        return deferred_checks.notes(call.connection, definitions.parse(row["definition"])) if row["definition"] else []
    except ValueError:
        return []


def change(call: Call, pipeline_id: str, body: PipelineChange) -> None:
    """Change the name, description or activation. The definition is changed by a save."""
    is_task = stored(call, pipeline_id)["project_id"] is not None
    action = "edit_attributes" if is_task else "edit"
    if body.active is not None:
        call.require("edit_attributes" if is_task else "activate", save.KIND, pipeline_id)
    if body.active is None or body.name is not None or body.description is not None:
        call.require(action, save.KIND, pipeline_id)
    values: dict[str, Any] = {}
    if body.description is not None:
        values["description"] = body.description
    if body.active is not None:
        values |= {"active": body.active, "inactive_because": None, **({"failures": 0} if body.active else {})}
    if body.deactivate_after is not None:
        values["deactivate_after"] = body.deactivate_after or None
    if values:
        mine = _definitions.pipeline_id == pipeline_id
        if call.connection.execute(update(pipeline_definition_table).where(mine).values(values)).rowcount != 1:
            raise Conflict("This pipeline has no definition; save one first")
    writer.save(call.connection, pipeline_id, call.now, body.name)
    after = body.model_dump(exclude_unset=True, exclude={"definition"})
    call.record(
        call.event(save.CHANGED, allowed=True, action=action, kind=save.KIND, resource_id=pipeline_id, after=after)
    )


def delete(call: Call, pipeline_id: str) -> str:
    """Delete a pipeline, its triggers and its run history; returns its name. The tables it wrote remain."""
    query = select(_runs.id).where(_runs.parent_id == pipeline_id, _runs.state.in_((*HELD, WAITING))).limit(1)
    if call.connection.execute(query).first() is not None:
        raise Conflict("This pipeline has a queued or running run; cancel it first")
    name = presentation.one(call, pipeline_id).name
    for table in (trigger_table, run_table):
        children = select(table.c.id).where(table.c.parent_id == pipeline_id)
        writer.remove(call.connection, call.connection.execute(children).scalars())
    writer.remove(call.connection, [pipeline_id])
    call.record(
        call.event(
            save.DELETED,
            allowed=True,
            action="delete",
            kind=save.KIND,
            resource_id=pipeline_id,
            after={"name": name},
        )
    )
    return name


# Dry run


def plan_of(call: Call, pipeline_id: str) -> PlanOut:
    """The plan of a stored pipeline, and whether the member it runs as has the required access."""
    row = stored(call, pipeline_id)
    rows = refs(call, pipeline_id)
    seen = _seen(call, rows)
    whole = all(row["ref"] in seen for row in rows)
    acts_for = _acts_for(row)
    problems: list[str] = []
    try:
        startable(call.connection, pipeline_id)
    except CannotStart as error:
        problems.append(UNRESOLVED if isinstance(error, NotResolved) and not whole else str(error))
    if row["definition"] is None:
        return PlanOut(steps=[], needs=[], acts_for=acts_for, may_start=False, problems=problems)
    definition = definitions.parse(row["definition"])
    steps: list[StepOut] = []
    try:
        plan = planner.plan(definition, planner.DeclaredItems.of(call.connection, pipeline_id))
        steps = [_step(number, step, whole) for number, step in enumerate(plan)]
    except planner.InvalidPlan as error:
        problems.append(str(error) if whole else "A table of the pipeline does not exist any more")
    needs = [
        _needed(
            call,
            {acts_for, row["acts_for_id"]},
            entry["mode"],
            entry["ref"] if entry["ref"] in seen else None,
            entry["item_id"],
            entry["layer_id"],
        )
        for entry in rows
        if entry["enabled"]
    ]
    if whole:
        problems += source_reads.missing_wheels(call, definition, {row["ref"]: row["item_id"] for row in rows})
    ready = is_ready(Facts(call.connection, call.now), pipeline_id)
    if not ready:
        problems.append(
            "The pipeline runs as a member who lacks access to one of its tables, its connection or destination, "
            "or the permission to read secrets of connections in a notebook. A member who has this access must "
            "save it again"
        )
    if not row["active"]:
        problems.append("The pipeline is inactive; activate it first")
    may = ready and not problems and bool(call.decide("start", save.KIND, pipeline_id))
    notes = deferred_checks.notes(call.connection, definition) if whole else []
    return PlanOut(steps=steps, needs=needs, acts_for=acts_for, may_start=may, problems=problems, notes=notes)


def _acts_for(row: RowMapping) -> str | None:
    """The member that a pipeline runs as: its last saver, or the owner of the project for a data task."""
    result: str | None = row["project_owner"] if row["project_id"] else row["acts_for_id"]
    return result


def plan_draft(call: Call, draft: save.PipelineDraft) -> PlanOut:
    """The plan of an unsaved definition for the caller."""
    refs = save.refs(call, draft.definition, [])
    save.judge(call, draft, refs)
    save.check_kinds(call, draft.definition, refs)
    save.check_places(call, draft.definition)
    known = {ref.name: LakeItem(ref.item_id or "", *ref.name.split(".", 1)) for ref in refs}
    problems = [
        f"{ref.name} does not exist yet; the pipeline cannot run before it exists"
        for ref in refs
        if ref.mode == "read" and ref.item_id is None
    ]
    problems += source_reads.missing_wheels(call, draft.definition, {ref.name: ref.item_id for ref in refs})
    if deferred_checks.probed_sql(call.connection, draft.definition):
        problems.append("The inputs of its SQL are determined when it is saved")
    steps = planner.plan(draft.definition, planner.DeclaredItems(known))
    author: set[str | None] = {call.caller.member}
    needs = [_needed(call, author, ref.mode, ref.name, ref.item_id, ref.layer_id) for ref in refs if ref.enabled]
    return PlanOut(
        steps=[_step(number, step, True) for number, step in enumerate(steps)],  # noqa: FBT003
        needs=needs,
        acts_for=call.caller.member,
        may_start=False,
        problems=problems,
        notes=deferred_checks.notes(call.connection, draft.definition),
    )


def _step(number: int, step: Any, is_seen: bool) -> StepOut:
    return StepOut(number=number, kind=step.kind, title=title(step) if is_seen else step.kind)


def _needed(
    call: Call, members: set[str | None], mode: str, name: str | None, item: str | None, layer: str | None
) -> NeededOut:
    """The access needed on a table, and whether all of `members` have it."""
    level = LEVELS[mode]
    about = item or layer
    kind = kind_of(about) if about else None
    action = "edit" if level == "editor" else "see" if kind in {"layer", "volume"} else "execute"
    asked = [Question(member, action, kind, about) for member in members] if about and kind else []
    held = bool(asked) and all(decide(call.connection, question, call.now) for question in asked)
    return NeededOut(name=name, mode=mode, level=level, held=held)
