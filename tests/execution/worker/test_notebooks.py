"""What surrounds a notebook: where it may not run, its wheels, its volumes, and what it showed."""

import io
import json
import os
import stat
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.contracts.pipelines.definitions import Cell, SecretRef
from headgate.contracts.pipelines.steps import LakeItem, RunNotebook
from headgate.execution.notebooks import messages, volumes, wheels
from headgate.execution.notebooks.outputs import Outputs
from headgate.execution.notebooks.wheels import BadWheel, check, check_name
from headgate.execution.sandbox.watchdog import LimitExceeded
from headgate.execution.spark import sizes
from headgate.execution.steps import notebook
from headgate.execution.steps.context import Context, RunJob, StepFailed, VolumeFile
from headgate.settings.settings import BadSettings, Settings, load

VOLUME = LakeItem("vol_1", "raw", "landing")
GOOD = {"package/__init__.py": "x = 1", "package-1.0.dist-info/WHEEL": "Wheel-Version: 1.0"}
BUCKET = {"url": "s3://bucket/x", "s3_access_key_id": "a", "s3_secret_access_key": "b"}


class Files:
    """Volumes of a test."""

    def __init__(self, folder: Path, **files: bytes) -> None:
        folder.mkdir()
        self.folder = folder
        self.listed: list[VolumeFile] = []
        for path, content in files.items():
            self.add(path, content)

    def add(self, path: str, content: bytes) -> None:
        name = f"fil_{len(self.listed)}"
        (self.folder / name).write_bytes(content)
        self.listed.append(VolumeFile(name, path, len(content), datetime.now(UTC)))

    def files(self, volume: str) -> list[VolumeFile]:
        return self.listed

    def local(self, volume: str, file: VolumeFile, folder: Path) -> Path:
        return self.folder / file.id


def context(folder: Path, files: Files | None = None, **settings: Any) -> Context:
    job = RunJob(
        id="run_1", fence=1, token="t", steps=[], done=0, moment=datetime.now(UTC), time_zone="UTC", seconds=9,
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
        volumes=files,
    )


def step(**more: Any) -> RunNotebook:
    given: dict[str, Any] = dict.fromkeys(
        ("inputs", "outputs", "volumes", "output_volumes", "wheels", "hosts", "secrets"), ()
    )
    return RunNotebook(**{**given, "cells": (Cell(source="1"),), "parameters": {}, **more})


# Where it may not run


def test_without_a_sandbox_it_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(StepFailed, match="`headgate doctor` says what is missing") as failed:
        notebook.run(step(), context(tmp_path))
    assert failed.value.code == "NO_SANDBOX"
    assert "notebooks.mode" in failed.value.message


@pytest.mark.processes
def test_on_a_bucket_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="require a warehouse in a folder") as failed:
        notebook.run(step(), context(tmp_path, warehouse=BUCKET))
    assert failed.value.code == "NO_NOTEBOOKS_ON_A_BUCKET"


@pytest.mark.processes
def test_a_secret_that_is_gone_is_told(tmp_path: Path) -> None:
    wanted = SecretRef(name="key", connection="con_11111111111111111111", field="token")
    with pytest.raises(StepFailed, match="'key' has no 'token' any more") as failed:
        notebook.run(step(secrets=(wanted,)), context(tmp_path))
    assert failed.value.code == "NO_SECRET"
    assert not list(tmp_path.glob("warehouse/staging/*/*"))


@pytest.mark.parametrize("memory", ["1g", "2047m", "512m", "4", "x", "0g"])
def test_too_little_memory_is_no_setting(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_NOTEBOOKS__MEMORY", memory)
    with pytest.raises(BadSettings, match=r"notebooks\.memory"):
        load()


def test_memory_is_shared_by_spark_and_python() -> None:
    own = Settings(notebooks={"memory": "4g"}, spark={"memory": "2g"})
    assert sizes.notebook_bytes(own.notebooks, own.spark) == 4 << 30
    assert sizes.notebook_heap(4 << 30) == "1536m"
    assert sizes.notebook_heap(2 << 30) == "512m"
    given = Settings(spark={"memory": "2g"})
    assert sizes.notebook_bytes(given.notebooks, given.spark) == 5 << 30


@pytest.mark.parametrize("kind", sorted(messages._WORDS))
def test_each_limit_is_told_in_words_and_with_what_to_do(kind: str) -> None:
    found = messages.limit_failure(LimitExceeded(kind, 5 << 30, 4 << 30))
    assert found.code == f"NOTEBOOK_{kind.upper()}"
    assert found.message.startswith("The notebook ")
    assert "{" not in found.message
    assert found.passing == kind.startswith(("machine", "unwatched"))


# Wheels


def wheel(file: Path, entries: dict[str, str], **more: Any) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo("x")
            info.filename = info.orig_filename = name
            info.external_attr = more.get("kinds", {}).get(name, stat.S_IFREG | 0o644) << 16
            archive.writestr(info, content)
    return file


def test_a_wheel_is_taken(tmp_path: Path) -> None:
    check(wheel(tmp_path / "w", GOOD))
    for name in (
        "phonenumbers-9.0.1-py2.py3-none-any.whl",
        "numpy-2.0-1build-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl".replace(
            "cp311", wheels._OWN_PYTHON
        ).replace("x86_64", os.uname().machine),
        f"cryptography-41.0-cp37-abi3-manylinux_2_28_{os.uname().machine}.whl",
    ):
        check_name(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("package.zip", "NAME-VERSION"),
        ("package-1.0.whl", "NAME-VERSION"),
        ("../package-1.0-py3-none-any.whl", "NAME-VERSION"),
        ("pack age-1.0-py3-none-any.whl", "NAME-VERSION"),
        ("package-1.0-py3-none-any.whl\n", "NAME-VERSION"),
        ("package-1.0-py2-none-any.whl", "it is built for py2, but notebooks run on cp3"),
        ("package-1.0-cp27-cp27m-any.whl", "it is built for cp27"),
        ("package-1.0-cp399-abi3-any.whl", "it is built for cp399"),
        ("package-1.0-py3-none-win_amd64.whl", "it is built for win_amd64, but notebooks run on linux"),
        ("package-1.0-py3-none-macosx_11_0_arm64.whl", "it is built for macosx"),
    ],
)
def test_what_is_not_called_as_a_wheel_is_refused(name: str, says: str) -> None:
    with pytest.raises(BadWheel, match=says):
        check_name(name)


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "package/../../evil.py", "/etc/passwd", "package//x", "./x", "a\\..\\b", "C:evil", "a\0b", "..", "a\x1b[2J", ""],
)  # fmt: skip
def test_names_that_lead_out_of_an_archive_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadWheel, match="has an unsafe path"):
        check(wheel(tmp_path / "w", {**GOOD, name: "x"}))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_and_devices_in_an_archive_are_refused(tmp_path: Path, kind: int) -> None:
    with pytest.raises(BadWheel, match="is not a regular file"):
        check(wheel(tmp_path / "w", {**GOOD, "package/x": "/etc/passwd"}, kinds={"package/x": kind | 0o777}))


def test_what_is_no_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"not an archive")
    with pytest.raises(BadWheel, match="not a zip archive"):
        check(file)
    with pytest.raises(BadWheel, match="not a wheel"):
        check(wheel(file, {"a.py": "x"}))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(file, "a") as archive:
        archive.writestr("a.py", "y")
    with pytest.raises(BadWheel, match="the same name"):
        check(file)
    link = tmp_path / "link"
    link.symlink_to(wheel(file, GOOD))
    with pytest.raises(BadWheel, match="not a regular file"):
        check(link)
    monkeypatch.setattr(wheels, "MAX_UNPACKED", 3)
    with pytest.raises(BadWheel, match="unpacked"):
        check(file)
    monkeypatch.setattr(wheels, "MAX_BYTES", 3)
    with pytest.raises(BadWheel, match="larger than"):
        check(file)


def test_wheels_are_copied_under_their_names(tmp_path: Path) -> None:
    content = wheel(tmp_path / "w", GOOD).read_bytes()
    name = "package-1.0-py3-none-any.whl"
    files = Files(tmp_path / "store", **{f"wheels/{name}": content, "wheels/bad-1.0-py3-none-any.whl": b"x"})
    wheels.lay_out(step(wheels=((VOLUME, f"wheels/{name}"),)), context(tmp_path, files), tmp_path / "a")
    assert [one.name for one in (tmp_path / "a").iterdir()] == [name]
    assert (tmp_path / "a" / name).read_bytes() == content
    for number, (path, code) in enumerate(
        (("wheels/none.whl", "WHEEL_MISSING"), ("wheels/bad-1.0-py3-none-any.whl", "WHEEL_REFUSED"))
    ):
        with pytest.raises(StepFailed) as failed:
            wheels.lay_out(step(wheels=((VOLUME, path),)), context(tmp_path, files), tmp_path / f"b{number}")
        assert failed.value.code == code
        assert path in failed.value.message
    twice = step(wheels=((VOLUME, f"wheels/{name}"), (VOLUME, f"wheels/{name}")))
    with pytest.raises(StepFailed, match="two wheels"):
        wheels.lay_out(twice, context(tmp_path, files), tmp_path / "c")


# Volumes


def test_files_of_volumes_have_their_names(tmp_path: Path) -> None:
    files = Files(tmp_path / "store", **{"a.txt": b"a", "deep/er/b.txt": b"b"})
    assert volumes.lay_out(step(volumes=(VOLUME,)), context(tmp_path, files), tmp_path / "v") == 2
    root = tmp_path / "v" / "raw.landing"
    assert {str(one.relative_to(root)): one.read_bytes() for one in root.rglob("*") if one.is_file()} == {
        "a.txt": b"a",
        "deep/er/b.txt": b"b",
    }
    assert (root / "a.txt").samefile(tmp_path / "store" / "fil_0"), "the very file, and no copy"


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../b", "a\0", "", ".", "a//b"])
def test_paths_that_lead_elsewhere_are_refused(tmp_path: Path, path: str) -> None:
    files = Files(tmp_path / "store")
    files.add(path, b"x")
    with pytest.raises(StepFailed) as failed:
        volumes.lay_out(step(volumes=(VOLUME,)), context(tmp_path, files), tmp_path / "v")
    assert failed.value.code == "FILE_REFUSED"


def test_a_file_and_a_folder_of_one_name_are_told(tmp_path: Path) -> None:
    files = Files(tmp_path / "store", **{"a": b"x", "a/b": b"y"})
    with pytest.raises(StepFailed, match="has the same name as one of its folders"):
        volumes.lay_out(step(volumes=(VOLUME,)), context(tmp_path, files), tmp_path / "v")


def test_on_another_disk_they_are_copied_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any, **__: Any) -> None:
        raise OSError(18, "another disk")

    monkeypatch.setattr(os, "link", link)
    files = Files(tmp_path / "store", a=b"x" * 100)
    volumes.lay_out(step(volumes=(VOLUME,)), context(tmp_path, files), tmp_path / "v")
    copy = tmp_path / "v" / "raw.landing" / "a"
    assert copy.read_bytes() == b"x" * 100
    assert not copy.samefile(tmp_path / "store" / "fil_0")
    (tmp_path / "copies").rmdir()
    small = context(tmp_path, files, notebooks={"disk_bytes": 64 << 20})
    files.listed[0] = VolumeFile("fil_0", "a", 65 << 20, datetime.now(UTC))
    with pytest.raises(StepFailed, match="on another disk") as failed:
        volumes.lay_out(step(volumes=(VOLUME,)), small, tmp_path / "w")
    assert failed.value.code == "TOO_MANY_BYTES"


# What it showed


def cell(folder: Path, number: int, **more: Any) -> None:
    told = {"seconds": 1.5, "stdout": "", "stderr": "", "outputs": [], "error": None, **more}
    (folder / f"cell-{number:04}.json").write_text(json.dumps(told))


def test_outputs_are_kept_within_their_bytes_and_the_rest_is_left_out(tmp_path: Path) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(100)
    (tmp_path / "cell-0001-1.png").write_bytes(picture)
    table = {"kind": "table", "columns": ["a", 1], "rows": [["x", None], "no row", [3, "y"]], "more": False}
    cell(tmp_path, 1, stdout="hello secret-value", outputs=[table, {"kind": "image", "file": "cell-0001-1.png"}])
    cell(tmp_path, 2, stdout="x" * 5000)
    cell(tmp_path, 3, stdout="small", error={"name": "E", "message": "E: secret-value"})
    found = Outputs(tmp_path, 2000, ["secret-value", "abc"])
    assert [one.name for one in found.artifacts()] == ["notebook.json", "picture-1.png"]
    assert found.artifacts()[1].content == picture
    assert found.cells[0]["stdout"] == "hello •••"
    assert found.cells[0]["outputs"] == [
        {"kind": "table", "columns": ["a", ""], "rows": [["x", None], ["", "y"]], "more": False},
        {"kind": "image", "file": "picture-1.png"},
    ]
    assert (found.cells[1]["stdout"], found.cells[1]["cut"]) == ("", True)
    assert "omitted" in found.cells[1]["outputs"][0]["text"]
    assert found.failed == found.cells[2]
    assert found.failed["error"] == {"name": "E", "message": "E: •••", "traceback": ""}
    assert found.brief() == [
        {"number": 1, "seconds": 1.5},
        {"number": 2, "seconds": 1.5},
        {"number": 3, "seconds": 1.5, "error": "E: •••"},
    ]
    assert b"secret-value" not in found.artifacts()[0].content


def test_a_short_secret_is_hidden_where_it_is_a_word_of_its_own(tmp_path: Path) -> None:
    cell(tmp_path, 1, stdout="abc is in abcdef; key='abc', abcd")
    found = Outputs(tmp_path, 2000, ["abc"])
    assert found.cells[0]["stdout"] == "••• is in abcdef; key='•••', abcd"


def test_strange_outputs_are_empty_ones(tmp_path: Path) -> None:
    for number, content in enumerate(
        ("[]", "{", "null", '{"outputs": {"a": 1}, "seconds": -1, "error": "x"}', '{"stdout": "\\ud800\\u0000"}'), 1
    ):
        (tmp_path / f"cell-{number:04}.json").write_text(content)
    (tmp_path / "cell-x.json").touch()
    (tmp_path / "cell-00001.json").touch()
    found = Outputs(tmp_path, 10_000, [])
    assert [one["number"] for one in found.cells] == [1, 2, 3, 4, 5]
    assert found.failed is None
    assert found.cells[4]["stdout"] == "?\ufffd"
    assert json.loads(found.artifacts()[0].content)["cells"] == found.cells
    assert Outputs(tmp_path / "none", 100, []).cells == []
    assert io.BytesIO(found.artifacts()[0].content).read()
