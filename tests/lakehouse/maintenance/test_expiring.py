"""Snapshots expire by age and count; what is kept can be read, and what went is removed later."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from headgate.lakehouse.catalog.commit import write_next
from headgate.lakehouse.maintenance import snapshot_expiry as expiring
from tests.lakehouse.catalog.support import MORE, ROWS, Lake
from tests.lakehouse.catalog.test_runs import Run
from tests.lakehouse.maintenance.support import count, files, maintain, make

FEW: dict[str, Any] = {"keep_snapshots": 2, "snapshot_days": 0}


@pytest.fixture
def events(served_on_sqlite: Lake) -> Lake:
    """A table whose rows were replaced twice: of each state, no file is part of the next."""
    return replaced(served_on_sqlite)


def replaced(lake: Lake) -> Lake:
    table = make(lake)
    table.overwrite(MORE)
    table.overwrite(ROWS)
    return lake


def snapshots(lake: Lake) -> list[int]:
    return [one.snapshot_id for one in lake.engine("Tess").load_table("raw.events").metadata.snapshots]


def test_kept_snapshots_can_be_read_and_the_files_of_others_go_after_a_while(served: Lake) -> None:
    events = replaced(served)
    before, all_files = snapshots(events), files(events)
    found = maintain(events, **FEW)
    left = snapshots(events)
    assert found.snapshots == len(before) - 2 > 0
    assert left == before[-2:]
    assert found.files == 0, "someone may be reading what was the table until now"
    assert all_files < files(events)
    assert maintain(events, days=5).files == 0
    found = maintain(events, days=8)
    assert found.files > 0
    assert len([one for one in files(events) if one.endswith(".parquet")]) < 3
    assert [count(events, snapshot=one) for one in left] == [0, 3] or count(events, snapshot=left[-1]) == 3
    assert count(events) == 3
    assert maintain(events, days=12).files <= 1, "at most the metadata of before"


def test_an_expiry_is_a_commit_of_the_system_and_changes_no_rows(events: Lake) -> None:
    maintain(events, **FEW)
    [(member, operation, snapshot, parent)] = events.rows(
        "SELECT member_id, operation, snapshot_id, parent_snapshot_id FROM commits ORDER BY version DESC LIMIT 1"
    )
    assert (member, operation) == (None, "expire")
    assert snapshot == parent, "so that no trigger takes it for a change"
    [(actor, action, via)] = events.rows(
        "SELECT actor_id, action, via FROM audit_events WHERE event = 'table.committed' ORDER BY id DESC LIMIT 1"
    )
    via = json.loads(via) if isinstance(via, str) else via
    assert (actor, action, via) == ("system", "delete", ["maintenance"])


def test_young_snapshots_and_the_newest_are_kept(events: Lake) -> None:
    before = snapshots(events)
    assert maintain(events, days=4, keep_snapshots=1, snapshot_days=30).snapshots == 0
    assert maintain(events, days=40, keep_snapshots=100, snapshot_days=0).snapshots == 0
    assert snapshots(events) == before
    assert maintain(events, days=40, keep_snapshots=1, snapshot_days=30).snapshots == len(before) - 1


def test_what_a_tag_names_is_kept(events: Lake) -> None:
    table = events.engine("Tess").load_table("raw.events")
    first = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().create_tag(snapshot_id=first, tag_name="first").commit()
    maintain(events, **FEW)
    maintain(events, days=8)
    assert first in snapshots(events)
    assert count(events, snapshot=first) == 3


@pytest.mark.parametrize(
    ("properties", "expired"),
    [
        ({"history.expire.min-snapshots-to-keep": "100"}, 0),
        ({"history.expire.max-snapshot-age-ms": str(100 * 86_400_000)}, 0),
        ({"gc.enabled": "false"}, 0),
        ({"custom.maintenance": "off"}, 0),
        ({"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "1"}, None),
        ({"history.expire.min-snapshots-to-keep": "-1e9"}, None),
    ],
)
def test_a_table_can_keep_more_and_never_less(
    served_on_sqlite: Lake, properties: dict[str, str], expired: int | None
) -> None:
    with replaced(served_on_sqlite).engine("Tess").load_table("raw.events").transaction() as change:
        change.set_properties(**properties)
    total = len(snapshots(served_on_sqlite))
    found = maintain(served_on_sqlite, **FEW)
    assert found.snapshots == (total - 2 if expired is None else expired)


def test_a_table_that_moves_meanwhile_is_left_for_the_next_pass(events: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    write, before = write_next, snapshots(events)

    def and_then_a_commit(*arguments: Any) -> Any:
        found = write(*arguments)
        monkeypatch.setattr(expiring, "write_next", write)
        events.engine("Tess").load_table("raw.events").append(MORE)
        return found

    monkeypatch.setattr(expiring, "write_next", and_then_a_commit)
    assert maintain(events, **FEW).snapshots == 0
    assert snapshots(events)[: len(before)] == before
    assert count(events) == 5
    assert maintain(events, days=5).snapshots > 0
    assert count(events) == 5


def test_an_expiry_that_dies_before_its_pointer_moves_leaves_the_table_as_it_was(
    events: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, named = snapshots(events), files(events)

    def die(*_: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(expiring, "_move", die)
        with pytest.raises(KeyboardInterrupt):
            maintain(events, **FEW)
    [left] = files(events) - named
    assert (snapshots(events), count(events)) == (before, 3)
    assert maintain(events, days=4).snapshots == len(before) - 2, "the next pass does it"
    maintain(events, days=8)
    assert left not in files(events)
    assert count(events) == 3


def test_a_run_that_begins_meanwhile_is_not_disturbed(events: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    write, run = write_next, Run(events, "raw.events", new=False)
    assert run.append("events").status_code == 200

    def and_then_a_run(*arguments: Any) -> Any:
        found = write(*arguments)
        held = {"run": run.id, "item": events.company.id("table", "raw.events")}
        events.company.database.write(
            lambda c: c.execute(text("INSERT INTO run_outputs (run_id, item_id) VALUES (:run, :item)"), held)
        )
        return found

    monkeypatch.setattr(expiring, "write_next", and_then_a_run)
    before = files(events)
    assert maintain(events, **FEW).snapshots == 0
    assert files(events) == before, "what was written for it is gone again"
    run.publish()
    assert count(events) == 5
