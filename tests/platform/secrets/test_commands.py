"""`headgate keys`, as a person and as a program use it."""

import base64
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headgate.cli import local
from headgate.cli.platform import keys as cli
from headgate.kit.database import Busy, Database
from headgate.kit.encryption import PURPOSE
from headgate.kit.key_file import KeyFile
from headgate.platform.secrets import rotation
from headgate.platform.secrets.rotation import KeyStatus
from headgate.settings.settings import load
from headgate.supervisor.preflight import check
from tests.platform.secrets import METADATA, Vault, registered


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, arguments)


@pytest.fixture
def vault(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    monkeypatch.setenv("HEADGATE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("HEADGATE_DATABASE__URL", database_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "existing", lambda settings: Database(database_url))
    database = Database(database_url)
    METADATA.create_all(database.engine)
    with registered():
        yield Vault(database, KeyFile(tmp_path / "keys.json"))
    database.close()


def test_a_new_installation_has_no_keys_and_can_rotate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    check(load())
    assert run("list").stdout == "There are no keys yet: no secret is stored.\n"
    assert run("rotate").exit_code == 0
    assert len(json.loads(run("list", "--json").stdout)["keys"]) == 1
    assert (tmp_path / "data/keys.json").stat().st_mode & 0o777 == 0o600


def test_keys_are_listed_with_age_and_rows_and_never_themselves(vault: Vault) -> None:
    texts = vault.fill(5)
    made = datetime.now(UTC) - timedelta(days=3, hours=1)
    vault.keys.change(PURPOSE, lambda ring: type(ring)((type(ring.current)(ring.current.id, made, ring.current.key),)))
    one = vault.ring.current
    table, program = run("list"), run("list", "--json")
    assert table.stdout.splitlines()[0].split() == ["ID", "STATE", "AGE", "ROWS"]
    assert table.stdout.splitlines()[1].split() == [one.id, "current", "3", "d", str(len(texts))]
    found = json.loads(program.stdout)
    assert (found["rotating"], found["unsealed"]) == (False, 0)
    (key,) = found["keys"]
    assert 3 * 86_400 + 3600 <= key.pop("age_seconds") < 3 * 86_400 + 3700
    assert datetime.fromisoformat(key.pop("made")) == made
    assert key == {"id": one.id, "state": "current", "rows": len(texts)}
    for told in (table.output, program.output):
        assert base64.b64encode(one.key).decode() not in told
        assert one.key.hex() not in told


def test_a_rotation_tells_people_and_programs_what_it_did(vault: Vault) -> None:
    texts = vault.fill(5)
    done = run("rotate")
    assert done.exit_code == 0
    assert done.output == f"The new key is {vault.ring.current.id}: {len(texts)} values re-encrypted, deleted no key.\n"
    done = run("rotate", "--json")
    assert json.loads(done.stdout) == {
        "key": vault.ring.current.id,
        "resumed": False,
        "resealed": len(texts),
        "dropped": [],
        "unopened": 0,
        "faults": [],
    }
    assert vault.texts() == texts


def test_an_interrupted_rotation_is_told_and_finished(vault: Vault) -> None:
    vault.fill(5)
    new = vault.keys.change(PURPOSE, lambda ring: ring.turned(datetime.now(UTC), rotating=True)).current.id
    assert "not finished" in run("list").stderr
    assert run("rotate").stdout.startswith(f"Finished the earlier rotation to key {new}: ")
    assert run("list").stderr == ""


def test_pruning_drops_what_nothing_needs(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = vault.fill(5)
    old = vault.ring.current.id
    run("rotate")
    new = vault.ring.current.id
    assert run("prune").stdout == f"The key in use is {new}: 0 values re-encrypted, deleted no key.\n"
    monkeypatch.setattr(rotation, "GRACE", timedelta(0))
    assert run("prune").stdout == f"The key in use is {new}: 0 values re-encrypted, deleted {old}.\n"
    assert vault.texts() == texts


def test_rows_that_cannot_be_opened_make_it_fail_and_are_named(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "MAX_FAULTS", 1)
    vault.fill(5)
    for item in ("i1", "i2", "i3"):
        vault.store(item, "hunter2")
    done = run("rotate")
    assert done.exit_code == 1
    assert "FAULT: vault_items.secret of i1 is not an encrypted value" in done.stdout
    assert "FAULT: and 2 more" in done.stdout
    assert "hunter2" not in done.output
    assert run("rotate", "--json").exit_code == 1
    assert "3 values are not encrypted" in run("list").stderr


def test_a_missing_key_is_listed_and_makes_it_fail(vault: Vault) -> None:
    vault.fill(2)
    lost = vault.ring.current.id
    vault.keys.path.unlink()
    done = run("list")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[1].split() == [lost, "missing", "—", "5"]
    assert "restore it from a backup" in done.stderr


def test_a_damaged_key_file_is_a_sentence(vault: Vault) -> None:
    vault.fill(1)
    vault.keys.path.write_text('{"version": 2')
    for command in ("list", "rotate", "prune"):
        done = run(command)
        assert done.exit_code == 2
        assert "restore it from a backup" in done.stderr


def test_a_busy_database_is_a_sentence(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise Busy

    vault.fill(1)
    monkeypatch.setattr(Database, "write", busy)
    done = run("rotate")
    assert done.exit_code == 1
    assert "run the command again" in done.stderr


def test_people_see_a_line_of_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cli._progress(1, 3)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    cli._progress(1, 3)
    cli._progress(4, 3)
    assert capsys.readouterr().err == "\r1 of 3 re-encrypted\r4 of 4 re-encrypted"


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7199, "1 h"), (86_399, "23 h"), (864_000, "10 d")]
)
def test_ages_are_told_in_their_largest_unit(seconds: int, words: str) -> None:
    moment = datetime(2026, 6, 1, tzinfo=UTC)
    assert cli._age(KeyStatus("x", "older", moment - timedelta(seconds=seconds), 0), moment) == words
