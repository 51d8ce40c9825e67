"""What the routes of one process share."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from headgate.kit.batch_writer import Batches
from headgate.kit.credentials import Sort, derived_secret
from headgate.kit.database import Database
from headgate.kit.encryption import Sealer
from headgate.kit.key_file import KeyFile
from headgate.platform.audit.events import Event
from headgate.platform.unit_of_work.watch import Watch
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
