"""The base of all groups of settings, and formats that several groups share."""

import re

from pydantic import BaseModel, ConfigDict

from headgate.kit.patterns import TextPattern

ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?")
"""The origin of a server: scheme, host and port, without a path."""
MEMORY = TextPattern("^[1-9][0-9]*[mg]$", "must be a number of megabytes or gigabytes, such as 512m or 2g")


class Group(BaseModel):
    """A group of settings: a table in `headgate.toml`."""

    model_config = ConfigDict(extra="forbid")
