"""The page that links lead to: the same for everyone, with nothing but its own style and script."""

import base64
import hashlib
import re

from tests.support.company import Company


def test_the_policy_names_exactly_what_the_page_has(millrace_on_sqlite: Company) -> None:
    page = millrace_on_sqlite.client.get("/link")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert page.headers.get_list("content-security-policy") == [policy]
    for name, body in re.findall(r"<(style|script)>(.*?)</\1>", page.text, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=|\son\w+=", page.text)


def test_the_page_knows_each_sort_of_link(millrace_on_sqlite: Company) -> None:
    page = millrace_on_sqlite.client.get("/link").text
    for prefix, path in (
        ("hgi_", "/api/invitations/accept"),
        ("hgl_", "/api/sign-in/by-link"),
        ("hgp_", "/api/password/by-link"),
    ):
        assert re.search(rf"{prefix}: .*?path: \"{path}\"", page, re.DOTALL)


def test_what_is_behind_the_sign_is_not_sent_on(millrace_on_sqlite: Company) -> None:
    page = millrace_on_sqlite.client.get("/link")
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"
    assert "history.replaceState" in page.text
