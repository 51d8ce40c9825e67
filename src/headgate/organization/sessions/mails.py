"""Mails with a link to sign in or to choose a password, composed when they are sent."""

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
    """A requested sign-in link; see `_link`."""
    return _link(connection, sealer, settings, row, now, "sign_in", templates.sign_in)


def password(connection: Connection, sealer: Sealer, settings: Settings, row: Any, now: datetime) -> MailDraft | None:
    """A requested link to choose a new password; see `_link`."""
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
    """A link sent to the account's stored address, however the requester spelled it; None without an account. Only the
    account's own mailbox gets it, so it counts as requested by its member, whoever requested it.

    It is stored until it is sent, because a new link would revoke one that may have arrived. The mail expires with the
    link.
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
"""Composers of mails with links, by purpose."""
