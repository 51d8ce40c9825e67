"""The demo's company with its receivers, and what is told in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.key_file import KeyFile
from headgate.organization.sessions import mails
from headgate.platform.directory.models import member_table
from headgate.platform.mail.models import mail_table
from headgate.platform.mail.sender import Mailer
from headgate.platform.notifications.dispatcher import COMPOSERS, NotificationDispatcher
from headgate.platform.notifications.models import notice_table
from headgate.platform.notifications.service import Notice, notify, set_receiver, subscribe
from headgate.platform.webhooks import service as webhooks
from tests.support.company import Company, company

EVERYONE = ("Olga", "Adam", "Tess", "Tom", "Ana", "Ben", "Bea", "Dora")


class House:
    """The company, as its scheduler sees it."""

    def __init__(self, one: Company) -> None:
        self.company, self.database = one, one.database
        self.teller = NotificationDispatcher(one.settings, one.database, webhooks.enqueue)
        self.mailer = Mailer(
            one.settings, one.database, KeyFile(one.settings.data_dir / "keys.json"), {**mails.COMPOSERS, **COMPOSERS}
        )
        self.names = {one.id("member", name): name for name in EVERYONE}
        self.ids = {name: identifier for identifier, name in self.names.items()}

    def subscribe(self, *names: str) -> None:
        """Have members receive every channel."""
        for name in names:
            self.database.write(lambda c, name=name: subscribe(c, self.ids[name]))

    def receives(self, name: str, channel: str, *, by_mail: bool) -> None:
        """Have a member receive a channel."""
        self.database.write(lambda c: set_receiver(c, self.ids[name], channel, receives=True, by_mail=by_mail))

    def address(self, *names: str) -> None:
        """Give members an address."""
        for name in names:
            mail = f"{name.lower()}@example.com"
            change = update(member_table).where(member_table.c.id == self.ids[name]).values(email=mail, email_key=mail)
            self.database.write(lambda c, change=change: c.execute(change).rowcount)

    def notice(self, channel: str = "runs", event: str = "run.failed", **more: Any) -> str:
        """Have something told, about a resource that is named as kind:name; its id."""
        about = more.pop("about", None)
        if about:
            kind, _, name = about.partition(":")
            more |= {"kind": kind, "resource": self.company.id(kind, name)}
        for one in ("actor", "member"):
            if one in more:
                more[one] = self.ids[more[one]]
        if "recipients" in more:
            more["recipients"] = tuple(self.ids.get(name, name) for name in more["recipients"])
        self.database.write(lambda c: notify(c, Notice(channel, event, **more), now()))
        with self.database.read() as connection:
            newest = select(notice_table.c.id).order_by(notice_table.c.created_at.desc(), notice_table.c.id.desc())
            return str(connection.execute(newest.limit(1)).scalar_one())

    def told(self, notice: str | None = None) -> set[str]:
        """Who was told of a notice, once the scheduler has been there."""
        self.teller.tell_pending()
        where = f" WHERE notice_id = '{notice}'" if notice else ""
        return {self.names[row[0]] for row in self.company.rows(f"SELECT member_id FROM notifications{where}")}

    def mails(self) -> list[Any]:
        """All mails."""
        with self.database.read() as connection:
            return list(connection.execute(select(mail_table).order_by(mail_table.c.id)).all())

    def listed(self, name: str, **query: Any) -> list[str]:
        """The sentences that a member reads."""
        answer = self.company.as_(name).get("/api/notifications", **query)
        assert answer.status_code == 200, answer.text
        return [item["sentence"] for item in answer.json()["items"]]


@contextmanager
def house(database: Database, folder: Path, **settings: Any) -> Iterator[House]:
    """The company, and what its members are told."""
    with company(database, folder, **settings) as one:
        yield House(one)
