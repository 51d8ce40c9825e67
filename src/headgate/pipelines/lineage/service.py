"""Lineage from tables through pipelines to tables. A path ends at the first item that the caller may not see.

A column is included only if its table and the pipeline are in the response.
"""

from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import select

from headgate.kit.ids import kind_of
from headgate.lakehouse.models import table_ref_table
from headgate.pipelines.column_lineage import ColumnOrigin, parse
from headgate.pipelines.models import pipeline_definition_table
from headgate.platform.authorization.models import resource_table
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call

Direction = Literal["both", "upstream", "downstream"]
_refs, _resources, _definitions = table_ref_table.c, resource_table.c, pipeline_definition_table.c
MOST = 2000
"""Maximum number of nodes in a response."""
MOST_COLUMNS = 20_000
"""Maximum number of column edges in a response."""


@dataclass(slots=True)
class Graph:
    """The nodes by id with their names, and the edges."""

    names: dict[str, str] = field(default_factory=dict)
    edges: set[tuple[str, str]] = field(default_factory=set)
    is_cut: bool = False
    columns: list[tuple[str, ColumnOrigin]] = field(default_factory=list)
    """Pairs of pipeline id and column origin; empty unless requested."""


def lineage(call: Call, item: str, direction: Direction, depth: int, *, columns: bool = False) -> Graph:
    """Upstream or downstream lineage of a table or volume, up to `depth` pipelines away. It takes a few queries per
    level.
    """
    graph = Graph(_names(call, {item}))
    ways = ("upstream", "downstream") if direction == "both" else (direction,)
    for way in ways:
        results = {item}
        for _ in range(depth):
            results = _step(call, graph, results, upstream=way == "upstream")
            if not results or graph.is_cut:
                break
    if columns:
        _add_columns(call, graph)
    return graph


def lineage_of(call: Call, pipeline: str, direction: Direction, depth: int, *, columns: bool = False) -> Graph:
    """Upstream or downstream lineage of a pipeline."""
    graph = Graph(_names(call, {pipeline}))
    query = select(_refs.item_id, _refs.mode).where(
        _refs.resource_id == pipeline, _refs.enabled, _refs.item_id.is_not(None)
    )
    rows = [(item, mode) for item, mode in call.connection.execute(query)]
    known = _names(call, {item for item, _ in rows})
    for way, near in (("upstream", "read"), ("downstream", "write")):
        if direction not in {"both", way}:
            continue
        results = {item for item, mode in rows if mode == near and item in known}
        graph.names |= {item: known[item] for item in results}
        graph.edges |= {(item, pipeline) if near == "read" else (pipeline, item) for item in results}
        for _ in range(depth - 1):
            results = _step(call, graph, results, upstream=way == "upstream")
            if not results or graph.is_cut:
                break
    if columns:
        _add_columns(call, graph)
    return graph


def _add_columns(call: Call, graph: Graph) -> None:
    """Add the column origins of the pipelines in the graph, for tables that are in it too."""
    pipelines = [name for name in graph.names if kind_of(name) == "pipeline"]
    query = select(_definitions.pipeline_id, _definitions.origins).where(_definitions.pipeline_id.in_(pipelines))
    for pipeline, stored in call.connection.execute(query.order_by(_definitions.pipeline_id)):
        results = [value for value in parse(stored) if _shows(graph, pipeline, value)]
        if len(graph.columns) + len(results) > MOST_COLUMNS:
            graph.is_cut = True
            return
        graph.columns += [(pipeline, value) for value in results]


def _shows(graph: Graph, pipeline: str, origin: ColumnOrigin) -> bool:
    is_read = origin.source is None or (origin.source, pipeline) in graph.edges
    return is_read and (pipeline, origin.target) in graph.edges


def _step(call: Call, graph: Graph, items: set[str], *, upstream: bool) -> set[str]:
    """Extend the graph by one level of pipelines and return the new tables."""
    near, far = ("write", "read") if upstream else ("read", "write")
    query = select(_refs.resource_id, _refs.item_id).where(_refs.item_id.in_(items), _refs.mode == near, _refs.enabled)
    rows = [(value, other) for value, other in call.connection.execute(query) if kind_of(value) == "pipeline"]
    pipelines = _names(call, {value for value, _ in rows})
    for pipeline, item in rows:
        if pipeline in pipelines:
            graph.edges.add((pipeline, item) if upstream else (item, pipeline))
    query = select(_refs.resource_id, _refs.item_id).where(
        _refs.resource_id.in_(pipelines), _refs.mode == far, _refs.enabled, _refs.item_id.is_not(None)
    )
    rows = [(value, other) for value, other in call.connection.execute(query)]
    tables = _names(call, {other for _, other in rows})
    for pipeline, item in rows:
        if item in tables:
            graph.edges.add((item, pipeline) if upstream else (pipeline, item))
    new = set(tables) - set(graph.names)
    graph.names |= pipelines | tables
    graph.is_cut = len(graph.names) > MOST
    return new


def _names(call: Call, ids: set[str]) -> dict[str, str]:
    """The names of the items that the caller may see."""
    seen = presentation.allowed(call, ids)
    layers = resource_table.alias()
    joined = resource_table.outerjoin(layers, (layers.c.id == _resources.scope_id) & (layers.c.kind == "layer"))
    query = select(_resources.id, _resources.name, layers.c.name).select_from(joined).where(_resources.id.in_(seen))
    return {value: f"{layer}.{name}" if layer else name for value, name, layer in call.connection.execute(query)}
