"""Paths of files in a volume, and the media types that they are given out with. A path never becomes one on a disk."""

import hashlib
import unicodedata
from urllib.parse import quote

from headgate.kit.names import BadName

MAX_CHARACTERS = 1000
MAX_BYTES = 2000
"""What an index of PostgreSQL surely holds."""
MAX_SEGMENT_BYTES = 255
LAST = "\U0010ffff"
"""Sorts after every character that a path can hold."""

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NEVER = _TURNING | {"\\", "\ufffd", "\u2028", "\u2029"}

OCTETS = "application/octet-stream"
_PLAIN_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".json": "application/json",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
    ".avro": "application/vnd.apache.avro",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
    ".tar": "application/x-tar",
}
MEDIA_TYPES = frozenset({*_PLAIN_TYPES.values(), OCTETS})
"""The media types that files are given out with: none of them runs in a browser."""


def _is_noncharacter(character: str) -> bool:
    code = ord(character)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _is_refused(character: str) -> bool:
    return character in _NEVER or unicodedata.category(character) in {"Cc", "Cs"} or _is_noncharacter(character)


def _check_segment(segment: str) -> None:
    if not segment:
        raise BadName("a path has no empty part: no slash at its begin or end, and no two in a row")
    if segment in {".", ".."}:
        raise BadName("a path has no part that is . or ..")
    if segment != segment.strip():
        raise BadName(f"{segment!r}: a part of a path has no space at its begin or end")
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        raise BadName(f"a part of a path has at most {MAX_SEGMENT_BYTES} bytes")


def check_path(text: str) -> str:
    """The path of a file, normalised (NFC), or BadName."""
    if any(_is_refused(character) for character in text):
        raise BadName("a path holds no backslash, no control character, and nothing that is not UTF-8")
    path = unicodedata.normalize("NFC", text)
    if len(path) > MAX_CHARACTERS or len(path.encode()) > MAX_BYTES:
        raise BadName(f"a path has at most {MAX_CHARACTERS} characters, and {MAX_BYTES} bytes as UTF-8")
    for segment in path.split("/"):
        _check_segment(segment)
    return path


def check_prefix(text: str) -> str:
    """What paths may begin with, normalised (NFC), or BadName."""
    if any(_is_refused(character) for character in text):
        raise BadName("a path holds no backslash, no control character, and nothing that is not UTF-8")
    return unicodedata.normalize("NFC", text)


def path_key(path: str) -> str:
    """What two paths share that differ in case or in the form of their characters only (NFKC)."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return hashlib.sha256(folded.encode()).hexdigest()


def media_type(given: str | None, path: str) -> str:
    """The media type to keep: the given one if it is on the list, else by the path's ending, else bytes."""
    named = (given or "").partition(";")[0].strip().lower()
    if named in MEDIA_TYPES and named != OCTETS:
        return named
    ending = "." + path.rpartition(".")[2].lower()
    return _PLAIN_TYPES.get(ending, OCTETS)


def safe_type(kept: str) -> str:
    """A media type that runs in no browser."""
    return kept if kept in MEDIA_TYPES else OCTETS


def disposition(path: str) -> str:
    """The header that has a browser save a file under its own name (RFC 6266, RFC 8187)."""
    name = path.rpartition("/")[2]
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
