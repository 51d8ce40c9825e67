"""Settings of notebook runs."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from headgate.settings.group import MEMORY, Group


class NotebookSettings(Group):
    """Notebooks. Each run has its own processes, Spark and sandbox."""

    mode: Literal["sandbox", "trusted"] = Field(
        "sandbox",
        description="`sandbox`: notebooks run in bubblewrap, and not at all on a machine without it. `trusted`: "
        "notebooks run without a sandbox. Authors of notebooks can then do everything that the worker can: read every "
        "table, the keys and the database.",
    )
    memory: Annotated[str, MEMORY] | None = Field(
        None,
        description="Memory limit of all processes of a notebook together, such as `4g`; at least `2g`. "
        "Default: twice the memory of a Spark server, plus 1 GiB.",
    )
    processes: int = Field(200, ge=10, le=10_000, description="Maximum number of processes of a notebook.")
    disk_bytes: int = Field(
        20 << 30,
        ge=64 << 20,
        description="Disk limit of a notebook, in bytes: its outputs, and the temporary files of Spark and Python.",
    )
    output_bytes: int = Field(
        10 << 20,
        ge=1024,
        le=256 << 20,
        description="Maximum size of the cell outputs that are stored with a run, in bytes. Longer outputs are "
        "truncated.",
    )

    @field_validator("memory")
    @classmethod
    def _check_memory(cls, memory: str | None) -> str | None:
        if memory is not None and int(memory[:-1]) << (10 if memory.endswith("g") else 0) < 2 << 10:
            raise ValueError("Spark and Python need at least 2g together")
        return memory
