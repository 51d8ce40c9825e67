"""From an invitation to a member, by mail, on an installation that runs as users run it."""

import re
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.platform.mail import HERE, relay
from tests.support.installation import eventually, installed

pytestmark = pytest.mark.processes

PASSWORD = "seven quiet herons fishing"


def link_in(text: str) -> str:
    """The secret in the address that a mail holds."""
    found = re.search(r"https://data\.example\.com/link#(hg[ilp]_\w+)", text)
    assert found, text
    return found[1]


def test_people_are_invited_sign_in_by_link_and_get_a_new_password(tmp_path: Path) -> None:
    with relay() as server:
        settings: dict[str, Any] = {
            "HEADGATE_MAIL__HOST": HERE,
            "HEADGATE_MAIL__PORT": str(server.port),
            "HEADGATE_MAIL__SECURITY": "none",
            "HEADGATE_SERVER__PUBLIC_URL": "https://data.example.com",
        }
        with installed(tmp_path, **settings) as one:
            one.fill()
            admin = {"Authorization": f"Bearer {one.token('Adam')}"}
            address = one.up()
            body = {"email": "nell@example.com", "role": "technical"}
            invited = httpx.post(f"{address}/api/invitations", json=body, headers=admin).json()
            assert invited["link"] is None
            eventually(lambda: len(server.messages) == 1)
            mail = server.messages[0]
            assert (mail["To"], "invited" in mail["Subject"]) == ("nell@example.com", True)
            assert "Adam" in mail.get_content()
            body = {"invitation": link_in(mail.get_content()), "name": "Nell", "password": PASSWORD}
            nell = httpx.post(f"{address}/api/invitations/accept", json=body).json()
            assert nell["name"] == "Nell"

            for email in ("NELL@example.com", "nobody@example.com"):
                told = httpx.post(f"{address}/api/sign-in/links", json={"email": email}).json()["detail"]
                assert told == "If this is the address of a member, a link was sent to it"
            eventually(lambda: any("sign-in link" in one["Subject"] for one in server.messages))
            signing = next(one for one in server.messages if "sign-in link" in one["Subject"])
            assert signing["To"] == "nell@example.com"
            assert "nobody" not in str([one["To"] for one in server.messages])
            link = {"link": link_in(signing.get_content())}
            assert httpx.post(f"{address}/api/sign-in/by-link", json=link).json()["name"] == "Nell"
            assert httpx.post(f"{address}/api/sign-in/by-link", json=link).status_code == 410

            reset = httpx.post(f"{address}/api/members/{nell['id']}/password-reset", headers=admin).json()
            assert (reset["sent_to"], reset["link"]) == ("nell@example.com", None)
            eventually(lambda: any("password" in one["Subject"] for one in server.messages))
            chosen = next(one for one in server.messages if "password" in one["Subject"])
            body = {"link": link_in(chosen.get_content()), "password": "nine tall poplars by a weir"}
            assert httpx.post(f"{address}/api/password/by-link", json=body).json()["name"] == "Nell"
            assert PASSWORD not in one.log.read_text()
            assert "hgl_" not in one.log.read_text()
