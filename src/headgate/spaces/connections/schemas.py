"""API schemas of connections."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.contracts.external_systems.kinds import Source
from headgate.kit.names import MAX_LENGTH
from headgate.kit.request_models import Input
from headgate.organization.members.schemas import Named
from headgate.platform.authorization.schemas import Creator
from headgate.platform.external_systems.schemas import EndpointFieldsOut, SecretsIn
from headgate.platform.resources.names import NameText

_CODE = "Whether notebook code may read its secrets, for members who may use the connection in pipelines"


class NewConnection(Input):
    """A connection to create in a space."""

    name: NameText
    space: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH, examples=["Sales data"], description="Name or id")]
    place: Source
    secrets: SecretsIn = Field(default_factory=SecretsIn)
    allow_code: Annotated[bool, Field(description=_CODE)] = False


class ConnectionPatch(Input):
    """Changes to a connection; omitted fields stay unchanged. `place` is replaced as a whole."""

    name: NameText | None = None
    place: Source | None = None
    secrets: SecretsIn = Field(default_factory=SecretsIn)
    allow_code: Annotated[bool | None, Field(description=_CODE)] = None


class ConnectionItem(BaseModel):
    """A connection, with the caller's actions on it."""

    id: str = Field(examples=["con_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Shop database"])
    place_kind: str | None = Field(examples=["postgresql"], description="Null if no host is configured")
    space: Named
    owner: Named | None = Field(description="The only member who may edit it; null for a removed member")
    allows_code: bool = Field(description="Whether its owner allows notebook code to read its secrets")
    created_at: datetime
    updated_at: datetime
    created_by: Creator | None
    allowed: tuple[str, ...] = Field(examples=[["list", "connect"]], description="The caller's actions")
    via: tuple[str, ...] = Field(examples=[["any role"]], description="The access paths that grant them")


class ConnectionOut(ConnectionItem):
    """A connection, with its host and settings."""

    gateway: Named | None = Field(description="The gateway that connects to it")
    place: EndpointFieldsOut | None = Field(description="Only for callers who may use (`connect`) or edit it")


class ConnectionPage(BaseModel):
    """A page of connections."""

    items: list[ConnectionItem]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class ConnectionDeleted(BaseModel):
    """A deleted connection."""

    id: str
    name: str
