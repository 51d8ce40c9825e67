"""The scheduler: periodic tasks that one process at a time runs. It holds a lease; a second scheduler waits for it."""

import os
import socket
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from headgate.job_kinds import register_all
from headgate.kit.batch_writer import Batches
from headgate.kit.clock import now
from headgate.kit.database import Busy
from headgate.kit.leases import acquire, is_held, release
from headgate.kit.log import get_logger
from headgate.lakehouse.catalog.sweeper import CatalogSweeper
from headgate.lakehouse.maintenance.scheduler import Maintainer
from headgate.lakehouse.sql import cleanup as statements
from headgate.lakehouse.trash.purger import Purger
from headgate.lakehouse.uploads.sweeper import Sweeper
from headgate.organization.sessions import mails
from headgate.organization.sessions.service import purge
from headgate.organization.sessions.uses import note_uses
from headgate.pipelines.runs import checkpoints
from headgate.pipelines.runs import cleanup as runs
from headgate.pipelines.triggers.scheduler import Firer, forget
from headgate.platform.audit.chain import Sealer
from headgate.platform.audit.chain_heads import HEAD_FILE, HeadFile
from headgate.platform.audit.events import record
from headgate.platform.jobs.cleanup import LeaseSweeper
from headgate.platform.jobs.kinds import all_kinds
from headgate.platform.mail.sender import Mailer
from headgate.platform.notifications.dispatcher import COMPOSERS, NotificationDispatcher
from headgate.platform.secrets.installation_keys import key_file
from headgate.platform.unit_of_work.services import Services
from headgate.platform.webhooks import service as webhooks
from headgate.platform.webhooks.delivery import WebhookSender
from headgate.settings.settings import Settings
from headgate.supervisor.preflight import opened
from headgate.warehouse.locations import open_store

LEASE = "scheduler"
LENGTH = timedelta(seconds=15)
INTERVAL = 0.5
LONGEST_PAUSE = 10.0
CLEAN_EVERY = timedelta(hours=1)
MOVE_EVERY = timedelta(seconds=20)
KEPT = timedelta(days=30)

_log = get_logger("headgate.scheduler")


class Scheduler:
    """Fires triggers, seals the audit log, sends notifications and mail."""

    def __init__(self, settings: Settings) -> None:
        register_all()
        self._database = opened(settings, pool_size=8)
        self._key = key_file(settings).key("audit")
        self._head = HeadFile(settings.data_dir / HEAD_FILE, self._key)
        self._sealer = Sealer(self._database, key_file(settings), self._head)
        self._teller = NotificationDispatcher(settings, self._database, webhooks.enqueue)
        self._mailer = Mailer(settings, self._database, key_file(settings), {**mails.COMPOSERS, **COMPOSERS})
        self._webhooks = WebhookSender(settings, self._database, key_file(settings))
        self._purger = Purger(self._database, lambda: open_store(settings))
        self._cleaner = statements.Cleaner(settings, self._database, lambda: open_store(settings))
        self._batches = Batches(self._database, record, "audit events")
        self._uses = Batches(self._database, note_uses, "times of use")
        services = Services(settings, self._database, self._batches, self._uses, key_file(settings))
        self._runs = runs.Cleaner(services)
        self._leases = [LeaseSweeper(kind, settings, self._database) for kind in all_kinds()]
        self._sweeper = Sweeper(self._database, lambda: open_store(settings))
        self._catalog = CatalogSweeper(self._database, lambda: open_store(settings))
        self._firer = Firer(self._database)
        self._maintainer = Maintainer(services, checkpoints)
        self._history = timedelta(days=settings.runs.history_days)
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._stopping = threading.Event()
        self._fence: int | None = None
        self._renew_at = self._clean_at = self._move_at = now()

    def stop(self) -> None:
        """Ask it to end."""
        self._stopping.set()

    def run(self) -> None:
        """Work until stopped; database errors are retried."""
        pause = INTERVAL
        while not self._stopping.wait(pause):
            try:
                self.tick()
                pause = INTERVAL
            except (Busy, DBAPIError, OSError) as error:
                pause = min(pause * 2, LONGEST_PAUSE)
                _log.warning("a scheduled task failed; trying again", error=str(error).splitlines()[0], seconds=pause)
        with suppress(Busy, DBAPIError):
            self._database.write(lambda connection: release(connection, LEASE, self._holder, now()))
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._firer.close()
        self._maintainer.close()
        self._mailer.close()
        self._webhooks.close()
        self._purger.close()
        self._sweeper.close()
        self._catalog.close()
        self._cleaner.close()
        self._runs.close()
        self._batches.close()
        self._uses.close()
        self._database.close()

    def tick(self) -> bool:
        """Run one round if this process holds the lease; return whether it does."""
        moment = now()
        if self._fence is None or not self._renew_at - LENGTH / 3 <= moment <= self._renew_at:
            self._fence = self._database.write(
                lambda connection: acquire(connection, LEASE, self._holder, moment, LENGTH)
            )
            self._renew_at = moment + LENGTH / 3
        if self._fence is None:
            self._firer.rest()
            self._maintainer.rest()
        else:
            self._firer.nudge(partial(is_held, name=LEASE, holder=self._holder, fence=self._fence))
            self.seal(self._fence)
            self._teller.tell_pending()
            self._mailer.nudge()
            self._webhooks.nudge()
            for leases in self._leases:
                leases.sweep(moment)
            self._maintainer.nudge(moment)
            self._clean(moment)
        return self._fence is not None

    def _clean(self, moment: datetime) -> None:
        """Now and then, forget sessions and links that were over long ago, and what was deleted long ago.

        More often, finish what a server did not live to do.
        """
        if not self._clean_at - CLEAN_EVERY <= moment < self._clean_at:
            self._purger.nudge(moment)
            self._sweeper.nudge(moment)
            self._catalog.nudge(moment)
            self._cleaner.nudge(moment)
            self._runs.nudge(moment)
            self._maintainer.forget(moment)
            self._database.write(lambda connection: purge(connection, moment - KEPT))
            self._database.write(lambda connection: forget(connection, moment - self._history))
            self._clean_at = moment + CLEAN_EVERY
        elif not self._move_at - MOVE_EVERY <= moment < self._move_at:
            self._runs.nudge_moves(moment)
            self._move_at = moment + MOVE_EVERY

    def seal(self, fence: int) -> None:
        """Seal pending events in batches, and store the chain head outside the database."""

        def may(connection: Connection) -> bool:
            if is_held(connection, LEASE, self._holder, fence):
                return True
            self._fence = None
            return False

        while not self._stopping.is_set():
            if not self._sealer.seal(may):
                return
