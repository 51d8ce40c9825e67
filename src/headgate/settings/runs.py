"""Settings of pipeline runs."""

from pydantic import Field

from headgate.settings.group import Group


class RunsSettings(Group):
    """Runs of pipelines."""

    slots: int = Field(
        2, ge=1, le=64, description="Maximum number of runs that a worker executes at a time. Others are queued."
    )
    max_hours: float = Field(24, gt=0, le=720, description="Timeout of a run, in hours.")
    lease_seconds: float = Field(
        30,
        ge=5,
        le=3600,
        description="Lease of a worker on its runs, in seconds. When a worker is silent for longer, its runs are "
        "retried on another worker.",
    )
    log_lines: int = Field(10_000, ge=100, le=1_000_000, description="Maximum number of log lines of a run.")
    history_days: float = Field(90, gt=0, le=3650, description="Retention of completed runs, in days.")
