"""The command line, as a person and as a program use it."""

import json
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from headgate.kit.credentials import Sort, new_secret
from tests.support.databases import WORLD
from tests.support.installation import Installation, eventually, installed

GOOD = """members: {ann: {role: technical}, bob: {role: business}}
resources:
  - {kind: storage, name: wh, owners: [ann]}
checks:
  - {member: ann, can: [see, use], resource: "storage:wh"}
"""
FAILING = GOOD + '  - {member: bob, action: see, resource: "storage:wh", allowed: true}\n'


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    one = Installation(tmp_path_factory.mktemp("installation"))
    one.fill()
    return one


def run(one: Installation, *arguments: str) -> str:
    done = one.headgate(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
def test_help_loads_nothing_heavy() -> None:
    heavy = ("fastapi", "sqlalchemy", "pydantic", "httpx2", "uvicorn", "alembic", "rich", "yaml", "structlog")
    code = "import sys, headgate.cli.main; print([m for m in sys.argv[1:] if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


ASKS = (
    "import sys, headgate.cli.main as cli\n"
    "names, sys.argv[1:] = sys.argv[1].split(','), sys.argv[2:]\n"
    "try:\n    cli.main()\nexcept SystemExit:\n    print([m for m in names if m in sys.modules])"
)


@pytest.mark.processes
@pytest.mark.parametrize(
    "command", ["me", "layer list", "table show raw.orders", "grant viewer table:a.b Ben", "sql x"]
)
def test_a_command_that_asks_a_server_loads_nothing_of_the_server(tmp_path: Path, command: str) -> None:
    heavy = "fastapi,starlette,sqlalchemy,pydantic_settings,uvicorn,alembic,rich,yaml,structlog,pyarrow"
    asked = {"HEADGATE_TOKEN": new_secret(Sort.token), "HEADGATE_SERVER_URL": "http://127.0.0.1:1"}
    done = subprocess.run(
        [sys.executable, "-c", ASKS, heavy, *command.split()],
        env={**Installation(tmp_path).environment, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.strip(), "cannot reach" in done.stderr) == ("[]", True), done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "",
        "up",
        "demo",
        "me",
        "config show",
        "db upgrade",
        "token create",
        "access test",
        "access what-if",
        "audit verify",
    ],
)
def test_every_command_has_help(tmp_path: Path, command: str) -> None:
    done = Installation(tmp_path).headgate(*command.split(), "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_worlds_that_pass_exit_0_with_the_summary_alone_on_the_last_line(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    done = Installation(tmp_path).headgate("access", "test", "good.yaml", str(WORLD))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "32 passed, 0 failed")


def test_a_world_that_fails_exits_1_and_explains(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(FAILING)
    done = Installation(tmp_path).headgate("access", "test", "bad.yaml")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed"
    assert "bad.yaml:6: bob can see storage:wh" in done.stdout
    assert "missing role owner or admin" in done.stdout


def test_a_malformed_world_exits_2_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "broken.yaml").write_text(GOOD.replace("technical", "wizard"))
    done = Installation(tmp_path).headgate("access", "test", "good.yaml", "broken.yaml")
    assert done.returncode == 2
    assert "broken.yaml:1: members.ann.role" in done.stderr
    assert "passed" not in done.stdout
    for missing in ("nowhere.yaml", "."):
        again = Installation(tmp_path).headgate("access", "test", missing)
        assert (again.returncode, "Traceback" in again.stderr) == (2, False)


def test_a_world_without_assertions_is_no_test(tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("members: {}\nresources: []\nchecks: []\n")
    done = Installation(tmp_path).headgate("access", "test", "none.yaml")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 0 failed")
    (tmp_path / "none.yaml").write_text("members: {}\nresources: []\n")
    assert Installation(tmp_path).headgate("access", "test", "none.yaml").returncode == 2


def test_worlds_speak_json_too(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(FAILING)
    done = Installation(tmp_path).headgate("access", "test", "--json", "bad.yaml")
    found = json.loads(done.stdout)
    assert (done.returncode, found["passed"], found["failed"]) == (1, 2, 1)
    assert found["failures"][0]["line"] == 6
    (tmp_path / "bad.yaml").write_text("members: 7")
    done = Installation(tmp_path).headgate("access", "test", "--json", "bad.yaml")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["line"] == 1


def test_an_export_passes_its_own_test(filled: Installation) -> None:
    run(filled, "access", "export", "-o", "export.yaml")
    assert run(filled, "access", "test", "export.yaml").endswith(" 0 failed\n")
    world = yaml.safe_load((filled.folder / "export.yaml").read_text())
    assert {one["kind"] for one in world["resources"]} >= {"saved_query", "space", "run"}
    assert json.loads(run(filled, "access", "export", "--json"))["members"].keys() == world["members"].keys()


def test_the_operator_asks_about_any_member(filled: Installation) -> None:
    text = run(filled, "access", "explain", "edit", "data_mart:Revenue", "--member", "Ben")
    assert text.startswith("Ben cannot edit data_mart:Revenue")
    assert "could turn the sharing toggle on: Adam, Olga, Tess" in text
    found = json.loads(run(filled, "access", "explain", "see", "data_mart:Revenue", "--member", "Ben", "--json"))
    assert found["allowed"]
    create = run(
        filled, "access", "explain", "create", "report", "--member", "Ben",
        "--with", "data_mart=Revenue", "--with", "destination=Finance sheet",
    )  # fmt: skip
    assert create.startswith("Ben can create report")


def test_who_can_what_can_and_what_if(filled: Installation) -> None:
    assert [line.split()[0] for line in run(filled, "access", "who-can", "edit", "data_mart:Revenue").splitlines()] == [
        "NAME", "Adam", "Olga", "Tess",
    ]  # fmt: skip
    found = json.loads(run(filled, "access", "what-can", "--member", "Ana", "--kind", "table", "--json"))
    assert [one["name"] for one in found] == ["trusted.orders"]
    assert "project" in run(filled, "access", "what-can", "--member", "Tess")
    text = run(filled, "access", "what-if", "share", "resource=data_mart:Revenue", "for_maintenance=true")
    assert "report:Weekly revenue" in text
    one = run(filled, "access", "what-if", "join_group", "group=analysts", "member=Bea", "--member", "Bea")
    assert "table:trusted.orders" in one


def test_members_act_over_http(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    one.fill()
    tokens = {name: one.token(name) for name in ("Tess", "Ben")}

    def as_(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return one.headgate(*arguments, HEADGATE_SERVER_URL=address, HEADGATE_TOKEN=tokens[name])

    with one.serving() as address:
        assert "Ben" in as_("Ben", "me").stdout
        assert "Revenue" in as_("Ben", "resource", "list", "data_mart").stdout
        found = json.loads(as_("Ben", "resource", "list", "data_mart", "--json").stdout)
        mart = found["items"][0]["id"]
        assert as_("Ben", "resource", "get", mart).returncode == 0
        refused = as_("Ben", "access", "change", "share", "resource=data_mart:Revenue", "for_use=false")
        assert (refused.returncode, refused.stderr) == (
            1,
            "error: You may not configure sharing: change the sharing toggles (data mart Revenue). Missing: "
            "technical owner, role technical (Adam, Olga or Tess could make you an owner)\n`headgate request make "
            f"configure_sharing {mart} --reason …` requests access from the members who can grant it\n",
        )
        done = as_("Tess", "access", "change", "share", "resource=data_mart:Revenue", "for_use=false")
        assert done.stdout == "Done, by technical owner.\n"
        hidden = as_("Ben", "resource", "get", "tbl_00000000000000000000")
        assert (hidden.returncode, "Traceback" in hidden.stderr) == (1, False)
        bad = as_("Ben", "resource", "list", "data_mart", "--sort", "colour")
        assert bad.returncode == 2
    down = as_("Ben", "me")
    assert (down.returncode, "headgate up" in down.stderr) == (1, True)


def test_changes_need_a_member(filled: Installation) -> None:
    done = filled.headgate("access", "change", "set_plan", "plan=starter")
    assert done.returncode == 1
    assert "HEADGATE_TOKEN" in done.stderr


def test_tokens_are_made_listed_and_ended(filled: Installation) -> None:
    made = json.loads(run(filled, "token", "create", "--member", "ben", "--read-only", "--only", "trusted", "--json"))
    listed = json.loads(run(filled, "token", "list", "--json"))
    assert made["id"] in {one["id"] for one in listed}
    assert made["token"] not in run(filled, "token", "list")
    assert run(filled, "token", "revoke", made["id"]) == f"Revoked {made['id']}.\n"
    assert filled.headgate("token", "revoke", made["id"]).returncode == 1
    assert filled.headgate("token", "create", "--member", "Nobody").returncode == 1
    assert filled.headgate("token", "create", "--member", "Ben", "--only", "nowhere").returncode == 1
    assert filled.headgate("token", "create", "--member", "Ben", "--expires", "2001-01-01").returncode == 2
    assert filled.headgate("token", "create").returncode == 2


def test_settings_are_shown_and_slips_are_caught(tmp_path: Path) -> None:
    one = Installation(tmp_path, HEADGATE_SERVER__METRICS_TOKEN="scrape-me")
    shown = json.loads(run(one, "config", "show", "--json"))
    assert shown["server.port"] == 0
    assert "scrape-me" not in run(one, "config", "show")
    for name, value in (
        ("HEADGATE_SERVER__PORT", "many"),
        ("HEADGATE_SERVR__PORT", "1"),
        ("HEADGATE_DATABASE__URL", "x"),
    ):
        bad = Installation(tmp_path, **{name: value}).headgate("config", "show")
        assert bad.returncode == 2, name
        assert name in bad.stderr
        assert "Traceback" not in bad.stderr


def test_a_settings_file_is_read_and_its_slips_are_caught(tmp_path: Path) -> None:
    (tmp_path / "headgate.toml").write_text("[server]\nprocesses = 3\n")
    one = Installation(tmp_path)
    assert json.loads(run(one, "config", "show", "--json"))["server.processes"] == 3
    (tmp_path / "headgate.toml").write_text("[server]\nprocesses = 3\ncolour = 'red'\n")
    bad = one.headgate("config", "show")
    assert (bad.returncode, "server.colour" in bad.stderr) == (2, True)
    (tmp_path / "headgate.toml").write_text("[server\n")
    bad = one.headgate("config", "show")
    assert (bad.returncode, "not valid TOML" in bad.stderr) == (2, True)
    bad = Installation(tmp_path, HEADGATE_CONFIG="/nowhere.toml").headgate("config", "show")
    assert (bad.returncode, "/nowhere.toml" in bad.stderr) == (2, True)


def test_the_database_command_says_which_version_there_is(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    assert "empty" in run(one, "db", "status")
    assert run(one, "db", "upgrade").startswith("The database has schema version")
    assert "already" in run(one, "db", "upgrade")
    assert json.loads(run(one, "db", "status", "--json"))["database"]


def test_the_index_is_rebuilt_by_a_command(filled: Installation) -> None:
    assert json.loads(run(filled, "access", "reindex", "--json"))["entries"] > 50


@pytest.mark.processes
def test_the_audit_log_is_verified_by_a_command(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.fill()
        token = one.token("Tess")
        address = one.up()
        for for_use in ("true", "false", "true"):
            one.headgate(
                "access", "change", "share", "resource=data_mart:Revenue", f"for_use={for_use}",
                HEADGATE_SERVER_URL=address, HEADGATE_TOKEN=token,
            )  # fmt: skip
        eventually(lambda: "4 events sealed" in one.headgate("audit", "verify").stdout)
        one.stop()
        assert "access.changed" in run(one, "audit", "list")
        with sqlite3.connect(tmp_path / "headgate.db") as connection:
            connection.execute("DROP TRIGGER audit_events_kept")
            connection.execute("DELETE FROM audit_events WHERE seal_number = 4")
        found = one.headgate("audit", "verify")
        assert (found.returncode, "at the end of the log are missing" in found.stdout) == (1, True)
        assert json.loads(one.headgate("audit", "verify", "--json").stdout)["faults"]


@pytest.mark.processes
def test_a_shell_completes_commands() -> None:
    program = shlex.quote(str(Path(sys.executable).with_name("headgate")))
    # It looks which shell started it; bash would make way for its only command.
    asked = f'eval "$({program} --show-completion)"; COMP_WORDS=({program} pipel) COMP_CWORD=1; '
    asked += f'_headgate_completion {program}; echo "completed: ${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, timeout=120, check=False)
    assert "completed: pipeline" in done.stdout, done.stderr
