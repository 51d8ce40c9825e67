"""API schemas of notifications and subscriptions."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from headgate.kit.ids import PREFIXES
from headgate.kit.request_models import Input
from headgate.platform.notifications.service import CHANNELS
from headgate.platform.resources.names import Ref

Channel = StrEnum("Channel", {name: name for name in CHANNELS})  # type: ignore[misc]
NoticeId = Annotated[str, Field(pattern=f"^{PREFIXES['notice']}_[0-9a-z]{{20}}$")]


class NotifiedResource(BaseModel):
    """The resource that a notification is about."""

    id: str = Field(examples=["dm_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["data_mart"])
    name: str = Field(examples=["Revenue"])


class NotificationOut(BaseModel):
    """A notification, limited to what the caller may know now."""

    id: str = Field(examples=["ntc_01k6x3v9c2m4n8p0q7rs"])
    channel: str = Field(examples=["runs"])
    event: str = Field(examples=["failed"])
    sentence: str = Field(examples=["A run of the report Weekly revenue failed"])
    about: NotifiedResource | None
    at: datetime
    read_at: datetime | None


class NotificationPage(BaseModel):
    """A page of notifications, newest first."""

    items: list[NotificationOut]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class ReadIn(Input):
    """The notifications to mark as read."""

    ids: list[NoticeId] | None = Field(None, max_length=1000)
    all: bool = Field(default=False, description="All of the caller's notifications, instead of ids")

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.ids is None) == (not self.all):
            raise ValueError("give either ids or all")
        return self


class ReadOut(BaseModel):
    """The time when they were marked as read."""

    read_at: datetime


class ChannelOut(BaseModel):
    """A channel and the caller's subscription to it."""

    channel: str = Field(examples=["runs"])
    about: str = Field(examples=[CHANNELS["runs"]])
    receives: bool
    by_mail: bool


class OwnerWarning(BaseModel):
    """A resource that the caller owns, but whose control their role is too low for."""

    kind: str = Field(examples=["data_mart"])
    id: str | None = Field(description="Null if the caller may not see it")
    name: str | None = Field(description="Null if the caller may not see it")
    warning: str


class NotificationSettings(BaseModel):
    """The caller's notification settings."""

    channels: list[ChannelOut]
    mail_to: str | None = Field(
        description="The address of mails; null if the member has none, or mail is not configured"
    )
    warnings: list[OwnerWarning]


class ChannelIn(Input):
    """A subscription to a channel."""

    channel: Channel
    receives: bool
    by_mail: bool = False


class NotificationSettingsIn(Input):
    """Subscriptions to change; the others stay unchanged."""

    channels: list[ChannelIn] = Field(max_length=100)


class ReceiverOut(BaseModel):
    """A subscriber of a channel."""

    id: str = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Ana"])
    email: str | None
    by_mail: bool


class ReceiverPage(BaseModel):
    """A page of subscribers by name."""

    channel: str
    items: list[ReceiverOut]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class ReceiverIn(Input):
    """A member to subscribe or unsubscribe."""

    member: Ref
    receives: bool = True
    by_mail: bool = True


class ReceiversIn(Input):
    """Members to change; the others stay unchanged."""

    receivers: list[ReceiverIn] = Field(min_length=1, max_length=1000)
