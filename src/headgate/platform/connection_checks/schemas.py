"""Errands, as the API and workers tell them."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from headgate.contracts.external_systems.kinds import Source, Target
from headgate.contracts.statements import Fence, WorkerId
from headgate.kit.names import is_text
from headgate.kit.request_models import Input, LooseInput
from headgate.platform.external_systems.schemas import SecretsIn

MOST_STREAMS = 2000


class ConnectionCheckIn(Input):
    """A question to a worker about a connection or destination."""

    errand: Literal["test", "discover"] = Field(description="Whether it can be reached; or what is there")
    pattern: Annotated[
        str,
        Field(
            max_length=500,
            examples=["public.*"],
            description="discover: which ones. Database: schema.table; files: a path; catalog: namespace.table. "
            "* stands for any text, in a path within one folder, and ** for folders too. Left out, all",
        ),
    ] = ""
    path: Annotated[
        str, Field(max_length=1000, examples=["/v1/orders"], description="test of an API: ask for this path")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_STREAMS, description="discover: at most so many")] = 500

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.errand == "test" and self.pattern:
            raise ValueError("a pattern is for discover")
        if self.errand == "discover" and self.path:
            raise ValueError("a path is for test")
        if self.path and (not self.path.startswith("/") or "//" in self.path or ".." in self.path.split("/")):
            raise ValueError("write a path such as /v1/orders, without // and ..")
        if not is_text(self.pattern + self.path):
            raise ValueError("a pattern or path cannot hold control characters")
        return self


_PLACE = "Ask about this place in place of the stored one, without saving it; stored secrets are not used for it"
_SECRETS = "For this question alone: they go before stored ones, and are not kept"


class ConnectionErrand(ConnectionCheckIn):
    """A question about a connection, or about a place that it could point at."""

    place: Annotated[Source | None, Field(description=_PLACE)] = None
    secrets: Annotated[SecretsIn, Field(default_factory=SecretsIn, description=_SECRETS)]


class DestinationErrand(ConnectionCheckIn):
    """A question about a destination, or about a place that it could point at."""

    place: Annotated[Target | None, Field(description=_PLACE)] = None
    secrets: Annotated[SecretsIn, Field(default_factory=SecretsIn, description=_SECRETS)]


ErrandIn = ConnectionErrand | DestinationErrand


class DiscoveredColumn(BaseModel):
    """A column of a stream."""

    name: str = Field(examples=["order_id"])
    type: str = Field(examples=["bigint"], description="As its own system calls it")
    nullable: bool = True


class DiscoveredStream(BaseModel):
    """Something that a pipeline could read."""

    name: str = Field(examples=["public.orders"], description="As a stream of a pipeline names it")
    sort: str = Field(examples=["table"], description="table, view or file")
    columns: list[DiscoveredColumn] = Field(default_factory=list)
    keys: list[str] = Field(default_factory=list, description="The columns of its primary key")
    bytes: int | None = None
    modified_at: datetime | None = None


class Findings(BaseModel):
    """What a worker found out."""

    detail: str = Field(examples=["PostgreSQL 17.2, as reader, over TLSv1.3"])
    milliseconds: int
    streams: list[DiscoveredStream] | None = None
    truncated: Annotated[bool, Field(description="Whether there are more than were asked for, or than fit")] = False


class ErrandError(BaseModel):
    """Why an errand failed."""

    code: str = Field(examples=["WRONG_CREDENTIALS"])
    message: str = Field(description="What is wrong, and what to do")


class ErrandOut(BaseModel):
    """An errand, and what came of it."""

    id: str = Field(examples=["ern_01k6x3v9c2m4n8p0q7rs"])
    about: str = Field(examples=["con_01k6x3v9c2m4n8p0q7rs"], description="The connection or destination")
    errand: str = Field(examples=["test"])
    state: str = Field(examples=["succeeded"], description="queued, running, succeeded or failed")
    asked_at: datetime
    finished_at: datetime | None
    expires_at: datetime = Field(description="When it is forgotten")
    result: Findings | None
    error: ErrandError | None


class ErrandClaimIn(LooseInput):
    """A worker that has time for errands."""

    worker: WorkerId
    slots: Annotated[int, Field(ge=1, le=16, description="For how many")]


class EndpointOut(BaseModel):
    """A connection or destination, opened for a worker."""

    id: str
    kind: str
    config: dict[str, Any]
    secrets: dict[str, str] = Field(description="In the clear; kept nowhere")


class ErrandJob(BaseModel):
    """An errand to run."""

    id: str
    fence: int
    errand: str
    question: dict[str, Any]
    writes: bool = Field(description="Whether it is about a destination, which is written to")
    endpoint: EndpointOut


class ErrandClaims(BaseModel):
    """Errands for a worker, and the limits that hold for them."""

    jobs: list[ErrandJob]
    seconds: float
    max_bytes: int = Field(description="The largest result that the server takes, as JSON")


class ErrandFinishIn(LooseInput):
    """What came of an errand."""

    worker: WorkerId
    fence: Fence
    state: Annotated[
        Literal["succeeded", "failed", "returned"], Field(description="returned: the worker stops; another begins it")
    ]
    result: Findings | None = None
    error_code: Annotated[str, Field(max_length=120)] | None = None
    error: Annotated[str, Field(max_length=10_000)] | None = None


class ErrandFinished(BaseModel):
    """The state of an errand after its worker's word."""

    state: str = Field(examples=["succeeded"])
