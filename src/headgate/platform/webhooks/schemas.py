"""API schemas of the webhook."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input
from headgate.kit.urls import MAX_LENGTH


class WebhookIn(Input):
    """A webhook to set."""

    url: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH, examples=["https://chat.example.com/hooks/T0/B1"])]


class WebhookOut(BaseModel):
    """The webhook. Its URL is never shown again, because chat URLs are secrets."""

    host: str | None = Field(examples=["chat.example.com"], description="Null if there is no webhook")
    set_by: str | None = Field(examples=["Ana"], description="Null for a removed member")
    set_at: datetime | None
    active: bool = Field(description="Whether the member who set it is still an admin; if not, nothing is sent")
    last_sent_at: datetime | None = Field(description="When a delivery last succeeded")
    last_error: str | None = Field(description="Why the last delivery failed; null if it succeeded")


class WebhookSet(WebhookOut):
    """The webhook immediately after it was set."""

    secret: str = Field(description="The signing key, shown only once")
