"""What the settings say of the audit log."""

from typing import Annotated, Literal

from pydantic import Field

from headgate.settings.sections import Section


class AuditSettings(Section):
    """What the audit log keeps."""

    reads: Annotated[
        Literal["data", "all"],
        Field(
            description="Which reads are recorded, beside all changes and refusals: reads of data, or also each look "
            "at a resource or list."
        ),
    ] = "data"
