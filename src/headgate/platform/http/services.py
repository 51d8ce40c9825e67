"""What the routes of one process share."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from sqlalchemy import Connection, update

from headgate.kit.batch_writer import Batches
from headgate.kit.credentials import Sort, derived_secret
from headgate.kit.database import Database
from headgate.kit.encryption import Sealer
from headgate.kit.key_file import KeyFile
from headgate.organization.members.models import member_table
from headgate.organization.sessions.models import session_table
from headgate.organization.tokens.models import token_table
from headgate.platform.audit.events import Event
from headgate.platform.jobs.watch import Watch
from headgate.settings.settings import Settings
from headgate.warehouse.locations import open_store
from headgate.warehouse.store import Store

SEEN_EVERY = timedelta(minutes=1)
"""How exact "last seen" and "last used" are: noting each request would make every read a write."""


@dataclass(frozen=True, slots=True)
class CredentialUse:
    """That a member used a token or a session."""

    member: str
    token: str | None
    session: str | None
    at: datetime


def note_uses(connection: Connection, uses: Sequence[CredentialUse]) -> None:
    """Write down when members, tokens and sessions were seen last."""
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


@dataclass(frozen=True)
class Services:
    """What the routes of one process share."""

    settings: Settings
    database: Database
    batches: Batches[Event]
    uses: Batches[CredentialUse]
    keys: KeyFile

    @cached_property
    def sealer(self) -> Sealer:
        """Seals what is secret at rest."""
        return Sealer(self.keys)

    @cached_property
    def store(self) -> Store:
        """The warehouse."""
        return open_store(self.settings)

    @cached_property
    def watch(self) -> Watch:
        """What requests wait for. Only a single server process on SQLite changes all of it by itself."""
        return Watch(self.database, alone=self.settings.server.processes == 1 and self.database.is_in_process)

    @cached_property
    def worker_secret(self) -> str:
        """What workers show."""
        return derived_secret(Sort.worker, self.keys.key("worker"))

    @cached_property
    def device_key(self) -> bytes:
        """The key by which browsers prove that they signed in before."""
        return self.keys.key("device")
