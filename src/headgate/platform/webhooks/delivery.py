"""Posts notices to the organization's webhook: at least once, signed, with retries."""

import hmac
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, func, select, update

from headgate.kit.clock import iso, now
from headgate.kit.database import Database
from headgate.kit.encryption import Sealer
from headgate.kit.key_file import KeyFile
from headgate.kit.log import get_logger
from headgate.outgoing.client import Outgoing
from headgate.platform.mail.templates import one_line
from headgate.platform.notifications import repository
from headgate.platform.notifications.dispatcher import about
from headgate.platform.notifications.models import notice_table
from headgate.platform.notifications.templates import code_of, link, reason, sentence
from headgate.platform.notifications.visibility import NotificationReader
from headgate.platform.webhooks.models import webhook_delivery_table, webhook_table
from headgate.platform.webhooks.service import may_receive
from headgate.settings.settings import Settings

FIRST_PAUSE = timedelta(minutes=1)
SIGNATURE, EVENT = "headgate-signature", "headgate-event"

_log = get_logger("headgate.webhooks")
_deliveries = webhook_delivery_table.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed delivery: no other process sends it before the claim expires."""

    notice: str
    webhook: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A request ready to send."""

    url: str
    body: bytes
    headers: dict[str, str]


class Failed(Exception):
    """The receiver rejected the request."""


def signature(secret: str, moment: datetime, body: bytes) -> str:
    """The signature for the receiver: the time, and an HMAC-SHA256 over it and the body."""
    at = int(moment.timestamp())
    return f"t={at},v1={hmac.digest(secret.encode(), str(at).encode() + b'.' + body, 'sha256').hex()}"


class WebhookSender:
    """Posts due notices in a separate thread."""

    def __init__(
        self, settings: Settings, database: Database, keys: KeyFile, clock: Callable[[], datetime] = now
    ) -> None:
        self._settings, self._database, self._keys, self._clock = settings, database, keys, clock
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @cached_property
    def _sealer(self) -> Sealer:
        return Sealer(self._keys)

    @cached_property
    def _outgoing(self) -> Outgoing:
        return Outgoing(self._settings.outgoing)

    def nudge(self) -> None:
        """Start a round if a delivery is due and none is in progress."""
        try:
            if (self._thread is None or not self._thread.is_alive()) and self._is_due():
                self._thread = threading.Thread(target=self._round, name="webhook", daemon=True)
                self._thread.start()
        except Exception as error:  # noqa: BLE001 - webhooks must not end the scheduler
            _log.warning("cannot read the queue of webhook deliveries; trying again", error=one_line(str(error)))

    def close(self) -> None:
        """Start no further delivery; the next process repeats one in progress if it is not recorded in time."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=2)

    def _is_due(self) -> bool:
        with self._database.read() as connection:
            due = select(_deliveries.notice_id).where(_deliveries.due_at <= self._clock()).limit(1)
            return connection.execute(due).first() is not None

    def _round(self) -> None:
        try:
            self.send_due()
        except Exception as error:  # noqa: BLE001 - what was claimed is tried again when the claim is over
            _log.warning("cannot send to the webhook; trying again", error=one_line(str(error)))

    def send_due(self) -> None:
        """Post due deliveries, oldest first, until none is left."""
        while not self._stopping.is_set():
            claimed = self._database.write(self._claim)
            if claimed is None:
                return
            self._deliver(claimed)

    def _claim(self, connection: Connection) -> Claimed | None:
        moment = self._clock()
        gave_up = (_deliveries.due_at.is_not(None), _deliveries.expires_at <= moment)
        why = func.coalesce(_deliveries.error, "the receiver timed out")
        connection.execute(update(webhook_delivery_table).where(*gave_up).values(due_at=None, error=why))
        query = select(webhook_delivery_table).where(_deliveries.due_at <= moment)
        row = connection.execute(query.order_by(_deliveries.due_at, _deliveries.notice_id).limit(1)).one_or_none()
        if row is None:
            return None
        length = timedelta(seconds=self._settings.outgoing.timeout_seconds) + FIRST_PAUSE
        claimed = Claimed(row.notice_id, row.webhook_id, row.attempts + 1)
        connection.execute(_mine(claimed).values(due_at=moment + length, attempts=claimed.attempt))
        return claimed

    def _deliver(self, claimed: Claimed) -> None:
        try:
            with self._database.read() as connection:
                post = self._post(connection, claimed)
            if post is not None:
                headers = {**post.headers, "content-type": "application/json"}
                answer = self._outgoing.request(
                    "POST",
                    post.url,
                    headers=headers,
                    content=post.body,
                    idempotency_key=claimed.notice,
                    redirects=False,
                )
                if not 200 <= answer.status < 300:
                    raise Failed(f"the receiver answered with status {answer.status}")
        except Exception as error:  # noqa: BLE001 - one bad delivery must not stop the others
            self._note_failure(claimed, error)
        else:
            values: dict[str, Any] = {"due_at": None}
            if post is not None:
                values |= {"sent_at": self._clock(), "error": None}
            self._database.write(lambda connection: connection.execute(_mine(claimed).values(values)).rowcount)

    def _post(self, connection: Connection, claimed: Claimed) -> WebhookRequest | None:
        """The request, composed now; None if the member who set the webhook may no longer know the notice."""
        hook = connection.execute(select(webhook_table).where(webhook_table.c.id == claimed.webhook)).one_or_none()
        notice = connection.execute(select(notice_table).where(notice_table.c.id == claimed.notice)).one_or_none()
        moment = self._clock()
        if hook is None or notice is None or not may_receive(connection, hook.set_by_id, moment):
            return None
        visible = NotificationReader(connection, hook.set_by_id, moment).shown([notice])
        if notice.id not in visible:
            return None
        names = repository.names(connection, (notice.member_id, notice.actor_id))
        subject = about(notice, visible[notice.id], names)
        payload = {
            "id": notice.id,
            "event": notice.event,
            "at": iso(notice.created_at),
            "text": sentence(notice.event, subject),
            "resource": {"kind": subject.kind, "id": notice.resource_id, "name": subject.resource},
            "run": subject.facts.get("run"),
            "state": subject.facts.get("state"),
            "code": code_of(subject.facts),
            "reason": reason(notice.event, subject.facts),
            "link": link(self._settings, subject.facts),
        }
        body = json.dumps(payload, ensure_ascii=False).encode()
        url, secret = (
            self._sealer.open(getattr(hook, column), webhook_table.name, hook.id, column) for column in _SEALED
        )
        return WebhookRequest(url, body, {SIGNATURE: signature(secret, moment, body), EVENT: notice.event})

    def _note_failure(self, claimed: Claimed, error: Exception) -> None:
        """Record the error and retry later with exponential backoff, until the delivery expires."""
        again = self._clock() + FIRST_PAUSE * 2 ** min(claimed.attempt - 1, 11)
        why = one_line(str(error)) or type(error).__name__
        query = _mine(claimed).where(_deliveries.attempts == claimed.attempt)
        self._database.write(lambda connection: connection.execute(query.values(due_at=again, error=why)).rowcount)
        _log.warning("the webhook rejected a notification", notice=claimed.notice, attempt=claimed.attempt, error=why)


_SEALED = ("url", "secret")


def _mine(claimed: Claimed) -> Any:
    place = (_deliveries.notice_id == claimed.notice, _deliveries.webhook_id == claimed.webhook)
    return update(webhook_delivery_table).where(*place)
