"""Settings of members' SQL statements."""

from pydantic import Field

from headgate.settings.group import Group


class SqlSettings(Group):
    """Limits of members' SQL statements."""

    statement_seconds: float = Field(600, gt=0, le=86_400, description="Timeout of a statement, in seconds.")
    max_rows: int = Field(100_000, ge=1, description="Maximum number of rows of a result. Further rows are dropped.")
    max_bytes: int = Field(
        256 << 20, ge=1024, description="Maximum size of a result, in bytes of Arrow data. Further rows are dropped."
    )
    concurrent: int = Field(
        4, ge=1, le=1000, description="Maximum number of queued and running statements of one member."
    )
    results_hours: float = Field(24, gt=0, le=8760, description="Retention of results, in hours.")
    history_days: float = Field(90, gt=0, le=3650, description="Retention of the statement history, in days.")
