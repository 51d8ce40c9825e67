"""Settings of the log."""

from typing import Literal

from pydantic import Field

from headgate.settings.group import Group


class LogSettings(Group):
    """The log that all processes write to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Minimum level of log messages.")
    format: Literal["json", "text"] = Field(
        "text", description="Log format: `text`, or `json` with one object per line for log collectors."
    )
