"""API schemas of connection checks."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from headgate.contracts.connection_checks import Findings
from headgate.contracts.external_systems.kinds import Source, Target
from headgate.kit.names import is_text
from headgate.kit.request_models import Input
from headgate.platform.external_systems.schemas import SecretsIn

MOST_STREAMS = 2000


class BaseCheckIn(Input):
    """A check for a worker to run on a connection or destination."""

    operation: Literal["test", "discover"] = Field(description="Whether it can be reached; or what is there")
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
        if self.operation == "test" and self.pattern:
            raise ValueError("a pattern is for discover")
        if self.operation == "discover" and self.path:
            raise ValueError("a path is for test")
        if self.path and (not self.path.startswith("/") or "//" in self.path or ".." in self.path.split("/")):
            raise ValueError("write a path such as /v1/orders, without // and ..")
        if not is_text(self.pattern + self.path):
            raise ValueError("a pattern or path cannot hold control characters")
        return self


_PLACE = "Ask about this place in place of the stored one, without saving it; stored secrets are not used for it"
_SECRETS = "For this question alone: they go before stored ones, and are not kept"


class ConnectionCheckIn(BaseCheckIn):
    """A check of a connection, or of an unsaved configuration of it."""

    place: Annotated[Source | None, Field(description=_PLACE)] = None
    secrets: Annotated[SecretsIn, Field(default_factory=SecretsIn, description=_SECRETS)]


class DestinationCheckIn(BaseCheckIn):
    """A check of a destination, or of an unsaved configuration of it."""

    place: Annotated[Target | None, Field(description=_PLACE)] = None
    secrets: Annotated[SecretsIn, Field(default_factory=SecretsIn, description=_SECRETS)]


CheckIn = ConnectionCheckIn | DestinationCheckIn


class ConnectionCheckError(BaseModel):
    """The error of a failed check."""

    code: str = Field(examples=["WRONG_CREDENTIALS"])
    message: str = Field(description="What is wrong, and what to do")


class ConnectionCheckOut(BaseModel):
    """A connection check and its result."""

    id: str = Field(examples=["cck_01k6x3v9c2m4n8p0q7rs"])
    about: str = Field(examples=["con_01k6x3v9c2m4n8p0q7rs"], description="The connection or destination")
    operation: str = Field(examples=["test"])
    state: str = Field(examples=["succeeded"], description="queued, running, succeeded or failed")
    asked_at: datetime
    finished_at: datetime | None
    expires_at: datetime = Field(description="When it is forgotten")
    result: Findings | None
    error: ConnectionCheckError | None
