"""Seals: each event is chained to the previous one by an HMAC whose key is not in the database.

One sealer at a time numbers and seals the unsealed events, then writes the head of the chain to a file outside the
database. Changing, removing or truncating rows undetected would require the key and that file as well. An event without
this installation's mark is not sealed but quarantined for investigation.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select, update
from sqlalchemy.engine import RowMapping

from headgate.kit.clock import iso, now
from headgate.kit.database import Database
from headgate.kit.key_file import KeyFile
from headgate.kit.log import get_logger
from headgate.platform.audit.chain_heads import EMPTY, SEALED, Break, Head, HeadFile, RecordedHead, broken
from headgate.platform.audit.events import Event, record
from headgate.platform.audit.models import audit_event_table
from headgate.platform.audit.signatures import FIELDS, is_marked, mark_key

BATCH = 1000
QUARANTINED = "quarantined"
"""Stored instead of a seal for an event that this installation did not write."""
FORGED, BROKEN, ACKNOWLEDGED = "audit.quarantined", "audit.broken", "audit.acknowledged"

_events = audit_event_table
_PENDING = (_events.c.seal_number.is_(None), _events.c.seal.is_(None))
_log = get_logger("headgate.audit")


def seal_of(key: bytes, number: int, before: str, row: Any) -> str:
    """The seal of an event, from the previous seal."""
    values = [iso(row[name]) if name == "at" else row[name] for name in ("id", *FIELDS)]
    if row["mark"] is not None:
        values.append(row["mark"])
    text = json.dumps([number, before, *values], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def last_seal(connection: Connection) -> Head:
    """The head of the chain in the database."""
    row = connection.execute(
        select(_events.c.seal_number, _events.c.seal)
        .where(_events.c.seal_number.is_not(None))
        .order_by(_events.c.seal_number.desc())
        .limit(1)
    ).one_or_none()
    return Head(row.seal_number, row.seal) if row else EMPTY


def continues(connection: Connection, head: Head) -> bool:
    """Whether the database contains the event recorded as the head."""
    if head == EMPTY:
        return True
    seal = connection.execute(select(_events.c.seal).where(_events.c.seal_number == head.number)).scalar_one_or_none()
    return seal is not None and hmac.compare_digest(seal, head.seal)


def is_pending(connection: Connection) -> bool:
    """Whether there are unsealed events."""
    return connection.execute(select(_events.c.id).where(*_PENDING).limit(1)).one_or_none() is not None


def seal_pending(connection: Connection, key: bytes, *, adopts: bool = False) -> tuple[Head, int]:
    """Seal unsealed events, oldest first; returns the new head and the number of processed events.

    With `adopts`, events without any mark are sealed too: those written by an earlier version.
    """
    head = last_seal(connection)
    pending = connection.execute(select(_events).where(*_PENDING).order_by(_events.c.id).limit(BATCH)).mappings().all()
    derived, first = mark_key(key), _first_with_mark(connection, pending)
    for row in pending:
        is_ours = adopts if row["mark"] is None else is_marked(derived, row) and first[row["mark"]] == row["id"]
        if not is_ours:
            _quarantine(connection, row)
            continue
        seal = seal_of(key, head.number + 1, head.seal, row)
        head = Head(head.number + 1, seal)
        connection.execute(
            update(audit_event_table).where(_events.c.id == row["id"]).values(seal_number=head.number, seal=head.seal)
        )
    return head, len(pending)


def _first_with_mark(connection: Connection, rows: Sequence[RowMapping]) -> dict[str, int]:
    """For each mark, the legitimate event: the sealed one, otherwise the oldest. The others are copies."""
    times = {row["at"] for row in rows if row["mark"] is not None}
    marked = connection.execute(
        select(_events.c.id, _events.c.mark)
        .where(_events.c.at.in_(times), _events.c.mark.is_not(None))
        .order_by(_events.c.seal_number.is_(None), _events.c.id)
    )
    first: dict[str, int] = {}
    for row in marked:
        first.setdefault(row.mark, row.id)
    return first


def _quarantine(connection: Connection, row: RowMapping) -> None:
    connection.execute(update(audit_event_table).where(_events.c.id == row["id"]).values(seal=QUARANTINED))
    record(connection, [Event(now(), FORGED, allowed=False, after={"id": row["id"]})])
    _log.error("an event was not written by this installation and is not sealed", id=row["id"])


class Sealer:
    """Seals pending events and records the head of the chain in a file."""

    def __init__(self, database: Database, keys: KeyFile, file: HeadFile) -> None:
        self._database, self._keys, self._file = database, keys, file
        self._key = keys.key("audit")
        self._last: Head | None = None

    def seal(self, may: Callable[[Connection], bool]) -> bool:
        """Seal one batch if this process still may; returns whether there may be more."""
        stored, faults = self._read()
        if self._last is not None and stored.marked and not faults:
            with self._database.read() as connection:
                if not is_pending(connection):
                    return False
        moment = now()

        def work(connection: Connection) -> tuple[Head, int, tuple[Break, ...]] | None:
            if not may(connection):
                return None
            breaks = faults
            if not faults and not continues(connection, stored.head):
                breaks = (broken(moment, stored.head, last_seal(connection)),)
            if breaks:
                after = {"breaks": [str(mismatch) for mismatch in breaks]}
                record(connection, [Event(moment, BROKEN, allowed=False, after=after)])
            return *seal_pending(connection, self._key, adopts=not stored.marked), breaks

        done = self._database.write(work)
        if done is None:
            return False
        head, count, breaks = done
        for mismatch in breaks:
            _log.error("the audit log is broken; run `headgate audit verify`", fault=str(mismatch))
        self._file.change(lambda before: _after(before, head, breaks, marked=stored.marked or count < BATCH))
        if self._last is None:
            self._keys.key(SEALED)
        self._last = head
        return count > 0

    def _read(self) -> tuple[RecordedHead, tuple[Break, ...]]:
        """The recorded head and the faults of the file."""
        try:
            stored = self._file.read()
        except ValueError:
            stored = None
        else:
            if stored is None and not self._has_sealed():
                return RecordedHead(EMPTY, marked=False), ()
        if stored is None or (self._last is not None and stored.head.number < self._last.number):
            with self._database.read() as connection:
                ended = last_seal(connection)
            lost = self._last or (stored.head if stored else EMPTY)
            breaks = (broken(now(), None, ended),)
            return RecordedHead(lost, stored.breaks if stored else (), stored.accepted if stored else ()), breaks
        return stored, ()

    def _has_sealed(self) -> bool:
        """Whether a head file must exist. Earlier versions, whose events have no marks, may have lost theirs."""
        if self._keys.has(SEALED):
            return True
        with self._database.read() as connection:
            marked = select(_events.c.id).where(_events.c.seal_number.is_not(None), _events.c.mark.is_not(None))
            return connection.execute(marked.limit(1)).one_or_none() is not None


def _after(stored: RecordedHead | None, head: Head, breaks: Sequence[Break], *, marked: bool) -> RecordedHead:
    if stored is None:
        return RecordedHead(head, tuple(breaks), marked=marked)
    if stored.head.number > head.number and not breaks:
        # Another sealer has taken over and is further ahead.
        return stored
    return replace(stored, head=head, breaks=(*stored.breaks, *breaks), marked=marked)


def acknowledge(database: Database, file: HeadFile, reason: str, faults: Sequence[str]) -> None:
    """Record that the operator acknowledges breaks and quarantined events, with a reason; they are no longer
    reported.
    """
    event = Event(now(), ACKNOWLEDGED, allowed=True, after={"reason": reason, "faults": [*faults]})

    def accepted(stored: RecordedHead | None) -> RecordedHead:
        quarantined = select(_events.c.id).where(_events.c.seal_number.is_(None), _events.c.seal.is_not(None))
        with database.read() as connection:
            ids = tuple(connection.execute(quarantined).scalars())
            end = stored.head if stored and continues(connection, stored.head) else last_seal(connection)
        return RecordedHead(end, (), ids, marked=stored is None or stored.marked)

    database.write(lambda connection: record(connection, [event]))
    file.change(accepted)
