"""API schemas of the organization."""

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input
from headgate.platform.resources.names import NameText


class OrganizationOut(BaseModel):
    """The organization."""

    name: str = Field(examples=["Millrace Foods"])
    plan: str = Field(examples=["growth"], description="starter, growth or custom")
    invites: str = Field(examples=["by-role"], description="Who may invite: by-role or admins-only")


class OrganizationName(Input):
    """The name of the organization."""

    name: NameText


class Usage(BaseModel):
    """The usage of the organization, for its owners."""

    plan: str = Field(examples=["growth"])
    members: dict[str, int] = Field(examples=[{"owner": 1, "admin": 0, "technical": 3, "business": 2}])
    invitations: int = Field(description="Open invitations")
    groups: int = Field(description="Without the built-in group All")
    contexts: int
    tokens: int = Field(description="Usable tokens")
    resources: dict[str, int] = Field(
        examples=[{"data_mart": 2}], description="By kind; without saved queries, which are private"
    )
