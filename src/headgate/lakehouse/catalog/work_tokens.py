"""Work tokens: the only credentials of a statement, probe or run for the catalog.

A work token has its member's current rights, limited by the API token that requested the work and, if listed, by the
declared tables. It is valid on /iceberg only, while its work runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.kit.credentials import Sort, digest, is_well_formed, new_secret
from headgate.kit.database import bound, fetch, instant
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.models import work_reach_table, work_token_table
from headgate.organization.tokens import service as tokens
from headgate.platform.unit_of_work.work import DeclaredTable, WorkToken


@dataclass(frozen=True, slots=True)
class WorkIdentity:
    """The work's member, the API token that requested it, and its limits."""

    member: str
    token: str | None
    narrowing: Narrowing
    work: WorkToken


def open_work(
    connection: Connection,
    now: datetime,
    *,
    purpose: str,
    member: str,
    token_id: str | None = None,
    statement_id: str | None = None,
    run_id: str | None = None,
    fence: int | None = None,
    reach: Sequence[DeclaredTable] | None = None,
    expires: datetime,
) -> tuple[str, str]:
    """Create a work token; returns its id and its secret, which is not stored. With `reach`, it sees no other
    tables.
    """
    identifier, secret = new_id("work"), new_secret(Sort.work)
    connection.execute(
        insert(work_token_table).values(
            id=identifier,
            digest=digest(secret),
            purpose=purpose,
            member_id=member,
            token_id=token_id,
            statement_id=statement_id,
            run_id=run_id,
            fence=fence,
            listed=reach is not None,
            created_at=now,
            expires_at=expires,
        )
    )
    rows = {(declared_table.table_id, declared_table.mode): declared_table for declared_table in reach or ()}
    if rows:
        values = [
            {"work_id": identifier, "table_id": row.table_id, "mode": row.mode, "layer_id": row.layer_id}
            | {"name": row.name}
            for row in rows.values()
        ]
        connection.execute(insert(work_reach_table), values)
    return identifier, secret


def open_reading(
    connection: Connection, now: datetime, run_work: str, tables: Sequence[str], *, expires: datetime
) -> tuple[str, str]:
    """Create a second token for a run that only reads these tables, as the run sees them.

    It is for untrusted code, such as a notebook's. Tables that are not among the run's own inputs and outputs are
    ignored. It expires with the run.
    """
    row = connection.execute(select(work_token_table).where(work_token_table.c.id == run_work)).mappings().one()
    reach = work_reach_table.c
    known = connection.execute(select(work_reach_table).where(reach.work_id == run_work)).mappings()
    within = {row["table_id"]: DeclaredTable(row["table_id"], "read", row["layer_id"]) for row in known}
    return open_work(
        connection,
        now,
        purpose=row["purpose"],
        member=row["member_id"],
        token_id=row["token_id"],
        run_id=row["run_id"],
        fence=row["fence"],
        reach=[within[table] for table in dict.fromkeys(tables) if table in within],
        expires=expires,
    )


def end_work(connection: Connection, work_id: str, now: datetime) -> None:
    """Revoke a work token; repeating this has no effect."""
    row = work_token_table.c
    connection.execute(update(work_token_table).where(row.id == work_id, row.ended_at.is_(None)).values(ended_at=now))


_IDENTIFY = (
    "SELECT w.id, w.purpose, w.member_id, w.run_id, w.fence, w.listed, w.expires_at, "
    "w.token_id, tk.read_only, tk.listed, tk.expires_at FROM work_tokens w "
    "JOIN members m ON m.id = w.member_id AND m.removed_at IS NULL "
    "LEFT JOIN tokens tk ON tk.id = w.token_id WHERE w.digest = :digest AND w.ended_at IS NULL AND w.expires_at > :now "
    # The API token that requested the work is still valid.
    "AND (w.token_id IS NULL OR (tk.revoked_at IS NULL AND (tk.expires_at IS NULL OR tk.expires_at > :now))) "
    # The work is running and was not taken over.
    "AND (w.statement_id IS NULL OR EXISTS (SELECT 1 FROM statements s WHERE s.id = w.statement_id "
    "AND s.state = 'running' AND (w.fence IS NULL OR s.fence = w.fence))) "
    "AND (w.run_id IS NULL OR EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id "
    "AND r.state = 'running' AND r.fence = w.fence))"
)
_REACH = (
    "SELECT wr.table_id, wr.mode, COALESCE(li.layer_id, wr.layer_id), wr.name FROM work_reach wr "
    "LEFT JOIN lake_items li ON li.id = wr.table_id WHERE wr.work_id = :work"
)


def identify_work(connection: Connection, secret: str, now: datetime) -> WorkIdentity | None:
    """The work of this secret; None if it is malformed, unknown, revoked, or its work is not running."""
    if not is_well_formed(secret, Sort.work):
        return None
    rows = fetch(connection, _IDENTIFY, {"digest": digest(secret), "now": bound(connection, now)})
    if not rows:
        return None
    identifier, purpose, member, run_id, fence, is_listed, ends, token, read_only, listed, expires = rows[0]
    granted = UNLIMITED
    if token is not None:
        granted = tokens.narrowing(connection, token, read_only=read_only, listed=listed, expires=expires)
    if purpose == "probe":
        granted = replace(granted, read_only=True)
    reach = tuple(DeclaredTable(*row) for row in fetch(connection, _REACH, {"work": identifier})) if is_listed else None
    if reach is not None and not any(declared_table.mode == "write" for declared_table in reach):
        granted = replace(granted, read_only=True)
    work = WorkToken(identifier, purpose, run_id, fence, reach, granted)
    return WorkIdentity(member, token, _narrowed(granted, reach, instant(ends)), work)


def _narrowed(granted: Narrowing, reach: tuple[DeclaredTable, ...] | None, ends: datetime) -> Narrowing:
    """The limits of a work token: those of the API token, and the declared tables."""
    expires = min(granted.expires, ends) if granted.expires else ends
    if reach is None:
        return replace(granted, expires=expires)
    within = [
        declared_table
        for declared_table in reach
        if granted.reaches_id("execute", "table", declared_table.table_id, declared_table.layer_id)
    ]
    return Narrowing(
        granted.read_only,
        frozenset(declared_table.table_id for declared_table in within),
        frozenset(declared_table.layer_id for declared_table in within if declared_table.layer_id),
        expires,
        frozenset(declared_table.table_id for declared_table in within if declared_table.mode == "write"),
    )


def loaded(connection: Connection, work_id: str) -> dict[str, Any]:
    """The loads of a probe or statement: table ids by name, None for tables that do not exist for it."""
    rows = fetch(connection, "SELECT ref, table_id FROM work_loads WHERE work_id = :work", {"work": work_id})
    return dict(rows)
