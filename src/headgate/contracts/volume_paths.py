"""Paths of files in a volume. They are keys in the database, never file system paths."""

import hashlib
import unicodedata

from headgate.kit.names import BadName

MAX_CHARACTERS = 1000
MAX_BYTES = 2000
"""A size that a PostgreSQL index can always store."""
MAX_SEGMENT_BYTES = 255
LAST = "\U0010ffff"
"""Sorts after every character allowed in a path."""

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NEVER = _TURNING | {"\\", "\ufffd", "\u2028", "\u2029"}


def _is_noncharacter(character: str) -> bool:
    code = ord(character)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _is_refused(character: str) -> bool:
    return character in _NEVER or unicodedata.category(character) in {"Cc", "Cs"} or _is_noncharacter(character)


def _check_segment(segment: str) -> None:
    if not segment:
        raise BadName("a path cannot start or end with a slash, or contain two in a row")
    if segment in {".", ".."}:
        raise BadName("a path cannot contain . or .. as a segment")
    if segment != segment.strip():
        raise BadName(f"{segment!r}: a segment of a path cannot start or end with a space")
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        raise BadName(f"a segment of a path has at most {MAX_SEGMENT_BYTES} bytes")


def check_path(text: str) -> str:
    """The normalized (NFC) path of a file; raises BadName."""
    if any(_is_refused(character) for character in text):
        raise BadName("a path cannot contain backslashes, control characters or invalid UTF-8")
    path = unicodedata.normalize("NFC", text)
    if len(path) > MAX_CHARACTERS or len(path.encode()) > MAX_BYTES:
        raise BadName(f"a path has at most {MAX_CHARACTERS} characters, and {MAX_BYTES} bytes as UTF-8")
    for segment in path.split("/"):
        _check_segment(segment)
    return path


def check_prefix(text: str) -> str:
    """The normalized (NFC) prefix of paths; raises BadName."""
    if any(_is_refused(character) for character in text):
        raise BadName("a path cannot contain backslashes, control characters or invalid UTF-8")
    return unicodedata.normalize("NFC", text)


def path_key(path: str) -> str:
    """A key shared by paths that differ only in case or Unicode form (NFKC)."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return hashlib.sha256(folded.encode()).hexdigest()
