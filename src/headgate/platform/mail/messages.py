"""Builds mail messages. User input cannot add a header, a recipient or a part."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime, parseaddr
from typing import Any

from sqlalchemy import Connection

from headgate.kit.encryption import Sealer
from headgate.kit.names import BadName, check_email
from headgate.platform.mail.smtp import MailRejected
from headgate.platform.mail.templates import one_line
from headgate.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class MailDraft:
    """The recipient and the content of a mail."""

    recipient: str
    subject: str
    body: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message and its envelope addresses."""

    message: EmailMessage
    sender: str
    recipient: str


def build_message(identifier: str, written_at: datetime, sender: str, draft: MailDraft) -> Envelope:
    """A mail ready to send; raises MailRejected if its recipient is invalid.

    A repeated send has the same Message-ID, so that the receiver can drop the duplicate.
    """
    name, address = parseaddr(sender)
    origin = _address(address, name)
    try:
        target = _address(draft.recipient)
    except BadName as error:
        raise MailRejected(str(error)) from None
    is_plain = (origin.addr_spec + target.addr_spec).isascii()
    message = EmailMessage(policy=SMTP if is_plain else SMTPUTF8)
    message["From"] = origin
    message["To"] = target
    message["Subject"] = one_line(draft.subject)
    message["Date"] = format_datetime(written_at)
    message["Message-ID"] = f"<{identifier}@{origin.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(draft.body, charset="utf-8", cte="quoted-printable")
    _check(message)
    return Envelope(message, origin.addr_spec, target.addr_spec)


def _address(text: str, name: str = "") -> Address:
    """An address whose domain any relay can read; raises BadName."""
    if "=?" in text:
        raise BadName("a mail address cannot contain encoded words (RFC 2047)")
    local, _, domain = check_email(text).rpartition("@")
    return Address(one_line(name), local, domain.encode("idna").decode())


def _check(message: EmailMessage) -> None:
    """Refuse a message whose parsed headers differ from those given; Python's mail generator has had such bugs."""
    head = message.as_bytes().partition(b"\r\n\r\n")[0]
    names = [line.partition(b":")[0] for line in head.split(b"\r\n") if not line.startswith((b" ", b"\t"))]
    if names != [name.encode() for name in message] or any(byte in head.replace(b"\r\n", b"") for byte in b"\r\n"):
        raise MailRejected("its headers are invalid")


Composer = Callable[[Connection, Sealer, Settings, Any, datetime], MailDraft | None]
"""Builds a mail from its row; None if it is no longer needed. It may write to the database and may run again."""
