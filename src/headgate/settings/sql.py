"""What the settings say of members' SQL."""

from typing import Annotated

from pydantic import Field

from headgate.settings.sections import Section


class SqlSettings(Section):
    """Limits of members' SQL."""

    statement_seconds: Annotated[
        float, Field(gt=0, le=86_400, description="How long a statement may run, in seconds.")
    ] = 600
    max_rows: Annotated[int, Field(ge=1, description="The most rows of a result that are kept.")] = 100_000
    max_bytes: Annotated[int, Field(ge=1024, description="The most bytes of a result that are kept, as Arrow.")] = (
        256 << 20
    )
    concurrent: Annotated[
        int, Field(ge=1, le=1000, description="Statements that one member may have waiting or running.")
    ] = 4
    results_hours: Annotated[float, Field(gt=0, le=8760, description="How long results are kept, in hours.")] = 24
    history_days: Annotated[
        float, Field(gt=0, le=3650, description="How long a statement stays in its member's history, in days.")
    ] = 90
