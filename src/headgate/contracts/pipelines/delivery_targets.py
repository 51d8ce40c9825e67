"""The targets and write modes that each kind of destination supports. Checked when a pipeline is saved and again by
each run.
"""

import re

from headgate.contracts.pipelines.definitions import DeliveryIn
from headgate.kit.names import is_text

DATABASES = frozenset({"postgresql", "mysql"})
FILES = frozenset({"object_store", "folder"})
OURS = "headgate_"
"""Name prefix of Headgate's own tables in a database."""

_NAME = re.compile(r"[^\W\d][\w$-]{0,62}")
_SYSTEM = re.compile(r"pg_.*|information_schema|mysql|performance_schema|sys", re.IGNORECASE)
_MOST_BYTES = 63


def check(sending: DeliveryIn, kind: str) -> None:
    """Check that a kind of destination supports this target; raises ValueError with the reason and what to write."""
    if kind in DATABASES:
        table_of(sending.target)
    elif kind in FILES:
        folder_of(sending.target)
        if sending.write == "upsert":
            raise ValueError("write: files do not support upsert, which requires a database; use append or overwrite")
    else:
        path_of(sending.target)
        if sending.write != "append":
            raise ValueError(
                f"write: {sending.write} requires a database or files; HTTP deliveries support append only"
            )


def table_of(target: str) -> tuple[str, str]:
    """The schema and the name of a database table."""
    schema, _, table = target.partition(".")
    if not (_is_name(schema) and _is_name(table)):
        raise ValueError(
            f"target: {target[:100]!r} is not a table; write schema.table, as in public.revenue, of letters, "
            "digits, _, $ and -"
        )
    if _SYSTEM.fullmatch(schema):
        raise ValueError(f"target: {schema} is a system schema of the database; use another schema")
    if table.lower().startswith(OURS):
        raise ValueError(f"target: table names that start with {OURS} are reserved; use another name")
    return schema, table


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text)) and len(text.encode()) <= _MOST_BYTES


def folder_of(target: str) -> tuple[str, ...]:
    """The nested folders for files."""
    parts = tuple(target.strip("/").split("/"))
    if not is_text(target) or any(not part or part[0] in "._" or part.strip() != part for part in parts):
        raise ValueError(
            f"target: {target[:100]!r} is not a folder; write a path below the destination, as in "
            "exports/revenue, without segments that start with . or _"
        )
    if any(len(part.encode()) > 255 for part in parts):
        raise ValueError("target: the name of a folder has at most 255 bytes")
    return parts


def path_of(target: str) -> str:
    """The path relative to a destination's base URL."""
    plain = target.lower().replace("%2e", ".").split("/")
    if not is_text(target) or "://" in target or target.startswith("//") or {"?", "#"} & set(target):
        raise ValueError(
            f"target: {target[:100]!r} is not a path; write a path below the destination's address, as in /v1/rows"
        )
    if {".", ".."} & set(plain):
        raise ValueError("target: the path contains . or .. as a segment; remove it")
    return target
