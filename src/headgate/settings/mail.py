"""Settings of outgoing mail."""

from typing import Literal

from pydantic import Field, SecretStr

from headgate.settings.group import Group


class MailSettings(Group):
    """The SMTP server for outgoing mail."""

    host: str | None = Field(
        None,
        description="Host name of the SMTP server. Default: mail is disabled, and inviters receive the link "
        "themselves.",
    )
    port: int = Field(587, ge=1, le=65535, description="Port of the SMTP server.")
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="Encryption of the SMTP connection. Use `none` only for an SMTP server on the same machine.",
    )
    username: str | None = Field(None, description="User name for SMTP authentication. Default: no authentication.")
    password: SecretStr | None = Field(None, description="Password for SMTP authentication.")
    sender: str = Field("headgate@localhost", description="Sender address of all mails.")
    timeout_seconds: float = Field(20, gt=0, le=300, description="Timeout for the SMTP server, in seconds.")
