"""The first owner: by `headgate init`, or by the link that the first start prints; and `headgate login`."""

import json
import re
from pathlib import Path
from subprocess import CompletedProcess

import httpx2 as httpx
import pytest

from tests.support.installation import Installation, eventually, installed

PASSWORD = "seven quiet herons fishing"


@pytest.mark.processes
def test_init_makes_an_owner_who_signs_in(tmp_path: Path) -> None:
    with installed(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config")) as one:
        made = run(one, PASSWORD, "init", "--name", "Olga", "--email", "olga@example.com", "--organization", "Mill")
        assert made.returncode == 0, made.stderr
        again = run(one, PASSWORD, "init", "--name", "Otto", "--email", "otto@example.com")
        assert (again.returncode, "already has an owner" in again.stderr) == (1, True)
        address = one.up()
        assert "/link#" not in one.log.read_text()
        wrong = run(one, "wrong password", "login", "--server", address, "--email", "olga@example.com")
        assert (wrong.returncode, "wrong" in wrong.stderr) == (1, True)
        done = run(one, PASSWORD, "login", "--server", address, "--email", "olga@example.com")
        assert "Signed in as Olga" in done.stdout, done.stderr
        kept = tmp_path / "config/headgate/login.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert json.loads(one.headgate("me", "--json").stdout)["role"] == "owner"
        invited = json.loads(
            one.headgate("invitation", "make", "ana@example.com", "--role", "technical", "--json").stdout
        )
        assert invited["link"].startswith(f"{own(one)}/link#hgi_")
        assert [m["name"] for m in json.loads(one.headgate("member", "list", "--json").stdout)["items"]] == ["Olga"]
        token = one.headgate("my", "make-token", "nightly", "--read-only").stdout.strip()
        assert json.loads(one.headgate("me", "--json", HEADGATE_TOKEN=token, HEADGATE_SERVER_URL=address).stdout)[
            "read_only"
        ]
        tokens = json.loads(one.headgate("my", "tokens", "--json").stdout)["items"]
        assert tokens[0]["name"] == "nightly"
        assert "Revoked the token" in one.headgate("my", "end-token", tokens[0]["id"]).stdout
        assert "You have no sessions" in one.headgate("my", "sessions").stdout
        told = run(one, "", "login", "--server", address, "--link", invited["link"])
        assert (told.returncode, "headgate invitation accept" in told.stderr) == (2, True)
        one.environment["XDG_CONFIG_HOME"] = str(tmp_path / "of ana")
        words = ("invitation", "accept", invited["link"], "--name", "Ana", "--server", address)
        joined = run(one, "nine slow otters swimming", *words)
        assert "You are now a member: Ana" in joined.stdout, joined.stderr
        assert json.loads(one.headgate("me", "--json").stdout)["role"] == "technical"
        again = run(one, "nine slow otters swimming", *words)
        assert (again.returncode, "used" in again.stderr) == (1, True)
        one.environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
        token = json.loads(kept.read_text())["token"]
        assert one.headgate("logout").returncode == 0
        assert not kept.exists()
        answer = httpx.get(f"{address}/api/access/me", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401


def own(one: Installation) -> str:
    """What links begin with: the address that the settings give."""
    return "http://127.0.0.1:0"


def run(one: Installation, line: str, *arguments: str) -> "CompletedProcess[str]":
    """Run a command that reads a password from a line."""
    return one.headgate(*arguments, "--password-stdin", given=line + "\n")


def test_a_link_for_a_new_password_is_not_taken_for_a_used_one(tmp_path: Path) -> None:
    told = Installation(tmp_path).headgate("login", "--link", "http://127.0.0.1:1/link#hgp_abc")
    assert (told.returncode, "this link sets a new password; open it in a browser" in told.stderr) == (2, True)


def test_a_weak_password_makes_no_owner(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    done = run(one, "password", "init", "--name", "Olga", "--email", "olga@example.com")
    assert (done.returncode, "password" in done.stderr) == (2, True)
    assert not (tmp_path / "headgate.db").exists()


def link_in(text: str) -> str:
    found = re.findall(r"http\S+/link#(hgi_\w+)", text)
    return str(found[-1])


@pytest.mark.processes
def test_the_first_start_prints_a_link_for_the_owner(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        address = one.up()
        eventually(lambda: "/link#hgi_" in one.log.read_text())
        first = link_in(one.log.read_text())
        one.stop()
        address = one.up()
        eventually(lambda: one.log.read_text().count("/link#hgi_") == 2)
        second = link_in(one.log.read_text())

        def accept(secret: str, **more: str) -> httpx.Response:
            body = {"invitation": secret, "name": "Olga", "password": PASSWORD, **more}
            return httpx.post(f"{address}/api/invitations/accept", json=body)

        assert accept(first, email="olga@example.com").status_code == 410
        assert accept(second).status_code == 422
        assert accept(second, email="olga@example.com").status_code == 200
        assert accept(second, email="eve@example.com").status_code == 410
        signed = httpx.post(f"{address}/api/sign-in", json={"email": "olga@example.com", "password": PASSWORD})
        assert signed.json()["name"] == "Olga"
        one.stop()
        one.up()
        one.stop()
        assert one.log.read_text().count("/link#hgi_") == 2
