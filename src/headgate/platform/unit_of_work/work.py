"""The work behind a work token: one statement, probe, run or rewrite."""

from dataclasses import dataclass

from headgate.access.narrowing import UNLIMITED, Narrowing


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table that a run declared. An output that does not exist yet has its future id, its layer and its name."""

    table_id: str
    mode: str = "read"
    layer_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class WorkToken:
    """The work of a work token."""

    id: str
    purpose: str
    run_id: str | None = None
    fence: int | None = None
    reach: tuple[DeclaredTable, ...] | None = None
    granted: Narrowing = UNLIMITED
    """The limits of the API token that requested the work, before those of `reach`."""

    @property
    def records_loads(self) -> bool:
        """Whether its loads are recorded."""
        return self.purpose in {"statement", "probe"}

    @property
    def run(self) -> tuple[str, int] | None:
        """The run whose own pointers it uses, and its fence."""
        return (self.run_id, self.fence) if self.run_id is not None and self.fence is not None else None

    def writes(self, table_id: str) -> bool:
        """Whether it declared this table as an output."""
        return any(
            declared_table.table_id == table_id and declared_table.mode == "write"
            for declared_table in self.reach or ()
        )

    def output(self, layer_id: str, name: str) -> str | None:
        """The future id of an output that it declared under this name."""
        for declared_table in self.reach or ():
            if (
                declared_table.mode == "write"
                and declared_table.layer_id == layer_id
                and (declared_table.name or "").lower() == name.lower()
            ):
                return declared_table.table_id
        return None
