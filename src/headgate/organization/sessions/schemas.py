"""API schemas of sign-in and sessions."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, SecretStr

from headgate.kit.request_models import Input

EmailText = Annotated[str, Field(max_length=320, examples=["ana@example.com"])]
Password = Annotated[SecretStr, Field(max_length=1000, examples=["three small brown otters"])]
LinkText = Annotated[SecretStr, Field(max_length=100, description="The part of the link after #")]


class SignIn(Input):
    """An account and its password."""

    email: EmailText
    password: Password


class LinkWanted(Input):
    """The address for a sign-in link."""

    email: EmailText


class SignInLinkIn(Input):
    """A sign-in link."""

    link: LinkText


class PasswordByLink(Input):
    """A link to choose a password, and the new password."""

    link: LinkText
    password: Password


class PasswordChange(Input):
    """A password change: the old password, if there is one, and the new one."""

    current: Password | None = None
    password: Password


class SignedInAs(BaseModel):
    """The signed-in member. The session itself is in a cookie."""

    id: str = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Ana"])


class Confirmation(BaseModel):
    """A confirmation in words."""

    detail: str


class SessionOut(BaseModel):
    """A signed-in browser."""

    id: str = Field(examples=["ses_01k6x3v9c2m4n8p0q7rs"])
    method: str = Field(examples=["password"], description="How the member signed in")
    agent: str = Field(examples=["Firefox on Linux"], description="The User-Agent of the browser")
    address: str = Field(examples=["198.51.100.7"])
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    tainted: bool = Field(
        description=(
            "Whether the session, or the password that opened it, started with a link, invitation or reset that "
            "another person requested: it ends if the member becomes an owner"
        )
    )
    current: bool = Field(description="Whether it is the session of this request")


class Sessions(BaseModel):
    """The caller's sessions, most recently used first."""

    items: list[SessionOut]


class SessionsEnded(BaseModel):
    """The number of ended sessions."""

    ended: int
