"""Sends due mail at least once; duplicates occur only if a process dies between sending and recording."""

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, func, select, update

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.encryption import Sealer
from headgate.kit.key_file import KeyFile
from headgate.kit.log import get_logger
from headgate.platform.directory.repository import is_member
from headgate.platform.mail.messages import Composer, MailDraft, build_message
from headgate.platform.mail.models import mail_table
from headgate.platform.mail.smtp import MailRejected, Relay, Unreachable, words
from headgate.platform.mail.templates import one_line
from headgate.settings.settings import Settings

FIRST_PAUSE = timedelta(minutes=1)
REST = timedelta(seconds=10)
"""Pause after the relay could not be reached."""
ANSWERS = 20
"""Upper bound of relay responses per mail, from which the claim duration is computed."""

_log = get_logger("headgate.mail")
_mails = mail_table.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed mail: no other process sends it before the claim expires."""

    id: str
    purpose: str
    attempt: int
    created_at: datetime


class Mailer:
    """Sends due mail through the relay, in a separate thread."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        keys: KeyFile,
        composers: Mapping[str, Composer],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._settings, self._database, self._keys, self._clock = settings, database, keys, clock
        self._composers = composers
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._rest_until: datetime | None = None

    @cached_property
    def _sealer(self) -> Sealer:
        return Sealer(self._keys)

    def nudge(self) -> None:
        """Start a round if mail is due and none is in progress. A slow relay delays only mail."""
        try:
            self.give_up_expired()
            if (self._thread is None or not self._thread.is_alive()) and self.is_due():
                self._thread = threading.Thread(target=self._round, name="mail", daemon=True)
                self._thread.start()
        except Exception as error:  # noqa: BLE001 - mail must not end the scheduler
            _log.warning("cannot read the mail queue; trying again", error=one_line(str(error)))

    def close(self) -> None:
        """Send no further mail; the next process repeats one in progress if it is not recorded in time."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=2)

    def is_due(self) -> bool:
        """Whether mail is due."""
        moment = self._clock()
        if self._settings.mail.host is None or (self._rest_until is not None and moment < self._rest_until):
            return False
        with self._database.read() as connection:
            return connection.execute(select(_mails.id).where(*_due(moment)).limit(1)).first() is not None

    def give_up_expired(self) -> None:
        """Discard mail that has waited too long; the last error is kept."""
        moment = self._clock()
        expired = (_mails.due_at.is_not(None), _mails.expires_at <= moment)
        with self._database.read() as connection:
            if connection.execute(select(_mails.id).where(*expired).limit(1)).first() is None:
                return
        why = func.coalesce(_mails.error, "the mail server timed out")
        change = update(mail_table).where(*expired).values(due_at=None, body=None, error=why)
        self._database.write(lambda connection: connection.execute(change).rowcount)

    def _round(self) -> None:
        try:
            self.send_due()
        except Exception as error:  # noqa: BLE001 - what was claimed is tried again when the claim is over
            _log.warning("cannot send mail; trying again", error=one_line(str(error)))

    def send_due(self) -> None:
        """Send due mail one by one, until none is left or the relay is unreachable."""
        if self._settings.mail.host is None:
            return
        with closing(Relay(self._settings.mail)) as relay:
            while not self._stopping.is_set():
                claimed = self._database.write(self._claim)
                if claimed is None or not self._deliver(relay, claimed):
                    return

    def _claim(self, connection: Connection) -> Claimed | None:
        """The mail that has waited longest; it becomes due again only after its sender must have died."""
        moment = self._clock()
        query = select(mail_table).where(*_due(moment)).order_by(_mails.due_at, _mails.id).limit(1)
        row = connection.execute(query).one_or_none()
        if row is None:
            return None
        length = timedelta(seconds=self._settings.mail.timeout_seconds * ANSWERS) + FIRST_PAUSE
        claim = update(mail_table).where(_mails.id == row.id)
        connection.execute(claim.values(due_at=moment + length, attempts=row.attempts + 1))
        return Claimed(row.id, row.purpose, row.attempts + 1, row.created_at)

    def _deliver(self, relay: Relay, mail: Claimed) -> bool:
        """Try to send a mail and record the result; False if the relay is unreachable."""
        try:
            draft = self._database.write(lambda connection: self._draft(connection, mail))
            if draft is not None:
                message = build_message(mail.id, mail.created_at, self._settings.mail.sender, draft)
                relay.send(message.message, message.sender, message.recipient)
        except MailRejected as error:
            self._note_failure(mail, error, for_good=True)
        except Unreachable as error:
            self._rest_until = self._clock() + REST
            self._note_failure(mail, error)
            return False
        except Exception as error:  # noqa: BLE001 - one bad mail must not stop the others
            self._note_failure(mail, error)
        else:
            self._note_done(mail, was_sent=draft is not None)
        return True

    def _draft(self, connection: Connection, mail: Claimed) -> MailDraft | None:
        """The content of a mail, stored or composed now. None if it is no longer needed."""
        row = connection.execute(select(mail_table).where(_mails.id == mail.id)).one()
        if row.due_at is None:
            return None
        if row.member_id is not None and not is_member(connection, row.member_id):
            raise MailRejected("the member was removed")
        if row.body is not None:
            body = self._sealer.open(row.body, mail_table.name, row.id, "body")
            return MailDraft(row.recipient, row.subject, body)
        composer = self._composers.get(row.purpose)
        if composer is None:
            raise MailRejected(f"there is no template for mails of the type {row.purpose!r}")
        return composer(connection, self._sealer, self._settings, row, self._clock())

    def _note_done(self, mail: Claimed, *, was_sent: bool) -> None:
        """Record that a mail was sent or is no longer needed; its body is deleted."""
        values: dict[str, Any] = {"due_at": None, "body": None}
        if was_sent:
            values |= {"sent_at": self._clock(), "error": None}
        change = update(mail_table).where(_mails.id == mail.id).values(**values)
        self._database.write(lambda connection: connection.execute(change).rowcount)

    def _note_failure(self, mail: Claimed, error: Exception, *, for_good: bool = False) -> None:
        """Record the error and retry later with exponential backoff, until the mail expires."""
        again = self._clock() + FIRST_PAUSE * 2 ** min(mail.attempt - 1, 20)
        why = one_line(words(error)) or type(error).__name__
        conditions = (_mails.id == mail.id, _mails.attempts == mail.attempt, _mails.due_at.is_not(None))

        def work(connection: Connection) -> None:
            later = update(mail_table).where(*conditions, _mails.expires_at > again).values(due_at=again, error=why)
            if for_good or connection.execute(later).rowcount == 0:
                connection.execute(update(mail_table).where(*conditions).values(due_at=None, body=None, error=why))

        self._database.write(work)
        _log.warning("a mail was not sent", mail=mail.id, purpose=mail.purpose, attempt=mail.attempt, error=why)


def _due(moment: datetime) -> tuple[Any, ...]:
    return _mails.due_at <= moment, _mails.expires_at > moment
