"""Errors of an API, and their transport through Spark."""

import re
from collections.abc import Iterable

LONGEST = 800
_BEGIN, _END = "<<api ", "<</api>>"
_FOUND = re.compile(r"<<api code=([A-Z_]{1,40}) passing=([01])>>(.*?)<</api>>", re.DOTALL)
_MARKS = re.compile(r"<</?api[^>]{0,80}>?>?")
HIDDEN = "***"
_SHORT = 3


class ApiFailed(Exception):
    """The API cannot be read; the message says why and what to do. `passing` if a later retry may succeed."""

    def __init__(self, code: str, message: str, *, passing: bool = False) -> None:
        self.code, self.message, self.passing = code, message[:LONGEST], passing
        plain = _MARKS.sub("", self.message)
        super().__init__(f"{_BEGIN}code={code} passing={int(passing)}>>{plain}{_END}")


def parse_failure(text: str) -> ApiFailed | None:
    """The failure in an error text of Spark, if it is an API failure."""
    match = _FOUND.search(text)
    return ApiFailed(match[1], match[3], passing=match[2] == "1") if match else None


def redact(text: str, secrets: Iterable[str], mark: str = HIDDEN) -> str:
    """A text without secrets. Secrets of up to three characters are removed only as whole words, because inside other
    words they occur by chance and removing them would make the text unreadable.
    """
    for secret in sorted({secret for secret in secrets if secret}, key=len, reverse=True):
        if len(secret) > _SHORT:
            text = text.replace(secret, mark)
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", lambda _: mark, text)
    return text
