"""Marks: a MAC on each event when it is written. The key is not in the database.

The sealer verifies marks, so a row inserted by somebody else is detected before it becomes part of the chain.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from headgate.kit.clock import iso
from headgate.kit.database import Database

FIELDS = (
    "at",
    "event",
    "actor_id",
    "token_id",
    "request_id",
    "action",
    "kind",
    "resource_id",
    "allowed",
    "via",
    "before",
    "after",
)
_OPTION = "headgate_audit_key"
_NONCE = 16


def sign_events(database: Database, key: Callable[[], bytes]) -> None:
    """Mark the events recorded in this database with a key, which is read on first use."""
    signatures: list[bytes] = []

    def derived() -> bytes:
        if not signatures:
            signatures.append(mark_key(key()))
        return signatures[0]

    database.keep_option(_OPTION, derived)


def mark_key(key: bytes) -> bytes:
    """The key for marks, derived from the key for seals."""
    return hmac.digest(key, b"mark of an audit event", "sha256")


def mark(connection: Connection, row: Mapping[Any, Any]) -> str | None:
    """The mark of an event to be written; None on a connection without a key."""
    derived = connection.get_execution_options().get(_OPTION)
    return None if derived is None else _made(derived(), secrets.token_hex(_NONCE // 2), row)


def is_marked(derived: bytes, row: Mapping[Any, Any]) -> bool:
    """Whether an event has a valid mark for its content; `derived` comes from `mark_key`."""
    mark = row["mark"]
    return mark is not None and hmac.compare_digest(mark, _made(derived, mark[:_NONCE], row))


def _made(derived: bytes, nonce: str, row: Mapping[Any, Any]) -> str:
    values = [iso(row[name]) if name == "at" else row[name] for name in FIELDS]
    text = json.dumps([nonce, *values], sort_keys=True, separators=(",", ":"))
    return nonce + hmac.digest(derived, text.encode(), "sha256").hex()
