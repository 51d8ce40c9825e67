"""What a notebook saved in a run, as it is written down beside it until the run is published."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

MANIFEST = "manifest.json"


@dataclass(slots=True)
class StagedTable:
    """Rows for a table: their columns, as Spark writes them, and the files that they are in."""

    schema: dict[str, Any]
    files: list[str] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file for a volume, under the id that it will have there."""

    id: str
    volume: str
    path: str
    file: str
    size: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    """What a notebook saved: rows by the ids of tables, and files."""

    tables: dict[str, StagedTable] = field(default_factory=dict)
    files: list[StagedFile] = field(default_factory=list)

    @classmethod
    def read(cls, text: str | bytes) -> "Manifest":
        """A manifest as it was written."""
        told = json.loads(text)
        tables = {name: StagedTable(**value) for name, value in told["tables"].items()}
        return cls(tables, [StagedFile(**value) for value in told["files"]])

    def written(self) -> str:
        """The manifest, to be written."""
        return json.dumps(asdict(self))
