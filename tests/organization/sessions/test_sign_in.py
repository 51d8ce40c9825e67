"""Sign-in by password: what a browser gets, what strangers learn, and how guessing is slowed down."""

import threading

import pytest
from argon2 import PasswordHasher
from sqlalchemy import update

from headgate.kit.clock import now
from headgate.organization.sessions.models import session_table
from headgate.organization.sessions.throttle import WINDOW, of_address
from headgate.settings.sign_in import SignInSettings
from tests.support.company import Company
from tests.support.installation import eventually
from tests.support.people import PASSWORD, Browser, with_password


@pytest.fixture
def ana(millrace: Company) -> str:
    return with_password(millrace, "Ana", "Ana@Example.com")


def test_a_password_opens_a_session_in_a_cookie(millrace: Company, ana: str) -> None:
    browser = Browser(millrace)
    answer = browser.sign_in(" ana@EXAMPLE.com ")
    assert answer.json() == {"id": ana, "name": "Ana"}
    cookie = next(one for one in answer.headers.get_list("set-cookie") if one.startswith("headgate="))
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert browser.get("/api/access/me").json()["name"] == "Ana"
    assert "hgs_" not in answer.text
    stored = millrace.rows("SELECT digest FROM sessions")[0][0]
    assert browser.client.cookies["headgate"] not in stored


def test_on_https_the_cookie_is_kept_to_this_host(millrace: Company, ana: str) -> None:
    browser = Browser(millrace, Origin="https://testserver")
    browser.client.base_url = "https://testserver"
    cookies = browser.sign_in("ana@example.com").headers.get_list("set-cookie")
    assert all("Secure" in cookie for cookie in cookies)
    assert {cookie.split("=")[0] for cookie in cookies} == {"__Host-headgate", "__Host-headgate-device"}
    assert browser.get("/api/access/me").status_code == 200


def test_an_unknown_account_looks_like_a_wrong_password(millrace: Company, ana: str) -> None:
    wrong = Browser(millrace).sign_in("ana@example.com", "not the password")
    unknown = Browser(millrace).sign_in("nobody@example.com", "not the password")
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.json() | {"request_id": 0} == unknown.json() | {"request_id": 0}
    assert wrong.headers.get_list("set-cookie") == unknown.headers.get_list("set-cookie") == []


def test_an_unknown_account_takes_as_long(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """One hash of the same cost is compared for either: that is what takes the time, and counting needs no clock."""
    with_password(millrace_on_sqlite, "Ana", "ana@example.com")
    compared: list[str] = []
    verify = PasswordHasher.verify

    def counted(hasher: PasswordHasher, stored: str, password: str) -> bool:
        compared.append(stored.rpartition("$")[0].rpartition("$")[0])
        return verify(hasher, stored, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    costs = []
    for email in ("ana@example.com", "nobody@example.com"):
        compared.clear()
        assert Browser(millrace_on_sqlite).sign_in(email, "wrong").status_code == 401
        costs.append(list(compared))
    assert len(costs[0]) == 1
    assert costs[0] == costs[1]


def test_a_member_without_password_or_removed_cannot_sign_in(millrace: Company, ana: str) -> None:
    browser = Browser(millrace)
    browser.sign_in("ana@example.com")
    millrace.as_("Olga").change(change="remove_member", member="Ana").raise_for_status()
    assert browser.get("/api/access/me").status_code == 401
    assert Browser(millrace).sign_in("ana@example.com").status_code == 401


def test_guesses_at_an_account_are_slowed_down_but_lock_nobody_out(millrace: Company, ana: str) -> None:
    known = Browser(millrace)
    known.sign_in("ana@example.com").raise_for_status()
    for _ in range(10):
        assert Browser(millrace).sign_in("ana@example.com", "wrong").status_code == 401
    stopped = Browser(millrace).sign_in("ana@example.com")
    assert stopped.status_code == 429
    assert 0 < int(stopped.headers["retry-after"]) <= WINDOW.total_seconds() + 1
    assert known.sign_in("ana@example.com").status_code == 200
    assert Browser(millrace).sign_in("other@example.com", "wrong").status_code == 401


def test_guesses_from_one_address_are_slowed_down(millrace: Company, ana: str) -> None:
    for number in range(50):
        Browser(millrace).sign_in(f"guess{number}@example.com", "wrong")
    assert Browser(millrace).sign_in("ana@example.com").status_code == 429


def test_a_success_forgives_the_account_but_not_the_address(millrace: Company, ana: str) -> None:
    for _ in range(6):
        Browser(millrace).sign_in("ana@example.com", "wrong")
    Browser(millrace).sign_in("ana@example.com").raise_for_status()
    assert millrace.rows("SELECT count FROM sign_in_failures") == [(6,)]


def test_failures_are_in_the_audit_log(millrace: Company, ana: str) -> None:
    Browser(millrace).sign_in("ana@example.com", "wrong")
    Browser(millrace).sign_in("ana@example.com")
    found = millrace.as_("Adam").get("/api/audit", actor="Ana").json()["items"]
    assert [(one["event"], one["actor_name"]) for one in found[:2]] == [
        ("session.opened", "Ana"),
        ("session.refused", "Ana"),
    ]


# Other sites


def test_another_site_can_change_nothing(millrace: Company, ana: str) -> None:
    browser = Browser(millrace)
    browser.sign_in("ana@example.com")
    change = {"change": "set_plan", "plan": "starter"}
    for headers in (
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "null"},
    ):
        answer = browser.post("/api/access/changes", change, **headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_site"), headers
    assert browser.post("/api/access/changes", change).json()["code"] == "denied"
    assert browser.post("/api/access/changes", change, **{"Sec-Fetch-Site": "same-origin"}).json()["code"] == "denied"


def test_a_browser_that_does_not_tell_its_site_can_change_nothing(millrace: Company, ana: str) -> None:
    browser = Browser(millrace)
    browser.sign_in("ana@example.com")
    del browser.client.headers["Origin"]
    assert browser.post("/api/sign-out").json()["code"] == "cross_site"
    assert browser.get("/api/access/me").status_code == 200


def test_another_site_can_sign_nobody_in(millrace: Company, ana: str) -> None:
    browser = Browser(millrace, Origin="http://evil.example")
    assert browser.sign_in("ana@example.com").json()["code"] == "cross_site"


# Sessions


def test_a_session_ends_when_unused_and_at_its_end(millrace: Company, ana: str) -> None:
    for column, ago in (("last_seen_at", "2020-01-01 00:00:00"), ("expires_at", "2020-01-01 00:00:00")):
        browser = Browser(millrace)
        browser.sign_in("ana@example.com")
        assert browser.get("/api/access/me").status_code == 200
        with millrace.database.engine.begin() as connection:
            connection.exec_driver_sql(f"UPDATE sessions SET {column} = '{ago}'")
        assert browser.get("/api/access/me").status_code == 401


def test_own_sessions_are_listed_and_ended(millrace: Company, ana: str) -> None:
    first, second, third = (Browser(millrace, **{"User-Agent": f"Browser {n}"}) for n in range(3))
    for one in (first, second, third):
        one.sign_in("ana@example.com")
    found = first.get("/api/me/sessions").json()["items"]
    assert {(one["agent"], one["current"]) for one in found} == {
        ("Browser 0", True),
        ("Browser 1", False),
        ("Browser 2", False),
    }
    other = next(one["id"] for one in found if one["agent"] == "Browser 1")
    assert first.delete(f"/api/me/sessions/{other}").json() == {"ended": 1}
    assert (second.get("/api/access/me").status_code, third.get("/api/access/me").status_code) == (401, 200)
    assert first.delete("/api/me/sessions").json() == {"ended": 1}
    assert (first.get("/api/access/me").status_code, third.get("/api/access/me").status_code) == (200, 401)
    assert first.post("/api/sign-out").json() == {"ended": 1}
    assert first.get("/api/access/me").status_code == 401


def test_nobody_ends_the_sessions_of_others(millrace: Company, ana: str) -> None:
    with_password(millrace, "Ben", "ben@example.com")
    ben, ana_s = Browser(millrace), Browser(millrace)
    ben.sign_in("ben@example.com")
    ana_s.sign_in("ana@example.com")
    session = ana_s.get("/api/me/sessions").json()["items"][0]["id"]
    assert ben.delete(f"/api/me/sessions/{session}").status_code == 404
    assert ana_s.get("/api/access/me").status_code == 200


def test_a_stolen_cookie_of_another_sort_is_no_session(millrace: Company, ana: str) -> None:
    browser = Browser(millrace)
    for value in (millrace.token("Ana"), "hgs_" + "0" * 38, "", "x" * 5000):
        browser.client.cookies.set("headgate", value)
        assert browser.get("/api/access/me").status_code == 401


def test_times_of_use_are_noted(millrace: Company, ana: str) -> None:
    millrace.as_("Tess").get("/api/access/me")
    eventually(lambda: millrace.rows("SELECT COUNT(*) FROM tokens WHERE last_used_at IS NOT NULL") == [(1,)])
    eventually(lambda: millrace.rows("SELECT name FROM members WHERE last_seen_at IS NOT NULL"))
    assert millrace.rows("SELECT name FROM members WHERE last_seen_at IS NOT NULL") == [("Tess",)]


def test_sessions_of_one_moment_are_listed_with_the_newest_first(millrace: Company, ana: str) -> None:
    browsers = [Browser(millrace) for _ in range(3)]
    for one in browsers:
        one.sign_in("ana@example.com").raise_for_status()
    same = update(session_table).values(last_seen_at=now())
    millrace.database.write(lambda connection: connection.execute(same).rowcount)
    shown = [one["id"] for one in browsers[0].get("/api/me/sessions").json()["items"]]
    assert (len(shown), shown) == (3, sorted(shown, reverse=True))


# Own password


def test_a_password_change_ends_the_other_sessions(millrace: Company, ana: str) -> None:
    here, there = Browser(millrace), Browser(millrace)
    for one in (here, there):
        one.sign_in("ana@example.com")
    fresh = "nine tall poplars by a weir"
    answer = here.post("/api/me/password", {"current": PASSWORD, "password": fresh})
    assert answer.json() == {"ended": 1}
    assert (here.get("/api/access/me").status_code, there.get("/api/access/me").status_code) == (200, 401)
    assert Browser(millrace).sign_in("ana@example.com").status_code == 401
    assert Browser(millrace).sign_in("ana@example.com", fresh).status_code == 200


def test_a_password_change_needs_the_old_one(millrace: Company, ana: str) -> None:
    browser = Browser(millrace)
    browser.sign_in("ana@example.com")
    for current in (None, "wrong"):
        body = {"current": current, "password": "nine tall poplars by a weir"}
        assert browser.post("/api/me/password", body).status_code == 401
    for _ in range(9):
        browser.post("/api/me/password", {"current": "wrong", "password": "nine tall poplars by a weir"})
    right = {"current": PASSWORD, "password": "nine tall poplars by a weir"}
    assert browser.post("/api/me/password", right).status_code == 429


@pytest.mark.parametrize(
    "weak", ["short", "password123", "qwertyuiop", "aaaaaaaaaaaa", "ana@example.com", "headgate2026", "1234567890"]
)
def test_a_weak_password_is_refused(millrace_on_sqlite: Company, weak: str) -> None:
    with_password(millrace_on_sqlite, "Ana", "ana@example.com")
    browser = Browser(millrace_on_sqlite)
    browser.sign_in("ana@example.com")
    answer = browser.post("/api/me/password", {"current": PASSWORD, "password": weak})
    assert (answer.status_code, "password" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize("limits", [{"read_only": True}, {"only": []}])
def test_a_narrowed_token_changes_no_password_session_or_token(millrace: Company, ana: str, limits: dict) -> None:  # type: ignore[type-arg]
    api = millrace.as_("Ana", **limits)
    assert (
        api.post("/api/me/password", {"current": PASSWORD, "password": "nine tall poplars by a weir"}).status_code
        == 403
    )
    assert api.post("/api/tokens", {"name": "more"}).status_code == 403
    assert api.request("DELETE", "/api/me/sessions").status_code == 403
    assert api.post("/api/invitations", {"email": "x@example.com", "role": "business"}).status_code == 403


# What an attacker found


def test_a_device_cookie_of_odd_characters_tells_nothing(millrace: Company, ana: str) -> None:
    for email in ("ana@example.com", "nobody@example.com"):
        body = {"email": email, "password": "wrong"}
        answer = Browser(millrace).client.post(
            "/api/sign-in", json=body, headers=[(b"cookie", b"headgate-device=\xe9")]
        )
        assert answer.status_code == 401


def test_many_guesses_at_once_are_no_way_around(millrace: Company, ana: str) -> None:
    found: list[int] = []

    def guess() -> None:
        found.append(Browser(millrace).sign_in("ana@example.com", "wrong").status_code)

    threads = [threading.Thread(target=guess) for _ in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found.count(401), found.count(429)) == (10, 15)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.9", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_addresses_are_counted_by_who_owns_them(one: str, other: str, same: bool) -> None:
    settings = SignInSettings()
    assert (of_address(one, settings) == of_address(other, settings)) == same
