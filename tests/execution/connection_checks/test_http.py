"""REST APIs, asked by a worker, with every style of credentials."""

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.execution.worker.connection_checks import answer
from tests.execution.connection_checks.support import LOCAL, endpoint, failure_of, said, settings
from tests.support import api as apis
from tests.support.api import SECRET, USER, Api, Reply


@pytest.fixture
def api() -> Iterator[Api]:
    with apis.serving() as found:
        yield found


def place(api: Api, auth: dict[str, Any] | None = None, **more: Any) -> Endpoint:
    secrets = more.pop("secrets", {})
    return endpoint("http", {"base_url": api.url, "auth": auth or {"style": "none"}, **more}, **secrets)


def oauth(api: Api, **more: Any) -> dict[str, Any]:
    return {"style": "oauth2", "token_url": f"{api.url}/token", "client_id": USER, **more}


def test_each_style_of_credentials_is_sent_as_it_is_meant(api: Api) -> None:
    styles: list[tuple[str, dict[str, Any], dict[str, str]]] = [
        ("/rows", {"style": "none"}, {}),
        ("/bearer", {"style": "bearer"}, {"token": SECRET}),
        ("/basic", {"style": "basic", "user": USER}, {"password": SECRET}),
        ("/header", {"style": "api_key", "name": "X-Key"}, {"token": SECRET}),
        ("/query", {"style": "api_key", "name": "key", "place": "query"}, {"token": SECRET}),
        ("/oauth", oauth(api, scope="read"), {"client_secret": SECRET}),
        ("/oauth", oauth(api, sent_in="body"), {"client_secret": SECRET}),
    ]
    for path, auth, secrets in styles:
        assert said(place(api, auth, secrets=secrets), path=path) == "The API answers 200"
        if secrets:
            wrong = place(api, auth, secrets=dict.fromkeys(secrets, "some other thing"))
            failure = failure_of(wrong, path=path)
            assert failure.code in {"WRONG_CREDENTIALS", "API_UNAUTHORIZED"}, path
            missing = failure_of(place(api, auth), path=path)
            assert missing.code == "MISSING_SECRET"


def test_headers_of_the_connection_go_along(api: Api) -> None:
    said(place(api, headers={"Accept-Language": "de", "X-Shop-Version": "7"}), path="/rows")
    assert api.seen[-1].headers["accept-language"] == "de"
    assert api.seen[-1].headers["x-shop-version"] == "7"


def test_what_is_wrong_with_an_api_is_said_with_what_to_do(api: Api) -> None:
    assert "give a path" in said(place(api))
    assert failure_of(place(api), path="/nowhere").code == "NO_SUCH_PATH"
    api.on("/broken", lambda _: Reply({}, 503))
    broken = failure_of(place(api), path="/broken")
    assert (broken.code, broken.passing) == ("FAILED_THERE", True)
    assert failure_of(endpoint("http", {"base_url": "http://127.0.0.1:1"})).code == "UNREACHABLE"
    assert failure_of(endpoint("http", {"base_url": "https://no-such-host.invalid"})).code == "UNREACHABLE"


def test_an_api_behind_a_private_address_is_not_called(api: Api) -> None:
    before = len(api.seen)
    assert failure_of(place(api), settings()).code == "ADDRESS_REFUSED"
    hidden = oauth(api)
    by_token = endpoint("http", {"base_url": "https://example.com", "auth": hidden}, client_secret=SECRET)
    assert failure_of(by_token, settings()).code == "ADDRESS_REFUSED"
    api.on("/away", lambda _: Reply(b"", 302, {"Location": "http://10.0.0.1/"}))
    assert failure_of(place(api), path="/away").code == "ADDRESS_REFUSED"
    assert len(api.seen) == before + 1


def test_an_api_does_not_tell_what_it_has(api: Api) -> None:
    found = answer("discover", place(api), {}, LOCAL)
    assert found["streams"] == []
    assert "name its paths" in found["detail"]
