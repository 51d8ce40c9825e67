"""Saves a pipeline: authorizes the change, creates the rows of its outputs, and makes the author the member it runs as.

Only Spark can determine what a query reads. Saving one is therefore a job whose last transaction saves the pipeline
(see probe.py).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import RowMapping

from headgate.access.decision import Decision
from headgate.contracts.pipelines import definitions, delivery_targets
from headgate.kit.errors import Denied, Invalid
from headgate.kit.ids import kind_of
from headgate.kit.names import BadName, check_name
from headgate.lakehouse.catalog import views
from headgate.lakehouse.items.service import create_item
from headgate.lakehouse.models import table_ref_table
from headgate.pipelines import column_lineage, expected_columns, source_reads
from headgate.pipelines.models import pipeline_definition_table, pipeline_table
from headgate.pipelines.planner import AnyDefinition
from headgate.pipelines.triggers.cycles import refuse_saved_cycle
from headgate.platform.authorization import writer
from headgate.platform.authorization.drafts import QuestionContext
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.external_systems.repository import kinds, place_of
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.creation import require_new
from headgate.spaces.connections.models import pipeline_connection_table

KIND = "pipeline"
DATABASES = frozenset({"postgresql", "mysql"})
"""Connection kinds that are databases."""
SAVED, CHANGED, DELETED, CONFIRMED = "pipeline.saved", "pipeline.changed", "pipeline.deleted", "pipeline.confirmed"
NO_OUTPUT = (
    "A notebook outside of data projects requires an output: name a table in `outputs`, or a volume in `output_volumes`"
)
_pipelines, _definitions = pipeline_table.c, pipeline_definition_table.c
_refs, _uses = table_ref_table.c, pipeline_connection_table.c


@dataclass(frozen=True, slots=True)
class PipelineDraft:
    """A pipeline as submitted by its author."""

    definition: AnyDefinition
    name: str | None = None
    """The stored name is kept if this is None."""
    description: str | None = None
    project: str | None = None
    deactivate_after: int | None = None
    own: str | None = None
    """The id of the stored pipeline; None for a new one."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A table or volume that a definition references."""

    name: str
    mode: str
    enabled: bool
    item_id: str | None
    layer_id: str | None


def refs(call: Call, definition: AnyDefinition, probed: list[str]) -> list[Ref]:
    """All inputs and outputs of a definition, by name and id; `probed` are the inputs found by Spark."""
    writes = definitions.outputs(definition)
    if isinstance(definition, definitions.Source):
        writes |= {name + definitions.REJECTED: on for name, on in writes.items()}
    reads = dict.fromkeys([*definitions.declared_reads(definition), *probed], True)
    result = []
    for mode, names in (("read", reads), ("write", writes)):
        for name, enabled in names.items():
            # A run may read its own outputs, so that does not count as an input.
            if mode == "write" or name not in writes:
                result.append(Ref(name, mode, enabled, *call.lookup.table(name)))
    return result


def output_layer(definition: AnyDefinition) -> str | None:
    """The name of the outputs' layer, if the kind has one."""
    match definition:
        case definitions.Source():
            return definition.output_layer.lower()
        case definitions.Query() | definitions.History():
            return definition.output.partition(".")[0]
        case definitions.Notebook() if definition.outputs:
            return definition.outputs[0].table.partition(".")[0]
        case definitions.Notebook() if definition.output_volumes:
            return definition.output_volumes[0].partition(".")[0]
    return None


def state(draft: PipelineDraft, result: list[Ref]) -> dict[str, Any]:
    """The draft as input for the rule tables."""
    definition = draft.definition
    place = {"project": draft.project} if draft.project and draft.own is None else {}
    return {
        "pipeline_kind": definition.kind,
        "output_layer": output_layer(definition),
        "reads": [ref.name for ref in result if ref.mode == "read"],
        "writes": [ref.name for ref in result if ref.mode == "write"],
        "disabled": [ref.name for ref in result if not ref.enabled],
        "connections": definitions.connections(definition),
        "destination": definition.destination if isinstance(definition, definitions.Delivery) else None,
        **place,
    }


def judge(call: Call, draft: PipelineDraft, result: list[Ref]) -> Decision:
    """Authorize a save; raises a refusal with the reasons."""
    wanted = state(draft, result)
    if draft.own is None:
        try:
            return require_new(call, "create" if draft.project else "add", KIND, wanted)
        except Denied as error:
            if draft.project or draft.definition.kind != "notebook" or wanted["output_layer"] is not None:
                raise
            raise Denied(NO_OUTPUT, **error.more) from None
    limits = call.caller.narrowing
    action = "update" if _project(call, draft.own) else "edit"
    asker = QuestionContext(call.caller.member, limits)
    question = Question(call.caller.member, action, KIND, draft.own, wanted, limits, asker)
    decision = decide(call.connection, question, call.now)
    if decision:
        return decision
    if not call.decide(action, KIND, draft.own):
        call.refuse(action, KIND, draft.own)
    call.note_denial(action, KIND, draft.own)
    raise Denied(
        "You may not save this definition: it requires Editor on every table that it writes, Editor on the layer "
        "of new output tables, and the use of its connection and destination"
    )


def _project(call: Call, pipeline_id: str) -> str | None:
    return call.connection.execute(select(_pipelines.project_id).where(_pipelines.id == pipeline_id)).scalar()


@dataclass(frozen=True, slots=True)
class Analysed:
    """Facts about an output that are known before its first run."""

    fields: expected_columns.Fields | None = None
    told: column_lineage.Told = ()
    loaded: Mapping[str, str | None] = field(default_factory=dict)
    """The ids of the tables that a probe loaded, by their names in the SQL."""


def save(
    call: Call,
    draft: PipelineDraft,
    probed: list[str],
    unresolved: str | None = None,
    analysed: Analysed = Analysed(),  # noqa: B008 - it is frozen
) -> str:
    """Authorize and store a pipeline in this transaction; returns its id."""
    result = refs(call, draft.definition, probed)
    decision = judge(call, draft, result)
    check_kinds(call, draft.definition, result)
    check_places(call, draft.definition)
    _check_cursors(call, draft.definition)
    result = [_made(call, ref) for ref in result]
    missing = [ref.name for ref in result if ref.item_id is None]
    if missing:
        unresolved = unresolved or f"{', '.join(missing)} does not exist"
    layer = call.lookup.of("layer", output_layer(draft.definition))
    destination = draft.definition.destination if isinstance(draft.definition, definitions.Delivery) else None
    values = {"pipeline_kind": draft.definition.kind, "output_layer_id": layer, "destination_id": destination}
    with _written(call, draft, values) as identifier:
        _write_definition(call, draft, identifier, unresolved)
        _write_refs(call, identifier, result, definitions.connections(draft.definition))
        _write_analysed(call, draft.definition, identifier, result, analysed)
        refuse_saved_cycle(call, identifier)
    after = {"version": _row(call, identifier)["version"], "kind": draft.definition.kind, "refs": len(result)}
    call.record(
        call.event(
            SAVED, allowed=True, action="edit", kind=KIND, resource_id=identifier, via=list(decision.via), after=after
        )
    )
    return identifier


def check_kinds(call: Call, definition: AnyDefinition, result: list[Ref]) -> None:
    """Check that each referenced table is a table and each volume a volume. A run does not create volumes, so they must
    exist.
    """
    _check_views(call, definition, result)
    volumes = definitions.volumes(definition)
    for ref in result:
        wanted = "volume" if ref.name in volumes else "table"
        is_made = wanted == "table" or ref.mode == "read"
        if ref.item_id is None and not is_made:
            raise Invalid(f"definition: there is no volume {ref.name}; create it first")
        if ref.item_id is not None and kind_of(ref.item_id) != wanted:
            raise Invalid(f"definition: {ref.name} is a {kind_of(ref.item_id)}, not a {wanted}")


def _check_views(call: Call, definition: AnyDefinition, result: list[Ref]) -> None:
    """Reject a view where a table is required: only SQL can read a view, and nothing can write to it."""
    known = views.among(call.connection, [ref.item_id for ref in result if ref.item_id is not None])
    for entry in result:
        if entry.item_id in known and not (isinstance(definition, definitions.Query) and entry.mode == "read"):
            todo = (
                "use another output"
                if entry.mode == "write"
                else "read it with a query pipeline, and use the output of that pipeline"
            )
            raise Invalid(f"definition: {entry.name} is a view; {todo}")


def check_places(call: Call, definition: AnyDefinition) -> None:
    """Check that the kinds of the connection and the destination support what is read and sent."""
    source_reads.check(call, definition)
    if not isinstance(definition, definitions.Delivery):
        return
    kind = kinds(call.connection, [definition.destination]).get(definition.destination)
    for number, delivery in enumerate(definition.tables if kind else ()):
        try:
            delivery_targets.check(delivery, str(kind))
        except ValueError as error:
            raise Invalid(f"definition.tables.{number}.{error}") from None


def _check_cursors(call: Call, definition: AnyDefinition) -> None:
    """Require a cursor column for an incremental read of a database. Other sources identify new data by files or
    responses.
    """
    if not isinstance(definition, definitions.Source) or definition.connection is None:
        return
    if kinds(call.connection, [definition.connection]).get(definition.connection) not in DATABASES:
        return
    for number, stream in enumerate(definition.streams):
        if stream.read == "incremental" and stream.cursor is None:
            raise Invalid(
                f"definition.streams.{number}.cursor: an incremental load from a database requires a cursor, a "
                "column whose values only increase; set one, or load in full"
            )


def _made(call: Call, ref: Ref) -> Ref:
    """Create the row and the id of an output that does not exist yet."""
    if ref.mode != "write" or ref.item_id is not None:
        return ref
    if ref.layer_id is None:
        raise Invalid(f"definition: there is no layer {ref.name.partition('.')[0]!r} in which you may create tables")
    item = create_item(call, "table", ref.layer_id, ref.name.partition(".")[2])
    return Ref(ref.name, ref.mode, ref.enabled, item, ref.layer_id)


@contextmanager
def _written(call: Call, draft: PipelineDraft, values: dict[str, Any]) -> Iterator[str]:
    """Write the row of a new or changed pipeline and yield its id, so that the caller can write the dependent rows."""
    member, values = call.caller.member, {**values, "acts_for_id": call.caller.member}
    if draft.own is None:
        fixed = {"project_id": draft.project, "owner_id": member if draft.project else None}
        with writer.new_resource(call.connection, KIND, _name(draft.name or ""), call.now, member) as identifier:
            call.connection.execute(insert(pipeline_table).values(id=identifier, **fixed, **values))
            yield identifier
        return
    call.connection.execute(update(pipeline_table).where(_pipelines.id == draft.own).values(values))
    yield draft.own
    writer.save(call.connection, draft.own, call.now, _name(draft.name) if draft.name else None)


def _name(name: str) -> str:
    try:
        return check_name(name)
    except BadName as error:
        raise Invalid(f"name: {error}") from None


def _write_definition(call: Call, draft: PipelineDraft, identifier: str, unresolved: str | None) -> None:
    values: dict[str, Any] = {
        "definition": draft.definition.model_dump(mode="json"),
        "unresolved": unresolved,
        "saved_at": call.now,
        "saved_by_id": call.caller.member,
        "place_versions": place_versions(call, draft.definition),
    }
    if draft.description is not None:
        values["description"] = draft.description
    if draft.deactivate_after is not None:
        values["deactivate_after"] = draft.deactivate_after or None
    mine = _definitions.pipeline_id == identifier
    stored = call.connection.execute(select(pipeline_definition_table).where(mine)).mappings().one_or_none()
    if stored is None:
        new = {"pipeline_id": identifier, "version": 1, "active": True, "failures": 0}
        call.connection.execute(insert(pipeline_definition_table).values(**new, **values))
        return
    # A save names a connection or destination, not its endpoint. A changed endpoint still needs to be confirmed.
    confirmed = {**values["place_versions"], **stored["place_versions"]}
    places = {value: confirmed[value] for value in values["place_versions"]}
    values |= {"version": stored["version"] + 1, "failures": 0, "place_versions": places}
    call.connection.execute(update(pipeline_definition_table).where(mine).values(values))


def _write_analysed(
    call: Call, definition: AnyDefinition, identifier: str, result: list[Ref], analysed: Analysed
) -> None:
    """Store the analysed columns of the outputs and their lineage."""
    items = {ref.name: ref.item_id for ref in result if ref.item_id is not None}
    output = items.get(expected_columns.output(definition) or "")
    expected_columns.keep(call, identifier, output, analysed.fields)
    known = column_lineage.by_definition(definition, items) or column_lineage.of_query(
        output, analysed.told, analysed.loaded
    )
    mine = _definitions.pipeline_id == identifier
    call.connection.execute(
        update(pipeline_definition_table).where(mine).values(origins=[list(value) for value in known])
    )


def place_versions(call: Call, definition: AnyDefinition) -> dict[str, int]:
    """The current endpoint versions of the connections and the destination of a definition."""
    places = definitions.connections(definition)
    if isinstance(definition, definitions.Delivery):
        places.append(definition.destination)
    values = {place: place_of(call.connection, place) for place in places}
    gone = [value for value, place in values.items() if place is None]
    if gone:
        raise Invalid(f"definition: {gone[0]} has no host configured; set it first")
    return {value: place.version for value, place in values.items() if place is not None}


def _row(call: Call, identifier: str) -> RowMapping:
    mine = select(pipeline_definition_table).where(_definitions.pipeline_id == identifier)
    return call.connection.execute(mine).mappings().one()


def _write_refs(call: Call, identifier: str, result: list[Ref], connections: list[str]) -> None:
    call.connection.execute(delete(table_ref_table).where(_refs.resource_id == identifier))
    rows: list[dict[str, Any]] = [
        {
            "resource_id": identifier,
            "mode": ref.mode,
            "ref": ref.name,
            "item_id": ref.item_id,
            "layer_id": ref.layer_id,
            "enabled": ref.enabled,
        }
        for ref in result
    ]
    if rows:
        call.connection.execute(insert(table_ref_table), rows)
    call.connection.execute(delete(pipeline_connection_table).where(_uses.pipeline_id == identifier))
    if connections:
        uses = [{"pipeline_id": identifier, "connection_id": connection} for connection in connections]
        call.connection.execute(insert(pipeline_connection_table), uses)
