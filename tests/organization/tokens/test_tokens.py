"""Tokens: recognisable, hashed at rest, narrowed, ended, and never more than their creator is now."""

from datetime import timedelta

import pytest

from headgate.kit.clock import now
from headgate.kit.credentials import Sort, digest, is_well_formed, new_secret
from headgate.organization.tokens.service import identify, revoke
from tests.support.company import Company


def test_a_secret_is_recognisable_and_a_slip_is_caught() -> None:
    secret = new_secret(Sort.token)
    assert secret.startswith("hgt_")
    assert is_well_formed(secret, Sort.token)
    for position in range(4, len(secret)):
        other = "a" if secret[position] != "a" else "b"
        assert not is_well_formed(secret[:position] + other + secret[position + 1 :], Sort.token)
    for bad in ("", "hgt_", secret[:-1], secret + "a", secret.upper(), "xyz_" + secret[4:], "hgt_" + "é" * 38):
        assert not is_well_formed(bad, Sort.token)


def test_only_a_hash_is_stored(millrace: Company) -> None:
    secret = millrace.token("Ben")
    stored = str(millrace.rows("SELECT * FROM tokens"))
    assert secret not in stored
    assert secret[4:20] not in stored
    assert digest(secret) in stored


def test_a_token_ends_when_it_is_revoked_or_expires(millrace: Company) -> None:
    api = millrace.as_("Ben")
    assert api.get("/api/access/me").status_code == 200
    (identifier,) = (row[0] for row in millrace.rows("SELECT id FROM tokens"))
    millrace.database.write(lambda connection: revoke(connection, identifier, now(), by=None))
    assert api.get("/api/access/me").status_code == 401
    short = millrace.token("Ben", expires=now() + timedelta(minutes=5))
    with millrace.database.read() as connection:
        assert identify(connection, short, now())
        assert identify(connection, short, now() + timedelta(minutes=6)) is None


def test_a_token_is_what_its_creator_is_now(millrace: Company) -> None:
    api = millrace.as_("Tom")
    assert api.may("edit", "table:raw.orders")
    millrace.as_("Adam").change(change="revoke", to="Tom", resource="layer:raw", level="editor").raise_for_status()
    assert not api.may("edit", "table:raw.orders")
    millrace.as_("Olga").change(change="set_role", member="Tom", role="admin").raise_for_status()
    assert api.may("delete", "table:raw.orders")


@pytest.mark.parametrize("action", ["reset_password", "make_magic_link"])
def test_a_narrowed_token_touches_no_password(millrace: Company, action: str) -> None:
    body = {"action": action, "resource": "member:Ben"}
    assert millrace.as_("Olga").post("/api/access/explain", body).json()["allowed"]
    narrowed = millrace.as_("Olga", expires=now() + timedelta(days=1))
    assert not narrowed.post("/api/access/explain", body).json()["allowed"]


def test_a_narrowed_token_is_told_that_its_owner_could(millrace: Company) -> None:
    answer = millrace.as_("Olga", read_only=True).change(
        change="share", resource="data_mart:Revenue", for_maintenance=True
    )
    assert answer.status_code == 403
    assert "token is restricted" in answer.json()["detail"]
