"""Files for a step: those of a volume or of an allowed folder that a pattern names, under names that Spark can take.

A stream of files that is read incrementally without a cursor column reads each file once. Its state tells which it has
seen: all before a moment, and by their ids those since, so that one whose upload began early and ended late is read.
"""

import hashlib
import os
import shutil
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headgate.contracts.pipelines.steps import Land
from headgate.execution.steps.context import Context, StepFailed, VolumeFile
from headgate.kit.clock import now
from headgate.outgoing.folders import FolderFile, FolderNotAllowed, Root, opened

MAX_FILES = 100_000
FILES = "files"
"""The type of a state that tells which files were seen."""

_LATE = timedelta(days=1)
"""How long before the newest file one may have been begun that is seen only later."""

_COMPRESSED = (".gz", ".bz2", ".zst", ".deflate", ".snappy", ".lz4")


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A local file: its path for Spark, its name for members, and its size."""

    path: str
    name: str
    size: int


@dataclass(slots=True)
class FetchedFiles:
    """The files of a stream, and the state after them."""

    files: list[FetchedFile] = field(default_factory=list)
    state: dict[str, Any] | None = None


def from_volume(step: Land, context: Context, state: dict[str, Any] | None) -> FetchedFiles:
    """The files of the step's volume."""
    if step.volume is None:
        return FetchedFiles()
    volume = step.volume.id
    files = [file for file in context.volumes.files(volume) if matches(step.stream.name, file.path)]
    copies = empty_folder(step, context, "copies")
    return gathered(step, context, files, state, lambda file: context.volumes.local(volume, file, copies))


def from_folder(step: Land, path: str, context: Context, state: dict[str, Any] | None) -> FetchedFiles:
    """The files of a local folder below an allowed root."""
    copies = empty_folder(step, context, "copies")
    try:
        with opened(path, context.settings.sources.folders, "sources.folders") as root:
            files = [file for file in map(_known, root.files()) if matches(step.stream.name, file.path)]
            return gathered(step, context, files, state, lambda file: _taken(root, file, copies))
    except FolderNotAllowed as error:
        raise StepFailed("FOLDER_REFUSED", str(error)) from None


def gathered(
    step: Land,
    context: Context,
    result: Sequence[VolumeFile],
    state: dict[str, Any] | None,
    local: Callable[[VolumeFile], Path],
    *,
    at_once: int = 1,
) -> FetchedFiles:
    """Fetch the files that have to be read, several at once."""
    if len(result) > MAX_FILES:
        raise StepFailed(
            "TOO_MANY_FILES", f"{step.stream.name} matches {len(result)} files; the limit of a stream is {MAX_FILES}"
        )
    by_file = step.stream.read == "incremental" and step.stream.cursor is None
    new = _unseen(result, state) if by_file else list(result)
    new.sort(key=lambda file: file.path)
    folder = empty_folder(step, context, "files")

    def bring(file: VolumeFile) -> Path:
        context.check_stopped()
        return local(file)

    files = []
    with ThreadPoolExecutor(at_once, "files") as pool:
        try:
            for number, (entry, place) in enumerate(zip(new, pool.map(bring, new), strict=True)):
                link = folder / f"{number:06}{_ending(entry.path)}"
                link.symlink_to(place)
                files.append(FetchedFile(str(link), entry.path, entry.size))
        finally:
            pool.shutdown(cancel_futures=True)
    _tell(step, context, len(result), files)
    return FetchedFiles(files, _seen(result) if by_file else None)


def empty_folder(step: Land, context: Context, name: str) -> Path:
    """An empty folder for a step."""
    path = context.folder / step.table.id / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def _tell(step: Land, context: Context, known: int, files: list[FetchedFile]) -> None:
    where = f"{step.volume}" if step.volume else "the connection"
    if not known:
        context.log(f"No file of {where} matches {step.stream.name}", "warning")
    elif not files:
        context.log(f"All {known} files of {where} that match {step.stream.name} were already loaded")
    else:
        context.log(f"Reading {len(files)} files of {where} ({sum(file.size for file in files):,} bytes)")


def _unseen(result: Sequence[VolumeFile], state: dict[str, Any] | None) -> list[VolumeFile]:
    if state is None or state.get("type") != FILES:
        return list(result)
    begin, seen = datetime.fromisoformat(state["cursor"]), set(state["seen"])
    return [file for file in result if file.created >= begin and file.id not in seen]


def _seen(result: Sequence[VolumeFile]) -> dict[str, Any] | None:
    if not result:
        return None
    # A file that says that it is of tomorrow must not hide those that come before then.
    begin = min(max(file.created for file in result), now()) - _LATE
    recent = sorted(file.id for file in result if file.created >= begin)
    return {"cursor": begin.isoformat(), "type": FILES, "seen": recent}


def _known(file: FolderFile) -> VolumeFile:
    """A file of a folder, as it is told from others, and from what it was before it changed."""
    facts = file.facts
    created = datetime.fromtimestamp(max(facts.st_mtime, facts.st_ctime), UTC)
    told = f"{file.name}\n{facts.st_mtime_ns}\n{facts.st_size}"
    identifier = hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()[:24]
    return VolumeFile(identifier, file.name, facts.st_size, created)


def _taken(root: Root, file: VolumeFile, copies: Path) -> Path:
    """A copy in the run's folder, because a symbolic link could replace the original before Spark opens it."""
    handle, copy = root.open(file.path), copies / file.id
    with os.fdopen(handle, "rb") as source, copy.open("xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return copy


def _ending(path: str) -> str:
    """The extension by which Spark recognizes compression."""
    return next((ending for ending in _COMPRESSED if path.lower().endswith(ending)), "")


def matches(pattern: str, path: str) -> bool:
    """Whether a path matches a pattern: * and ? within a name, ** for any folders."""
    wanted = unicodedata.normalize("NFC", pattern).removeprefix("/").split("/")
    return _alike(wanted, path.split("/"), "**", lambda value, name: _alike(list(value), list(name), "*", _letter))


def _letter(wanted: str, letter: str) -> bool:
    return wanted in ("?", letter)


def _alike(pattern: list[str], items: list[str], star: str, same: Callable[[str, str], bool]) -> bool:
    """Match with wildcards, in quadratic time."""
    at = place = 0
    last, again = -1, 0
    while place < len(items):
        if at < len(pattern) and pattern[at] == star:
            last, again = at, place
            at += 1
        elif at < len(pattern) and same(pattern[at], items[place]):
            at, place = at + 1, place + 1
        elif last >= 0:
            again += 1
            at, place = last + 1, again
        else:
            return False
    return all(value == star for value in pattern[at:])
