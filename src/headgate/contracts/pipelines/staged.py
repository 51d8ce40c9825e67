"""The manifest of a notebook's output, stored next to the staged files until the run is published."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

MANIFEST = "manifest.json"


@dataclass(slots=True)
class StagedTable:
    """Rows for a table: the columns as Spark writes them, and their files."""

    schema: dict[str, Any]
    files: list[str] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file for a volume, with its future id."""

    id: str
    volume: str
    path: str
    file: str
    size: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    """The output of a notebook: rows by table id, and files."""

    tables: dict[str, StagedTable] = field(default_factory=dict)
    files: list[StagedFile] = field(default_factory=list)

    @classmethod
    def read(cls, text: str | bytes) -> "Manifest":
        """Parse a manifest."""
        told = json.loads(text)
        tables = {name: StagedTable(**value) for name, value in told["tables"].items()}
        return cls(tables, [StagedFile(**value) for value in told["files"]])

    def written(self) -> str:
        """Serialize the manifest."""
        return json.dumps(asdict(self))
