"""The functions that members may call in SQL: the guard's own list, from its sources or its jar."""

import re
import zipfile
from functools import cache

from headgate.contracts.guard_files import SHIPPED, SOURCES

LIST = "headgate/guard/functions.txt"
_NAME = re.compile(r"[a-z_][a-z0-9_.]*")
WORDS = frozenset(
    ["and", "or", "not", "in", "like", "ilike", "rlike", "regexp", "between", "case", "when", "div", "mod"]
)
"""Operators that are also in the list, because Spark registers them as functions."""


@cache
def functions() -> tuple[str, ...]:
    """The function names, sorted; empty if the guard is not installed."""
    lines = (line.strip() for line in _text().splitlines())
    return tuple(sorted(name for name in lines if _NAME.fullmatch(name) and name not in WORDS))


def _text() -> str:
    source = SOURCES / "resources" / LIST
    if source.is_file():
        return source.read_text(encoding="utf-8")
    if SHIPPED.is_file():
        with zipfile.ZipFile(SHIPPED) as jar:
            return jar.read(LIST).decode()
    return ""
