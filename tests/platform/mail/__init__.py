"""Mail servers on this machine, as relays: one that takes mail, and ones that refuse, break off or are not there."""

import asyncio
import email
import email.policy
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from sqlalchemy import select

from headgate.access.invitations import MemberScope
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.encryption import Sealer
from headgate.kit.key_file import KeyFile
from headgate.organization.invitations.service import new_member
from headgate.organization.sessions.mails import COMPOSERS
from headgate.platform.mail.models import mail_table
from headgate.platform.mail.outbox import enqueue
from headgate.platform.mail.sender import Mailer
from headgate.settings.settings import Settings

HERE = "127.0.0.1"


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **by: float) -> None:
        self.at += timedelta(**by)


@dataclass
class Server:
    """A relay: what it was sent, and how it answers."""

    port: int = 0
    seen: list[tuple[str, list[str], EmailMessage, bytes]] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    rcpt: Callable[[str], str] = lambda _: "250 OK"
    data: Callable[[], str] = lambda: "250 taken"
    breaks_off: bool = False

    async def handle_RCPT(self, _: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:  # noqa: N802
        answer = self.rcpt(address)
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, smtp: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        answer = self.data()
        if answer.startswith("250"):
            raw: bytes = envelope.original_content
            parsed: Any = email.message_from_bytes(raw, policy=email.policy.default)
            self.seen.append((envelope.mail_from, envelope.rcpt_tos, parsed, raw))
        if self.breaks_off:
            smtp.transport.abort()
            await asyncio.sleep(0)
        return answer

    def authenticate(self, _: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password))
        return AuthResult(success=(data.login, data.password) == (b"headgate", b"opensesame"), handled=False)

    @property
    def messages(self) -> list[EmailMessage]:
        return [message for _, _, message, _ in self.seen]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return int(probe.getsockname()[1])


@contextmanager
def relay(*, tls: ssl.SSLContext | None = None, wraps: bool = False, **more: Any) -> Iterator[Server]:
    """A mail server, with STARTTLS and sign-in if it has a certificate, or with TLS from the start."""
    server = Server(free_port(), **more)
    options: dict[str, Any] = {"hostname": HERE, "port": server.port, "enable_SMTPUTF8": True, "ready_timeout": 60}
    if wraps:
        options["ssl_context"] = tls
    elif tls is not None:
        options |= {"tls_context": tls, "require_starttls": True, "auth_required": True}
        options["authenticator"] = server.authenticate
    controller = Controller(server, **options)
    controller.start()
    try:
        yield server
    finally:
        controller.stop()


@contextmanager
def hangs_up() -> Iterator[int]:
    """A port where whoever connects is dropped without a word."""
    with socket.create_server((HERE, 0)) as listener:

        def work() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                one.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)


def join(database: Database, name: str, address: str | None, role: str = "technical") -> str:
    """A member with an address."""
    return database.write(
        lambda c: new_member(c, name, address, role, MemberScope(entire=True), password=None, now=now())
    )


class Outbox:
    """An outbox of its own, and who empties it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder, self.clock = database, folder, Clock()
        self.keys = KeyFile(folder / "keys.json")
        self.sealer = Sealer(self.keys)

    def mailer(self, **mail: Any) -> Mailer:
        settings = Settings(data_dir=self.folder, mail={"security": "none", "host": HERE, "timeout_seconds": 2, **mail})
        return Mailer(settings, self.database, self.keys, COMPOSERS, self.clock)

    def put(self, to: str = "ana@example.com", body: str | None = "Hello", purpose: str = "hello", **more: Any) -> str:
        subject = more.pop("subject", "A subject" if body else "")
        return self.database.write(lambda c: enqueue(c, self.sealer, purpose, to, subject, body, self.clock(), **more))

    def row(self, identifier: str) -> Any:
        with self.database.read() as connection:
            return connection.execute(select(mail_table).where(mail_table.c.id == identifier)).one()
