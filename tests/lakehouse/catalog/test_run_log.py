"""The log of a table that runs write: the states that it was in for everyone, and none that a run passed on its way."""

from tests.lakehouse.catalog.support import MORE, ROWS, Lake
from tests.lakehouse.catalog.test_runs import Run


def states(found: Lake) -> list[int]:
    """How many rows the table had in each state that its log tells of."""
    table = found.engine("Tess").load_table("raw.events")
    return [table.scan(snapshot_id=entry.snapshot_id).to_arrow().num_rows for entry in table.metadata.snapshot_log]


def test_what_a_run_passes_on_its_way_is_no_state_of_the_table(served_on_sqlite: Lake) -> None:
    tess = served_on_sqlite.engine("Tess")
    tess.create_table("raw.events", ROWS.schema).append(ROWS)
    tess.load_table("raw.events").append(MORE)
    run = Run(served_on_sqlite, "raw.events")
    for _ in range(3):
        assert run.append("events").status_code == 200
    run.publish()
    assert states(served_on_sqlite) == [3, 5, 11]
    table = tess.load_table("raw.events")
    assert len(table.metadata.snapshots) == 5
    tess.load_table("raw.events").append(MORE)
    assert states(served_on_sqlite) == [3, 5, 11, 13]
    again = Run(served_on_sqlite, "raw.events", fence=2)
    assert again.append("events").status_code == 200
    again.publish()
    assert states(served_on_sqlite) == [3, 5, 11, 13, 15]


def test_a_table_that_a_run_makes_begins_as_it_is_published(served_on_sqlite: Lake) -> None:
    run = Run(served_on_sqlite)
    engine = served_on_sqlite.engine_by(run.worker.secret)
    engine.create_table("raw.fresh", ROWS.schema)
    for _ in range(2):
        assert run.append("fresh").status_code == 200
    run.publish()
    table = served_on_sqlite.engine("Tess").load_table("raw.fresh")
    assert [entry.snapshot_id for entry in table.metadata.snapshot_log] == [table.metadata.current_snapshot_id]


def test_of_a_table_without_a_snapshot_nothing_is_forgotten(served_on_sqlite: Lake) -> None:
    served_on_sqlite.engine("Tess").create_table("raw.events", ROWS.schema)
    run = Run(served_on_sqlite, "raw.events")
    for _ in range(2):
        assert run.append("events").status_code == 200
    run.publish()
    assert states(served_on_sqlite)[-1] == 4
