"""Commits: exactly one of two wins, several tables move together, and history is its Manager's."""

import random
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import BadRequestError, CommitFailedException

from headgate.kit import backoff
from headgate.kit.database import Database
from headgate.kit.errors import DiskFull
from headgate.lakehouse.catalog import commit as committing
from headgate.lakehouse.catalog import metadata_files, pointers
from headgate.schema import METADATA
from tests.lakehouse.catalog.support import (
    MORE,
    ROWS,
    Lake,
    appending,
    error_of,
    lake,
    pending,
    table_path,
    together,
)
from tests.support.company import Api

pytestmark = pytest.mark.both_databases

EVENTS = table_path("events")
PARTS = {"the warehouse": "write", "the database": "enter"}
"""What writes to each, of a commit."""


@pytest.fixture
def events(served: Lake) -> Lake:
    """A lake in which Tess has made raw.events, with rows."""
    served.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    return served


def test_of_two_commits_at_once_one_wins_and_the_other_gets_the_conflict(events: Lake) -> None:
    tables = [events.engine(name).load_table("raw.events") for name in ("Tess", "Tom")]
    bodies = [appending(table, MORE) for table in tables]
    apis = [events.api(name) for name in ("Tess", "Tom")]
    answers = together(
        *(lambda api=api, body=body: api.post(EVENTS, body) for api, body in zip(apis, bodies, strict=True))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    [lost] = [answer for answer in answers if answer.status_code == 409]
    assert error_of(lost) == (409, "CommitFailedException")
    assert events.rows("SELECT version FROM commits ORDER BY version") == [(1,), (2,), (3,)]
    assert events.engine("Tess").load_table("raw.events").scan().to_arrow().num_rows == 5
    table = events.company.id("table", "raw.events")
    assert len(list((events.warehouse / "metadata" / table).iterdir())) == 3


def test_commits_that_do_not_meet_all_count(events: Lake) -> None:
    """Their requirements still hold after the other, so each is repeated on what the other left."""
    tables = [events.engine("Tess").load_table("raw.events") for _ in range(4)]
    bodies = [
        pending(table, lambda change, n=n: change.set_properties({f"custom.n{n}": "x"}))
        for n, table in enumerate(tables)
    ]
    tess = events.api("Tess")
    answers = together(*(lambda body=body: tess.post(EVENTS, body) for body in bodies))
    assert [answer.status_code for answer in answers] == [200] * 4
    assert set(events.engine("Tess").load_table("raw.events").properties) >= {f"custom.n{n}" for n in range(4)}


def test_a_stock_client_that_lost_tries_again(events: Lake) -> None:
    def append(name: str) -> None:
        for _ in range(5):
            try:
                events.engine(name).load_table("raw.events").append(MORE)
                return
            except CommitFailedException:
                continue
        raise AssertionError(name)

    assert together(lambda: append("Tess"), lambda: append("Tom"), lambda: append("Adam")) == [None] * 3
    assert events.engine("Tess").load_table("raw.events").scan().to_arrow().num_rows == 9


def test_two_who_create_one_table_leave_one(served: Lake) -> None:
    works = [lambda name=name: served.engine(name).create_table("raw.new", ROWS.schema) for name in ("Tess", "Tom")]
    answers = together(*works)
    assert sorted(type(one).__name__ for one in answers) == ["Table", "TableAlreadyExistsError"]
    assert served.rows("SELECT COUNT(*) FROM resources WHERE name = 'new'") == [(1,)]


def multi(*changes: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    named = [{"identifier": {"namespace": ["raw"], "name": name}, **body} for name, body in changes]
    return {"table-changes": named}


def test_several_tables_move_together_or_not_at_all(events: Lake) -> None:
    tess = events.engine("Tess")
    second = tess.create_table("raw.second", ROWS.schema)
    first, api = tess.load_table("raw.events"), events.api("Tess")
    both = multi(("events", appending(first, MORE)), ("second", appending(second)))
    assert api.post("/iceberg/v1/transactions/commit", both).status_code == 204
    assert tess.load_table("raw.second").scan().to_arrow().num_rows == 3
    groups = events.rows("SELECT group_id, COUNT(*) FROM commits GROUP BY group_id HAVING COUNT(*) > 1")
    assert [count for _, count in groups] == [2]

    first, second = tess.load_table("raw.events"), tess.load_table("raw.second")
    stale = multi(("events", appending(first, MORE)), ("second", appending(second)))
    second.append(MORE)
    before = events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id")
    assert error_of(api.post("/iceberg/v1/transactions/commit", stale)) == (409, "CommitFailedException")
    assert events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id") == before
    twice = multi(("events", {"updates": []}), ("EVENTS", {"updates": []}))
    assert error_of(api.post("/iceberg/v1/transactions/commit", twice)) == (400, "BadRequestException")
    unnamed: dict[str, Any] = {"table-changes": [{"updates": []}]}
    assert error_of(api.post("/iceberg/v1/transactions/commit", unnamed)) == (400, "BadRequestException")


def test_a_commit_to_several_needs_the_right_on_each(events: Lake) -> None:
    tess = events.engine("Tess")
    hidden = tess.create_table("trusted.hidden", ROWS.schema)
    body = multi(("events", appending(tess.load_table("raw.events"), MORE)))
    body["table-changes"].append({"identifier": {"namespace": ["trusted"], "name": "hidden"}, **appending(hidden)})
    before = events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id")
    assert error_of(events.api("Tom").post("/iceberg/v1/transactions/commit", body)) == (404, "NoSuchTableException")
    assert events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id") == before


def test_who_may_not_commit_learns_what_is_missing_and_leaves_no_file(events: Lake) -> None:
    tess, ana = events.engine("Tess"), events.api("Ana")
    table = tess.create_table("trusted.facts", ROWS.schema)
    answer = ana.post(table_path("facts", "trusted"), appending(table))
    assert error_of(answer) == (403, "ForbiddenException")
    assert "Tess" in answer.json()["error"]["message"]
    folder = events.warehouse / "metadata" / events.company.id("table", "trusted.facts")
    assert len(list(folder.iterdir())) == 1


def test_revoked_between_load_and_commit(events: Lake) -> None:
    table = events.engine("Tom").load_table("raw.events")
    body = appending(table, MORE)
    events.api("Adam").change(change="revoke", to="Tom", resource="layer:raw", level="editor").raise_for_status()
    assert error_of(events.api("Tom").post(EVENTS, body)) == (404, "NoSuchTableException")


def test_the_decision_is_made_again_when_the_pointer_moves(events: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tom is let in by the first part, and has lost his right by the last."""
    body = appending(events.engine("Tom").load_table("raw.events"), MORE)
    planned = committing._plan

    def plan(*arguments: Any) -> Any:
        found = planned(*arguments)
        change = {"change": "revoke", "to": "Tom", "resource": "layer:raw", "level": "editor"}
        events.api("Adam").post("/api/access/changes", change).raise_for_status()
        return found

    monkeypatch.setattr(committing, "_plan", plan)
    assert error_of(events.api("Tom").post(EVENTS, body)) == (404, "NoSuchTableException")
    assert events.rows("SELECT MAX(version) FROM commits") == [(2,)]
    table = events.company.id("table", "raw.events")
    assert len(list((events.warehouse / "metadata" / table).iterdir())) == 2


def main_to(snapshot: int) -> dict[str, Any]:
    return {"updates": [{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot}]}


def test_expiring_and_rolling_back_need_manager(events: Lake) -> None:
    table = events.engine("Tess").load_table("raw.events")
    table.append(MORE)
    first, second = (one.snapshot_id for one in table.snapshots())
    tom, tess = events.api("Tom"), events.api("Tess")
    removing = {"updates": [{"action": "remove-snapshots", "snapshot-ids": [first]}]}
    for body in (main_to(first), removing, {"updates": [{"action": "remove-snapshot-ref", "ref-name": "main"}]}):
        answer = tom.post(EVENTS, body)
        assert error_of(answer) == (403, "ForbiddenException"), body
    assert tess.post(EVENTS, main_to(first)).status_code == 200
    assert tess.post(EVENTS, main_to(second)).status_code == 200
    assert tess.post(EVENTS, removing).status_code == 200
    assert error_of(tess.post(EVENTS, {"updates": [{"action": "remove-snapshots", "snapshot-ids": [second]}]})) == (
        400,
        "ValidationException",
    )
    operations = [row[0] for row in events.rows("SELECT operation FROM commits ORDER BY version")]
    assert operations == ["create", "append", "append", "rollback", "append", "expire"] or operations[-1] == "expire"


def replacing(table: Any) -> dict[str, Any]:
    """What Java's client sends for CREATE OR REPLACE TABLE: a new schema, and no snapshot."""
    schema = {
        "type": "struct",
        "schema-id": 1,
        "fields": [{"id": 3, "name": "other", "required": False, "type": "int"}],
    }
    return {
        "requirements": [{"type": "assert-table-uuid", "uuid": str(table.metadata.table_uuid)}],
        "updates": [
            {"action": "set-default-spec", "spec-id": 0},
            {"action": "set-default-sort-order", "sort-order-id": 0},
            {"action": "add-schema", "schema": schema, "last-column-id": 3},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "remove-snapshot-ref", "ref-name": "main"},
            {"action": "set-location", "location": table.location()},
        ],
    }


def test_an_editor_replaces_a_table_which_keeps_its_id_and_history(events: Lake) -> None:
    table = events.engine("Tom").load_table("raw.events")
    before, first = events.company.id("table", "raw.events"), table.current_snapshot().snapshot_id
    tom = events.api("Tom")
    assert tom.post(EVENTS, replacing(table)).status_code == 200
    assert events.company.id("table", "raw.events") == before
    again = events.engine("Tom").load_table("raw.events")
    assert [one.name for one in again.schema().fields] == ["other"]
    assert again.current_snapshot() is None
    assert [one.snapshot_id for one in again.snapshots()] == [first]
    assert error_of(tom.post(EVENTS, main_to(first))) == (403, "ForbiddenException"), "a replace opens no way back"
    assert events.rows(
        "SELECT rows, operation FROM table_pointers p JOIN commits c ON c.table_id = p.table_id AND c.version = p.version"
    ) == [(0, "replace")]


def test_old_snapshots_expire_by_themselves(database: Database, tmp_path: Any) -> None:
    with lake(database, tmp_path, keep_snapshots=3) as found:
        table = found.engine("Tess").create_table("raw.events", ROWS.schema)
        for _ in range(2):
            table.append(MORE)
        kept = table.current_snapshot().snapshot_id
        table.manage_snapshots().create_tag(kept, "kept").commit()
        for _ in range(5):
            table.append(MORE)
        snapshots = {one.snapshot_id for one in found.engine("Tess").load_table("raw.events").snapshots()}
        assert len(snapshots) == 3
        assert kept in snapshots
        assert found.engine("Tess").load_table("raw.events").scan().to_arrow().num_rows == 14


def test_the_pointer_knows_what_the_table_holds_and_the_ledger_what_was_done(events: Lake) -> None:
    table = events.engine("Tess").load_table("raw.events")
    table.append(MORE)
    table.delete("id < 3")
    [(rows, size, files, version)] = events.rows("SELECT rows, bytes, files, version FROM table_pointers")
    assert (rows, files, version) == (3, 2, 4)
    assert size > 0
    ledger = events.rows("SELECT version, operation, added_rows FROM commits ORDER BY version")
    assert ledger[:3] == [(1, "create", None), (2, "append", 3), (3, "append", 2)]
    kinds = events.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'table.committed'")
    assert kinds == [(4,)]


def test_a_commit_that_changes_nothing_moves_nothing(events: Lake) -> None:
    tom = events.api("Tom")
    uuid = tom.get(EVENTS).json()["metadata"]["table-uuid"]
    body = {
        "updates": [{"action": "assign-uuid", "uuid": uuid}, {"action": "upgrade-format-version", "format-version": 2}]
    }
    assert tom.post(EVENTS, body).status_code == 200
    assert events.rows("SELECT MAX(version) FROM commits") == [(2,)]
    ana = events.api("Ana")
    assert error_of(ana.post(EVENTS, body)) == (404, "NoSuchTableException")


def test_a_requirement_that_does_not_hold_is_a_conflict(events: Lake) -> None:
    tom = events.api("Tom")
    for requirement in (
        {"type": "assert-create"},
        {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
        {"type": "assert-ref-snapshot-id", "ref": "other", "snapshot-id": 1},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 77},
        {"type": "assert-current-schema-id", "current-schema-id": 9},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1},
        {"type": "assert-default-spec-id", "default-spec-id": 4},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 4},
    ):
        answer = tom.post(EVENTS, {"requirements": [requirement], "updates": []})
        assert answer.status_code == 409, requirement
    unknown = tom.post(EVENTS, {"requirements": [{"type": "assert-something"}], "updates": []})
    assert error_of(unknown) == (400, "BadRequestException")


def test_a_commit_that_keeps_losing_backs_off_and_gives_up_at_a_deadline(
    events: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(backoff, "time", clock)
    monkeypatch.setattr(random, "random", lambda: 1.0)
    monkeypatch.setattr(pointers, "swap", lambda *_: False)
    body = {"updates": [{"action": "set-properties", "updates": {"comment": "x"}}]}
    answer = events.api("Tom").post(EVENTS, body)
    assert error_of(answer) == (409, "CommitFailedException")
    assert "raw.events" in answer.json()["error"]["message"]
    assert clock.pauses[:6] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5]
    assert set(clock.pauses[5:]) == {0.5}
    assert committing.RETRY_SECONDS - 0.5 <= sum(clock.pauses) <= committing.RETRY_SECONDS
    table = events.company.id("table", "raw.events")
    assert len(list((events.warehouse / "metadata" / table).iterdir())) == 2


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return sum(self.pauses)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def test_eight_writers_of_one_table_all_commit(events: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requirements hold on whatever the others leave, so none of them has to hear of a conflict."""
    monkeypatch.setattr(committing, "RETRY_SECONDS", 300.0)
    tess = events.api("Tess")

    def write(writer: int) -> list[int]:
        changes = [{f"custom.n{writer}": str(number)} for number in range(4)]
        bodies = [{"updates": [{"action": "set-properties", "updates": change}]} for change in changes]
        return [tess.post(EVENTS, body).status_code for body in bodies]

    answers = together(*(lambda writer=writer: write(writer) for writer in range(8)))
    assert answers == [[200] * 4] * 8
    found = tess.get(EVENTS).json()["metadata"]["properties"]
    assert {f"custom.n{writer}": "3" for writer in range(8)}.items() <= found.items()


def test_commits_do_not_stop_loads(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many commits as there are threads for them wait for a slow disk; loads go on."""
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with lake(database, tmp_path) as found:
        found.engine("Tess").create_table("raw.events", ROWS.schema)
        release, planned = threading.Event(), committing._plan

        def slow(*arguments: Any) -> Any:
            release.wait(60)
            return planned(*arguments)

        monkeypatch.setattr(committing, "_plan", slow)
        tokens = [found.company.token("Tess")] * 12
        body = {"updates": [{"action": "set-properties", "updates": {"comment": "x"}}]}
        threads = [threading.Thread(target=Api(found.company.client, one).post, args=(EVENTS, body)) for one in tokens]
        for thread in threads:
            thread.start()
        try:
            assert found.api("Tess").get(EVENTS).status_code == 200
        finally:
            release.set()
            for thread in threads:
                thread.join()


def _about_to_commit(lake: Lake) -> tuple[dict[str, Any], Path, set[Path]]:
    """A commit of more rows to a new table, the folder of its metadata, and the files in that."""
    lake.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    folder = lake.warehouse / "metadata" / lake.company.id("table", "raw.events")
    return appending(lake.engine("Tess").load_table("raw.events"), MORE), folder, set(folder.iterdir())


@pytest.mark.parametrize("part", ["the warehouse", "the database"])
def test_a_full_disk_is_a_certain_no_and_leaves_nothing(
    served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """A 5xx would leave an engine in doubt, and what it wrote in place."""
    lake, (body, folder, before) = served_on_sqlite, _about_to_commit(served_on_sqlite)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pointers if part == "the database" else metadata_files, PARTS[part], full)
        answer = lake.api("Tess").post(EVENTS, body)
    assert (error_of(answer), answer.json()["error"]["message"]) == ((400, "BadRequestException"), DiskFull.title)
    assert set(folder.iterdir()) == before
    assert lake.api("Tess").post(EVENTS, body).status_code == 200


def test_a_creation_for_which_there_is_no_room_leaves_nothing(
    served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, folder = served_on_sqlite, served_on_sqlite.warehouse / "metadata"

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    lake.engine("Tess").create_table("raw.first", ROWS.schema)
    before = {path for path in folder.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(pointers, "enter", full)
        with pytest.raises(BadRequestError, match="full"):
            lake.engine("Tess").create_table("raw.second", ROWS.schema)
    assert {path for path in folder.rglob("*") if path.is_file()} == before
    lake.engine("Tess").create_table("raw.second", ROWS.schema)


def test_a_log_without_room_for_its_index_leaves_a_commit_in_doubt(
    served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has written it by then: should all processes die now, it would come back, and need its files."""
    lake, (body, folder, before) = served_on_sqlite, _about_to_commit(served_on_sqlite)

    def full(*_: Any, **__: Any) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
        raise error

    monkeypatch.setattr(pointers, "enter", full)
    answer = lake.api("Tess").post(EVENTS, body)
    assert error_of(answer) == (500, "CommitStateUnknownException")
    assert "Retry-After" not in answer.headers, "the same commit must not be sent once more"
    assert set(folder.iterdir()) > before
