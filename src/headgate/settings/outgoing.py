"""Settings of HTTP calls to addresses that members enter."""

from pydantic import Field

from headgate.settings.group import Group


class OutgoingSettings(Group):
    """Calls to addresses that members enter, such as webhooks, sources and destinations."""

    allow: list[str] = Field(
        [],
        description="Allowlist of host names, addresses and networks that are not public (private, loopback, "
        'link-local), such as `["hooks.internal", "10.1.0.0/16"]`. Calls to other addresses that are not public are '
        "blocked.",
    )
    timeout_seconds: float = Field(20, gt=0, le=300, description="Timeout of an outgoing call, in seconds.")
    max_response_bytes: int = Field(
        10 << 20, ge=1024, le=1 << 30, description="Maximum size of a response to an outgoing call, in bytes."
    )
