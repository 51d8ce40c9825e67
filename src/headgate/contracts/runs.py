"""Messages between workers and the server about runs. A newer worker may send additional fields."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from headgate.contracts.jobs import Count, Fence, WorkerId
from headgate.kit.request_models import LooseInput

RunId = Annotated[str, Field(pattern=r"^run_[0-9a-z]{20}$", examples=["run_01k6x3v9c2m4n8p0q7rs"])]


class EndpointOut(BaseModel):
    """A connection or destination with its secrets, for the worker of the run."""

    id: str
    kind: str
    config: dict[str, Any]
    secrets: dict[str, str]


class RunPayload(BaseModel):
    """A run to execute."""

    pipeline: str
    token: str = Field(description="A catalog token, which is not stored")
    user: str = Field(description="The result of `current_user()`: the email address of the member as whom it runs")
    reading_token: str = Field(description="A read-only token for the notebook; empty if there is none")
    steps: list[dict[str, Any]]
    done: int = Field(description="The number of completed steps")
    moment: datetime
    time_zone: str
    full_refresh: bool
    parameters: dict[str, Any]
    states: dict[str, dict[str, Any]]
    memories: dict[int, dict[str, Any]] = Field(description="The checkpoints of an earlier attempt, by step number")
    endpoints: list[EndpointOut]


class CheckIn(LooseInput):
    """The result of an expectation."""

    passed: bool
    failed_rows: Count
    checked_rows: Count
    message: Annotated[str, Field(max_length=4000)]
    sample: list[dict[str, Any]] = Field(default_factory=list, max_length=100)


class StepIn(LooseInput):
    """The start or the result of a step."""

    worker: WorkerId
    fence: Fence
    state: Literal["running", "succeeded", "failed"]
    rows_in: Count | None = None
    rows_out: Count | None = None
    rejected: Count | None = None
    bytes: Count | None = None
    cursor: Annotated[dict[str, Any] | None, Field(description="The state for the next run")] = None
    check: CheckIn | None = None
    detail: dict[str, Any] = Field(default_factory=dict)
    memory: Annotated[
        dict[str, Any] | None, Field(description="Of a step that runs: what it must know if it is begun again")
    ] = None


class Acknowledged(BaseModel):
    """Acknowledges that the report was stored."""

    id: str


class RunState(BaseModel):
    """The state of a run."""

    id: str
    state: str


class VolumeFileOut(BaseModel):
    """A file of a volume."""

    id: str
    path: str
    size: int
    created: datetime


class VolumeFiles(BaseModel):
    """The files of a volume, by path."""

    items: list[VolumeFileOut]
