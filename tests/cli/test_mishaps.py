"""What goes wrong for people at a terminal: each gets a sentence that says what to do, and never a traceback."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from headgate.kit.schema_version import NEEDED
from tests.support.installation import Installation, installed


def said(one: Installation, *arguments: str, **environment: str) -> tuple[int, str]:
    done = one.headgate(*arguments, **environment)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_settings_are_shown_without_passwords(tmp_path: Path) -> None:
    one = Installation(tmp_path, "postgresql://ana:hunter2@db.example/x", HEADGATE_MAIL__PASSWORD="hunter2")
    for arguments in (("config", "show"), ("config", "show", "--json")):
        status, text = said(one, *arguments)
        assert status == 0
        assert "db.example" in text
        assert "hunter2" not in text


def test_commands_on_this_machine_make_no_installation(tmp_path: Path) -> None:
    one = Installation(tmp_path / "none")
    one.folder.mkdir()
    for command in ("audit verify", "token list", "access reindex", "token create --member Ben", "keys list"):
        status, text = said(one, *command.split(), HEADGATE_SERVER_URL="http://127.0.0.1:1")
        assert (status, "no installation" in text) == (2, True), command
    assert said(one, "db", "status") == (0, f"database: empty\nneeded:   {NEEDED}\nRun `headgate db upgrade`.\n")
    assert list(one.folder.iterdir()) == []


def test_a_lost_key_file_is_said_and_not_replaced(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    one.fill()
    with one.serving():
        pass
    (tmp_path / "keys.json").unlink()
    status, text = said(one, "audit", "verify")
    assert (status, "restore it from a backup" in text) == (2, True)
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.parametrize("token", ["hgt_…", "a b\nc", "hgt_1234", "x"])
def test_what_is_no_token_is_said(tmp_path: Path, token: str) -> None:
    status, text = said(Installation(tmp_path), "me", HEADGATE_TOKEN=token)
    assert (status, "HEADGATE_TOKEN is not a token" in text) == (2, True)
    assert token not in text


def test_an_address_without_a_scheme_is_said(tmp_path: Path) -> None:
    token = "hgt_" + "0" * 32 + "000000"
    one = Installation(tmp_path)
    one.fill()
    token = one.token("Ben")
    status, text = said(one, "me", HEADGATE_TOKEN=token, HEADGATE_SERVER_URL="127.0.0.1:8420")
    assert (status, "must start with http:// or https://" in text) == (2, True)


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:p@127.0.0.1:{port}/x", "postgresql://u:p@127.0.0.1:port/x", "sqlite:///{folder}/text.db"],
)
@pytest.mark.parametrize("command", ["db status", "up", "audit verify"])
def test_a_database_that_cannot_be_used_is_said(tmp_path: Path, url: str, command: str) -> None:
    (tmp_path / "text.db").write_text("this is no database, and long enough to be looked at " * 20)
    one = Installation(tmp_path, url.format(port=closed_port(), folder=tmp_path))
    status, text = said(one, *command.split())
    assert (status, "database" in text) == (2, True), text
    assert "u:p@" not in text


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("HEADGATE_SERVER__PROT", "1", "did you mean server.port?"),
        ("HEADGATE_SERVER__PUBLIC_URL", "nonsense", "https://data.example.com"),
        ("HEADGATE_SERVER__METRICS", "token", "metrics_token"),
        ("HEADGATE_SERVER__TRUSTED_PROXIES", '["elsewhere"]', "elsewhere"),
        ("HEADGATE_DATABASE__URL", "mysql://x", "sqlite:// or postgresql://"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, variable: str, value: str, says: str) -> None:
    status, text = said(Installation(tmp_path), "config", "show", **{variable: value})
    assert (status, says in text) == (2, True), text


def test_a_settings_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "headgate.toml"
    for content, says in ((b"log = 3", "[log]"), (b"\xff", "not valid TOML"), (b"[server]\nprot = 1", "server.port")):
        file.write_bytes(content)
        status, text = said(Installation(tmp_path), "config", "show")
        assert (status, says in text, "headgate.toml" in text) == (2, True, True), text
    file.unlink()
    file.mkdir()
    status, text = said(Installation(tmp_path), "config", "show")
    assert (status, "not a file" in text) == (2, True)


@pytest.mark.processes
def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.fill()
        command = f"{sys.executable} -m headgate.cli.main access tables | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["/bin/bash", "-c", command], env=one.environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in {"0", "141"}


def test_a_message_cannot_steer_the_terminal(tmp_path: Path) -> None:
    world = tmp_path / "w.yaml"
    world.write_text('members:\n  "a\\e[31mRED": {role: owner}\nresources: []\nchecks: []\n')
    status, text = said(Installation(tmp_path), "access", "test", str(world))
    assert status == 2
    assert "\x1b" not in text


def test_a_resource_is_shown_by_kind_and_name(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    one.fill()
    token = one.token("Tess")
    with one.serving() as address:
        environment = {"HEADGATE_TOKEN": token, "HEADGATE_SERVER_URL": address}
        by_name = json.loads(one.headgate("resource", "get", "data_mart:revenue", "--json", **environment).stdout)
        by_id = json.loads(one.headgate("resource", "get", by_name["id"], "--json", **environment).stdout)
        assert by_id["name"] == "Revenue"
        assert said(one, "resource", "get", "data_mart:Reven", **environment)[0] == 1
        for wrong in ("", "dm_nope", "castle:x"):
            status, text = said(one, "resource", "get", wrong, **environment)
            assert (status, "pattern" in text) == (2, False), text


def test_tokens_are_in_the_audit_log(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    one.fill()
    one.token("Ben")
    token = json.loads(one.headgate("token", "list", "--json").stdout)[0]
    assert token["hint"].startswith("hgt_")
    assert one.headgate("token", "revoke", token["id"]).returncode == 0
    found = json.loads(one.headgate("audit", "list", "--json").stdout)["items"]
    assert [(event["event"], event["resource"]) for event in found] == [
        ("token.revoked", token["id"]),
        ("token.created", token["id"]),
    ]


@pytest.mark.processes
def test_being_alive_needs_no_database(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.fill()
        address = one.up()
        assert httpx.head(f"{address}/healthz").status_code == 200
        assert httpx.head(f"{address}/healthz").content == b""
        (tmp_path / "headgate.db").rename(tmp_path / "gone.db")
        (tmp_path / "headgate.db").mkdir()
        assert httpx.get(f"{address}/healthz").status_code == 200
