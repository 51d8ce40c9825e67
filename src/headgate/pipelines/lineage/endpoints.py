"""Lineage endpoints."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, Field

from headgate.kit.ids import kind_of
from headgate.pipelines.lineage.service import Direction, Graph, lineage, lineage_of
from headgate.pipelines.schemas import PipelineId
from headgate.platform.http.guards import MemberOn, OnPipeline
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api", tags=["pipelines"])

Where = Annotated[Direction, Query(description="The direction")]
Depth = Annotated[int, Query(ge=1, le=20, description="The maximum distance, in pipelines")]
WithColumns = Annotated[bool, Query(description="Include column lineage, where it is known")]


class LineageNode(BaseModel):
    """A table, volume or pipeline."""

    id: str = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["table"])
    name: str = Field(examples=["raw.orders"])


class LineageEdge(BaseModel):
    """An edge from a table to a pipeline that reads it, or from a pipeline to a table that it writes."""

    source: str
    target: str


class ColumnEdge(BaseModel):
    """An output column and one source column that it is computed from.

    Without column names, every column comes from the source column of the same name. Without a source, the values come
    from outside the lakehouse.
    """

    pipeline: str = Field(description="The pipeline that creates the column", examples=["pip_01k6x3v9c2m4n8p0q7rs"])
    source: str | None = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    source_column: str | None = Field(examples=["amount"])
    target: str = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rt"])
    target_column: str | None = Field(examples=["revenue"])


class LineageOut(BaseModel):
    """Upstream and downstream lineage, limited to what the caller may see."""

    nodes: list[LineageNode]
    edges: list[LineageEdge]
    columns: list[ColumnEdge] | None = Field(description="Null if column lineage was not requested")
    cut: bool = Field(description="Whether the lineage was cut off")


def _out(graph: Graph, *, columns: bool) -> LineageOut:
    nodes = [LineageNode(id=value, kind=kind_of(value) or "", name=name) for value, name in sorted(graph.names.items())]
    edges = [LineageEdge(source=source, target=target) for source, target in sorted(graph.edges)]
    lines = [
        ColumnEdge(
            pipeline=pipeline,
            source=results.source,
            source_column=results.source_column,
            target=results.target,
            target_column=results.column,
        )
        for pipeline, results in graph.columns
    ]
    return LineageOut(nodes=nodes, edges=edges, columns=lines if columns else None, cut=graph.is_cut)


@router.governed("GET", "/lineage/{item_id}", MemberOn("see", "item_id"), Audit.reads)
def get_lineage(
    call: Call,
    item_id: Annotated[str, Path(pattern=r"^(tbl|vol)_[0-9a-z]{20}$", examples=["tbl_01k6x3v9c2m4n8p0q7rs"])],
    direction: Where = "both",
    depth: Depth = 5,
    columns: WithColumns = False,
) -> LineageOut:
    """Lineage of a table or volume: the tables and the pipelines between them. A path ends at the first item that the
    caller may not see.
    """
    return _out(lineage(call, item_id, direction, depth, columns=columns), columns=columns)


@router.governed(
    "GET", "/pipelines/{pipeline_id}/lineage", OnPipeline("see", "pipeline_id", on_task="open"), Audit.reads
)
def get_pipeline_lineage(
    call: Call,
    pipeline_id: PipelineId,
    direction: Where = "both",
    depth: Depth = 5,
    columns: WithColumns = False,
) -> LineageOut:
    """Lineage of a pipeline: its inputs and outputs, and their upstream and downstream, as far as the caller
    may see.
    """
    return _out(lineage_of(call, pipeline_id, direction, depth, columns=columns), columns=columns)
