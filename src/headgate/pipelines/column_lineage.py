"""Which columns the columns of an output are made of, as far as it is known when a pipeline is saved.

A query's are told by Spark's plan. Histories and streams give columns as they are: that is one line for all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headgate.contracts.pipelines import definitions
from headgate.pipelines.planner import AnyDefinition

MOST = 20_000
"""How many are kept of a pipeline; more tell nobody anything."""


class ColumnOrigin(NamedTuple):
    """A column of an output, and one that its values are made of.

    Without columns, every column of the output that the source has too comes from the one of the same name. Without a
    source, it comes from outside.
    """

    target: str
    column: str | None
    source: str | None
    source_column: str | None


Told = Sequence[tuple[str, Sequence[tuple[str, str]]]]
"""Each column of a query by name, and what it is made of: tables, by the names that it calls them, and columns."""


def of_query(output: str | None, told: Told, loaded: Mapping[str, str | None]) -> list[ColumnOrigin]:
    """What Spark told of a query's columns; `loaded` are the ids of the tables by their names."""
    if output is None:
        return []
    results = [
        ColumnOrigin(output, column, source, name)
        for column, parts in told
        for ref, name in parts
        # A branch or tag stands behind the table's name.
        if (source := loaded.get(".".join(ref.split(".")[:2]))) is not None
    ]
    return results if len(results) <= MOST else []


def by_definition(definition: AnyDefinition, items: Mapping[str, str]) -> list[ColumnOrigin]:
    """What a definition itself says; `items` are the ids of its tables and volumes by their names."""
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
    """Those of a stored pipeline."""
    return [ColumnOrigin(*value) for value in stored or ()]
