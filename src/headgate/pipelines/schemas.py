"""API schemas of pipelines."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field

from headgate.contracts.pipelines.definitions import Definition
from headgate.contracts.pipelines.fields import Parameters, ProjectId
from headgate.kit.request_models import Input
from headgate.platform.resources.names import NameText

Description = Annotated[str, Field(max_length=10_000)]
EndpointId = Annotated[str, Field(pattern="^(con|dst)_[0-9a-z]{20}$")]
Failures = Annotated[
    int, Field(ge=0, le=1000, description="Deactivate the pipeline after this many consecutive failures; 0 for never")
]


PipelineId = Annotated[str, Path(pattern="^pip_[0-9a-z]{20}$", examples=["pip_01k6x3v9c2m4n8p0q7rs"])]


class PipelineIn(Input):
    """A pipeline to create."""

    name: NameText
    description: Description = ""
    definition: Definition
    project: Annotated[ProjectId | None, Field(description="The data project; makes the pipeline a data task")] = None
    deactivate_after: Failures = 0


class PipelineChange(Input):
    """Changes to a pipeline; omitted fields stay unchanged."""

    name: NameText | None = None
    description: Description | None = None
    active: bool | None = None
    definition: Definition | None = None
    deactivate_after: Failures | None = None


class PlanIn(Input):
    """A definition to plan without saving it."""

    definition: Definition
    project: ProjectId | None = None


class PipelineSaving(BaseModel):
    """The result of a save: done, or in progress in a statement while Spark analyses the SQL."""

    id: str | None = Field(examples=["pip_01k6x3v9c2m4n8p0q7rs"], description="Null until it is saved")
    statement: str | None = Field(
        examples=["stm_01k6x3v9c2m4n8p0q7rs"],
        description="The statement to wait for; its `saved_query` is the id of the pipeline",
    )
    state: str = Field(examples=["saved"], description="saved, or queued")


class LastRun(BaseModel):
    """The result of the last run."""

    id: str
    state: str
    queued_at: datetime | None
    ended_at: datetime | None


class PipelineItem(BaseModel):
    """A pipeline in a list."""

    id: str = Field(examples=["pip_01k6x3v9c2m4n8p0q7rs"])
    name: str
    kind: str | None = Field(examples=["query"])
    active: bool
    created_at: datetime
    updated_at: datetime
    last_run: LastRun | None
    allowed: list[str] = Field(examples=[["see", "edit", "trigger"]])


class PipelinePage(BaseModel):
    """A page of pipelines visible to the caller."""

    items: list[PipelineItem]
    next_cursor: str | None


class EndpointOut(BaseModel):
    """A connection or destination of a pipeline, and its current endpoint."""

    id: str = Field(examples=["con_01k6x3v9c2m4n8p0q7rs"])
    name: str
    kind: str = Field(examples=["postgresql"])
    config: dict[str, Any] | None = Field(description="Its host; null for callers who may only list it")
    version: int = Field(description="Increases with each change of the host; used to confirm the change")
    confirmed: int = Field(
        description="The version that was saved or last confirmed; runs require that it is the current one"
    )
    moved_at: datetime = Field(description="When the host last changed")


class ConfirmIn(Input):
    """The confirmed endpoints: for each changed connection or destination, the version that was shown."""

    versions: Annotated[
        dict[EndpointId, Annotated[int, Field(ge=1)]],
        Field(max_length=100, examples=[{"con_01k6x3v9c2m4n8p0q7rs": 2}]),
    ]


class PipelineOut(PipelineItem):
    """A pipeline. Parts that name a table hidden from the caller are omitted."""

    description: str
    definition: dict[str, Any] | None = Field(description="Null if it refers to resources that the caller may not see")
    version: int | None
    unresolved: str | None = Field(description="Why its inputs are not determined; until then it cannot run")
    notes: list[str] = Field(description="Checks that could not be validated at save, and when they will be")
    inactive_because: str | None
    deactivate_after: int | None
    failures: int
    saved_at: datetime | None
    saved_by: str | None
    acts_for: str | None = Field(description="The member as whom it runs")
    reads: list[str]
    writes: list[str]
    hidden: int = Field(description="The number of its tables that the caller may not see")
    endpoints: list[EndpointOut] = Field(
        description="Its connections and destination, as far as the caller may see them"
    )


class NeededOut(BaseModel):
    """A table or volume, the access level that the pipeline needs on it, and whether the member it runs as has that
    level.
    """

    name: str | None = Field(description="Null if the caller may not see it")
    mode: str = Field(examples=["read"])
    level: str = Field(examples=["viewer"])
    held: bool


class StepOut(BaseModel):
    """A step, described in words."""

    number: int
    kind: str
    title: str


class PlanOut(BaseModel):
    """What a run would do: its steps, inputs and outputs, and whether it is permitted."""

    steps: list[StepOut]
    needs: list[NeededOut]
    acts_for: str | None
    may_start: bool
    problems: list[str] = Field(description="Why it cannot run now, and what to do")
    notes: list[str] = Field(default=[], description="What could not be validated yet, and when it will be")


class PipelineDeleted(BaseModel):
    """A deleted pipeline. Its tables remain."""

    id: str
    name: str


class RunIn(Input):
    """Parameters of a new run."""

    full_refresh: Annotated[bool, Field(description="Restart incremental loads, and replace the tables")] = False
    parameters: Parameters = Field(default_factory=dict)
