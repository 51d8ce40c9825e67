"""Orphans are removed when they are old enough, and nothing is that anyone could still name."""

import hashlib
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import IdentityTransform
from sqlalchemy import text

from headgate.contracts.pipelines.definitions import History
from headgate.contracts.pipelines.steps import KeepHistory, LakeItem, to_json
from headgate.kit.clock import now
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.reachable_files import ReachableFiles
from headgate.lakehouse.maintenance.orphan_files import Orphans
from headgate.lakehouse.sql.models import statement_table
from headgate.pipelines.runs import checkpoints
from headgate.pipelines.runs.steps import _pointers, begin_steps
from headgate.warehouse.locations import metadata_root
from tests.lakehouse.catalog.support import MORE, ROWS, Lake, appending, table_path
from tests.lakehouse.catalog.test_runs import Run
from tests.lakehouse.maintenance.support import count, files, later, maintain, make, services

EVENTS = table_path("events")


@pytest.fixture
def events(served_on_sqlite: Lake) -> Lake:
    make(served_on_sqlite)
    return served_on_sqlite


def refused(lake: Lake) -> set[str]:
    """The files of a commit that was refused, since the table had moved."""
    before = files(lake)
    body = appending(lake.engine("Tess").load_table("raw.events"), MORE)
    written = files(lake) - before
    lake.engine("Tess").load_table("raw.events").append(MORE)
    assert lake.api("Tess").post(EVENTS, body).status_code == 409
    assert len(written) == 3, "a data file, a manifest and a manifest list"
    return written


def test_the_files_of_a_refused_commit_go_when_they_are_old_and_not_before(served: Lake) -> None:
    make(served)
    left = refused(served)
    kept = files(served) - left
    young = maintain(served, days=2.9)
    assert (young.outcome, young.files) == ("done", 0)
    assert left <= files(served)
    would = maintain(served, days=3.1, dry_run=True)
    assert left <= files(served)
    found = maintain(served, days=3.1)
    assert (found.files, found.bytes) == (would.files, would.bytes) == (3, found.bytes)
    assert found.bytes > 0
    assert files(served) == kept
    assert count(served) == 5
    [(actor, after)] = served.rows("SELECT actor_id, after FROM audit_events WHERE event = 'maintenance.removes'")
    after = json.loads(after) if isinstance(after, str) else after
    assert (actor, after["files"]) == ("system", 3)
    assert maintain(served, days=4).files == 0


def test_in_a_bucket_too(on_bucket: Lake) -> None:
    make(on_bucket)
    left = refused(on_bucket)
    kept = files(on_bucket) - left
    assert maintain(on_bucket, days=2.9).files == 0
    assert maintain(on_bucket, days=3.1).files == 3
    assert files(on_bucket) == kept
    assert count(on_bucket) == 5


def test_what_a_live_run_has_is_kept(events: Lake) -> None:
    run = Run(events, "raw.events")
    assert run.append("events").status_code == 200
    assert run.append("events").status_code == 200
    before = files(events)
    assert maintain(events).files == 0
    assert files(events) == before
    assert run.count("events") == 7
    run.publish()
    assert maintain(events).files == 0, "all that the run wrote is the table's now"
    assert count(events) == 7


def kept_by_a_step(lake: Lake, run: Run) -> None:
    """The run has finished a step, was lost, and waits: its pointers are in the step alone."""

    def work(connection: Any) -> None:
        row = {"id": run.id, "fence": run.fence}
        pointers = json.dumps(_pointers(connection, row))  # type: ignore[arg-type]
        values = {"run": run.id, "pointers": pointers}
        connection.execute(
            text(
                "INSERT INTO run_steps (run_id, number, kind, title, state, pointers) "
                "VALUES (:run, 0, 'history', 't', 'succeeded', :pointers)"
            ),
            values,
        )
        connection.execute(text("DELETE FROM run_pointers"))

    lake.company.database.write(work)
    run.set("queued", run.fence)


def test_what_a_finished_step_left_is_kept_while_its_run_goes_on_or_can_be_resumed(events: Lake) -> None:
    published = files(events)
    run = Run(events, "raw.events")
    assert run.append("events").status_code == 200
    kept_by_a_step(events, run)
    written = files(events) - published
    assert written
    for state in ("queued", "failed"):
        run.set(state, run.fence)
        assert maintain(events).files == 0, state
        assert written <= files(events)
    ended = "UPDATE runs SET ended_at = :at"
    events.company.database.write(lambda c: c.execute(text(ended), {"at": now().replace(tzinfo=None)}))
    assert events.company.database.write(lambda c: checkpoints.forget_before(c, now() - timedelta(days=1))) == 0
    assert events.company.database.write(lambda c: checkpoints.forget_before(c, later(1))) == 1
    assert maintain(events).files == len(written)
    assert not written & files(events)
    item = LakeItem(events.company.id("table", "raw.events"), "raw", "events")
    history = History(kind="history", table="raw.orders", output="raw.events", keys=["id"])
    steps: list[Any] = [KeepHistory(history, item, item)]
    row: Any = {"id": run.id, "fence": 9, "plan": to_json(steps)}
    assert events.company.database.write(lambda c: begin_steps(c, row, steps)) == 0, "it begins anew"
    assert count(events) == 3


def test_nothing_younger_than_the_oldest_live_run_goes(events: Lake) -> None:
    left = refused(events)
    run = Run(events, new=False)
    begun = "UPDATE runs SET started_at = :at WHERE id = :run"
    at = (now() - timedelta(hours=1)).replace(tzinfo=None)
    events.company.database.write(lambda c: c.execute(text(begun), {"at": at, "run": run.id}))
    assert maintain(events, days=30).files == 0
    run.set("failed", 1)
    assert maintain(events, days=30).files == len(left)


def test_nor_than_the_oldest_statement_that_runs(events: Lake) -> None:
    left = refused(events)
    begun = now() - timedelta(hours=1)
    row: dict[str, Any] = {
        "id": new_id("statement"),
        "member_id": events.company.id("member", "Tess"),
        "purpose": "statement",
    }
    row |= {
        "sql": "INSERT …",
        "state": "running",
        "fence": 1,
        "max_rows": 1,
        "queued_at": begun,
        "started_at": begun,
    }
    events.company.database.write(lambda c: c.execute(statement_table.insert().values(row)))
    assert maintain(events, days=30).files == 0
    ended = statement_table.update().values(state="failed")
    events.company.database.write(lambda c: c.execute(ended))
    assert maintain(events, days=30).files == len(left)


def test_an_output_of_a_live_run_is_left_alone(events: Lake) -> None:
    refused(events)
    before = files(events)
    run, table = Run(events, new=False), events.company.id("table", "raw.events")
    held = {"run": run.id, "item": table}
    events.company.database.write(
        lambda c: c.execute(text("INSERT INTO run_outputs (run_id, item_id) VALUES (:run, :item)"), held)
    )
    found = maintain(events)
    assert (found.outcome, found.note, found.files) == ("skipped", "a run is writing it", 0)
    assert files(events) == before


def test_a_table_that_is_about_to_be_created_is_left_alone(served_on_sqlite: Lake) -> None:
    change = served_on_sqlite.engine("Tess").create_table_transaction("service.revenue", ROWS.schema)
    change.append(ROWS)
    before = files(served_on_sqlite, "service.revenue")
    assert before
    assert maintain(served_on_sqlite, "service.revenue").outcome == "skipped"
    assert files(served_on_sqlite, "service.revenue") == before
    change.commit_transaction()
    assert count(served_on_sqlite, "service.revenue") == 3


def test_what_a_run_wrote_for_a_table_that_never_came_to_be_goes(served_on_sqlite: Lake) -> None:
    """A declared table has a row and no pointer; a run began to fill it, and failed."""
    lake = served_on_sqlite
    table = lake.company.id("table", "service.revenue")
    folder = lake.warehouse / "tables" / table / "data"
    folder.mkdir(parents=True)
    (folder / "a.parquet").write_bytes(b"left behind")
    assert maintain(lake, "service.revenue", days=2).files == 0
    assert maintain(lake, "service.revenue").files == 1


def test_a_commit_between_listing_and_removing_loses_nothing(events: Lake) -> None:
    """What a writer wrote long ago is committed after the orphans were found, and before they are removed."""
    found = services(events)
    body = appending(events.engine("Tess").load_table("raw.events"), MORE)
    orphans = Orphans(found.database, found.store, checkpoints, events.company.id("table", "raw.events"), later(1))
    listed = orphans.of(orphans.listed())
    assert len(listed) == 3
    assert events.api("Tess").post(EVENTS, body).status_code == 200
    assert orphans.remove(listed) == []
    assert count(events) == 5


def test_statistics_are_kept_while_the_table_names_them(events: Lake) -> None:
    table = events.engine("Tess").load_table("raw.events")
    snapshot = table.metadata.snapshots[-1].snapshot_id
    file = Path(table.location().removeprefix("file://")) / "metadata" / "some.stats"
    file.write_bytes(b"statistics")
    about = {"snapshot-id": snapshot, "statistics-path": f"file://{file}", "file-size-in-bytes": 10}
    about |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    update = {"action": "set-statistics", "snapshot-id": snapshot, "statistics": about}
    assert events.api("Tess").post(EVENTS, {"requirements": [], "updates": [update]}).status_code == 200
    assert maintain(events).files == 0
    update = {"action": "remove-statistics", "snapshot-id": snapshot}
    assert events.api("Tess").post(EVENTS, {"requirements": [], "updates": [update]}).status_code == 200
    assert maintain(events).files == 1
    assert not file.exists()


def test_files_that_hadoop_keeps_beside_others_stay_with_them(events: Lake) -> None:
    data = next(one for one in files(events) if one.endswith(".parquet"))
    path = events.warehouse / data
    beside, alone = path.with_name(f".{path.name}.crc"), path.with_name(".other.parquet.crc")
    for one in (beside, alone):
        one.write_bytes(b"sum")
    assert maintain(events).files == 1
    assert (beside.exists(), alone.exists()) == (True, False)


# What a table could say of others


def forge(lake: Lake, change: Any) -> None:
    """Put other metadata in place of the table's, as nobody can who does not own the disk and the database."""
    table = lake.company.id("table", "raw.events")
    [(name,)] = lake.rows(f"SELECT metadata_file FROM table_pointers WHERE table_id = '{table}'")
    file = lake.warehouse / metadata_root(table) / name
    found = json.loads(file.read_bytes())
    change(found)
    content = json.dumps(found).encode()
    file.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    move = text("UPDATE table_pointers SET metadata_sha256 = :sum WHERE table_id = :id")
    lake.company.database.write(lambda c: c.execute(move, {"sum": sha256, "id": table}))


def _names_anothers_list(lake: Lake, found: dict[str, Any]) -> None:
    other = lake.engine("Tess").load_table("raw.other").metadata.snapshots[-1]
    found["snapshots"][-1]["manifest-list"] = other.manifest_list


def _copies_anothers_list(lake: Lake, found: dict[str, Any]) -> None:
    """A list in its own folder, which names manifests of another."""
    other = lake.engine("Tess").load_table("raw.other").metadata.snapshots[-1].manifest_list
    own = Path(found["snapshots"][-1]["manifest-list"].removeprefix("file://"))
    own.write_bytes(Path(other.removeprefix("file://")).read_bytes())


def _logs_anothers_metadata(lake: Lake, found: dict[str, Any]) -> None:
    location = lake.engine("Tess").load_table("raw.other").metadata_location
    found["metadata-log"] = [{"metadata-file": location, "timestamp-ms": found["last-updated-ms"]}]


def _climbs(lake: Lake, found: dict[str, Any]) -> None:
    place = found["snapshots"][-1]["manifest-list"]
    other = lake.company.id("table", "raw.other")
    found["snapshots"][-1]["manifest-list"] = f"{found['location']}/../{other}/{place.rpartition('/')[2]}"


@pytest.mark.parametrize("lie", [_names_anothers_list, _copies_anothers_list, _logs_anothers_metadata, _climbs])
def test_metadata_that_names_anothers_files_removes_nothing(events: Lake, lie: Any) -> None:
    make(events, "raw.other")
    refused(events)
    others, own = files(events, "raw.other"), files(events)
    forge(events, lambda found: lie(events, found))
    found = maintain(events, keep_snapshots=1, snapshot_days=0)
    assert found.outcome == "failed"
    assert found.note
    assert files(events, "raw.other") == others
    assert own <= files(events), "nor of its own: what it needs cannot be told"
    assert count(events, "raw.other") == 3


def test_links_lead_nowhere(events: Lake) -> None:
    make(events, "raw.other")
    folder = events.warehouse / "tables" / events.company.id("table", "raw.events")
    others = files(events, "raw.other")
    target = events.warehouse / next(one for one in others if one.endswith(".parquet"))
    (folder / "link.parquet").symlink_to(target)
    (folder / "folder").symlink_to(target.parent)
    os.utime(folder / "link.parquet", follow_symlinks=False)
    assert maintain(events, days=30).outcome == "done"
    assert files(events, "raw.other") == others


def test_names_of_folders_that_engines_chose_are_compared_as_they_are_read(events: Lake) -> None:
    """A partition whose value has odd characters lies in a folder whose name is encoded."""
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": pa.array(["a b", "ü/%", "c=d"])})
    table = events.engine("Tess").create_table("raw.parted", rows.schema)
    with table.update_spec() as change:
        change.add_field("name", IdentityTransform())
    table.append(rows)
    assert maintain(events, "raw.parted").files == 0
    assert count(events, "raw.parted") == 3


def test_two_spellings_of_a_name_count_as_one(events: Lake) -> None:
    """Whatever an engine takes the encoded name for, the file that it reads stays."""
    table, store = events.company.id("table", "raw.events"), services(events).store
    found = ReachableFiles(store, table)
    found._keep(f"tables/{table}/data/name=a%20b/1.parquet")
    for spelling in ("a%20b", "a b", "a%2520b"):
        assert f"tables/{table}/data/name={spelling}/1.parquet" in found, spelling
    assert f"tables/{table}/data/name=ab/1.parquet" not in found


def test_a_table_whose_files_cannot_be_read_loses_none(events: Lake) -> None:
    refused(events)
    lists = [one for one in files(events) if "/snap-" in one]
    (events.warehouse / sorted(lists)[0]).write_bytes(b"not a list")
    for one in lists:
        (events.warehouse / one).write_bytes(b"not a list")
    before = files(events)
    found = maintain(events)
    assert (found.outcome, found.files) == ("failed", 0)
    assert files(events) == before
