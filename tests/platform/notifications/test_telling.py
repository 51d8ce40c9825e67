"""Nobody is told of what they cannot see, judged when it is told, and again when it is mailed or read."""

from typing import Any

import pytest
from sqlalchemy import update

from headgate.platform.directory.models import member_table
from headgate.platform.mail.sender import Mailer
from headgate.platform.notifications import dispatcher as telling
from headgate.platform.notifications.models import notice_table
from tests.platform.mail import Server
from tests.platform.notifications import EVERYONE, House

SEES = {
    "data_mart:Revenue": {"Olga", "Adam", "Tess", "Ana", "Ben", "Bea", "Dora"},
    "data_mart:Pipeline health": {"Olga", "Adam", "Tess", "Tom"},
    "report:Weekly revenue": {"Olga", "Adam", "Tess", "Ana", "Ben", "Bea", "Dora"},
    "storage:Warehouse": {"Olga", "Adam", "Tess", "Tom", "Ana"},
    "destination:Old mailbox": {"Olga", "Adam", "Bea"},
    "table:raw.orders": {"Olga", "Adam", "Tess", "Tom"},
    "pipeline:Land payments": {"Olga", "Adam", "Tess", "Tom"},
    "pipeline:Land shop orders": {"Olga", "Adam", "Tess", "Tom", "Ana", "Ben", "Bea", "Dora"},
    "space:Tom's own": {"Olga", "Adam", "Tom", "Dora"},
    "saved_query:Largest orders": {"Ana"},
}


@pytest.mark.parametrize("about", SEES)
def test_everyone_who_receives_a_channel_is_told_of_what_they_may_see(millrace_house: House, about: str) -> None:
    millrace_house.subscribe(*EVERYONE)
    told = millrace_house.told(millrace_house.notice(about=about))
    assert told == SEES[about]
    for who in EVERYONE:
        assert (who in told) == bool(millrace_house.listed(who)), who


def test_only_who_receives_the_channel_is_told_and_never_who_did_it(millrace_house: House) -> None:
    millrace_house.receives("Tess", "runs", by_mail=False)
    millrace_house.receives("Ben", "runs", by_mail=False)
    millrace_house.receives("Adam", "members", by_mail=False)
    assert millrace_house.told(millrace_house.notice(about="data_mart:Revenue", actor="Tess")) == {"Ben"}
    assert millrace_house.told(millrace_house.notice(about="data_mart:Revenue")) == {"Tess", "Ben"}
    assert millrace_house.told(millrace_house.notice("members", "joined", member="Bea")) == {"Adam"}


def test_named_recipients_are_told_whatever_they_receive_if_they_may_see_it(millrace_house: House) -> None:
    millrace_house.subscribe("Olga", "Tess")
    named: dict[str, Any] = {"recipients": ["Ben", "Tom", "Olga", "mbr_nobody", "x\0y"], "actor": "Olga"}
    assert millrace_house.told(millrace_house.notice(about="data_mart:Revenue", **named)) == {"Ben", "Olga"}
    assert millrace_house.told(millrace_house.notice(recipients=[])) == set()


@pytest.mark.parametrize(
    ("needs", "about", "told"),
    [
        ("edit", "data_mart:Revenue", {"Olga", "Adam", "Tess"}),
        ("grant", "table:raw.orders", {"Olga", "Adam", "Tess"}),
        ("restore", "destination:Old mailbox", {"Olga", "Adam", "Bea"}),
        ("manage_owners", "destination:Old mailbox", set()),
        ("no_such_action", "data_mart:Revenue", set()),
        ("create", "data_mart:Revenue", set()),
        ("manage_members", None, {"Olga", "Adam"}),
        ("manage_billing", None, {"Olga"}),
    ],
)
def test_a_notice_can_need_an_action(millrace_house: House, needs: str, about: str | None, told: set[str]) -> None:
    millrace_house.subscribe(*EVERYONE)
    more = {"about": about} if about else {}
    assert millrace_house.told(millrace_house.notice(needs=needs, **more)) == told
    assert {who for who in EVERYONE if millrace_house.listed(who)} == told


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": "data_mart"},
        {"kind": "data_mart", "resource": "dm_00000000000000000000"},
        {"kind": "data_mart", "resource": "no id"},
        {"kind": "request", "resource": "req_00000000000000000000"},
        {"kind": "data_mart", "resource": "organization"},
        {"resource": "grp_00000000000000000a11"},
    ],
)
def test_what_is_malformed_or_gone_is_told_to_nobody(millrace_house: House, odd: dict[str, Any]) -> None:
    millrace_house.subscribe(*EVERYONE)
    assert millrace_house.told(millrace_house.notice(**odd)) == set()
    assert millrace_house.company.rows("SELECT COUNT(*) FROM notices WHERE told_at IS NULL") == [(0,)]


def test_what_is_revoked_before_it_is_told_is_not_told(millrace_house: House) -> None:
    millrace_house.subscribe(*EVERYONE)
    first = millrace_house.notice(about="data_mart:Revenue")
    assert "Bea" in millrace_house.told(first)
    second = millrace_house.notice(about="data_mart:Revenue")
    tess = millrace_house.company.as_("Tess")
    assert tess.change(change="share", resource="data_mart:Revenue", for_use=False).status_code == 200
    assert millrace_house.told(second) == {"Olga", "Adam", "Tess", "Ben"}
    assert millrace_house.listed("Bea") == []
    assert len(millrace_house.listed("Ben")) == 2


def test_a_removed_member_is_told_nothing(millrace_house: House) -> None:
    millrace_house.subscribe("Tom", "Tess")
    one = millrace_house.notice(about="data_mart:Pipeline health")
    two = millrace_house.notice(recipients=["Tom", "Tess"])
    assert millrace_house.company.as_("Adam").change(change="remove_member", member="Tom").status_code == 200
    assert millrace_house.told(one) == {"Tess"}
    assert millrace_house.told(two) == {"Tess"}


def test_each_notice_is_told_once_however_often_it_is_tried(millrace_house: House) -> None:
    millrace_house.subscribe("Tess")
    for n in range(telling.BATCH + 5):
        millrace_house.notice(facts={"n": n})
    for _ in range(3):
        millrace_house.told()
    assert millrace_house.company.rows("SELECT COUNT(*) FROM notifications") == [(telling.BATCH + 5,)]


def test_a_crash_while_telling_leaves_all_of_it_to_be_told(
    mailing_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailing_house.subscribe("Tess", "Adam")
    mailing_house.address("Tess", "Adam")
    one = mailing_house.notice(about="data_mart:Revenue")
    with monkeypatch.context() as patch:
        patch.setattr(telling, "_note_told", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            mailing_house.teller.tell_pending()
    assert mailing_house.company.rows("SELECT COUNT(*) FROM notifications") == [(0,)]
    assert mailing_house.mails() == []
    assert mailing_house.told(one) == {"Tess", "Adam"}
    assert len(mailing_house.mails()) == 2


def test_one_bad_notice_holds_up_no_other(millrace_house: House) -> None:
    millrace_house.subscribe("Tess")
    bad = millrace_house.notice()
    change = update(notice_table).where(notice_table.c.id == bad).values(recipients={"not": ["a", "list"], "n": 3})
    millrace_house.database.write(lambda c: c.execute(change).rowcount)
    worse = millrace_house.notice()
    change = update(notice_table).where(notice_table.c.id == worse).values(recipients=7)
    millrace_house.database.write(lambda c: c.execute(change).rowcount)
    good = millrace_house.notice(about="data_mart:Revenue")
    assert millrace_house.told(good) == {"Tess"}
    assert millrace_house.told() == {"Tess"}
    assert millrace_house.company.rows("SELECT COUNT(*) FROM notices WHERE told_at IS NULL") == [(0,)]


def test_mail_goes_to_who_wants_it_has_an_address_and_may_see_it(mailing_house: House, server: Server) -> None:
    mailing_house.subscribe("Olga", "Adam", "Tess", "Tom")
    mailing_house.receives("Adam", "runs", by_mail=False)
    mailing_house.address("Adam", "Tess", "Tom")
    mailing_house.notice(about="report:Weekly revenue")
    assert mailing_house.told() == {"Olga", "Adam", "Tess"}
    mailing_house.mailer.send_due()
    [(_, recipients, message, _)] = server.seen
    assert recipients == ["tess@example.com"]
    assert message["Subject"] == "A run of the report Weekly revenue failed"
    assert "“runs”" in message.get_content()


def test_without_a_relay_no_mail_is_written(millrace_house: House) -> None:
    millrace_house.subscribe("Tess")
    millrace_house.address("Tess")
    assert millrace_house.told(millrace_house.notice()) == {"Tess"}
    assert millrace_house.mails() == []


REVOKED: dict[str, tuple[str, dict[str, Any]]] = {
    "the share": ("Tess", {"change": "share", "resource": "data_mart:Revenue", "for_use": False}),
    "the scope": ("Adam", {"change": "set_scope", "member": "Ana", "scope": "selected", "contexts": []}),
    "the role": ("Adam", {"change": "set_role", "member": "Ana", "role": "business"}),
    "the member": ("Adam", {"change": "remove_member", "member": "Ana"}),
}


@pytest.mark.parametrize("what", REVOKED)
def test_what_is_revoked_between_telling_and_sending_is_not_mailed(
    mailing_house: House, server: Server, what: str
) -> None:
    mailing_house.subscribe("Ana", "Adam")
    mailing_house.address("Ana", "Adam")
    mailing_house.notice(about="data_mart:Revenue")
    assert mailing_house.told() == {"Ana", "Adam"}
    assert len(mailing_house.mails()) == 2
    by, change = REVOKED[what]
    assert mailing_house.company.as_(by).change(**change).status_code == 200
    mailing_house.mailer.send_due()
    assert [to for _, [to], _, _ in server.seen] == ["adam@example.com"]
    assert [row.due_at for row in mailing_house.mails()] == [None, None]


def test_who_wants_no_mail_by_now_gets_none(mailing_house: House, server: Server) -> None:
    mailing_house.subscribe("Ana")
    mailing_house.address("Ana")
    mailing_house.notice(about="data_mart:Revenue")
    mailing_house.told()
    own = {"channels": [{"channel": "runs", "receives": True, "by_mail": False}]}
    assert mailing_house.company.as_("Ana").request("PUT", "/api/me/notifications", json=own).status_code == 200
    mailing_house.mailer.send_due()
    assert server.seen == []


def test_names_are_those_of_the_moment_and_cannot_forge_anything(mailing_house: House, server: Server) -> None:
    mailing_house.subscribe("Adam")
    mailing_house.address("Adam")
    mailing_house.notice("members", "joined", member="Bea", actor="Bea")
    mailing_house.told()
    evil = "Bea\u2028Bcc: victim@example.com =?utf-8?q?=0D=0ABcc=3A_victim=40example.com?="
    change = update(member_table).where(member_table.c.id == mailing_house.ids["Bea"]).values(name=evil)
    mailing_house.database.write(lambda c: c.execute(change).rowcount)
    mailing_house.mailer.send_due()
    [(_, recipients, message, raw)] = server.seen
    assert recipients == ["adam@example.com"]
    assert "Bcc" not in message
    assert message["Subject"].startswith("Bea Bcc: victim@example.com")
    assert b"\nBcc" not in raw


def test_trouble_in_telling_or_mailing_does_not_reach_the_scheduler(
    millrace_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("out of order")

    millrace_house.notice()
    monkeypatch.setattr(telling, "dispatch_one", fails)
    monkeypatch.setattr(telling, "_note_told", fails)
    millrace_house.teller.tell_pending()
    monkeypatch.setattr(Mailer, "give_up_expired", fails)
    millrace_house.mailer.nudge()
