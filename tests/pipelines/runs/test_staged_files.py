"""Files that a notebook saved are in their volumes once its run was published: whatever dies in between, and no sooner."""

import errno
import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from headgate.contracts.pipelines.staged import Manifest, StagedFile
from headgate.kit.clock import now
from headgate.kit.ids import new_id
from headgate.pipelines.runs import staged_files
from headgate.pipelines.runs.models import run_step_table, run_table
from headgate.pipelines.runs.staged_files import drop_staged, move_outputs, unmoved
from headgate.platform.audit.events import CHANGED
from headgate.platform.unit_of_work.services import Services
from headgate.warehouse.locations import staging_root
from tests.support.company import Company


class Staged:
    """A run of Tess's with files staged for raw.results."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.services: Services = company.client.app.state.services  # type: ignore[attr-defined]
        answer = company.as_("Tess").post("/api/volumes", {"name": "results", "layer": "raw"})
        assert answer.status_code < 300, answer.text
        self.volume = company.id("volume", "raw.results")
        [(self.run,)] = company.rows("SELECT id FROM runs ORDER BY id LIMIT 1")
        self.set("running")

    def set(self, state: str, ended: datetime | None = None) -> None:
        member = self.company.id("member", "Tess")
        mine = update(run_table).where(run_table.c.id == self.run)
        values = {"state": state, "acts_for_id": member, "ended_at": ended or now(), "fence": 9}
        self.company.database.write(lambda c: c.execute(mine.values(values)))

    def stage(self, fence: int = 1, **files: bytes) -> None:
        """Stage as a worker does: files, and then the manifest that names them."""
        manifest, root = Manifest(), f"{staging_root(self.run)}/{fence}"
        for name, content in files.items():
            one = StagedFile(
                new_id("file"), self.volume, f"out/{name}.txt", f"files/{name}", len(content),
                hashlib.sha256(content).hexdigest(),
            )  # fmt: skip
            manifest.files.append(one)
            self.services.store.write(f"{root}/{one.file}", [content])
        self.services.store.write(f"{root}/manifest.json", [manifest.written().encode()])

    def files(self, member: str = "Tess") -> dict[str, str]:
        """What the volume holds, as a member reads it."""
        api = self.company.as_(member)
        listed = api.get(f"/api/volumes/{self.volume}/files").json()["items"]
        return {one["path"]: api.get(f"/api/volumes/{self.volume}/files/{one['path']}").text for one in listed}

    def put(self, path: str, content: bytes) -> None:
        answer = self.company.as_("Tess").request(
            "PUT", f"/api/volumes/{self.volume}/files/{path}", content=content, params={"overwrite": True}
        )
        assert answer.status_code < 300, answer.text

    def left(self) -> list[str]:
        return sorted(entry.path for entry in self.services.store.files("staging"))


@pytest.fixture
def staged(millrace: Company) -> Staged:
    return Staged(millrace)


@pytest.fixture
def on_sqlite(millrace_on_sqlite: Company) -> Staged:
    return Staged(millrace_on_sqlite)


def test_they_are_put_there_after_the_publish_and_the_newest_fence_counts(staged: Staged) -> None:
    staged.put("out/a.txt", b"before")
    staged.stage(1, a=b"of an older try", c=b"of an older try")
    staged.stage(3, a=b"new", b=b"more")
    assert move_outputs(staged.services, staged.run) == []
    assert staged.files() == {"out/a.txt": "before"}, "a run that is not published puts nothing anywhere"
    staged.set("succeeded")
    database, store = staged.company.database, staged.services.store
    assert unmoved(database, store) == unmoved(database, store, now() + timedelta(seconds=1)) == [staged.run]
    assert unmoved(database, store, now() - timedelta(seconds=20)) == [], "its server may be about to"
    assert move_outputs(staged.services, staged.run) == []
    assert staged.files() == {"out/a.txt": "new", "out/b.txt": "more"}
    assert staged.left() == []
    assert move_outputs(staged.services, staged.run) == []
    told = staged.company.rows(
        f"SELECT COUNT(*) FROM audit_events WHERE resource_id = '{staged.volume}' AND event = '{CHANGED}'"
    )
    assert told[0][0] == 4, "the volume, the file that was there before, and two of the run"


@pytest.mark.parametrize("when", ["open", "write", "delete", "delete_folder"])
def test_a_death_at_any_point_is_made_good_by_doing_it_again(
    on_sqlite: Staged, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    on_sqlite.stage(a=b"new", b=b"more")
    on_sqlite.set("succeeded")
    store, calls = on_sqlite.services.store, [0]
    usual: Callable[..., Any] = getattr(store, when)

    def dies(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == 1:
            raise KeyboardInterrupt
        return usual(*arguments)

    monkeypatch.setattr(store, when, dies)
    with pytest.raises(KeyboardInterrupt):
        move_outputs(on_sqlite.services, on_sqlite.run)
    assert move_outputs(on_sqlite.services, on_sqlite.run) == []
    assert on_sqlite.files() == {"out/a.txt": "new", "out/b.txt": "more"}
    assert on_sqlite.left() == []
    stored = sorted(entry.size for entry in store.files(f"volumes/{on_sqlite.volume}"))
    assert stored == [len("new"), len("more")], "no bytes are there twice"


def test_what_was_put_there_since_is_newer_and_stays(on_sqlite: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    on_sqlite.stage(a=b"of the run")
    on_sqlite.set("succeeded", now() - timedelta(seconds=1))
    on_sqlite.put("out/a.txt", b"of a person, later")
    assert move_outputs(on_sqlite.services, on_sqlite.run) == []
    assert on_sqlite.files() == {"out/a.txt": "of a person, later"}
    assert on_sqlite.left() == []


def test_it_is_decided_by_the_rights_of_that_moment(on_sqlite: Staged) -> None:
    on_sqlite.stage(a=b"new")
    on_sqlite.set("succeeded")
    change = {"change": "revoke", "to": "Tess", "resource": "layer:raw", "level": "manager"}
    on_sqlite.company.as_("Adam").post("/api/access/changes", change).raise_for_status()
    [told] = move_outputs(on_sqlite.services, on_sqlite.run)
    assert told.startswith("out/a.txt: ")
    assert on_sqlite.files("Adam") == {}
    assert len(on_sqlite.left()) == 2, "it is still there, for when the right comes back"
    assert list(on_sqlite.services.store.files(f"volumes/{on_sqlite.volume}")) == []


def test_what_no_run_publishes_is_dropped(on_sqlite: Staged) -> None:
    on_sqlite.stage(a=b"new")
    on_sqlite.services.store.write("staging/run_gone/1/manifest.json", [b"{}"])
    database, store = on_sqlite.company.database, on_sqlite.services.store
    later = now() + timedelta(days=1)
    assert drop_staged(database, store, later) == 1
    assert len(on_sqlite.left()) == 2, "one that runs keeps it"
    on_sqlite.set("failed")
    assert unmoved(database, store) == []
    assert drop_staged(database, store, now() - timedelta(days=1)) == 0
    assert len(on_sqlite.left()) == 2, "it can be resumed"
    step = {"run_id": on_sqlite.run, "number": 0, "kind": "notebook", "title": "x", "state": "succeeded"}
    database.write(lambda c: c.execute(insert(run_step_table).values(**step, pointers=[])))
    assert drop_staged(database, store, later) == 1
    assert on_sqlite.left() == []
    with database.read() as connection:
        mine = select(run_step_table.c.pointers).where(run_step_table.c.run_id == on_sqlite.run)
        assert connection.execute(mine).scalars().all() == [None], "whoever resumes it has it begin anew"


def test_nothing_staged_is_nothing_to_do(on_sqlite: Staged) -> None:
    on_sqlite.set("succeeded")
    assert move_outputs(on_sqlite.services, on_sqlite.run) == []
    assert move_outputs(on_sqlite.services, new_id("run")) == []
    assert staged_files.unmoved(on_sqlite.company.database, on_sqlite.services.store) == []


def test_a_full_disk_is_told_and_the_file_follows_once_there_is_room(
    on_sqlite: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_sqlite.stage(a=b"large", b=b"small")
    on_sqlite.set("succeeded")
    store = on_sqlite.services.store
    usual = store.write

    def full(path: str, pieces: Any) -> Any:
        content = b"".join(pieces)
        if content == b"large":
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(path, [content])

    with monkeypatch.context() as patch:
        patch.setattr(store, "write", full)
        [told] = move_outputs(on_sqlite.services, on_sqlite.run)
    assert told.startswith("out/a.txt: A disk of this installation is full")
    assert on_sqlite.files() == {"out/b.txt": "small"}
    assert unmoved(on_sqlite.company.database, store) == [on_sqlite.run]
    assert move_outputs(on_sqlite.services, on_sqlite.run) == []
    assert on_sqlite.files() == {"out/a.txt": "large", "out/b.txt": "small"}
