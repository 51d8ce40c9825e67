"""From a change to the reader: `headgate up` tells and mails, and the command line shows it."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.platform.directory.models import member_table
from headgate.platform.notifications.dispatcher import NotificationDispatcher
from headgate.platform.notifications.service import Notice, notify, subscribe
from headgate.platform.webhooks import service as webhooks
from headgate.settings.settings import Settings
from tests.platform.mail import HERE, relay
from tests.support.installation import Installation, eventually, installed


def _prepare(one: Installation) -> None:
    """Tess and Adam receive everything, Adam by mail; something is to be told."""
    one.fill()
    database = Database(one.url)

    def work(connection: object) -> None:
        rows = connection.execute(member_table.select()).mappings().all()  # type: ignore[attr-defined]
        ids = {row["name"]: row["id"] for row in rows}
        for name in ("Tess", "Adam"):
            subscribe(connection, ids[name])  # type: ignore[arg-type]
        address = update(member_table).where(member_table.c.id == ids["Adam"])
        connection.execute(address.values(email="adam@example.com", email_key="adam@example.com"))  # type: ignore[attr-defined]
        notify(connection, Notice("members", "joined", actor=ids["Bea"], member=ids["Bea"]), now())  # type: ignore[arg-type]

    database.write(work)
    database.close()


def _mail(port: int) -> dict[str, Any]:
    return {"HEADGATE_MAIL__HOST": HERE, "HEADGATE_MAIL__PORT": str(port), "HEADGATE_MAIL__SECURITY": "none"}


@pytest.mark.processes
def test_the_scheduler_tells_and_mails_and_the_command_line_shows_it(tmp_path: Path) -> None:
    with relay() as server, installed(tmp_path, **_mail(server.port)) as one:
        _prepare(one)
        address = one.up()
        eventually(lambda: server.seen)
        assert [to for _, [to], _, _ in server.seen] == ["adam@example.com"]
        assert server.messages[0]["Subject"] == "Bea joined"
        assert one.stop() == 0
        assert address


@pytest.fixture
def notified(tmp_path: Path) -> Installation:
    """An installation in which Adam and Tess were told something."""
    installation = Installation(tmp_path)
    _prepare(installation)
    database = Database(installation.url)
    NotificationDispatcher(Settings(data_dir=tmp_path), database, webhooks.enqueue).tell_pending()
    database.close()
    return installation


def test_the_commands(notified: Installation) -> None:
    with notified.serving() as server:
        one = notified
        adam = {"HEADGATE_SERVER_URL": server, "HEADGATE_TOKEN": one.token("Adam")}

        def run(*arguments: str) -> str:
            done = one.headgate("notifications", *arguments, **adam)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert "Bea joined" in run("list", "--unread")
        [item] = json.loads(run("list", "--json"))["items"]
        run("read", item["id"])
        assert run("list", "--unread").strip() == "There are no notifications."
        assert one.headgate("notifications", "read", **adam).returncode == 2
        run("read", "--all")
        assert "runs" in run("settings")
        run("settings", "runs", "--no-mail")
        found = {row["channel"]: row for row in json.loads(run("settings", "--json"))["channels"]}
        assert (found["runs"]["receives"], found["runs"]["by_mail"], found["access"]["by_mail"]) == (True, False, True)
        run("settings", "runs", "--stop")
        assert [row["name"] for row in json.loads(run("receivers", "runs", "--json"))["items"]] == ["Tess"]
        assert "Ben" in run("receivers", "runs", "--add", "Ben", "--remove", "Tess")
        assert [row["name"] for row in json.loads(run("receivers", "runs", "--json"))["items"]] == ["Ben"]
        assert one.headgate("notifications", "receivers", "weather", **adam).returncode == 2
        as_operator = one.headgate("notifications", "list")
        assert "HEADGATE_TOKEN" in as_operator.stderr
