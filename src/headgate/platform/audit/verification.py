"""Verifies the audit log: walks the chain of seals and compares it with the records outside the database."""

import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from headgate.platform.audit.chain import BATCH, seal_of
from headgate.platform.audit.chain_heads import EMPTY, GENESIS, Head, RecordedHead
from headgate.platform.audit.models import audit_event_table
from headgate.platform.audit.signatures import is_marked, mark_key

_events = audit_event_table
_ANCHOR = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{64})")
_NAMED = 20


@dataclass(frozen=True, slots=True)
class ExternalRecord:
    """Records about the log from outside the database."""

    kept: RecordedHead | None = None
    """The content of the head file; None if there is no readable one."""
    fault: str | None = None
    """Why the head file cannot be read."""
    has_sealed: bool = False
    """Whether the key file shows that this installation has sealed events."""
    anchors: tuple[Head, ...] = ()
    """Heads of the chain that the operator stored elsewhere."""


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """The result of a verification: the number of sealed and pending events, and the faults."""

    sealed: int
    unsealed: int
    faults: tuple[str, ...]
    end: Head = EMPTY
    quarantined: tuple[int, ...] = ()


@dataclass(slots=True)
class _Walk:
    """The progress of the walk, and what it passed."""

    end: Head = EMPTY
    faults: list[str] = field(default_factory=list)
    seals: dict[int, str] = field(default_factory=dict)


def anchor(text: str) -> Head:
    """Parse a printed head; ValueError if the format is wrong."""
    match = _ANCHOR.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{text[:80]!r} is not an anchor; an anchor looks like 12:0f3c… (a number, a colon, 64 digits)"
        )
    return Head(int(match[1]), match[2])


def verify(connection: Connection, key: bytes, outside: ExternalRecord) -> VerificationResult:
    """Walk the whole chain; every change, gap, truncation or foreign event is a fault."""
    ends = [*outside.anchors, *([outside.kept.head] if outside.kept else [])]
    walk = _walk(connection, key, {end.number for end in ends})
    faults = [*walk.faults, *_kept_faults(outside, walk)]
    faults += [
        f"the log has no event {anchor.number} with the seal of the anchor"
        for anchor in outside.anchors
        if walk.seals.get(anchor.number) != anchor.seal
    ]
    pending, quarantined = _unsealed(connection)
    accepted = outside.kept.accepted if outside.kept else ()
    strange = [identifier for identifier in quarantined if identifier not in accepted]
    derived = mark_key(key)
    if outside.kept is not None and outside.kept.marked:
        forged = [row["id"] for row in pending if not is_marked(derived, row)]
        faults += _listed(forged, "was not written by this installation (its mark is invalid); it will not be sealed")
    faults += _listed(strange, "is quarantined: it was not written by this installation, or is a copy of another event")
    return VerificationResult(walk.end.number, len(pending), tuple(faults), walk.end, tuple(quarantined))


def _kept_faults(outside: ExternalRecord, walk: _Walk) -> list[str]:
    if outside.kept is None:
        if outside.fault is not None:
            return [outside.fault]
        if walk.end.number:
            return ["the chain head file is missing, so a truncation cannot be detected"]
        if outside.has_sealed:
            return ["this installation has sealed events, but the log and the chain head file are missing"]
        return []
    head, faults = outside.kept.head, [str(mismatch) for mismatch in outside.kept.breaks]
    if walk.end.number < head.number:
        return [*faults, f"events {walk.end.number + 1} to {head.number} at the end of the log are missing"]
    if head.number and walk.seals.get(head.number) != head.seal:
        faults.append(f"the seal of event {head.number} does not match the chain head file")
    return faults


def _walk(connection: Connection, key: bytes, numbers: set[int]) -> _Walk:
    walk, before = _Walk(), GENESIS
    number, is_known = 0, True
    for row in _chain(connection):
        if row["seal_number"] != number + 1:
            walk.faults.append(f"events {number + 1} to {row['seal_number'] - 1} are missing")
            is_known = False
        number = row["seal_number"]
        if is_known and not hmac.compare_digest(seal_of(key, number, before, row), row["seal"]):
            walk.faults.append(f"event {number} (id {row['id']}) was changed")
        before, is_known = row["seal"], True
        if number in numbers:
            walk.seals[number] = before
    walk.end = Head(number, before)
    return walk


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


def _unsealed(connection: Connection) -> tuple[list[Any], list[int]]:
    """The pending events, and the ids of quarantined ones."""
    query = select(_events).where(_events.c.seal_number.is_(None)).order_by(_events.c.id)
    rows = connection.execute(query).mappings().all()
    pending = [row for row in rows if row["seal"] is None]
    return pending, [row["id"] for row in rows if row["seal"] is not None]


def _listed(ids: Sequence[int], fault: str) -> list[str]:
    faults = [f"the event with id {identifier} {fault}" for identifier in ids[:_NAMED]]
    return [*faults, f"and {len(ids) - _NAMED} more"] if len(ids) > _NAMED else faults
