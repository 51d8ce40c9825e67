"""API schemas of destinations."""

from datetime import datetime

from pydantic import BaseModel, Field

from headgate.contracts.external_systems.kinds import Target
from headgate.kit.request_models import Input
from headgate.organization.members.schemas import Named
from headgate.platform.authorization.schemas import Creator
from headgate.platform.external_systems.schemas import EndpointFieldsOut, SecretsIn
from headgate.platform.resources.names import NameText


class NewDestination(Input):
    """A destination to create."""

    name: NameText
    place: Target
    secrets: SecretsIn = Field(default_factory=SecretsIn)


class DestinationPatch(Input):
    """Changes to a destination; omitted fields stay unchanged. `place` is replaced as a whole."""

    name: NameText | None = None
    place: Target | None = None
    secrets: SecretsIn = Field(default_factory=SecretsIn)


class DestinationItem(BaseModel):
    """A destination, with the caller's actions on it."""

    id: str = Field(examples=["dst_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Finance database"])
    place_kind: str | None = Field(examples=["postgresql"], description="Null if no host is configured")
    owners: list[Named]
    shared_for_use: bool
    shared_for_maintenance: bool
    deleted_at: datetime | None = Field(description="When it was deleted; it can be restored")
    created_at: datetime
    updated_at: datetime
    created_by: Creator | None
    allowed: tuple[str, ...] = Field(examples=[["see", "use"]], description="The caller's actions")
    via: tuple[str, ...] = Field(examples=[["owner"]], description="The access paths that grant them")


class Users(BaseModel):
    """The number of users of a destination."""

    reports: int
    pipelines: int


class DestinationOut(DestinationItem):
    """A destination, with its host and settings."""

    place: EndpointFieldsOut | None
    users: Users | None = Field(
        description="What can no longer be delivered if it is deleted; for callers who may delete it"
    )


class DestinationPage(BaseModel):
    """A page of destinations."""

    items: list[DestinationItem]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class DestinationDeleted(BaseModel):
    """A deleted destination that can be restored."""

    id: str
    name: str
    users: Users = Field(description="What is not delivered until it is restored or replaced")
