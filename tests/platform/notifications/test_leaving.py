"""A downgrade to business or a removal unsubscribes in the same transaction; a removal ends all that is open."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from headgate.kit.clock import now
from headgate.kit.encryption import Sealer
from headgate.kit.errors import LinkSpent
from headgate.organization.access.changes.delta import Delta
from headgate.organization.sessions.service import Browser, alive, identify, make_link, open_session, use_link
from headgate.platform.authorization.provenance import BY_OPERATOR
from headgate.platform.directory.models import member_table
from headgate.platform.mail.outbox import enqueue
from headgate.platform.notifications.service import CHANNELS
from headgate.settings.sign_in import SignInSettings
from tests.platform.mail import Server
from tests.platform.notifications import House

SETTINGS = SignInSettings()


def received(house: House, who: str) -> int:
    return int(
        house.company.rows(f"SELECT COUNT(*) FROM notification_receivers WHERE member_id = '{house.ids[who]}'")[0][0]
    )


@pytest.mark.parametrize(
    ("who", "role", "kept"),
    [
        ("Tess", "business", False),
        ("Adam", "business", False),
        ("Tess", "admin", True),
        ("Adam", "technical", True),
        ("Ben", "business", True),
        ("Ben", "technical", True),
    ],
)
def test_a_downgrade_to_business_ends_every_subscription_and_nothing_else_does(
    millrace_house: House, who: str, role: str, kept: bool
) -> None:
    millrace_house.subscribe(who, "Tom")
    answer = millrace_house.company.as_("Olga").change(change="set_role", member=who, role=role)
    assert answer.status_code == 200, answer.text
    assert received(millrace_house, who) == (len(CHANNELS) if kept else 0)
    assert received(millrace_house, "Tom") == len(CHANNELS)


@pytest.mark.parametrize(
    "change",
    [{"change": "set_role", "member": "Tess", "role": "business"}, {"change": "remove_member", "member": "Tess"}],
)
def test_it_is_one_transaction_with_the_change(
    millrace_house: House, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    millrace_house.subscribe("Tess")
    stored = Delta.apply

    def fails(self: Delta, connection: Any) -> None:
        stored(self, connection)
        raise RuntimeError("the power went out")

    with monkeypatch.context() as patch:
        patch.setattr(Delta, "apply", fails)
        assert millrace_house.company.as_("Olga").change(**change).status_code == 500
    assert received(millrace_house, "Tess") == len(CHANNELS)
    assert millrace_house.company.as_("Olga").change(**change).status_code == 200
    assert received(millrace_house, "Tess") == 0


@pytest.mark.parametrize(
    "change",
    [{"change": "set_role", "member": "Tess", "role": "business"}, {"change": "remove_member", "member": "Tess"}],
)
def test_what_if_foretells_it_and_changes_nothing(millrace_house: House, change: dict[str, Any]) -> None:
    millrace_house.subscribe("Tess")
    _open_everything(millrace_house, "Tess")
    before = [
        millrace_house.company.rows(f"SELECT * FROM {name}") for name in ("members", "sessions", "links", "mails")
    ]
    answer = millrace_house.company.as_("Adam").post("/api/access/what-if", {"change": change})
    assert answer.status_code == 200, answer.text
    assert answer.json()["total"]
    assert received(millrace_house, "Tess") == len(CHANNELS)
    after = [millrace_house.company.rows(f"SELECT * FROM {name}") for name in ("members", "sessions", "links", "mails")]
    for one, other in zip(before, after, strict=True):
        assert len(one) == len(other)
    assert before[1:] == after[1:]


def _open_everything(house: House, who: str, count: int = 2) -> tuple[str, str]:
    """Sessions, a link and mails of a member; the secrets of a session and of the link."""
    member, moment = house.ids[who], now()
    sealer: Sealer = house.company.client.app.state.services.sealer  # type: ignore[attr-defined]

    def work(connection: Any) -> tuple[str, str]:
        browser = Browser("test", "127.0.0.1")
        opened = [
            open_session(connection, member, "password", browser, moment, SETTINGS, BY_OPERATOR) for _ in range(count)
        ]
        for _ in range(count):
            enqueue(connection, sealer, "password", "x@example.com", "A link", "A secret", moment, member=member)
        return opened[0], make_link(connection, member, "sign_in", None, moment, 30, BY_OPERATOR)

    return house.database.write(work)


def test_a_removal_ends_sessions_links_mails_address_and_password(mailing_house: House, server: Server) -> None:
    house = mailing_house
    house.address("Tess", "Tom")
    house.subscribe("Tess")
    session, link = _open_everything(house, "Tess")
    other, others_link = _open_everything(house, "Tom")
    token = house.company.token("Tess")
    answer = house.company.as_("Adam").change(change="remove_member", member="Tess")
    assert answer.status_code == 200, answer.text
    moment = now() + timedelta(seconds=1)
    with house.database.read() as connection:
        assert identify(connection, session, moment, SETTINGS) is None
        assert alive(connection, house.ids["Tess"], moment, SETTINGS) == []
        assert len(alive(connection, house.ids["Tom"], moment, SETTINGS)) == 2
        assert identify(connection, other, moment, SETTINGS) is not None
        tess = connection.execute(select(member_table).where(member_table.c.id == house.ids["Tess"])).one()
    assert (tess.email, tess.email_key, tess.password, tess.name_key) == (None, None, None, tess.id)
    assert house.company.rows(f"SELECT COUNT(*) FROM links WHERE used_at IS NULL AND member_id = '{tess.id}'") == [(0,)]
    with pytest.raises(LinkSpent):
        house.database.write(lambda c: use_link(c, link, "sign_in", moment))
    assert house.database.write(lambda c: use_link(c, others_link, "sign_in", moment)).member == house.ids["Tom"]
    mails = {row.id: row for row in house.mails()}
    assert {(row.due_at is None, row.body is None) for row in mails.values() if row.member_id == tess.id} == {
        (True, True)
    }
    house.mailer.send_due()
    assert len(server.seen) == 2
    assert house.company.client.get("/api/access/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    told = house.company.as_("Adam").get("/api/audit", event="access.changed").json()["items"][0]
    assert {name: told["before"][name] for name in ("notification_receivers", "sessions", "links", "mails")} == {
        "notification_receivers": len(CHANNELS),
        "sessions": 2,
        "links": 1,
        "mails": 2,
    }


def test_someone_with_very_many_sessions_and_mails_can_be_removed_and_asked_about(
    mailing_house: House, server: Server
) -> None:
    session, _ = _open_everything(mailing_house, "Tess", 600)
    adam = mailing_house.company.as_("Adam")
    change = {"change": "remove_member", "member": "Tess"}
    assert adam.post("/api/access/what-if", {"change": change}).status_code == 200
    assert adam.change(**change).status_code == 200
    with mailing_house.database.read() as connection:
        assert identify(connection, session, now(), SETTINGS) is None
    mailing_house.mailer.send_due()
    assert server.seen == []
    assert {row.body for row in mailing_house.mails()} == {None}
