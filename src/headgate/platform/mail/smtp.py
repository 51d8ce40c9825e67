"""The operator's own mail server, to which all mail goes. It is named in the settings, so no rule for outgoing calls to
addresses of members applies."""

import smtplib
import socket
import ssl
from contextlib import suppress
from email.message import EmailMessage

from headgate.settings.mail import MailSettings

_ABOUT_US = frozenset({530, 534, 535, 538})
"""Refusals that say how we sign in at the relay; another setting mends them, so they are no answer for good."""
_TROUBLE = (smtplib.SMTPException, OSError, ValueError)


class MailRejected(Exception):
    """A mail that will not be taken, however often it is sent."""


class Unreachable(Exception):
    """The relay cannot be used at all right now; the next mail would fare no better."""


class Relay:
    """One connection to the relay, opened when it is first needed and kept for the mails that follow."""

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings
        self._smtp: smtplib.SMTP | None = None

    def send(self, message: EmailMessage, sender: str, recipient: str) -> None:
        """Hand a mail over; Refused if it never will be taken, any other error if it may be later."""
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
        """Say goodbye, if there is anyone to say it to."""
        if self._smtp is not None:
            with suppress(*_TROUBLE):
                self._smtp.quit()
        self._drop()

    def _drop(self) -> None:
        """Let go of the connection without a word: after trouble, nothing is known of its state."""
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
    """What the relay answered about the recipient or the mail; 0 if it did not come to that."""
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
