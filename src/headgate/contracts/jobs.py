"""Messages between workers and the server about jobs of all kinds. A newer worker may send additional fields."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from headgate.kit.request_models import LooseInput

MAX_LINES = 500
MAX_LINE = 4000
LEAVING = "leaving"
"""The field of a worker's state that reports its shutdown."""
WorkerId = Annotated[str, Field(pattern=r"^wrk_[0-9a-z]{20}$", examples=["wrk_01k6x3v9c2m4n8p0q7rs"])]
JobId = Annotated[str, Field(pattern=r"^[a-z]{2,3}_[0-9a-z]{20}$", examples=["run_01k6x3v9c2m4n8p0q7rs"])]
Fence = Annotated[int, Field(ge=0, le=2**31 - 1, description="The fencing number from the claim")]
Count = Annotated[int, Field(ge=0, le=2**62)]


class Stage(BaseModel):
    """A Spark stage of a running job."""

    id: int
    tasks: int = Field(description="Number of tasks")
    done: int = Field(description="Number of finished tasks")
    bytes_read: int = 0
    complete: bool = Field(description="Whether every task has finished")


class ProgressOut(BaseModel):
    """The progress of a running job."""

    tasks_done: int
    tasks_total: int
    bytes_read: int
    stages: list[Stage]


class WorkerIn(LooseInput):
    """A worker and the state that it reports."""

    worker: WorkerId
    name: Annotated[str, Field(min_length=1, max_length=200, examples=["host-1:4711"])]
    version: Annotated[str, Field(min_length=1, max_length=40, examples=["0.1.0"])]
    state: dict[str, Any] = Field(default_factory=dict, description="The state of its Spark servers")


class ClaimIn(WorkerIn):
    """A worker with free slots for jobs of one kind."""

    slots: Annotated[int, Field(ge=1, le=64, description="Number of free slots")]
    total: Annotated[int, Field(ge=1, le=64, description="Number of all slots of this kind")] | None = None


class JobOut(BaseModel):
    """A claimed job."""

    id: str
    fence: int = Field(description="The fencing number: every later message about this job carries it")
    seconds: float = Field(description="The time limit of this attempt")
    isolated: bool = Field(description="Whether it runs on a Spark server of its own, since one died during it")
    payload: dict[str, Any] = Field(description="What to do, as the kind of job defines it")


class Claims(BaseModel):
    """The jobs that a worker has claimed."""

    jobs: list[JobOut]


class BeatIn(LooseInput):
    """The progress of one job."""

    kind: Annotated[str, Field(max_length=40, examples=["run"])]
    id: JobId
    fence: Fence
    progress: ProgressOut | None = None


class HeartbeatIn(WorkerIn):
    """A live worker and the jobs that it runs."""

    running: list[BeatIn] = Field(max_length=256)


class InstructionsOut(BaseModel):
    """What the worker must do with its jobs."""

    cancel: list[str] = Field(description="Interrupt these jobs")
    lost: list[str] = Field(description="Drop these jobs: this worker no longer holds them")


class FinishIn(LooseInput):
    """The outcome of a job."""

    worker: WorkerId
    fence: Fence
    state: Annotated[
        Literal["succeeded", "failed", "lost", "returned"],
        Field(description="lost: Spark died, or another passing fault; returned: the worker shuts down"),
    ]
    error_code: Annotated[str, Field(max_length=1000)] | None = None
    error: Annotated[str, Field(max_length=1_000_000)] | None = None
    result: dict[str, Any] = Field(default_factory=dict, description="The result, as the kind of job defines it")


class LogLine(LooseInput):
    """A line of a job's log."""

    at: datetime
    level: Literal["info", "warning", "error"] = "info"
    text: Annotated[str, Field(max_length=MAX_LINE)]


class LogIn(LooseInput):
    """Lines for a job's log."""

    worker: WorkerId
    fence: Fence
    lines: list[LogLine] = Field(max_length=MAX_LINES)


class JobState(BaseModel):
    """The state of a job after the worker's message."""

    state: str = Field(examples=["succeeded"])
