"""Settings of table maintenance."""

from zoneinfo import ZoneInfo

from pydantic import Field, field_validator

from headgate.settings.group import Group

TARGET = "write.target-file-size-bytes"
"""The table property for the size of data files."""


class MaintenanceSettings(Group):
    """Scheduled table maintenance: snapshot expiry, orphan removal, compaction."""

    enabled: bool = Field(
        default=True, description="Run maintenance by schedule. `headgate maintenance run` works in any case."
    )
    schedule: str = Field("0 3 * * *", description="Schedule of the maintenance, as a cron expression of five fields.")
    time_zone: str = Field("UTC", description="Time zone of the schedule, such as `Europe/Berlin`.")
    snapshot_days: float = Field(
        30, ge=0, le=36500, description="Minimum age of a snapshot before it expires, in days."
    )
    keep_snapshots: int = Field(
        20, ge=1, le=10_000, description="Number of newest snapshots of a table that never expire."
    )
    orphan_days: float = Field(
        3,
        ge=1,
        le=365,
        description="Minimum age of an orphaned file before it is removed, in days. Refused commits and expired "
        "snapshots leave orphaned files.",
    )
    compact: bool = Field(default=True, description="Rewrite small files into larger files, on Spark.")
    compact_min_files: int = Field(
        20, ge=2, le=100_000, description="Minimum number of small files in a partition before they are rewritten."
    )
    compact_target_mib: int = Field(
        128,
        ge=1,
        le=4096,
        description=f"Target size of rewritten files, in MiB. The table property `{TARGET}` takes precedence.",
    )
    compact_minutes: float = Field(60, gt=0, le=1440, description="Timeout for the rewrite of one table, in minutes.")
    history_days: float = Field(90, gt=0, le=3650, description="Retention of maintenance records, in days.")

    @field_validator("schedule")
    @classmethod
    def _check_schedule(cls, expression: str) -> str:
        from headgate.kit.cron import check  # noqa: PLC0415 - only where a schedule is set

        return check(expression)

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ValueError, OSError):
            raise ValueError(f"unknown time zone {name!r}; use a name such as Europe/Berlin") from None
        return name
