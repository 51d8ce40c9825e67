"""Turns a definition into steps. Outputs are resolved by id, so renames do not matter."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from headgate.contracts.pipelines import definitions
from headgate.contracts.pipelines.steps import (
    AnyStep,
    Check,
    Deliver,
    KeepHistory,
    LakeItem,
    Land,
    Refine,
    RunNotebook,
    SaveStaged,
)
from headgate.lakehouse.models import table_ref_table
from headgate.platform.authorization.models import resource_table

AnyDefinition = (
    definitions.Source | definitions.Query | definitions.Notebook | definitions.History | definitions.Delivery
)
_refs, _resources = table_ref_table.c, resource_table.c


class InvalidPlan(Exception):
    """A definition that cannot run as it is; the message says why and what to do."""


class DeclaredItems:
    """The tables and volumes that a pipeline declared, by the names that its definition uses."""

    def __init__(self, result: dict[str, LakeItem]) -> None:
        self._found = result

    @classmethod
    def of(cls, connection: Connection, pipeline_id: str) -> "DeclaredItems":
        """The items of a stored pipeline, with their current names."""
        layers = resource_table.alias()
        joined = table_ref_table.join(resource_table, _resources.id == _refs.item_id).join(
            layers, layers.c.id == _resources.scope_id
        )
        columns = (_refs.ref, _resources.id, layers.c.name, _resources.name)
        rows = connection.execute(select(*columns).select_from(joined).where(_refs.resource_id == pipeline_id))
        return cls({ref.lower(): LakeItem(item, layer, name) for ref, item, layer, name in rows})

    def get(self, ref: str) -> LakeItem:
        """The item with this name in the definition; InvalidPlan if it no longer exists."""
        item = self._found.get(ref.lower())
        if item is None:
            raise InvalidPlan(f"{ref} does not exist any more; restore it, or remove it from the pipeline")
        return item

    def all(self, refs: Iterable[str]) -> tuple[LakeItem, ...]:
        """The items with these names in the definition."""
        return tuple(map(self.get, refs))


def plan(definition: AnyDefinition, items: DeclaredItems) -> list[AnyStep]:
    """The ordered steps of a definition. Checks come last, before all outputs are published together."""
    steps: list[AnyStep] = []
    match definition:
        case definitions.Source():
            steps += _landings(definition, items)
        case definitions.Query():
            steps.append(Refine(definition.model_copy(update={"expectations": ()}), items.get(definition.output)))
        case definitions.Notebook():
            steps += _notebook(definition, items)
        case definitions.History():
            history = definition.model_copy(update={"expectations": ()})
            steps.append(KeepHistory(history, items.get(definition.table), items.get(definition.output)))
        case definitions.Delivery():
            steps += [Deliver(table, items.get(table.table)) for table in definition.tables]
    checks: list[AnyStep] = [
        Check(expectation, items.get(expectation.table), items.get(expectation.other) if expectation.other else None)
        for expectation in definition.expectations
        if definitions.outputs(definition).get(expectation.table, True)
    ]
    # Data must pass the checks before a delivery sends it out of the lakehouse.
    return [*checks, *steps] if isinstance(definition, definitions.Delivery) else [*steps, *checks]


def _landings(definition: definitions.Source, items: DeclaredItems) -> list[AnyStep]:
    volume = items.get(definition.volume) if definition.volume else None
    results: list[AnyStep] = []
    for stream in definition.streams:
        if stream.enabled:
            name = f"{definition.output_layer}.{stream.table}"
            table, rejected = items.get(name), items.get(name + definitions.REJECTED)
            results.append(Land(stream, table, rejected, definition.schema_changes, volume))
    return results


def _notebook(definition: definitions.Notebook, items: DeclaredItems) -> list[AnyStep]:
    run = RunNotebook(
        cells=definition.cells,
        inputs=items.all(definition.inputs),
        outputs=items.all(output.table for output in definition.outputs),
        volumes=items.all(definition.volumes),
        output_volumes=items.all(definition.output_volumes),
        wheels=tuple((items.get(wheel.volume), wheel.path) for wheel in definition.wheels),
        hosts=definition.hosts,
        secrets=definition.secrets,
        parameters=definition.parameters,
    )
    return [run, *(SaveStaged(output, items.get(output.table)) for output in definition.outputs)]


def item_of(step: AnyStep) -> str | None:
    """The id of the table that a step belongs to."""
    return None if isinstance(step, RunNotebook) else step.table.id
