"""Shared services of the routes in one process."""

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
"""Precision of "last seen" and "last used": recording each request would make every read a write."""


@dataclass(frozen=True, slots=True)
class CredentialUse:
    """A member's use of a token or session."""

    member: str
    token: str | None
    session: str | None
    at: datetime


@dataclass(frozen=True)
class Services:
    """Shared services of the routes in one process."""

    settings: Settings
    database: Database
    batches: Batches[Event]
    uses: Batches[CredentialUse]
    keys: KeyFile

    @cached_property
    def sealer(self) -> Sealer:
        """Seals secrets at rest."""
        return Sealer(self.keys)

    @cached_property
    def store(self) -> Store:
        """The warehouse."""
        return open_store(self.settings)

    @cached_property
    def watch(self) -> Watch:
        """Notifies waiting requests. Only a single server process on SQLite makes all changes itself."""
        return Watch(self.database, alone=self.settings.server.processes == 1 and self.database.is_in_process)

    @cached_property
    def worker_secret(self) -> str:
        """The secret of workers."""
        return derived_secret(Sort.worker, self.keys.key("worker"))

    @cached_property
    def device_key(self) -> bytes:
        """The key with which browsers prove an earlier sign-in."""
        return self.keys.key("device")
