"""The doctor says what is wrong and what to do."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.local import other_server_warning
from headgate.execution.spark import conf, doctor, jars, sizes
from headgate.execution.spark.versions import ICEBERG_RUNTIME, PLATFORM
from headgate.settings.settings import Settings
from tests.support.cluster import free_port
from tests.support.installation import Installation

pytestmark = pytest.mark.processes


def _found(settings: Settings, name: str) -> list[doctor.DoctorFinding]:
    return [one for one in doctor.findings(settings) if one.name == name]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, server={"port": 1})


def test_a_machine_with_all_that_is_needed_is_well(settings: Settings) -> None:
    jars.ensure()
    assert [one for one in doctor.findings(settings) if one.state == "wrong"] == []
    assert doctor.wrong(settings) == []
    assert [one.state for one in _found(settings, "server")] == ["note"]


def test_a_missing_java_is_named_with_what_to_do(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    [found] = _found(settings, "java")
    assert (found.state, "JAVA_HOME" in found.detail, "install" in found.detail) == ("wrong", True, True)
    assert any("JAVA_HOME" in one for one in doctor.wrong(settings))


def test_other_versions_than_those_tried_are_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.execution.spark.versions.PYSPARK", "9.9.9")
    [found] = _found(settings, "versions")
    assert found.state == "wrong"
    assert "9.9.9" in found.detail


def test_a_jar_of_another_content_is_wrong(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [one.state for one in _found(settings, "jars")] == ["note"] * (1 + len(PLATFORM))
    folder = jars.default_folder()
    folder.mkdir(parents=True)
    (folder / ICEBERG_RUNTIME.file).write_text("not a jar")
    found, *others = _found(settings, "jars")
    assert {one.state for one in others} == {"note"}
    assert (found.state, "SHA-256" in found.detail) == ("wrong", True)


def test_a_folder_of_jars_without_them_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = _found(Settings(data_dir=tmp_path, spark={"jars_dir": tmp_path}), "jars")
    assert {one.state for one in found} == {"wrong"}
    for artifact in (ICEBERG_RUNTIME, *PLATFORM):
        assert any(artifact.coordinates in one.detail for one in found)
    elsewhere = Settings(data_dir=tmp_path, spark={"jars_dir": tmp_path, "platform_url": "sc://spark:15002"})
    assert len(_found(elsewhere, "jars")) == 1


@pytest.mark.parametrize(("wanted", "state"), [("required", "wrong"), ("auto", "note")])
def test_a_missing_sandbox_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, state: str) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    [found] = _found(Settings(data_dir=tmp_path, spark={"sandbox": wanted}), "sandbox")
    assert (found.state, "bubblewrap is not installed" in found.detail) == (state, True)


def test_who_runs_headgate_is_told_with_whose_rights(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        assert [found.state for found in _found(settings, "user")] == ["ok"]
        return
    [found] = _found(settings, "user")
    assert (found.state, "sandboxes run as the user id 60631" in found.detail) == ("note", True)
    taken = settings.model_copy(update={"spark": settings.spark.model_copy(update={"sandbox_uid": 65534})})
    [found, _] = _found(taken, "user")
    assert (found.state, "the user nobody" in found.detail) == ("wrong", True)
    trusting = settings.model_copy(
        update={"notebooks": settings.notebooks.model_copy(update={"mode": "trusted"})},
    )
    [found] = _found(trusting, "user")
    assert (found.state, "each notebook" in found.detail) == ("wrong", True)
    monkeypatch.setenv("PATH", "/nonexistent")
    [found] = _found(settings, "user")
    assert (found.state, "Spark runs outside a sandbox as root" in found.detail) == ("wrong", True)


def test_root_without_the_rights_to_make_a_sandbox_is_told_what_to_do() -> None:
    code = "from headgate.execution.sandbox import bubblewrap as sandbox; print(sandbox.missing(60631))"
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] if os.getuid() == 0 else []
    told = subprocess.run(
        [*bare, sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    if os.getuid() != 0:
        # Only root has rights to lose.
        assert told == "None\n"
        return
    assert "root cannot change the owner of a folder to 60631" in told
    assert "Run Headgate as an unprivileged user" in told


def test_too_little_memory_is_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "machine_bytes", lambda: 4 * sizes.GIB)
    [found] = _found(settings, "memory")
    assert (found.state, "8 GiB" in found.detail) == ("wrong", True)


def test_a_warehouse_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    [found] = _found(Settings(data_dir=tmp_path, warehouse={"url": f"file://{tmp_path}/file"}), "warehouse")
    assert found.state == "wrong"


def test_the_command_says_all_of_it_and_its_status(tmp_path: Path) -> None:
    installation = Installation(tmp_path, HEADGATE_SERVER__PORT="1")
    done = installation.headgate("doctor", "--json")
    told: list[dict[str, Any]] = json.loads(done.stdout)
    assert {one["name"] for one in told} >= {"versions", "java", "jars", "guard", "sandbox", "memory", "warehouse"}
    assert done.returncode == int(any(one["state"] == "wrong" for one in told))
    broken = installation.headgate("doctor", JAVA_HOME="/nonexistent")
    assert broken.returncode == 1
    assert "JAVA_HOME" in broken.stdout


def test_a_platform_server_that_does_not_answer_is_told_at_once(tmp_path: Path) -> None:
    url = f"sc://localhost:{free_port()}"
    began = time.monotonic()
    own = Settings(data_dir=tmp_path, spark={"platform_url": f"{url}/;token=secret"})
    [found] = doctor.platform(own, "http://127.0.0.1:1/iceberg")
    assert (found.name, found.state) == ("platform", "wrong")
    assert found.detail.startswith(f"{url}: ")
    assert "secret" not in found.detail
    assert time.monotonic() - began < 30
    assert list((tmp_path / "work" / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("address", "is_here"),
    [
        ("http://127.0.0.1:8420", True),
        ("http://localhost:8420/", True),
        ("https://data.example.com", True),
        ("http://127.0.0.1:8421", False),
        ("https://lake.example.com:8420", False),
        ("nonsense", False),
        ("http://[", False),
    ],
)
def test_a_server_that_is_not_this_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, is_here: bool
) -> None:
    monkeypatch.setenv("HEADGATE_SERVER_URL", address)
    own = Settings(data_dir=tmp_path, server={"public_url": "https://data.example.com"})
    told = other_server_warning(own)
    assert (told is None) == is_here
    assert (
        is_here
        or f"HEADGATE_SERVER_URL names {address}, but this command checks the local installation only" in str(told)
    )


def test_commands_about_this_machine_say_which_installation_they_look_at(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    other = {"HEADGATE_SERVER_URL": "https://lake.example"}
    for more, is_told in ((other, True), ({}, False)):
        doctor = one.headgate("doctor", **more)
        assert f"the local installation in {tmp_path}, which is not initialized" in doctor.stdout
        assert ("https://lake.example, but this command checks the local installation only" in doctor.stdout) == is_told
        printed = one.headgate("spark", "conf", **more)
        assert printed.stdout.startswith(f"# Installation: the local installation in {tmp_path}")
        assert ("note: HEADGATE_SERVER_URL names https://lake.example" in printed.stderr) == is_told


def test_the_settings_of_an_own_cluster_are_printed_without_a_token(tmp_path: Path) -> None:
    done = Installation(tmp_path).headgate("spark", "conf", "--catalog-url", "https://lake.example/iceberg")
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if not line.startswith("#"))
    assert told["spark.sql.catalog.lake.uri"] == "https://lake.example/iceberg"
    assert told["spark.sql.extensions"].endswith(",headgate.guard.GuardExtensions")
    assert told["spark.plugins"] == "headgate.guard.GuardPlugin"
    assert not any("Authorization" in key for key in told)
    assert f"--class {conf.CONNECT} spark-internal" in done.stdout
    assert "/headgate-guard" in told["spark.jars"], "which has that class"
    ours = Installation(tmp_path).headgate("spark", "conf", "--platform")
    assert "spark.platform_url = sc://" in ours.stdout
    assert "postgresql" in ours.stdout
    assert "GuardExtensions" not in ours.stdout
