"""A rotation may end at any moment, by an error or by kill -9: nothing is lost, and the next run finishes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.kit.database import Database
from headgate.kit.key_file import KeyFile
from headgate.platform.secrets import rotation
from headgate.platform.secrets.rotation import GRACE, prune, rotate
from tests.platform.secrets import METADATA, Clock, Vault, registered

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).parents[3]
CHILD = """
import sys, time
from pathlib import Path
from headgate.kit.database import Database
from headgate.kit.key_file import KeyFile
from headgate.platform.secrets import rotation
from tests.platform.secrets import registered

url, keys, most = sys.argv[1:]
rotation.BATCH = 5

def report(done, total):
    print(done, flush=True)
    time.sleep(600 if done >= int(most) else 0.01)

with registered():
    print(rotation.rotate(Database(url), KeyFile(Path(keys)), report).resumed)
"""


class Burnt(BaseException):
    """The process ends here."""


class Fuse:
    """Ends the work at the n-th step that is passed; never, without a number."""

    def __init__(self) -> None:
        self.left: int | None = None

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Burnt

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with a step before and one after it."""

        def stepped(*args: Any, **more: Any) -> Any:
            self.step()
            found = function(*args, **more)
            self.step()
            return found

        return stepped


@pytest.fixture
def vault(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    monkeypatch.setattr(rotation, "BATCH", 5)
    database = Database(database_url)
    METADATA.create_all(database.engine)
    with registered():
        yield Vault(database, KeyFile(tmp_path / "keys.json"))
    database.close()


@pytest.fixture
def fuse(monkeypatch: pytest.MonkeyPatch) -> Fuse:
    """Steps: around each write to the disk and renaming of the key file, each transaction, and before each commit."""
    found = Fuse()
    monkeypatch.setattr(os, "fsync", found.around(os.fsync))
    monkeypatch.setattr(Path, "rename", found.around(Path.rename))
    monkeypatch.setattr(rotation, "_replace", found.around(rotation._replace))
    write = Database.write

    def stepped(database: Database, work: Callable[[Any], Any]) -> Any:
        return write(database, found.around(work))

    monkeypatch.setattr(Database, "write", found.around(stepped))
    return found


@pytest.mark.parametrize("again", [rotate, prune])
def test_a_rotation_may_end_at_every_step(vault: Vault, fuse: Fuse, again: Callable[..., Any]) -> None:
    texts, clock, step, finished, resumed = vault.fill(12), Clock(), 0, False, 0
    while not finished:
        clock.pass_(2 * GRACE)
        before, fuse.left = vault.ring, step
        try:
            rotate(vault.database, vault.keys, clock=clock)
            finished = fuse.left is not None
        except Burnt:
            pass
        fuse.left = None
        left = vault.ring
        assert vault.texts() == texts, step
        outcome = again(vault.database, vault.keys, clock=clock)
        assert outcome.resumed == left.rotating, step
        if left.rotating or again is prune:
            assert vault.ring.current == left.current, step
        assert len({one.id for one in vault.ring.generations} - {one.id for one in before.generations}) <= 2, step
        assert vault.usage() == {vault.ring.current.id: len(texts)}, step
        assert vault.texts() == texts, step
        assert not vault.ring.rotating, step
        assert vault.keys.path.stat().st_mode & 0o777 == 0o600
        step, resumed = step + 1, resumed + left.rotating
    assert step > 40
    assert resumed > 30
    assert len(vault.ring.generations) <= 3


def kill_at(vault: Vault, url: str, rows: int) -> None:
    """Start a rotation in a process of its own, and kill it where so many rows are done, which it waits for there."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, url, str(vault.keys.path), str(rows)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        assert child.stdout
        while int(child.stdout.readline()) < rows:
            pass
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL


@pytest.mark.processes
def test_a_rotation_that_is_killed_is_finished_by_the_next(vault: Vault, database_url: str) -> None:
    texts = vault.fill(200)
    (old,) = (one.id for one in vault.ring.generations)
    for rows in (1, 100, 50):
        kill_at(vault, database_url, rows)
        assert vault.ring.rotating
        assert set(vault.usage()) == {old, vault.ring.current.id}
        assert vault.texts() == texts
    outcome = rotate(vault.database, vault.keys)
    assert outcome.resumed
    assert 0 < outcome.resealed < len(texts) - 150
    assert vault.usage() == {outcome.key: len(texts)}
    assert [one.id for one in vault.ring.generations] == [old, outcome.key]
    assert vault.texts() == texts


@pytest.mark.processes
def test_rotations_in_several_processes_end_with_one_key(vault: Vault, database_url: str) -> None:
    texts = vault.fill(120)
    arguments = [sys.executable, "-c", CHILD, database_url, str(vault.keys.path), "1000"]
    children = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    told = [child.communicate(timeout=120)[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert {lines[-1] for lines in told} <= {"True", "False"}
    assert vault.usage() == {vault.ring.current.id: len(texts)}
    assert vault.texts() == texts
    assert not vault.ring.rotating
