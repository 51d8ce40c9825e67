"""Where a run keeps what its notebook saved until it is published: in the warehouse, so that any worker goes on.

FENCE/saved/         what the notebook writes to; gone once it was looked through
FENCE/tables/ID/     Parquet files for a table
FENCE/files/         files for volumes
FENCE/manifest.json  what of it counts, written last; the newest one does
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from headgate.contracts.pipelines.staged import MANIFEST, Manifest, StagedFile, StagedTable
from headgate.contracts.pipelines.steps import LakeItem, RunNotebook
from headgate.contracts.volume_paths import check_path, path_key
from headgate.execution.notebooks import schemas
from headgate.execution.notebooks.processes import remove
from headgate.execution.steps.context import Context, StepFailed
from headgate.kit.file_ownership import make_folder
from headgate.kit.ids import new_id
from headgate.kit.names import BadName
from headgate.kit.untrusted_files import NotRegularFile, content, entries, opened
from headgate.warehouse.locations import open_store, staging_root

MAX_SAVES = 10_000
MAX_PARTS = 100_000
MAX_FILES = 10_000
MAX_SCHEMA = 4 << 20
MAX_INDEX = 32 << 20


class Staging:
    """The staging folder of a run for one fencing token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saved = folder / "saved"

    @classmethod
    def begin(cls, context: Context) -> "Staging":
        """Create an empty staging folder for this fencing token."""
        staging = cls(_base(context) / str(context.job.fence))
        remove(staging.folder)
        make_folder(staging.saved, 0o700)
        return staging

    @classmethod
    def newest(cls, context: Context) -> tuple["Staging", Manifest] | None:
        """The one in which the run's notebook ended well; None if it is not on this machine any more."""
        base = _base(context)
        fences = sorted((int(path.name) for path in base.glob("*") if path.name.isdecimal()), reverse=True)
        for fence in fences:
            file = base / str(fence) / MANIFEST
            if fence <= context.job.fence and file.is_file():
                return cls(file.parent), Manifest.read(file.read_text(encoding="utf-8"))
        return None

    def accept(self, step: RunNotebook, context: Context) -> Manifest:
        """Validate the saved files after the notebook's processes have ended; StepFailed for unexpected files."""
        manifest = Manifest()
        try:
            for number, item in enumerate(step.outputs):
                table = self._table(number, item)
                if table is not None:
                    manifest.tables[item.id] = table
            manifest.files = self._files(step.output_volumes, context.settings.warehouse.max_file_bytes)
        except NotRegularFile as error:
            raise StepFailed(
                "SAVED_STRANGELY",
                (
                    f"The notebook's staging folder contains the unexpected file {str(error)[:100]!r}; write to "
                    "it only with save()"
                ),
            ) from None
        remove(self.saved)
        part = self.folder / "manifest.part"
        part.write_text(manifest.written(), encoding="utf-8")
        part.replace(self.folder / MANIFEST)
        self._send(manifest, context)
        return manifest

    def _send(self, manifest: Manifest, context: Context) -> None:
        """Upload the files for volumes to the server, if this folder is local to the worker."""
        if not manifest.files or context.settings.warehouse_url.startswith("file:"):
            return
        store, root = open_store(context.settings), f"{staging_root(context.job.id)}/{context.job.fence}"
        store.delete_folder(root)
        for name in (*(file.file for file in manifest.files), MANIFEST):
            with (self.folder / name).open("rb") as source:
                store.write(f"{root}/{name}", iter(lambda: source.read(1 << 20), b""))

    def drop(self) -> None:
        """Delete the staging folder."""
        remove(self.folder)

    def _table(self, number: int, item: LakeItem) -> StagedTable | None:
        folder = _below(_below(self.saved, "tables"), str(number))
        staged_table: StagedTable | None = None
        for entry in entries(folder, 2 * MAX_SAVES) if folder else ():
            if entry.name.isdecimal() and entry.is_dir(follow_symlinks=False):
                schema = self._schema(Path(f"{entry.path}.schema.json"), item)
                if staged_table is None:
                    staged_table = StagedTable(schema)
                elif staged_table.schema != schema:
                    raise StepFailed(
                        "SAVED_DIFFERENTLY",
                        (f"{item} was saved several times with different columns; use the same columns each time"),
                    )
                self._take_parts(Path(entry.path), item, staged_table)
        return staged_table

    def _schema(self, file: Path, item: LakeItem) -> dict[str, Any]:
        try:
            return schemas.checked(json.loads(content(file, MAX_SCHEMA)))
        except schemas.BadSchema as error:
            raise StepFailed("COLUMNS_REFUSED", f"cannot save {item}: {error}") from None
        except (ValueError, RecursionError):
            raise NotRegularFile(file.name) from None

    def _take_parts(self, folder: Path, item: LakeItem, staged_table: StagedTable) -> None:
        target = self.folder / "tables" / item.id
        make_folder(target, 0o700)
        for entry in entries(folder, 2 * MAX_PARTS):
            if entry.name.startswith(("_", ".")):
                continue
            if not entry.name.endswith(".parquet") or not entry.is_file(follow_symlinks=False):
                raise NotRegularFile(entry.name)
            name = f"tables/{item.id}/{len(staged_table.files)}.parquet"
            staged_table.bytes += entry.stat(follow_symlinks=False).st_size
            Path(entry.path).rename(self.folder / name)
            staged_table.files.append(name)

    def _files(self, volumes: tuple[LakeItem, ...], most: int) -> list[StagedFile]:
        folder = _below(self.saved, "files")
        if folder is None:
            return []
        make_folder(self.folder / "files", 0o700)
        values: dict[tuple[str, str], StagedFile] = {}
        for told in _lines(folder / "index.jsonl"):
            try:
                volume, path, name = volumes[int(told["volume"])], check_path(told["path"]), str(told["file"])
            except BadName as error:
                raise StepFailed("FILE_REFUSED", f"cannot save {str(told['path'])[:100]!r}: {error}") from None
            except (ValueError, KeyError, IndexError, TypeError, AttributeError):
                raise NotRegularFile("index.jsonl") from None
            if not name.isdecimal() or len(values) >= MAX_FILES:
                raise NotRegularFile(name)
            # What was saved last under a path counts.
            values[volume.id, path_key(path)] = self._take_file(folder / name, volume, path, most)
        return list(values.values())

    def _take_file(self, file: Path, volume: LakeItem, path: str, most: int) -> StagedFile:
        identifier, total = new_id("file"), hashlib.sha256()
        with opened(file) as source:
            while piece := source.read(1 << 20):
                total.update(piece)
            size = source.tell()
        if size > most:
            raise StepFailed(
                "FILE_TOO_LARGE",
                f"{path} for {volume} is larger than {most} bytes, the limit of `warehouse.max_file_bytes`",
            )
        name = f"files/{identifier}"
        file.rename(self.folder / name)
        return StagedFile(identifier, volume.id, path, name, size, total.hexdigest())


def _base(context: Context) -> Path:
    parts = urlsplit(context.settings.warehouse_url)
    if parts.scheme == "file":
        return Path(unquote(parts.path), staging_root(context.job.id))
    return context.folder / "staging"


def _below(folder: Path | None, name: str) -> Path | None:
    """A subfolder, if it exists and is not a symbolic link."""
    path = folder / name if folder is not None else None
    return path if path is not None and not path.is_symlink() and path.is_dir() else None


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in content(file, MAX_INDEX).splitlines():
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            raise NotRegularFile(file.name) from None
        if not isinstance(told, dict):
            raise NotRegularFile(file.name)
        yield told
