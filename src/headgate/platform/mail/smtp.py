"""The operator's own mail server, which sends all mail. It comes from the settings, so the rules for outgoing calls to
member-defined addresses do not apply.
"""

import smtplib
import socket
import ssl
from contextlib import suppress
from email.message import EmailMessage

from headgate.settings.mail import MailSettings

_ABOUT_US = frozenset({530, 534, 535, 538})
"""Errors about the relay's authentication. A changed setting can fix them, so they are not permanent."""
_TROUBLE = (smtplib.SMTPException, OSError, ValueError)


class MailRejected(Exception):
    """The mail is permanently rejected."""


class Unreachable(Exception):
    """The relay is unreachable, so other mail would fail too."""


class Relay:
    """A connection to the relay, opened on first use and reused."""

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings
        self._smtp: smtplib.SMTP | None = None

    def send(self, message: EmailMessage, sender: str, recipient: str) -> None:
        """Send a mail; raises MailRejected if it is refused permanently, any other error if a retry may help."""
        if self._smtp is None:
            self._smtp = self._open()
        try:
            self._smtp.send_message(message, sender, [recipient])
        except _TROUBLE as error:
            self._drop()
            code = _code(error)
            if isinstance(error, smtplib.SMTPNotSupportedError) or (500 <= code < 600 and code not in _ABOUT_US):
                raise MailRejected(words(error)) from error
            raise

    def close(self) -> None:
        """Close the connection politely, if there is one."""
        if self._smtp is not None:
            with suppress(*_TROUBLE):
                self._smtp.quit()
        self._drop()

    def _drop(self) -> None:
        """Drop the connection without QUIT, because its state is unknown after an error."""
        if self._smtp is not None:
            self._smtp.close()
        self._smtp = None

    def _open(self) -> smtplib.SMTP:
        try:
            smtp = self._connect()
        except _TROUBLE as error:
            raise Unreachable(f"{self._settings.host}:{self._settings.port}: {words(error)}") from error
        try:
            if self._settings.security == "starttls":
                smtp.starttls(context=ssl.create_default_context())
            if self._settings.username is not None:
                password = self._settings.password
                smtp.login(self._settings.username, password.get_secret_value() if password else "")
        except _TROUBLE as error:
            smtp.close()
            raise Unreachable(f"{self._settings.host}:{self._settings.port}: {words(error)}") from error
        return smtp

    def _connect(self) -> smtplib.SMTP:
        settings, name = self._settings, socket.gethostname() or "localhost"
        host, timeout = settings.host or "", settings.timeout_seconds
        if settings.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, settings.port, name, timeout=timeout, context=context)
        return smtplib.SMTP(host, settings.port, name, timeout=timeout)


def _code(error: Exception) -> int:
    """The relay's response code for the recipient or the mail; 0 if there was none."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return max((int(code) for code, _ in error.recipients.values()), default=0)
    return int(error.smtp_code) if isinstance(error, smtplib.SMTPDataError) else 0


def words(error: Exception) -> str:
    """An error as a line of text."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(f"{code} {_text(reply)}" for code, reply in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    return str(error) or type(error).__name__


def _text(reply: bytes | str) -> str:
    return reply.decode(errors="replace") if isinstance(reply, bytes) else reply
