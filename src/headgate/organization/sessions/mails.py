"""Mails with a link to sign in or to choose a password, written when they are sent."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, update

from headgate.kit.encryption import Sealer
from headgate.organization.sessions.accounts import by_email
from headgate.organization.sessions.service import make_link
from headgate.platform.authorization.provenance import CredentialOrigin
from headgate.platform.mail import templates
from headgate.platform.mail.messages import Composer, MailDraft
from headgate.platform.mail.models import mail_table
from headgate.settings.settings import Settings


def sign_in(connection: Connection, sealer: Sealer, settings: Settings, row: Any, now: datetime) -> MailDraft | None:
    """A sign-in link that somebody asked for; see `_link`."""
    return _link(connection, sealer, settings, row, now, "sign_in", templates.sign_in)


def password(connection: Connection, sealer: Sealer, settings: Settings, row: Any, now: datetime) -> MailDraft | None:
    """A link to choose a new password that somebody asked for; see `_link`."""
    return _link(connection, sealer, settings, row, now, "password", templates.own_password)


def _link(
    connection: Connection,
    sealer: Sealer,
    settings: Settings,
    row: Any,
    now: datetime,
    purpose: str,
    text: Callable[[Settings, str], tuple[str, str]],
) -> MailDraft | None:
    """A link to the address that the account has, however the asker spelt it; nothing without an account. Nobody but
    the account's own mailbox gets it, so it counts as asked for by its member, whoever asked.

    It is kept until it is sent: written anew, it would spend a link that may have arrived. It waits no longer than the
    link works.
    """
    member = by_email(connection, row.recipient)
    if member is None:
        return None
    minutes = settings.sign_in.link_minutes
    subject, body = text(settings, make_link(connection, member.id, purpose, None, now, minutes, CredentialOrigin()))
    query = update(mail_table).where(mail_table.c.id == row.id)
    connection.execute(
        query.values(
            member_id=member.id,
            recipient=member.email,
            subject=subject,
            body=sealer.seal(body, mail_table.name, row.id, "body"),
            expires_at=min(row.expires_at, now + timedelta(minutes=minutes)),
        )
    )
    return MailDraft(member.email or row.recipient, subject, body)


COMPOSERS: dict[str, Composer] = {"sign_in": sign_in, "password": password}
"""Writes the mails with links, by purpose."""
