"""Last-use times of members, tokens and sessions."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, update

from headgate.organization.sessions.models import session_table
from headgate.organization.tokens.models import token_table
from headgate.platform.directory.models import member_table
from headgate.platform.unit_of_work.services import CredentialUse


def note_uses(connection: Connection, uses: Sequence[CredentialUse]) -> None:
    """Store when members, tokens and sessions were last used."""
    latest: dict[tuple[str, str], datetime] = {}
    for use in uses:
        for name, identifier in (("member", use.member), ("token", use.token), ("session", use.session)):
            if identifier:
                latest[name, identifier] = max(use.at, latest.get((name, identifier), use.at))
    columns = {
        "member": member_table.c.last_seen_at,
        "token": token_table.c.last_used_at,
        "session": session_table.c.last_seen_at,
    }
    for (name, identifier), at in latest.items():
        column = columns[name]
        newer = (column.is_(None)) | (column < at)
        row = column.table.c.id == identifier
        connection.execute(update(column.table).where(row, newer).values({column: at}))
