"""Decompress downloaded files: gzip is left to Spark under a matching name, zip is extracted here. Extracted files get
generated names, and count against the stream's size limit.
"""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from headgate.execution.sources.fetch.downloads import ByteBudget, to_disk
from headgate.execution.steps.context import StepFailed
from headgate.execution.steps.files import FetchedFile

MAX_MEMBERS = 10_000
_PIECE = 1 << 20
_GZIP, _ZIP = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
_READ_PACKED = frozenset({"csv", "json", "xml"})
"""The formats that Spark reads from gzip by itself."""


def unpacked(files: list[FetchedFile], file_format: str, folder: Path, budget: ByteBudget) -> list[FetchedFile]:
    """The files, with archives replaced by their contents."""
    result: list[FetchedFile] = []
    for file in files:
        begin = _begin(file)
        if begin.startswith(_ZIP) and file_format != "excel":
            result += _members(file, folder / f"{Path(file.path).name}.d", budget)
        elif begin.startswith(_GZIP) and not (file.path.endswith(".gz") and file_format in _READ_PACKED):
            result.append(_gunzipped(file, file_format, folder, budget))
        else:
            result.append(file)
    return result


def _begin(entry: FetchedFile) -> bytes:
    with Path(entry.path).open("rb") as file:
        return file.read(4)


def _gunzipped(file: FetchedFile, file_format: str, folder: Path, budget: ByteBudget) -> FetchedFile:
    target = folder / f"{Path(file.path).name}.gz"
    if file_format in _READ_PACKED:
        target.symlink_to(Path(file.path).resolve())
        return FetchedFile(str(target), file.name, file.size)
    target, size = target.with_suffix(".plain"), 0
    try:
        with Path(file.path).open("rb") as source, to_disk(target) as out:
            for piece in _inflated(source):
                budget.take(len(piece))
                size += out.write(piece)
    except (EOFError, zlib.error):
        raise StepFailed("FILE_DAMAGED", f"{file.name} is a damaged gzip file; create it again") from None
    return FetchedFile(str(target), file.name.removesuffix(".gz"), size)


def _inflated(source: BinaryIO) -> Iterator[bytes]:
    import gzip  # noqa: PLC0415 - seldom needed

    with gzip.GzipFile(fileobj=source) as file:
        try:
            while piece := file.read(_PIECE):
                yield piece
        except gzip.BadGzipFile:
            raise EOFError from None


def _members(file: FetchedFile, folder: Path, budget: ByteBudget) -> list[FetchedFile]:
    """The files in an archive, without metadata of operating systems."""
    files: list[FetchedFile] = []
    folder.mkdir()
    try:
        with zipfile.ZipFile(file.path) as archive:
            members = [entry for entry in archive.infolist() if not entry.is_dir() and not _is_aside(entry.filename)]
            if len(members) > MAX_MEMBERS:
                raise _refused(file, f"has {len(members):,} files; the limit is {MAX_MEMBERS:,}")
            for number, entry in enumerate(sorted(members, key=lambda entry: entry.filename)):
                if entry.flag_bits & 1:
                    raise _refused(file, "is encrypted; create it without a password")
                target = folder / f"{number:06}{'.gz' if entry.filename.lower().endswith('.gz') else ''}"
                files.append(
                    FetchedFile(str(target), f"{file.name}/{entry.filename}", _copied(archive, entry, target, budget))
                )
                if _begin(files[-1]).startswith(_ZIP):
                    raise _refused(
                        file, f"contains another archive, {_shown(entry.filename)}; archive the files themselves"
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError):
        raise _refused(file, "is damaged, or uses an unsupported compression; create it again") from None
    return files


def _copied(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, budget: ByteBudget) -> int:
    size = 0
    with archive.open(entry) as source, to_disk(target) as out:
        while piece := source.read(_PIECE):
            budget.take(len(piece))
            size += out.write(piece)
    return size


def _is_aside(name: str) -> bool:
    return name.startswith("__MACOSX/") or any(part.startswith(".") and part != ".." for part in name.split("/"))


def _refused(file: FetchedFile, why: str) -> StepFailed:
    return StepFailed("ARCHIVE_REFUSED", f"The archive {_shown(file.name)} {why}")


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)[:200]
