"""The outbox: mail is stored in the transaction that causes it, and sent later by the scheduler."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, insert, select, update

from headgate.kit.encryption import Sealer
from headgate.kit.ids import new_id
from headgate.platform.mail.models import mail_table

GIVE_UP_AFTER = timedelta(days=2)


def enqueue(
    connection: Connection,
    sealer: Sealer,
    purpose: str,
    recipient: str,
    subject: str,
    body: str | None,
    now: datetime,
    *,
    member: str | None = None,
) -> str:
    """Queue a mail in this transaction and return its id. Without a body, it is composed when it is sent."""
    identifier = new_id("mail")
    connection.execute(
        insert(mail_table).values(
            id=identifier,
            purpose=purpose,
            member_id=member,
            recipient=recipient,
            subject=subject,
            body=None if body is None else sealer.seal(body, mail_table.name, identifier, "body"),
            created_at=now,
            expires_at=now + GIVE_UP_AFTER,
            due_at=now,
            attempts=0,
        )
    )
    return identifier


def withdraw(connection: Connection, member: str, now: datetime) -> None:
    """Cancel the mail of a removed member."""
    table = mail_table.c
    waiting = update(mail_table).where(table.member_id == member, table.due_at.is_not(None))
    connection.execute(waiting.values(due_at=None, body=None, error="the member was removed"))


def waiting(connection: Connection) -> int:
    """The number of queued mails."""
    return len(connection.execute(select(mail_table.c.id).where(mail_table.c.due_at.is_not(None))).all())
