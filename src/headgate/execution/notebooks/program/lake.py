"""Functions for cells: tables, files, secrets and parameters that the notebook declared."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class NotDeclared(KeyError):
    """The notebook uses something that it did not declare."""

    def __str__(self) -> str:
        return str(self.args[0])


class Lake:
    """The notebook's inputs and outputs."""

    def __init__(self, spark: "SparkSession", job: dict[str, Any]) -> None:
        self._spark, self._job = spark, job
        self._staging = Path(job["staging"])
        self._saved = 0

    def names(self) -> dict[str, Callable[..., Any]]:
        """The functions by their names in cells."""
        own = (self.load, self.save, self.load_files, self.volume_path, self.save_file, self.secret)
        return {value.__name__: value for value in own}

    def load(self, table: str) -> "DataFrame":
        """Load a declared input table."""
        return self._spark.table(self._declared("inputs", table, "an input"))

    def save(self, data: Any, table: str) -> None:
        """Have rows written to a table that is declared under outputs, when the notebook has ended well.

        How they are written is part of the definition. What is saved to a table in several calls is written together.
        """
        number = self._declared("outputs", table, "an output")
        frame = data if hasattr(data, "write") else self._spark.createDataFrame(data)
        folder, count = self._staging / "tables" / number, self._next()
        frame.write.parquet(f"file://{folder}/{count}")
        (folder / f"{count}.schema.json").write_text(frame.schema.json(), encoding="utf-8")

    def load_files(self, volume: str, pattern: str = "**/*") -> list[Path]:
        """The paths of files in a declared volume, read-only."""
        return sorted(path for path in self.volume_path(volume).glob(pattern) if path.is_file())

    def volume_path(self, volume: str, path: str = "") -> Path:
        """The path of a file or folder in a declared volume."""
        return Path(self._job["volumes"], self._declared("volume_names", volume, "a volume"), path)

    def save_file(self, volume: str, path: str, content: bytes | bytearray | str | os.PathLike[str]) -> None:
        """Have a file put into a volume that is declared under output volumes, once the run has been published.

        `content` are its bytes, or the path of a file here.
        """
        number = self._declared("output_volumes", volume, "an output volume")
        parts = str(path).split("/")
        if not path or any(part in {"", ".", ".."} for part in parts):
            raise ValueError(f"{path!r} is not a path in a volume; write it as folder/file.csv")
        name, folder = str(self._next()), self._staging / "files"
        folder.mkdir(exist_ok=True)
        if isinstance(content, bytes | bytearray):
            (folder / name).write_bytes(content)
        else:
            shutil.copyfile(content, folder / name)
        with (folder / "index.jsonl").open("a", encoding="utf-8") as index:
            index.write(json.dumps({"volume": number, "path": str(path), "file": name}) + "\n")

    def secret(self, name: str) -> str:
        """A declared secret."""
        return Path(self._job["secrets"], self._declared("secret_names", name, "a secret")).read_text(encoding="utf-8")

    def _declared(self, kind: str, name: str, words: str) -> str:
        known: dict[str, str] = self._job[kind]
        response = known.get(str(name).lower())
        if response is None:
            listed = ", ".join(sorted(known)) or "none"
            raise NotDeclared(f"{name!r} is not declared as {words} of this notebook; declared: {listed}")
        return response

    def _next(self) -> int:
        self._saved += 1
        return self._saved
