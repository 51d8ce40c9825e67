"""Seals: each event is chained to the one before by an HMAC under a key that the database does not hold.

One sealer at a time numbers the events that are not sealed yet and seals them; then it writes the head of the chain to
a file outside the database. Whoever changes, removes or cuts rows would need the key and that file as well.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select, update

from headgate.audit.models import audit_event_table
from headgate.kit.clock import iso
from headgate.kit.keys import write_atomically

GENESIS = "0" * 64
BATCH = 1000

_events = audit_event_table
_SEALED_FIELDS = (
    "id",
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


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain: the number of the last seal, and the seal."""

    number: int
    seal: str


def seal_of(key: bytes, number: int, before: str, row: Any) -> str:
    """The seal of one event, after the seal before it."""
    values = [iso(row[name]) if name == "at" else row[name] for name in _SEALED_FIELDS]
    text = json.dumps([number, before, *values], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def last_seal(connection: Connection) -> Head:
    """The end of the chain as the database has it."""
    row = connection.execute(
        select(_events.c.seal_number, _events.c.seal)
        .where(_events.c.seal_number.is_not(None))
        .order_by(_events.c.seal_number.desc())
        .limit(1)
    ).one_or_none()
    return Head(row.seal_number, row.seal) if row else Head(0, GENESIS)


def is_pending(connection: Connection) -> bool:
    """Whether there are events that are not sealed yet."""
    found = connection.execute(select(_events.c.id).where(_events.c.seal_number.is_(None)).limit(1))
    return found.one_or_none() is not None


def seal_pending(connection: Connection, key: bytes) -> tuple[Head, int]:
    """Seal events that are not sealed yet, oldest first; the new end of the chain, and how many were sealed."""
    head = last_seal(connection)
    pending = (
        connection.execute(select(_events).where(_events.c.seal_number.is_(None)).order_by(_events.c.id).limit(BATCH))
        .mappings()
        .all()
    )
    for row in pending:
        seal = seal_of(key, head.number + 1, head.seal, row)
        head = Head(head.number + 1, seal)
        connection.execute(
            update(audit_event_table).where(_events.c.id == row["id"]).values(seal_number=head.number, seal=head.seal)
        )
    return head, len(pending)


class HeadFile:
    """The end of the chain, kept outside the database and signed."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path, self.key = path, key

    def write(self, head: Head) -> None:
        """Keep a new end of the chain."""
        write_atomically(self.path, json.dumps({"number": head.number, "seal": head.seal, "mac": self._mac(head)}))

    def read(self) -> Head | None:
        """The end of the chain, or None if none was ever written; ValueError if the file was tampered with."""
        try:
            found = json.loads(self.path.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise ValueError(f"{self.path} is damaged") from None
        head = Head(int(found["number"]), str(found["seal"]))
        if not hmac.compare_digest(self._mac(head), str(found.get("mac"))):
            raise ValueError(f"{self.path} was not written with this installation's key")
        return head

    def _mac(self, head: Head) -> str:
        return hmac.new(self.key, f"head {head.number} {head.seal}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verifying found: how many events are sealed and in order, how many wait, and what is wrong."""

    sealed: int
    unsealed: int
    faults: tuple[str, ...]


def verify(connection: Connection, key: bytes, head: Head | None) -> Verdict:
    """Walk the whole chain; every change, gap or cut is a fault."""
    faults: list[str] = []
    number, before, head_seal = 0, GENESIS, GENESIS if head and head.number == 0 else None
    for row in _chain(connection):
        if row["seal_number"] != number + 1:
            faults.append(f"events {number + 1} to {row['seal_number'] - 1} are missing")
            before = None  # type: ignore[assignment]
        number = row["seal_number"]
        if before is not None and not hmac.compare_digest(seal_of(key, number, before, row), row["seal"]):
            faults.append(f"event {number} (id {row['id']}) was changed")
        before = row["seal"]
        if head and number == head.number:
            head_seal = row["seal"]
    if head and number < head.number:
        faults.append(f"events {number + 1} to {head.number} were cut off the end")
    elif head and head_seal != head.seal:
        faults.append(f"the seal of event {head.number} is not the one that was kept outside the database")
    elif head is None and number:
        faults.append("the file with the end of the chain is missing; a cut could not be noticed")
    unsealed = connection.execute(select(func.count()).where(_events.c.seal_number.is_(None))).scalar_one()
    return Verdict(number, unsealed, tuple(faults))


def _chain(connection: Connection) -> Iterator[Any]:
    last = 0
    while True:
        rows = (
            connection.execute(
                select(_events).where(_events.c.seal_number > last).order_by(_events.c.seal_number).limit(BATCH)
            )
            .mappings()
            .all()
        )
        yield from rows
        if len(rows) < BATCH:
            return
        last = rows[-1]["seal_number"]
