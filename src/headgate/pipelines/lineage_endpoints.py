"""Lineage over HTTP."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, Field

from headgate.edge.call import Call
from headgate.edge.guards import MemberOn
from headgate.edge.routes import Audit, GovernedRouter
from headgate.kit.ids import kind_of
from headgate.pipelines.lineage import Direction, lineage

router = GovernedRouter(prefix="/api/lineage", tags=["pipelines"])


class LineageNode(BaseModel):
    """A table, volume or pipeline."""

    id: str = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["table"])
    name: str = Field(examples=["raw.orders"])


class LineageEdge(BaseModel):
    """From a table to a pipeline that reads it, or from a pipeline to a table that it writes."""

    source: str
    target: str


class LineageOut(BaseModel):
    """Where a table comes from and what is made of it, as far as one may see."""

    nodes: list[LineageNode]
    edges: list[LineageEdge]
    cut: bool = Field(description="Whether there was more than one answer holds")


@router.governed(
    "GET",
    "/{item_id}",
    guard=MemberOn("see", "item_id"),
    audit=Audit.reads,
    summary="Lineage of a table or volume",
)
def get_lineage(
    call: Call,
    item_id: Annotated[str, Path(pattern=r"^(tbl|vol)_[0-9a-z]{20}$", examples=["tbl_01k6x3v9c2m4n8p0q7rs"])],
    direction: Annotated[Direction, Query(description="Where to look")] = "both",
    depth: Annotated[int, Query(ge=1, le=20, description="How many pipelines far")] = 5,
) -> LineageOut:
    """Tables, and the pipelines that lead from one to the other. A way ends where the caller may not see on."""
    found = lineage(call, item_id, direction, depth)
    nodes = [LineageNode(id=one, kind=kind_of(one) or "", name=name) for one, name in sorted(found.names.items())]
    edges = [LineageEdge(source=source, target=target) for source, target in sorted(found.edges)]
    return LineageOut(nodes=nodes, edges=edges, cut=found.is_cut)
