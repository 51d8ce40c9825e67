"""What a notebook staged becomes rows of the run's own tables, in each way of writing and of changing columns."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.contracts.pipelines.definitions import NotebookOutput
from headgate.contracts.pipelines.steps import RunNotebook, SaveStaged
from headgate.execution.notebooks.staging import Staging
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.steps import save_staged
from headgate.execution.steps.context import Result, StepFailed
from tests.support.steps import Running, Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
LONG, TEXT = "long", "string"


@pytest.fixture(scope="module")
def shop(shared_shop: Workshop) -> Workshop:
    return shared_shop


def stage(shop: Workshop, running: Running, name: str, /, *saves: bytes | pa.Table, **columns: str) -> None:
    """Stage as a notebook does: Parquet files, and the columns that it says they have."""
    staging = Staging.begin(running.context)
    fields = [{"name": one, "type": kind, "nullable": True, "metadata": {}} for one, kind in columns.items()]
    for number, content in enumerate(saves):
        folder = staging.saved / "tables" / "0" / str(number)
        folder.mkdir(parents=True)
        if isinstance(content, bytes):
            (folder / "part-0.parquet").write_bytes(content)
        else:
            pq.write_table(content, folder / "part-0.parquet")
        folder.with_name(f"{number}.schema.json").write_text(json.dumps({"type": "struct", "fields": fields}))
    step = RunNotebook((), (), (shop.item(name),), (), (), (), (), (), {})
    staging.accept(step, running.context)


def save(shop: Workshop, running: Running, name: str, **output: Any) -> Result:
    step = SaveStaged(NotebookOutput(table=name, **output), shop.item(name))
    return save_staged.run(step, running.context)


def rows(shop: Workshop, name: str, running: Running | None = None) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in shop.rows(f"SELECT * FROM {name} ORDER BY 1", running)]


def table(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def test_a_new_table_is_written_and_published(shop: Workshop) -> None:
    name = "raw.fresh"
    running = shop.run(name)
    stage(shop, running, name, table(id=[1, 2], name=["a", "b"]), table(id=[3], name=["c"]), id=LONG, name=TEXT)
    found = save(shop, running, name)
    assert (found.rows_out, found.bytes > 0) == (3, True)
    assert rows(shop, name, running) == [(1, "a"), (2, "b"), (3, "c")]
    with pytest.raises(SqlFailed):
        rows(shop, name)
    running.publish()
    assert rows(shop, name) == [(1, "a"), (2, "b"), (3, "c")]


def test_overwrite_append_and_merge(shop: Workshop) -> None:
    name = "raw.ways"
    running = shop.run(name)
    stage(shop, running, name, table(id=[1, 2], name=["a", "b"]), id=LONG, name=TEXT)
    save(shop, running, name)
    stage(shop, running, name, table(id=[2, 3], name=["B", "c"]), id=LONG, name=TEXT)
    assert save(shop, running, name, write="append").rows_out == 2
    assert sorted(rows(shop, name, running)) == [(1, "a"), (2, "B"), (2, "b"), (3, "c")]
    assert save(shop, running, name, write="overwrite").rows_out == 2
    assert rows(shop, name, running) == [(2, "B"), (3, "c")]
    stage(shop, running, name, table(id=[3, 4], name=["C", "d"]), id=LONG, name=TEXT)
    assert save(shop, running, name, write="merge", keys=("id",)).rows_out == 2
    assert rows(shop, name, running) == [(2, "B"), (3, "C"), (4, "d")]

    stage(shop, running, name, table(id=[9, 9], name=["x", "y"]), id=LONG, name=TEXT)
    with pytest.raises(StepFailed, match="have the same id") as failed:
        save(shop, running, name, write="merge", keys=("id",))
    assert failed.value.code == "KEYS"
    with pytest.raises(StepFailed, match="Unknown column number in keys"):
        save(shop, running, name, write="merge", keys=("number",))
    assert rows(shop, name, running) == [(2, "B"), (3, "C"), (4, "d")]


def test_columns_change_as_the_definition_says(shop: Workshop) -> None:
    name = "raw.columns"
    running = shop.run(name)
    stage(shop, running, name, pa.table({"id": pa.array([1], pa.int32())}), id="integer")
    save(shop, running, name)
    stage(shop, running, name, table(id=[1 << 40], note=["new"]), id=LONG, note=TEXT)
    with pytest.raises(StepFailed, match=r"note \(STRING\) is new") as failed:
        save(shop, running, name, write="append", schema_changes="strict")
    assert failed.value.code == "SCHEMA"
    save(shop, running, name, write="append", schema_changes="merge")
    assert rows(shop, name, running) == [(1, None), (1 << 40, "new")]
    stage(shop, running, name, table(id=["text"]), id=TEXT)
    with pytest.raises(StepFailed, match="id is STRING, and the table has BIGINT"):
        save(shop, running, name, write="append", schema_changes="merge")
    save(shop, running, name, schema_changes="overwrite")
    assert rows(shop, name, running) == [("text",)]


def test_what_was_not_saved_stays_and_what_is_lost_is_told(shop: Workshop) -> None:
    name = "raw.stays"
    running = shop.run(name)
    shutil.rmtree(Staging.begin(running.context).folder.parent)
    with pytest.raises(StepFailed) as failed:
        save(shop, running, name)
    assert (failed.value.code, failed.value.passing) == ("STAGED_LOST", True)
    stage(shop, running, name)
    assert save(shop, running, name) == Result()
    assert "saved no rows for raw.stays" in running.text


def test_a_step_that_is_done_again_from_where_it_began_does_the_same(shop: Workshop) -> None:
    name = "raw.again"
    first = shop.run(name)
    stage(shop, first, name, table(id=[1]), id=LONG)
    save(shop, first, name, write="append")
    second = shop.run(name)
    assert save(shop, second, name, write="append").rows_out == 1, "by another worker, from the same staging folder"
    assert rows(shop, name, second) == [(1,)]


def test_hostile_parquet_is_no_more_than_rows(shop: Workshop, tmp_path: Path) -> None:
    name = "raw.hostile"
    running = shop.run(name)
    evil = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": {"type": "udt", "class": "org.evil.Type", "sqlType": "long"}, "nullable": True, "metadata": {}}
        ],
    }  # fmt: skip
    told = table(id=[1]).replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": json.dumps(evil)})
    stage(shop, running, name, told, id=LONG)
    save(shop, running, name)
    assert rows(shop, name, running) == [(1,)]

    stage(shop, running, name, table(other=["x"]), id=LONG)
    save(shop, running, name)
    assert rows(shop, name, running) == [(None,)], "a column that a file does not have is missing"
    good = tmp_path / "good.parquet"
    pq.write_table(table(id=list(range(1000))), good)
    content = good.read_bytes()
    for broken in (
        b"no parquet at all",
        b"PAR1" + b"\xff" * 64 + b"PAR1",
        content[: len(content) // 2],
        b"PAR1" + bytes(100) + content[-200:],
        table_bytes(tmp_path, id=["text"]),
    ):
        stage(shop, running, name, broken, id=LONG)
        with pytest.raises((StepFailed, SqlFailed)) as failed:
            save(shop, running, name)
        error: Any = failed.value
        assert error.code == "STAGED_BROKEN", error
        assert "file:" not in error.message
        assert str(shop.company.settings.data_dir) not in error.message
    assert rows(shop, name, running) == [(None,)]


def table_bytes(folder: Path, **columns: list[Any]) -> bytes:
    file = folder / "other.parquet"
    pq.write_table(table(**columns), file)
    return file.read_bytes()
