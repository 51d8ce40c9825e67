"""Column lineage of a pipeline, as far as it is known when the pipeline is saved.

For a query, it comes from Spark's plan. Histories and streams pass columns through unchanged: one entry covers all
columns.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headgate.contracts.pipelines import definitions
from headgate.pipelines.planner import AnyDefinition

MOST = 20_000
"""Maximum number of column origins stored per pipeline."""


class ColumnOrigin(NamedTuple):
    """An output column and one source column that it is computed from.

    Without column names, the entry means: every output column that also exists in the source comes from the source
    column of the same name. Without a source, the values come from outside the lakehouse.
    """

    target: str
    column: str | None
    source: str | None
    source_column: str | None


Told = Sequence[tuple[str, Sequence[tuple[str, str]]]]
"""For each column of a query: its name, and the (table, column) pairs it is computed from, with table names as in the
SQL.
"""


def of_query(output: str | None, told: Told, loaded: Mapping[str, str | None]) -> list[ColumnOrigin]:
    """Column origins of a query from Spark's plan; `loaded` maps table names to ids."""
    if output is None:
        return []
    results = [
        ColumnOrigin(output, column, source, name)
        for column, parts in told
        for ref, name in parts
        # A branch or tag name may follow the table name.
        if (source := loaded.get(".".join(ref.split(".")[:2]))) is not None
    ]
    return results if len(results) <= MOST else []


def by_definition(definition: AnyDefinition, items: Mapping[str, str]) -> list[ColumnOrigin]:
    """Column origins that follow from the definition alone; `items` maps table and volume names to ids."""
    match definition:
        case definitions.History():
            pairs = [(definition.output, definition.table)]
        case definitions.Source():
            streams = [stream for stream in definition.streams if stream.enabled]
            pairs = [(f"{definition.output_layer}.{stream.table}", definition.volume or "") for stream in streams]
        case _:
            return []
    return [
        ColumnOrigin(items[output], None, items.get(source), None)
        for output, source in pairs
        if output in items and (not source or source in items)
    ]


def parse(stored: Any) -> list[ColumnOrigin]:
    """Parse the origins stored with a pipeline."""
    return [ColumnOrigin(*value) for value in stored or ()]
