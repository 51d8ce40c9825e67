"""The OAuth2 endpoint: an API token goes in, and comes out as it is, for as long as it lives."""

from datetime import timedelta
from typing import Any

import pytest

from headgate.kit.clock import now
from tests.support.company import Company

PATH = "/iceberg/v1/oauth/tokens"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def ask(millrace: Company, **form: str) -> Any:
    return millrace.client.post(PATH, data=form)


def test_client_credentials_prove_a_token(millrace: Company) -> None:
    token = millrace.token("Tess")
    for client in ({}, {"client_id": "headgate"}, {"client_id": "whatever"}):
        answer = ask(millrace, grant_type="client_credentials", client_secret=token, scope="catalog", **client)
        assert answer.status_code == 200
        assert answer.json()["access_token"] == token
        assert answer.json()["token_type"] == "bearer"
        assert "expires_in" not in answer.json()
        assert answer.headers["cache-control"] == "no-store"


def test_an_exchange_gives_the_token_back_with_what_is_left_of_it(millrace: Company) -> None:
    token = millrace.token("Tess", expires=now() + timedelta(hours=1))
    answer = ask(millrace, grant_type=EXCHANGE, subject_token=token, subject_token_type="x")
    assert answer.json()["access_token"] == token
    assert answer.json()["issued_token_type"].endswith(":access_token")
    assert 3500 < answer.json()["expires_in"] <= 3600


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({}, 400, "invalid_request"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, 401, "invalid_client"),
        ({"grant_type": "client_credentials", "client_secret": "hgt_x"}, 401, "invalid_client"),
        ({"grant_type": EXCHANGE, "subject_token": "hgt_x"}, 401, "invalid_client"),
        ({"grant_type": EXCHANGE, "subject_token": "hgt_x", "actor_token": "y"}, 400, "invalid_request"),
    ],
)
def test_a_refusal_has_the_form_of_oauth(millrace: Company, form: dict[str, str], status: int, error: str) -> None:
    answer = ask(millrace, **form)
    assert answer.status_code == status
    assert answer.json()["error"] == error
    assert isinstance(answer.json()["error_description"], str)


def test_a_revoked_token_proves_nothing(millrace: Company) -> None:
    token = millrace.token("Tess")
    [identifier] = [one["id"] for one in millrace.as_("Tess").get("/api/tokens").json()["items"]]
    millrace.as_("Tess").request("DELETE", f"/api/tokens/{identifier}").raise_for_status()
    assert ask(millrace, grant_type="client_credentials", client_secret=token).status_code == 401


@pytest.mark.parametrize("body", [b"\xff\xfe", b"a", b"{}", b"grant_type=" + b"x" * 100_000])
def test_what_is_no_form_is_refused(millrace: Company, body: bytes) -> None:
    answer = millrace.client.post(PATH, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"] in {"invalid_request", "unsupported_grant_type"}
