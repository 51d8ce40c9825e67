"""What a notebook left is looked through as if it were an attack: only what save and save_file make is taken."""

import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.contracts.pipelines.staged import Manifest
from headgate.contracts.pipelines.steps import LakeItem, RunNotebook
from headgate.execution.notebooks.schemas import BadSchema, checked
from headgate.execution.notebooks.staging import Staging
from headgate.execution.steps.context import Context, RunJob, StepFailed
from headgate.kit.ids import new_id
from headgate.settings.settings import Settings

FACTS, VOLUME = LakeItem("tbl_1", "trusted", "facts"), LakeItem("vol_1", "raw", "results")
STEP = RunNotebook((), (), (FACTS,), (), (VOLUME,), (), (), (), {})
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": False, "metadata": {"a": 1}}]}


def context(folder: Path, fence: int = 1, **settings: Any) -> Context:
    job = RunJob(
        id="run_1", fence=fence, token="t", steps=[], done=0, moment=datetime.now(UTC), time_zone="UTC", seconds=9,
        full_refresh=False, states={}, endpoints={},
    )  # fmt: skip
    return Context(
        job,
        Settings(data_dir=folder, **settings),
        folder / "run",
        open_member=lambda: None,  # type: ignore[arg-type,return-value]
        platform=None,
        tell=lambda *_: None,
        note=lambda _: None,
    )


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    """A staging folder in which a table was saved once."""
    found = Staging.begin(context(tmp_path))
    save(found, 1, b"rows")
    return found


def save(staging: Staging, number: int, content: bytes, schema: Any = SCHEMA, table: str = "0") -> Path:
    folder = staging.saved / "tables" / table / str(number)
    folder.mkdir(parents=True)
    (folder / "part-0.snappy.parquet").write_bytes(content)
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").touch()
    folder.with_name(f"{number}.schema.json").write_text(json.dumps(schema))
    return folder


def index(staging: Staging, *lines: Any) -> Path:
    folder = staging.saved / "files"
    folder.mkdir(exist_ok=True)
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    (folder / "index.jsonl").write_text(text)
    return folder


@pytest.mark.processes
def test_what_was_saved_is_taken_and_nothing_else_is_left(staging: Staging, tmp_path: Path) -> None:
    save(staging, 2, b"more")
    folder = index(
        staging, {"volume": "0", "path": "a/b.txt", "file": "3"}, {"volume": "0", "path": "A/b.txt", "file": "4"}
    )
    (folder / "3").write_bytes(b"old")
    (folder / "4").write_bytes(b"new")
    found = staging.accept(STEP, context(tmp_path))
    [table] = found.tables.values()
    assert [(staging.folder / name).read_bytes() for name in table.files] == [b"rows", b"more"]
    assert table.bytes == 8
    assert table.schema["fields"] == [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    [file] = found.files
    assert (file.path, file.size, (staging.folder / file.file).read_bytes()) == ("A/b.txt", 3, b"new")
    assert not staging.saved.exists()
    newest = Staging.newest(context(tmp_path, fence=4))
    assert newest is not None
    assert newest[1] == found
    assert Manifest.read((staging.folder / "manifest.json").read_text()) == found


@pytest.mark.processes
def test_the_newest_fence_that_ended_well_counts_and_none_that_is_yet_to_come(tmp_path: Path) -> None:
    assert Staging.newest(context(tmp_path)) is None
    for fence in (1, 2, 4):
        one = Staging.begin(context(tmp_path, fence=fence))
        if fence != 2:
            save(one, 1, str(fence).encode())
            one.accept(STEP, context(tmp_path, fence=fence))
    found = Staging.newest(context(tmp_path, fence=3))
    assert found is not None
    assert found[0].folder.name == "1"
    Staging.begin(context(tmp_path, fence=1))
    assert Staging.newest(context(tmp_path, fence=3)) is None, "a step that is begun again forgets what it did"


def test_in_a_bucket_it_is_kept_on_the_worker(tmp_path: Path) -> None:
    bucket = {"url": "s3://bucket/x", "s3_access_key_id": "a", "s3_secret_access_key": "b"}
    assert Staging.begin(context(tmp_path, warehouse=bucket)).folder.is_relative_to(tmp_path / "run")


def _link(folder: Path) -> None:
    (folder / "part-1.parquet").symlink_to("/etc/passwd")


def _linked_folder(folder: Path) -> None:
    (folder.parent / "9").symlink_to("/etc")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "part-1.parquet")


def _socket(folder: Path) -> None:
    # Its path would be too long for a socket's.
    here = Path.cwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("part-1.parquet")
    finally:
        os.chdir(here)


def _folder(folder: Path) -> None:
    (folder / "part-1.parquet").mkdir()


def _other(folder: Path) -> None:
    (folder / "evil.sh").touch()


def _no_schema(folder: Path) -> None:
    folder.with_name("1.schema.json").unlink()


def _linked_schema(folder: Path) -> None:
    folder.with_name("1.schema.json").unlink()
    folder.with_name("1.schema.json").symlink_to("/etc/passwd")


def _deep_schema(folder: Path) -> None:
    folder.with_name("1.schema.json").write_text("[" * 100_000)


@pytest.mark.parametrize("plant", [_link, _pipe, _socket, _folder, _other, _no_schema, _linked_schema, _deep_schema])
def test_what_no_save_makes_is_refused(staging: Staging, tmp_path: Path, plant: Callable[[Path], None]) -> None:
    plant(staging.saved / "tables" / "0" / "1")
    with pytest.raises(StepFailed) as failed:
        staging.accept(STEP, context(tmp_path))
    assert failed.value.code == "SAVED_STRANGELY"
    assert not (staging.folder / "manifest.json").exists()


@pytest.mark.processes
def test_links_to_folders_lead_nowhere(staging: Staging, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    save(Staging(tmp_path / "other"), 1, b"of another")
    (tmp_path / "other" / "saved").rename(outside)
    _linked_folder(staging.saved / "tables" / "0" / "1")
    (staging.saved / "files").symlink_to(outside)
    found = staging.accept(STEP, context(tmp_path))
    assert len(found.tables["tbl_1"].files) == 1
    assert found.files == []
    again = Staging.begin(context(tmp_path, fence=2))
    (again.saved / "tables").symlink_to(outside / "tables")
    assert again.accept(STEP, context(tmp_path, fence=2)).tables == {}
    assert (outside / "tables" / "0" / "1" / "part-0.snappy.parquet").read_bytes() == b"of another"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "SAVED_STRANGELY"),
        ("[1]", "SAVED_STRANGELY"),
        ({"volume": "1", "path": "a", "file": "1"}, "SAVED_STRANGELY"),
        ({"volume": "x", "path": "a", "file": "1"}, "SAVED_STRANGELY"),
        ({"volume": "0", "path": 3, "file": "1"}, "SAVED_STRANGELY"),
        ({"volume": "0", "path": "a", "file": "../../manifest.json"}, "SAVED_STRANGELY"),
        ({"volume": "0", "path": "a", "file": "2"}, "SAVED_STRANGELY"),
        ({"volume": "0", "path": "a", "file": "7"}, "SAVED_STRANGELY"),
        ({"volume": "0", "path": "../../etc/passwd", "file": "1"}, "FILE_REFUSED"),
        ({"volume": "0", "path": "/etc/passwd", "file": "1"}, "FILE_REFUSED"),
        ({"volume": "0", "path": "a\0b", "file": "1"}, "FILE_REFUSED"),
        ({"volume": "0", "path": "a", "file": "3"}, "FILE_TOO_LARGE"),
    ],
)
def test_files_for_volumes_are_what_they_say(tmp_path: Path, line: Any, code: str) -> None:
    mine = context(tmp_path, warehouse={"max_file_bytes": 10})
    staging = Staging.begin(mine)
    folder = index(staging, line)
    (folder / "1").write_bytes(b"content")
    (folder / "2").symlink_to("/etc/passwd")
    (folder / "3").write_bytes(b"more than ten bytes")
    with pytest.raises(StepFailed) as failed:
        staging.accept(STEP, mine)
    assert failed.value.code == code


def test_saves_of_one_table_are_alike(staging: Staging, tmp_path: Path) -> None:
    save(staging, 2, b"x", {"type": "struct", "fields": [{"name": "id", "type": "string"}]})
    with pytest.raises(StepFailed, match="different columns"):
        staging.accept(STEP, context(tmp_path))


def field(kind: Any, name: Any = "a") -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": kind}]}


def test_columns_are_made_anew_out_of_what_is_known() -> None:
    nested = {
        "type": "array",
        "elementType": {"type": "map", "keyType": "string", "valueType": field("decimal(10,2)"), "x": 1},
        "containsNull": False,
    }
    found = checked(field(nested))
    assert found["fields"][0]["type"] == {
        "type": "array",
        "elementType": {
            "type": "map",
            "keyType": "string",
            "valueType": {
                "type": "struct",
                "fields": [{"name": "a", "type": "decimal(10,2)", "nullable": True, "metadata": {}}],
            },
            "valueContainsNull": True,
        },
        "containsNull": True,
    }


def deep() -> Any:
    kind: Any = "long"
    for _ in range(30):
        kind = {"type": "array", "elementType": kind, "containsNull": True}
    return kind


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (None, "cannot be read"),
        ({"type": "struct", "fields": {}}, "cannot be read"),
        ({"type": "struct", "fields": []}, "no columns"),
        (field({"type": "udt", "class": "org.evil.Type", "pyClass": "os.system", "sqlType": "long"}), "'udt'"),
        (field("interval"), "'interval'"),
        (field("void"), "cast it"),
        (field("variant"), "'variant'"),
        (field("decimal(39,0)"), "decimal"),
        (field("decimal(2,5)"), "decimal"),
        (field("long", ""), "invalid name"),
        (field("long", "a\nb"), "invalid name"),
        (field("long", 3), "invalid name"),
        (field("long", "x" * 300), "invalid name"),
        ({"type": "struct", "fields": [{"name": "a", "type": "long"}, {"name": "A", "type": "long"}]}, "two columns"),
        ({"type": "struct", "fields": [{"name": f"c{n}", "type": "long"} for n in range(2001)]}, "more than 2000"),
        (field(deep()), "nested too deeply"),
    ],
)  # fmt: skip
def test_columns_that_no_table_has_are_refused(schema: Any, says: str) -> None:
    with pytest.raises(BadSchema, match=says):
        checked(schema)


@pytest.mark.processes
def test_an_id_of_a_new_file_is_one_of_a_file(staging: Staging, tmp_path: Path) -> None:
    folder = index(staging, {"volume": "0", "path": "a", "file": "3"})
    (folder / "3").write_bytes(b"x")
    [file] = staging.accept(STEP, context(tmp_path)).files
    assert file.id.partition("_")[0] == new_id("file").partition("_")[0]
