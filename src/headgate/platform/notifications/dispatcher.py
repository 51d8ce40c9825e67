"""Turns notices into notifications: each is sent once, to the members who may know it at that time."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, insert, select, update

from headgate.kit.clock import now
from headgate.kit.database import Busy, Database, is_out_of_reach
from headgate.kit.encryption import Sealer
from headgate.kit.ids import kind_of, new_id
from headgate.kit.log import get_logger
from headgate.platform.directory.models import member_table
from headgate.platform.directory.repository import email_of
from headgate.platform.mail.messages import Composer, MailDraft
from headgate.platform.mail.models import mail_table
from headgate.platform.mail.outbox import GIVE_UP_AFTER
from headgate.platform.notifications import repository
from headgate.platform.notifications.models import notice_table, notification_table, receiver_table
from headgate.platform.notifications.service import CHANNELS
from headgate.platform.notifications.templates import About, details, link, sentence
from headgate.platform.notifications.visibility import NotificationReader, demand, who_may_know
from headgate.settings.settings import Settings

MAIL = "notification"
BATCH = 50
"""Maximum number of notices per round, so that other scheduler work is not delayed."""

_log = get_logger("headgate.notifications")
_notices, _members, _receivers = notice_table.c, member_table.c, receiver_table.c


Post = Callable[[Connection, Any, frozenset[str] | None, datetime], None]
"""Queues a notice for another system, with the members who may know it; None for everybody."""


class NotificationDispatcher:
    """Sends pending notices, one per transaction."""

    def __init__(self, settings: Settings, database: Database, post: Post, clock: Callable[[], datetime] = now) -> None:
        """`post` forwards notices to other systems."""
        self._post = post
        self._by_mail, self._database, self._clock = settings.mail.host is not None, database, clock

    def tell_pending(self) -> None:
        """Send the pending notices. A notice that fails is dropped and does not delay the others."""
        try:
            for identifier in self._pending():
                self._tell(identifier)
        except Exception as error:  # noqa: BLE001 - notifications must not end the scheduler
            _log.warning("cannot send notifications; trying again", error=str(error)[:200])

    def _pending(self) -> list[str]:
        waiting = select(_notices.id).where(_notices.told_at.is_(None)).order_by(_notices.created_at, _notices.id)
        with self._database.read() as connection:
            return list(connection.execute(waiting.limit(BATCH)).scalars())

    def _tell(self, identifier: str) -> None:
        moment = self._clock()
        try:
            self._database.write(
                lambda connection: dispatch_one(connection, identifier, moment, self._post, by_mail=self._by_mail)
            )
        except Exception as error:
            if isinstance(error, Busy) or is_out_of_reach(error):
                raise
            _log.exception("a notification cannot be rendered; it is dropped", notice=identifier)
            self._database.write(lambda connection: _note_told(connection, identifier, moment))


def dispatch_one(connection: Connection, identifier: str, now: datetime, post: Post, *, by_mail: bool) -> None:
    """Send a notice if it is still pending; its notifications, mails and completion are one transaction."""
    query = select(notice_table).where(_notices.id == identifier, _notices.told_at.is_(None))
    notice = connection.execute(query).one_or_none()
    if notice is None:
        return
    knowing = who_may_know(connection, demand(notice.kind, notice.resource_id, notice.needs), now)
    people = [member for member in _recipients(connection, notice) if knowing is None or member.id in knowing]
    if people:
        rows = [{"notice_id": notice.id, "member_id": member.id, "created_at": now} for member in people]
        connection.execute(insert(notification_table), rows)
    mailed = [member for member in people if by_mail and member.by_mail and member.email]
    if mailed:
        connection.execute(insert(mail_table), [_mail(member, notice, now) for member in mailed])
    post(connection, notice, knowing, now)
    _note_told(connection, identifier, now)


def _note_told(connection: Connection, identifier: str, now: datetime) -> None:
    connection.execute(update(notice_table).where(_notices.id == identifier).values(told_at=now))


def _recipients(connection: Connection, notice: Any) -> list[Any]:
    """Members named by a notice, or subscribed to its channel and not its cause; each with the delivery method."""
    by_channel = and_(_receivers.member_id == _members.id, _receivers.channel == notice.channel)
    joined = member_table.outerjoin(receiver_table, by_channel)
    query = select(_members.id, _members.email, _receivers.by_mail).select_from(joined)
    query = query.where(_members.removed_at.is_(None))
    if notice.recipients is not None:
        query = query.where(
            _members.id.in_([recipient for recipient in notice.recipients if kind_of(recipient) == "member"])
        )
    else:
        query = query.where(_receivers.member_id.is_not(None), _members.id != (notice.actor_id or ""))
    return list(connection.execute(query.order_by(_members.id)).all())


def _mail(person: Any, notice: Any, now: datetime) -> dict[str, Any]:
    """A mail that is composed when it is sent; until then its subject is the notice's id."""
    return {
        "id": new_id("mail"),
        "purpose": MAIL,
        "member_id": person.id,
        "recipient": person.email,
        "subject": notice.id,
        "created_at": now,
        "expires_at": now + GIVE_UP_AFTER,
        "due_at": now,
        "attempts": 0,
    }


def compose(connection: Connection, sealer: Sealer, settings: Settings, row: Any, now: datetime) -> MailDraft | None:
    """A notification as a mail; None if its recipient may no longer know it or has disabled mail."""
    notice = connection.execute(select(notice_table).where(_notices.id == row.subject)).one_or_none()
    if notice is None or not repository.receiver(connection, row.member_id, notice.channel):
        return None
    recipient = email_of(connection, row.member_id)
    visible = NotificationReader(connection, row.member_id, now).shown([notice])
    if recipient is None or notice.id not in visible:
        return None
    text = sentence(notice.event, about(notice, visible[notice.id], _named(connection, notice)))
    return MailDraft(recipient, text, _body(settings, text, notice))


COMPOSERS: dict[str, Composer] = {MAIL: compose}
"""Composers of notification mails."""


def _named(connection: Connection, notice: Any) -> dict[str, tuple[str, bool]]:
    return repository.names(connection, (notice.member_id, notice.actor_id))


def about(notice: Any, resource: str | None, names: dict[str, tuple[str, bool]]) -> About:
    """The current names in a notice's sentence; a removed actor is not named."""
    member = names.get(notice.member_id)
    actor = names.get(notice.actor_id)
    return About(
        member=member[0] if member else None,
        actor=actor[0] if actor and actor[1] else None,
        kind=notice.kind or (kind_of(notice.resource_id) if notice.resource_id else None),
        resource=resource,
        facts=notice.facts if isinstance(notice.facts, dict) else {},
    )


def _body(settings: Settings, text: str, notice: Any) -> str:
    channel, facts = notice.channel, notice.facts if isinstance(notice.facts, dict) else {}
    why, more = CHANNELS.get(channel, channel), details(notice.event, facts)
    return (
        f"{text}.\n\n{more}{link(settings, facts)}\n\nYou receive this mail because of the channel “{channel}”: "
        f"{why[0].lower()}{why[1:]}. You can change this in your notification settings.\n"
    )
