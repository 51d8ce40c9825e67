"""Detect the compression, encoding and header of files, in the step's process."""

import codecs
import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headgate.execution.sources.readers import File
from headgate.execution.steps.context import StepFailed

FIRST = 1 << 20
_PIECE = 1 << 20
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_PACKED = {b"PK\x03\x04": "a ZIP archive", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_UTF_8 = ("utf-8", "ascii", "utf-8-sig")


def open_file(file: File) -> Any:
    """The bytes of a file, decompressed if its name ends accordingly."""
    import pyarrow as pa

    packed = _CODECS.get(Path(file.path).suffix)
    try:
        return pa.input_stream(file.path, compression=packed) if packed else Path(file.path).open("rb")
    except OSError as error:
        raise unreadable(file, error) from None


def unreadable(file: File, error: Exception | str) -> StepFailed:
    """The failure for an unreadable file."""
    why = str(error).partition("\n")[0].replace(file.path, file.name)[:300]
    return StepFailed("FILE_UNREADABLE", f"cannot read {file.name}: {why}; replace it with a complete file")


def read_start(file: File, encoding: str) -> str:
    """The start of a text file; StepFailed if it is binary, or not in this encoding."""
    try:
        with open_file(file) as stream:
            begin: bytes = stream.read(FIRST)
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from None
    for magic, what in _PACKED.items():
        if begin.startswith(magic):
            told = (
                "decompress it" if what.startswith("a ") else "rename it with the matching extension, or decompress it"
            )
            raise StepFailed("FILE_PACKED", f"{file.name} contains {what}; {told}")
    plain = codecs.lookup(codec(encoding)).name in _UTF_8
    marked = next((name for mark, name in _MARKS if begin.startswith(mark)), None)
    if marked is not None and plain:
        raise StepFailed(
            "WRONG_ENCODING", f"{file.name} is {marked}, not {encoding}; set the stream's encoding to {marked}"
        )
    text = begin.removeprefix(codecs.BOM_UTF8).decode(codec(encoding), errors="replace")
    line = text.partition("\n")[0]
    if "\x00" in line:
        raise StepFailed("NOT_TEXT", f"{file.name} is not text in {encoding}; check its format and encoding")
    if "\ufffd" in line and len(begin) < FIRST:
        raise _wrong(file, encoding, "its header")
    return text.removeprefix("\ufeff")


def _wrong(file: File, encoding: str, what: str) -> StepFailed:
    return StepFailed(
        "WRONG_ENCODING",
        f"{file.name}: {what} is not {encoding}; set the stream's encoding to the file's, such as windows-1252",
    )


def codec(encoding: str) -> str:
    """The codec of an encoding; StepFailed if it is unknown."""
    try:
        encoders = codecs.lookup(encoding)
    except LookupError:
        encoders = None
    if encoders is None or not getattr(encoders, "_is_text_encoding", True):
        raise StepFailed("NO_ENCODING", f"Unknown encoding {encoding!r}; use a name such as UTF-8 or windows-1252")
    return encoders.name


def in_utf_8(files: list[File], encoding: str, folder: str) -> list[File]:
    """The files in UTF-8, which Spark requires: themselves, or converted copies in a folder."""
    if codec(encoding) in _UTF_8:
        return files
    place = Path(folder, "utf-8")
    place.mkdir(parents=True, exist_ok=True)
    return [_copied(file, codec(encoding), encoding, place / f"{number:06}") for number, file in enumerate(files)]


def _copied(file: File, name: str, encoding: str, path: Path) -> File:
    decoder = codecs.getincrementaldecoder(name)()
    try:
        with open_file(file) as source, path.open("wb") as target:
            for piece in _pieces(source):
                target.write(decoder.decode(piece).encode())
            target.write(decoder.decode(b"", final=True).encode())
    except UnicodeError:
        raise _wrong(file, encoding, "part of it") from None
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from None
    return File(str(path), file.name, file.size)


def _pieces(source: Any) -> Iterator[bytes]:
    while piece := source.read(_PIECE):
        yield piece


def header(text: str, delimiter: str, quote: str) -> list[str]:
    """The values of a CSV header."""
    if len(delimiter) > 1:
        return text.partition("\n")[0].rstrip("\r").split(delimiter)
    lines = (
        csv.reader(io.StringIO(text), delimiter=delimiter, quotechar=quote)
        if quote
        else csv.reader(io.StringIO(text), delimiter=delimiter, quotechar=None, quoting=csv.QUOTE_NONE)
    )
    try:
        return next((line for line in lines if line), [])
    except csv.Error:
        return text.partition("\n")[0].rstrip("\r").split(delimiter)


def unzipped_size(file: File) -> int:
    """The uncompressed size of a zip file according to its directory; 0 for other files."""
    if not zipfile.is_zipfile(file.path):
        return 0
    with zipfile.ZipFile(file.path) as zip_file:
        return sum(member.file_size for member in zip_file.infolist())
