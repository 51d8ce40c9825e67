"""Lineage: from tables by pipelines to tables, as far as whoever asks may see. What they may not see ends a way."""

from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import select

from headgate.edge.call import Call
from headgate.kit.ids import kind_of
from headgate.lakehouse.models import table_ref_table
from headgate.resources import showing
from headgate.resources.models import resource_table

Direction = Literal["both", "upstream", "downstream"]
_refs, _resources = table_ref_table.c, resource_table.c
MOST = 2000
"""How many things one answer has at most."""


@dataclass(slots=True)
class Graph:
    """What was found: names by id, and who leads to whom."""

    names: dict[str, str] = field(default_factory=dict)
    edges: set[tuple[str, str]] = field(default_factory=set)
    is_cut: bool = False


def lineage(call: Call, item: str, direction: Direction, depth: int) -> Graph:
    """What a table or volume comes from and leads to, so many pipelines far; a few queries a pipeline's length."""
    graph = Graph(_names(call, {item}))
    ways = ("upstream", "downstream") if direction == "both" else (direction,)
    for way in ways:
        found = {item}
        for _ in range(depth):
            found = _step(call, graph, found, upstream=way == "upstream")
            if not found or graph.is_cut:
                break
    return graph


def _step(call: Call, graph: Graph, items: set[str], *, upstream: bool) -> set[str]:
    """One pipeline further; the tables that are new."""
    near, far = ("write", "read") if upstream else ("read", "write")
    query = select(_refs.resource_id, _refs.item_id).where(_refs.item_id.in_(items), _refs.mode == near, _refs.enabled)
    rows = [(one, other) for one, other in call.connection.execute(query) if kind_of(one) == "pipeline"]
    pipelines = _names(call, {one for one, _ in rows})
    for pipeline, item in rows:
        if pipeline in pipelines:
            graph.edges.add((pipeline, item) if upstream else (item, pipeline))
    query = select(_refs.resource_id, _refs.item_id).where(
        _refs.resource_id.in_(pipelines), _refs.mode == far, _refs.enabled, _refs.item_id.is_not(None)
    )
    rows = [(one, other) for one, other in call.connection.execute(query)]
    tables = _names(call, {other for _, other in rows})
    for pipeline, item in rows:
        if item in tables:
            graph.edges.add((item, pipeline) if upstream else (pipeline, item))
    new = set(tables) - set(graph.names)
    graph.names |= pipelines | tables
    graph.is_cut = len(graph.names) > MOST
    return new


def _names(call: Call, ids: set[str]) -> dict[str, str]:
    """The names of those that the caller may see."""
    seen = showing.allowed(call, ids)
    layers = resource_table.alias()
    joined = resource_table.outerjoin(layers, (layers.c.id == _resources.scope_id) & (layers.c.kind == "layer"))
    query = select(_resources.id, _resources.name, layers.c.name).select_from(joined).where(_resources.id.in_(seen))
    return {one: f"{layer}.{name}" if layer else name for one, name, layer in call.connection.execute(query)}
