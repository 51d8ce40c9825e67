"""What somebody else may know of a member never acts for an owner (access model, section 3)."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.lakehouse.catalog.work_tokens import identify_work
from headgate.organization.sessions.mails import COMPOSERS
from headgate.organization.sessions.models import session_table
from headgate.organization.sessions.service import Browser as Agent
from headgate.organization.sessions.service import open_session
from headgate.platform.authorization.provenance import CredentialOrigin
from headgate.platform.directory.models import member_table
from headgate.platform.mail.sender import Mailer
from tests.lakehouse.sql.support import STATEMENTS, Hand
from tests.platform.mail import HERE, Server, relay
from tests.support.company import Api, Company, company
from tests.support.people import Browser, secret_of, with_password

FRESH = "nine tall poplars by a weir"
OTHER = "forty wet otters in a lock"
MAIL = "tess@example.com"


@pytest.fixture
def server() -> Iterator[Server]:
    with relay() as found:
        yield found


@pytest.fixture
def mailing(database: Database, tmp_path: Path, server: Server) -> Iterator[Company]:
    """The company, which sends mail."""
    mail = {"host": HERE, "port": server.port, "security": "none"}
    with company(database, tmp_path, mail=mail) as found:
        with_address(found, "Tess", MAIL)
        yield found


def with_address(millrace: Company, member: str, email: str) -> None:
    values = {"email": email, "email_key": email}
    change = member_table.update().where(member_table.c.id == millrace.id("member", member)).values(**values)
    millrace.database.write(lambda connection: connection.execute(change))


def link(millrace: Company, maker: Any, member: str, path: str = "magic-link") -> str:
    """The secret of a link that a caller makes for a member."""
    answer = maker.post(f"/api/members/{millrace.id('member', member)}/{path}", None)
    assert answer.status_code == 200, answer.text
    return secret_of(answer.json()["link"])


def opened(millrace: Company, maker: str, member: str) -> Browser:
    """A browser that signed in by a link that somebody else made."""
    browser = Browser(millrace)
    browser.post("/api/sign-in/by-link", {"link": link(millrace, millrace.as_(maker), member)}).raise_for_status()
    return browser


def by_token(millrace: Company, session: Browser | Api) -> Api:
    """The API by a token that a session, or another token, makes."""
    made = session.post("/api/tokens", {"name": "kept"})
    assert made.status_code == 200, made.text
    return Api(millrace.client, made.json()["token"])


def role(caller: Browser | Api) -> Any:
    """The role with which a caller acts; None if nobody knows them."""
    answer = caller.get("/api/access/me")
    return answer.json()["role"] if answer.status_code == 200 else None


def promote(millrace: Company, member: str = "Tess", by: str = "Olga") -> dict[str, Any]:
    answer = millrace.as_(by).change(change="set_role", member=member, role="owner")
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["after"].get("ended", {}))


# What begins with what somebody else asked for


def test_a_token_from_an_admins_link_does_not_become_an_owners(millrace: Company) -> None:
    session = opened(millrace, "Adam", "Tess")
    token = by_token(millrace, session)
    assert role(session) == role(token) == "technical"
    assert promote(millrace) == {"sessions": 1, "tokens": 1}
    assert role(session) is None
    assert role(token) is None
    assert role(millrace.as_("Tess")) == "owner", "what the operator made for her goes on"


def test_a_token_from_a_tainted_token_is_tainted(millrace: Company) -> None:
    session = opened(millrace, "Adam", "Tess")
    second = by_token(millrace, by_token(millrace, session))
    session.post("/api/sign-out")
    promote(millrace)
    assert role(second) is None


def test_a_password_from_an_admins_reset_does_not_become_an_owners(millrace: Company) -> None:
    with_address(millrace, "Tess", MAIL)
    reset = link(millrace, millrace.as_("Adam"), "Tess", "password-reset")
    Browser(millrace).post("/api/password/by-link", {"link": reset, "password": FRESH}).raise_for_status()
    promote(millrace)
    answer = Browser(millrace).sign_in(MAIL, FRESH)
    assert (answer.status_code, answer.json()["code"]) == (403, "password_ended")
    assert "become an owner" in answer.json()["detail"]
    assert "`headgate member reset-password`" in answer.json()["detail"], "there is no mail here"
    wrong = Browser(millrace).sign_in(MAIL, OTHER)
    assert (wrong.status_code, wrong.json()["code"]) == (401, "wrong_password")


def test_a_password_that_was_set_in_a_tainted_session_does_not_become_an_owners(millrace: Company) -> None:
    with_address(millrace, "Tess", MAIL)
    session = opened(millrace, "Adam", "Tess")
    session.post("/api/me/password", {"password": FRESH}).raise_for_status()
    promote(millrace)
    assert Browser(millrace).sign_in(MAIL, FRESH).status_code == 403


def test_a_session_by_a_tainted_password_is_tainted_and_so_is_what_it_makes(millrace: Company) -> None:
    with_address(millrace, "Tess", MAIL)
    opened(millrace, "Adam", "Tess").post("/api/me/password", {"password": FRESH}).raise_for_status()
    session = Browser(millrace)
    session.sign_in(MAIL, FRESH).raise_for_status()
    token = by_token(millrace, session)
    assert session.get("/api/me/sessions").json()["items"][0]["tainted"] is True
    session.post("/api/me/password", {"current": FRESH, "password": OTHER}).raise_for_status()
    promote(millrace)
    assert (role(session), role(token)) == (None, None)
    assert Browser(millrace).sign_in(MAIL, OTHER).status_code == 403


def test_an_invitation_is_asked_for_by_somebody_else_whoever_opens_it(millrace: Company) -> None:
    invited = millrace.as_("Adam").post("/api/invitations", {"email": "nell@example.com", "role": "technical"}).json()
    session = Browser(millrace)
    body = {"invitation": secret_of(invited["link"]), "name": "Nell", "password": FRESH}
    session.post("/api/invitations/accept", body).raise_for_status()
    token = by_token(millrace, session)
    assert promote(millrace, "Nell") == {"sessions": 1, "tokens": 1, "password": True}
    assert (role(session), role(token)) == (None, None)
    assert Browser(millrace).sign_in("nell@example.com", FRESH).status_code == 403


def test_an_integrations_token_from_a_tainted_session_ends(millrace: Company) -> None:
    session = opened(millrace, "Olga", "Adam")
    made = session.post("/api/integrations", {"name": "Charts", "tables": ["service.revenue"]})
    assert made.status_code == 200, made.text
    charts = Api(millrace.client, made.json()["secret"])
    assert role(charts) == "admin"
    assert promote(millrace, "Adam")["tokens"] == 1
    assert role(charts) is None


def test_links_and_invitations_from_a_tainted_session_end(millrace: Company) -> None:
    session = opened(millrace, "Olga", "Adam")
    magic = link(millrace, session, "Tess")
    invited = session.post("/api/invitations", {"email": "nell@example.com", "role": "admin"}).json()
    assert promote(millrace, "Adam") == {"sessions": 1, "links": 1, "invitations": 1}
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": magic}).status_code == 410
    body = {"invitation": secret_of(invited["link"]), "name": "Nell", "password": FRESH}
    assert Browser(millrace).post("/api/invitations/accept", body).status_code == 410


def test_a_link_that_waits_ends_even_if_its_maker_is_an_owner_by_then(millrace: Company) -> None:
    waiting = link(millrace, millrace.as_("Adam"), "Tess")
    promote(millrace, "Adam")
    promote(millrace, "Tess")
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": waiting}).status_code == 410


def test_however_many_sessions_are_tainted_all_end(millrace: Company) -> None:
    member, moment, settings = millrace.id("member", "Tess"), now(), millrace.settings.sign_in
    origin, agent = CredentialOrigin("lnk_test", tainted=True), Agent("test", HERE)
    for _ in range(3):
        millrace.database.write(
            lambda c: [open_session(c, member, "link", agent, moment, settings, origin) for _ in range(100)]
        )
    assert promote(millrace) == {"sessions": 300}
    alive = session_table.c.ended_at.is_(None) & (session_table.c.member_id == member)
    with millrace.database.read() as connection:
        assert connection.execute(session_table.select().where(alive)).all() == []


@pytest.mark.parametrize("claimed", [False, True])
def test_a_statement_of_a_tainted_session_does_not_run_as_an_owner(millrace: Company, *, claimed: bool) -> None:
    session, hand = opened(millrace, "Adam", "Tess"), Hand(millrace)
    made = session.post(STATEMENTS, {"sql": "INSERT INTO raw.copied SELECT * FROM service.hidden"})
    assert made.status_code in {200, 202}, made.text
    jobs = hand.claim() if claimed else []
    assert promote(millrace)["statements"] == 1
    assert [job["id"] for job in hand.claim()] == []
    for job in jobs:
        with millrace.database.read() as connection:
            assert identify_work(connection, job["token"], now()) is None
        assert hand.beat(job)["cancel"] == [job["id"]]


# What is the member's own goes on


def asked_for(company: Company, server: Server, path: str, email: str = MAIL) -> str:
    """The secret of a link that somebody asked for by mail, as it arrives."""
    before = len(server.messages)
    Browser(company).post(path, {"email": email}).raise_for_status()
    services = company.client.app.state.services  # type: ignore[attr-defined]
    Mailer(company.settings, company.database, services.keys, COMPOSERS).send_due()
    (message,) = server.messages[before:]
    assert message["To"] == email
    found = re.search(r"#(hg[lp]_\w+)", message.get_content())
    assert found, message.get_content()
    return found[1]


def test_a_link_that_one_asked_for_by_mail_is_ones_own(mailing: Company, server: Server) -> None:
    session = Browser(mailing)
    secret = asked_for(mailing, server, "/api/sign-in/links")
    session.post("/api/sign-in/by-link", {"link": secret}).raise_for_status()
    token = by_token(mailing, session)
    session.post("/api/me/password", {"password": FRESH}).raise_for_status()
    assert session.get("/api/me/sessions").json()["items"][0]["tainted"] is False
    assert promote(mailing) == {}
    assert (role(session), role(token)) == ("owner", "owner")
    assert Browser(mailing).sign_in(MAIL, FRESH).status_code == 200


def test_a_new_owner_chooses_a_password_by_a_link_of_their_own(mailing: Company, server: Server) -> None:
    opened_by_admin = Browser(mailing)
    mailing.as_("Adam").post(f"/api/members/{mailing.id('member', 'Tess')}/password-reset", None).raise_for_status()
    services = mailing.client.app.state.services  # type: ignore[attr-defined]
    mailer = Mailer(mailing.settings, mailing.database, services.keys, COMPOSERS)
    mailer.send_due()
    reset = re.search(r"#(hgp_\w+)", server.messages[-1].get_content())
    assert reset
    opened_by_admin.post("/api/password/by-link", {"link": reset[1], "password": FRESH}).raise_for_status()
    assert promote(mailing) == {"sessions": 1, "password": True}
    mailer.send_due()
    told = server.messages[-1]
    assert (told["To"], told["Subject"]) == (MAIL, "You are now an owner of Millrace Foods")
    assert "1 session ended" in told.get_content()
    assert "headgate login --forgot-password" in told.get_content()
    answer = Browser(mailing).sign_in(MAIL, FRESH)
    assert (answer.status_code, "--forgot-password" in answer.json()["detail"]) == (403, True)
    session = Browser(mailing)
    secret = asked_for(mailing, server, "/api/password/links")
    session.post("/api/password/by-link", {"link": secret, "password": OTHER}).raise_for_status()
    assert role(session) == "owner"
    assert session.get("/api/me/sessions").json()["items"][0]["tainted"] is False
    assert Browser(mailing).sign_in(MAIL, OTHER).status_code == 200


def test_without_mail_another_owner_or_the_operator_helps(millrace: Company) -> None:
    with_password(millrace, "Tess", MAIL)
    assert promote(millrace) == {"password": True}, "where a password comes from was not written down: it is tainted"
    reset = link(millrace, millrace.as_("Olga"), "Tess", "password-reset")
    session = Browser(millrace)
    session.post("/api/password/by-link", {"link": reset, "password": FRESH}).raise_for_status()
    assert role(session) == "owner"
    promote(millrace, "Adam")
    millrace.as_("Adam").change(change="set_role", member="Tess", role="admin").raise_for_status()
    promote(millrace, "Tess", by="Adam")
    assert Browser(millrace).sign_in(MAIL, FRESH).status_code == 403, "Olga's reset is no better the second time"
    millrace.as_("Tess").post("/api/me/password", {"password": OTHER}).raise_for_status()
    assert Browser(millrace).sign_in(MAIL, OTHER).status_code == 200, "by a token that the operator made"


def test_only_becoming_an_owner_ends_anything(millrace: Company) -> None:
    session = opened(millrace, "Adam", "Tess")
    for another in ("admin", "technical"):
        millrace.as_("Olga").change(change="set_role", member="Tess", role=another).raise_for_status()
        assert role(session) == another
    promote(millrace)
    again = opened(millrace, "Olga", "Tess")
    assert promote(millrace) == {}, "she is one already"
    assert role(again) == "owner"


def test_asking_what_a_promotion_would_do_ends_nothing(millrace: Company) -> None:
    session = opened(millrace, "Adam", "Tess")
    change = {"change": "set_role", "member": "Tess", "role": "owner"}
    millrace.as_("Olga").post("/api/access/what-if", {"change": change}).raise_for_status()
    assert role(session) == "technical"
    millrace.as_("Adam").change(**change)
    assert role(session) == "technical", "an admin may not"


# The ways to become an owner


def test_who_is_made_an_owner_by_a_request_loses_what_is_tainted(millrace: Company) -> None:
    session = opened(millrace, "Adam", "Tess")
    asked = millrace.as_("Tess").post(
        "/api/access/requests", {"action": "manage_billing", "resource": "organization", "reason": "Taking over"}
    )
    assert asked.status_code == 200, asked.text
    change = {"change": "set_role", "member": "Tess", "role": "owner"}
    path = f"/api/access/requests/{asked.json()['id']}/approve"
    answer = millrace.as_("Olga").post(path, {"change": change})
    assert answer.status_code == 200, answer.text
    assert role(millrace.as_("Tess")) == "owner"
    assert role(session) is None


def test_who_joins_as_an_owner_is_signed_in_by_what_an_owner_made(millrace: Company) -> None:
    invited = millrace.as_("Olga").post("/api/invitations", {"email": "nell@example.com", "role": "owner"}).json()
    session = Browser(millrace)
    body = {"invitation": secret_of(invited["link"]), "name": "Nell", "password": FRESH}
    session.post("/api/invitations/accept", body).raise_for_status()
    assert role(session) == "owner"
    assert Browser(millrace).sign_in("nell@example.com", FRESH).status_code == 200
    millrace.as_("Olga").change(change="set_role", member="Nell", role="admin").raise_for_status()
    assert promote(millrace, "Nell") == {"sessions": 2, "password": True}, "to become one again is to become one"


# Room for more


Made = Callable[[Api, Company], Any]
MAKING: dict[str, Made] = {
    "a token": lambda api, _: api.post("/api/tokens", {"name": "more"}),
    "a password": lambda api, _: api.post("/api/me/password", {"password": FRESH}),
    "a sign-in link": lambda api, one: api.post(f"/api/members/{one.id('member', 'Tess')}/magic-link", None),
    "a reset": lambda api, one: api.post(f"/api/members/{one.id('member', 'Tess')}/password-reset", None),
    "an invitation": lambda api, _: api.post("/api/invitations", {"email": "n@example.com", "role": "business"}),
    "an integration": lambda api, _: api.post("/api/integrations", {"name": "C", "tables": ["service.revenue"]}),
}
"""Every way to make a credential over HTTP. A new one has its line here."""


@pytest.mark.parametrize("what", MAKING)
def test_a_narrowed_token_makes_no_credential(millrace_on_sqlite: Company, what: str) -> None:
    company = millrace_on_sqlite
    layer = company.id("layer", "service")
    for limits in ({"read_only": True}, {"only": [layer]}, {"expires": now() + timedelta(days=1)}):
        answer = MAKING[what](company.as_("Adam", **limits), company)
        assert (answer.status_code, answer.json()["code"]) == (403, "denied"), (limits, answer.text)
    assert company.rows("SELECT COUNT(*) FROM links") == [(0,)]
    assert MAKING[what](company.as_("Adam"), company).status_code == 200


def test_what_does_not_say_where_it_comes_from_is_tainted(millrace: Company) -> None:
    """So that a credential of a kind to come, or a row that a tool writes, ends rather than not."""
    member, moment = millrace.id("member", "Tess"), now()
    values = {
        "id": "ses_by_hand",
        "member_id": member,
        "digest": "0" * 64,
        "method": "link",
        "agent": "",
        "address": "",
    }
    times = {"created_at": moment, "last_seen_at": moment, "expires_at": moment + timedelta(days=1)}
    millrace.database.write(lambda c: c.execute(session_table.insert().values(**values, **times)))
    assert promote(millrace) == {"sessions": 1}
