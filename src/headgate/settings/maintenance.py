"""The settings of maintenance."""

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator

from headgate.settings.sections import Section

TARGET = "write.target-file-size-bytes"
"""The property by which a table itself says how large its files are to be."""


class MaintenanceSettings(Section):
    """Maintenance of tables: old snapshots, orphaned files, small files."""

    enabled: Annotated[
        bool, Field(description="Whether tables are maintained by schedule. `headgate maintenance run` always works.")
    ] = True
    schedule: Annotated[str, Field(description="When, as a cron text of five fields.")] = "0 3 * * *"
    time_zone: Annotated[str, Field(description="The time zone of the schedule.")] = "UTC"
    snapshot_days: Annotated[
        float, Field(ge=0, le=36500, description="Snapshots that are younger than this are kept, in days.")
    ] = 30
    keep_snapshots: Annotated[
        int, Field(ge=1, le=10_000, description="How many of a table's newest snapshots are kept whatever their age.")
    ] = 20
    orphan_days: Annotated[
        float,
        Field(
            ge=1,
            le=365,
            description="How long files stay that no table names: those of refused commits and of expired snapshots.",
        ),
    ] = 3
    compact: Annotated[bool, Field(description="Whether small files are rewritten into larger ones, on Spark.")] = True
    compact_min_files: Annotated[
        int, Field(ge=2, le=100_000, description="How many small files of one partition are rewritten together.")
    ] = 20
    compact_target_mib: Annotated[
        int, Field(ge=1, le=4096, description="How large rewritten files are to be, in MiB, if a table says nothing.")
    ] = 128
    compact_minutes: Annotated[
        float, Field(gt=0, le=1440, description="How long rewriting one table may take at most, in minutes.")
    ] = 60
    history_days: Annotated[float, Field(gt=0, le=3650, description="How long its record is kept, in days.")] = 90

    @field_validator("schedule")
    @classmethod
    def _check_schedule(cls, text: str) -> str:
        from headgate.kit.cron import check  # noqa: PLC0415 - only where one is set

        return check(text)

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ValueError, OSError):
            raise ValueError(f"there is no time zone {name!r}; write one like Europe/Berlin") from None
        return name
