"""The settings of runs."""

from typing import Annotated

from pydantic import Field

from headgate.settings.sections import Section


class RunsSettings(Section):
    """Runs of pipelines."""

    slots: Annotated[int, Field(ge=1, le=64, description="Runs that a worker has at a time; more of them wait.")] = 2
    max_hours: Annotated[float, Field(gt=0, le=720, description="How long a run may take at most, in hours.")] = 24
    lease_seconds: Annotated[
        float,
        Field(
            ge=5, le=3600, description="How long a worker may be silent before its runs go on elsewhere, in seconds."
        ),
    ] = 30
    log_lines: Annotated[int, Field(ge=100, le=1_000_000, description="Lines that a run's log keeps.")] = 10_000
    history_days: Annotated[float, Field(gt=0, le=3650, description="How long ended runs are kept, in days.")] = 90
