"""Settings of the server processes."""

import ipaddress
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from headgate.settings.group import Group


class ServerSettings(Group):
    """The HTTP server."""

    host: str = Field("127.0.0.1", description="Address to listen on. `0.0.0.0` listens on all interfaces.")
    port: int = Field(8420, ge=0, le=65535, description="TCP port to listen on. `0` selects a free port.")
    processes: int = Field(
        1,
        ge=1,
        le=64,
        description="Number of server processes that share the port. Increase it on machines with many cores.",
    )
    public_url: str | None = Field(
        None,
        description="URL under which users reach the server, such as `https://data.example.com`. Links in mails use "
        "it. Default: the address that the server listens on.",
    )
    trusted_proxies: list[str] = Field(
        [],
        description="Addresses or networks of reverse proxies. The server accepts the headers `X-Forwarded-For` and "
        "`X-Forwarded-Proto` from these proxies only.",
    )
    max_body_bytes: int = Field(
        2 << 20, ge=1024, le=1 << 30, description="Maximum size of a request body, in bytes. Uploads have other limits."
    )
    shutdown_seconds: float = Field(
        20, ge=0, le=600, description="Seconds that the server waits for running requests when it stops."
    )
    restart_seconds: float = Field(
        30, ge=0.1, le=600, description="Maximum backoff before a crashed process is restarted, in seconds."
    )
    metrics: Literal["open", "token", "off"] = Field(
        "open",
        description="Access to `/metrics`: `open` for all clients, `token` for clients that send `metrics_token` as a "
        "bearer token, `off` for none. Metrics contain routes and status codes, no members and no resources.",
    )
    metrics_token: SecretStr | None = Field(
        None, description="Bearer token for `/metrics`. Required when `metrics` is `token`."
    )

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
                raise ValueError("the public URL must have the form https://data.example.com")
        return url

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, proxies: list[str]) -> list[str]:
        for proxy in proxies:
            ipaddress.ip_network(proxy, strict=False)
        return proxies

    @model_validator(mode="after")
    def _check_token(self) -> Self:
        if self.metrics == "token" and self.metrics_token is None:
            raise ValueError("metrics is `token`; set metrics_token")
        return self
