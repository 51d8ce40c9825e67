"""Settings of the audit log."""

from typing import Literal

from pydantic import Field

from headgate.settings.group import Group


class AuditSettings(Group):
    """The audit log. It always records changes and denied actions."""

    reads: Literal["data", "all"] = Field(
        "data",
        description="Reads that the audit log records: `data` records reads of data, `all` also records each look at "
        "a resource or a list.",
    )
