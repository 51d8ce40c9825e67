"""Pages by keyset: a cursor holds the last row's sort value and id, and what it was made for."""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

from headgate.kit.names import MAX_KEY_LENGTH

_BAD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_LIMIT = 200
DEFAULT_LIMIT = 50
MAX_TOTAL = 10_000


class BadCursor(ValueError):
    """A cursor that was not made by this list, with this order."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins: after this value and id."""

    value: str
    id: str

    def encode(self, purpose: str) -> str:
        """The cursor as opaque text, usable for the same purpose only."""
        text = json.dumps([purpose, self.value, self.id], ensure_ascii=False, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str, purpose: str) -> "Cursor":
        """The cursor that `encode` made for this purpose, or BadCursor."""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            document: Any = json.loads(raw)
        except (ValueError, binascii.Error, RecursionError):
            raise BadCursor("invalid cursor; omit it to start from the first page") from None
        if not isinstance(document, list) or len(document) != 3 or not all(_is_plain(part) for part in document):
            raise BadCursor("invalid cursor; omit it to start from the first page")
        if document[0] != purpose:
            raise BadCursor(
                "this cursor belongs to another list, order or filter; omit it to start from the first page"
            )
        return cls(document[1], document[2])


def _is_plain(part: Any) -> bool:
    return isinstance(part, str) and len(part) <= MAX_KEY_LENGTH + 200 and not _BAD.search(part)
