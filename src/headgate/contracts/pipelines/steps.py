"""A plan is a list of steps. The same list is shown to readers, checked for access, and executed by a worker.

A step holds only what it needs: parts of the definition, and its tables by id and current name. Steps never contain
secrets.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Discriminator, TypeAdapter

from headgate.contracts.pipelines.definitions import Cell, DeliveryIn, History, NotebookOutput, Query, SecretRef
from headgate.contracts.pipelines.expectations import Expectation
from headgate.contracts.pipelines.fields import quoted
from headgate.contracts.pipelines.streams import Stream


@dataclass(frozen=True, slots=True)
class LakeItem:
    """A table or volume: its id, and its names when the plan was made."""

    id: str
    layer: str
    name: str

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        return quoted(self.layer, self.name)

    def __str__(self) -> str:
        return f"{self.layer}.{self.name}"


@dataclass(frozen=True, slots=True)
class Land:
    """Read a stream and write its rows into a table. Rows that do not fit go to the side table with the reason."""

    stream: Stream
    table: LakeItem
    rejected: LakeItem
    schema_changes: Literal["keep", "evolve"]
    volume: LakeItem | None = None
    kind: Literal["land"] = "land"


@dataclass(frozen=True, slots=True)
class Refine:
    """Run SQL and write the result into a table."""

    query: Query
    table: LakeItem
    kind: Literal["refine"] = "refine"


@dataclass(frozen=True, slots=True)
class RunNotebook:
    """Run a notebook in a separate sandbox; its output is staged."""

    cells: tuple[Cell, ...]
    inputs: tuple[LakeItem, ...]
    outputs: tuple[LakeItem, ...]
    volumes: tuple[LakeItem, ...]
    output_volumes: tuple[LakeItem, ...]
    wheels: tuple[tuple[LakeItem, str], ...]
    hosts: tuple[str, ...]
    secrets: tuple[SecretRef, ...]
    parameters: dict[str, str | int | float | bool | None]
    kind: Literal["notebook"] = "notebook"


@dataclass(frozen=True, slots=True)
class SaveStaged:
    """Commit what a notebook staged for a table."""

    output: NotebookOutput
    table: LakeItem
    kind: Literal["save_staged"] = "save_staged"


@dataclass(frozen=True, slots=True)
class KeepHistory:
    """Update the row versions of a history table."""

    history: History
    source: LakeItem
    table: LakeItem
    kind: Literal["history"] = "history"


@dataclass(frozen=True, slots=True)
class Check:
    """Check an expectation of an output. One that stops the run is checked before anything is published."""

    expectation: Expectation
    table: LakeItem
    other: LakeItem | None = None
    kind: Literal["check"] = "check"


@dataclass(frozen=True, slots=True)
class Deliver:
    """Send a table's rows to the destination."""

    sending: DeliveryIn
    table: LakeItem
    kind: Literal["deliver"] = "deliver"


Step = Annotated[Land | Refine | RunNotebook | SaveStaged | KeepHistory | Check | Deliver, Discriminator("kind")]
AnyStep = Land | Refine | RunNotebook | SaveStaged | KeepHistory | Check | Deliver
_ADAPTER: TypeAdapter[list[AnyStep]] = TypeAdapter(list[Step])


def title(step: AnyStep) -> str:
    """The description of a step. It names tables, so members who may not see them get no title."""
    match step:
        case Land():
            return f"Load {step.stream.name} into {step.table}"
        case Refine():
            return f"Query into {step.table} ({step.query.write})"
        case RunNotebook():
            return "Run the notebook"
        case SaveStaged():
            return f"Save {step.table} ({step.output.write})"
        case KeepHistory():
            return f"Update the history of {step.source} in {step.table}"
        case Check():
            columns = f" of {', '.join(step.expectation.columns)}" if step.expectation.columns else ""
            return f"Check {step.expectation.check}{columns} in {step.table}"
        case Deliver():
            return f"Deliver {step.table} to {step.sending.target} ({step.sending.write})"


def to_json(steps: list[AnyStep]) -> list[dict[str, Any]]:
    """A plan for storage and messages."""
    results: list[dict[str, Any]] = _ADAPTER.dump_python(steps, mode="json")
    return results


def from_json(value: list[dict[str, Any]]) -> list[AnyStep]:
    """Parse a stored or received plan."""
    return _ADAPTER.validate_python(value)
