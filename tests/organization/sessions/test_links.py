"""Links that sign in or let a member choose a password: made by admins, used once, and not by opening them."""

import pytest

from tests.support.company import Company
from tests.support.people import PASSWORD, Browser, secret_of, with_password

FRESH = "nine tall poplars by a weir"


def make(millrace: Company, who: str, member: str, path: str = "magic-link") -> str:
    identifier = millrace.id("member", member)
    answer = millrace.as_(who).request("POST", f"/api/members/{identifier}/{path}")
    assert answer.status_code == 200, answer.text
    return secret_of(answer.json()["link"])


def test_a_link_signs_in_once(millrace: Company) -> None:
    secret = make(millrace, "Adam", "Bea")
    browser = Browser(millrace)
    assert browser.post("/api/sign-in/by-link", {"link": secret}).json()["name"] == "Bea"
    assert browser.get("/api/access/me").json()["name"] == "Bea"
    again = Browser(millrace).post("/api/sign-in/by-link", {"link": secret})
    assert (again.status_code, again.json()["code"]) == (410, "link_spent")


def test_opening_a_link_spends_nothing(millrace: Company) -> None:
    secret = make(millrace, "Adam", "Bea")
    page = Browser(millrace).get("/link")
    assert page.status_code == 200
    assert secret not in page.text
    for method in ("GET", "HEAD"):
        assert Browser(millrace).client.request(method, "/api/sign-in/by-link").status_code == 405
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": secret}).status_code == 200


def test_a_newer_link_replaces_an_older_one(millrace: Company) -> None:
    older, newer = make(millrace, "Adam", "Bea"), make(millrace, "Adam", "Bea")
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": older}).status_code == 410
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": newer}).status_code == 200


def test_a_link_expires(millrace: Company) -> None:
    secret = make(millrace, "Adam", "Bea")
    with millrace.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE links SET expires_at = '2020-01-01 00:00:00'")
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": secret}).status_code == 410


def test_a_link_of_a_removed_member_is_spent(millrace: Company) -> None:
    secret = make(millrace, "Adam", "Bea")
    millrace.as_("Adam").change(change="remove_member", member="Bea").raise_for_status()
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": secret}).status_code == 410


def test_a_link_is_for_its_purpose_alone(millrace: Company) -> None:
    reset, magic = make(millrace, "Adam", "Bea", "password-reset"), make(millrace, "Adam", "Bea")
    assert Browser(millrace).post("/api/sign-in/by-link", {"link": reset}).status_code == 410
    answer = Browser(millrace).post("/api/password/by-link", {"link": magic, "password": FRESH})
    assert answer.status_code == 410


@pytest.mark.parametrize("wrong", ["", "hgl_", "hgl_" + "0" * 38, "hgt_" + "a" * 38, "x" * 100])
def test_what_is_no_link_is_spent(millrace_on_sqlite: Company, wrong: str) -> None:
    for path, more in (("/api/sign-in/by-link", {}), ("/api/password/by-link", {"password": FRESH})):
        answer = Browser(millrace_on_sqlite).post(path, {"link": wrong, **more})
        assert answer.status_code == 410


def test_a_reset_ends_password_and_sessions_and_a_link_chooses_a_new_one(millrace: Company) -> None:
    with_password(millrace, "Bea", "bea@example.com")
    before = Browser(millrace)
    before.sign_in("bea@example.com")
    secret = make(millrace, "Adam", "Bea", "password-reset")
    assert before.get("/api/access/me").status_code == 401
    assert Browser(millrace).sign_in("bea@example.com", PASSWORD).status_code == 401
    weak = Browser(millrace).post("/api/password/by-link", {"link": secret, "password": "password123"})
    assert weak.status_code == 422
    after = Browser(millrace)
    assert after.post("/api/password/by-link", {"link": secret, "password": FRESH}).json()["name"] == "Bea"
    assert after.get("/api/access/me").status_code == 200
    assert Browser(millrace).sign_in("bea@example.com", FRESH).status_code == 200


@pytest.mark.parametrize("path", ["magic-link", "password-reset"])
@pytest.mark.parametrize(
    ("who", "member", "status"),
    [
        ("Adam", "Tess", 200),
        ("Adam", "Olga", 403),
        ("Olga", "Adam", 200),
        ("Tess", "Ben", 403),
        ("Ben", "Ben", 403),
        ("Dora", "Ben", 403),
    ],
)
def test_who_makes_links_for_whom(millrace: Company, who: str, member: str, status: int, path: str) -> None:
    identifier = millrace.id("member", member)
    assert millrace.as_(who).request("POST", f"/api/members/{identifier}/{path}").status_code == status


def test_without_mail_asking_for_a_link_says_so(millrace: Company) -> None:
    answer = Browser(millrace).post("/api/sign-in/links", {"email": "ana@example.com"})
    assert (answer.status_code, "Mail is not configured" in answer.json()["detail"]) == (200, True)
    assert millrace.rows("SELECT COUNT(*) FROM mails") == [(0,)]


# Links are judged again when they are used


def use(millrace: Company, secret: str) -> int:
    if secret.startswith("hgp_"):
        answer = Browser(millrace).post("/api/password/by-link", {"link": secret, "password": FRESH})
    else:
        answer = Browser(millrace).post("/api/sign-in/by-link", {"link": secret})
    return int(answer.status_code)


@pytest.mark.parametrize("path", ["magic-link", "password-reset"])
def test_no_link_of_an_admin_makes_an_owner(millrace: Company, path: str) -> None:
    secret = make(millrace, "Adam", "Tess", path)
    millrace.as_("Olga").change(change="set_role", member="Tess", role="owner").raise_for_status()
    assert use(millrace, secret) == 410


@pytest.mark.parametrize("path", ["magic-link", "password-reset"])
@pytest.mark.parametrize(
    "after",
    [
        {"change": "set_role", "member": "Adam", "role": "business"},
        {"change": "remove_member", "member": "Adam"},
    ],
)
def test_a_link_ends_with_the_right_to_make_it(millrace: Company, path: str, after: dict[str, str]) -> None:
    secret = make(millrace, "Adam", "Tess", path)
    millrace.as_("Olga").change(**after).raise_for_status()
    assert use(millrace, secret) == 410


def test_a_session_does_not_become_an_owners(millrace: Company) -> None:
    browser = Browser(millrace)
    browser.post("/api/sign-in/by-link", {"link": make(millrace, "Adam", "Tess")}).raise_for_status()
    millrace.as_("Olga").change(change="set_role", member="Tess", role="owner").raise_for_status()
    assert browser.get("/api/access/me").status_code == 401


def test_a_reset_and_a_new_password_spend_every_link(millrace: Company) -> None:
    magic = make(millrace, "Adam", "Bea")
    reset = make(millrace, "Adam", "Bea", "password-reset")
    assert use(millrace, magic) == 410
    magic = make(millrace, "Adam", "Bea")
    assert use(millrace, reset) == 200
    assert use(millrace, magic) == 410
