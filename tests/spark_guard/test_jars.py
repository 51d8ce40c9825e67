"""The jars are the pinned ones, and the guard's jar is that of its sources."""

import shutil
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.contracts import guard_files
from headgate.execution.spark import guard_jar, jars, java, versions
from headgate.execution.spark.jars import BadJar, Jars, ensure

ROOT = Path(__file__).parents[2]


def test_python_packages_are_pinned_to_the_same_versions() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"pyspark[connect]=={versions.PYSPARK}" in wanted
    assert any(one.startswith(f"pyiceberg[pyarrow]>={versions.PYICEBERG},") for one in wanted)
    assert versions.complaints() == []


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "PYSPARK", "9.9.9")
    assert [one.split("; ")[1] for one in versions.complaints()] == ["install pyspark 9.9.9"]


def test_a_jar_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / versions.ICEBERG_RUNTIME.file).write_bytes(b"something else")
    with pytest.raises(BadJar, match=r"but org.apache.iceberg:.* should have .*Delete the file and try again"):
        jars.ensure(tmp_path)


def test_an_offline_folder_is_all_that_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv(jars.OFFLINE_VARIABLE, str(tmp_path / "empty"))
    with pytest.raises(BadJar, match=f"has no {versions.ICEBERG_RUNTIME.file}"):
        jars.ensure(tmp_path / "cache")
    (tmp_path / "empty" / versions.ICEBERG_RUNTIME.file).write_bytes(b"something else")
    with pytest.raises(BadJar, match="should have"):
        jars.ensure(tmp_path / "cache")
    assert not (tmp_path / "cache" / versions.ICEBERG_RUNTIME.file).exists()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_from_an_offline_folder_and_then_at_once(jars: Jars, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copyfile(jars.iceberg, tmp_path / jars.iceberg.name)
    said: list[str] = []
    made = ensure(tmp_path / "cache", offline=tmp_path, say=said.append)
    assert said == ["Building the guard"]
    assert made.guard.read_bytes() == jars.guard.read_bytes(), "the same sources give the same bytes"
    assert {path.parent for path in made.paths} == {tmp_path / "cache"}
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert ensure(tmp_path / "cache", say=said.append) == made
    assert said == ["Building the guard"]


@pytest.mark.processes
def test_without_a_network_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = replace(versions.ICEBERG_RUNTIME, name="no-such-thing")
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "nothing").as_uri())
    monkeypatch.setattr(jars, "_command", lambda *_: ["false"])
    with pytest.raises(BadJar, match=r"could not download.*\n.*DEFAULT_ARTIFACT_REPOSITORY.*JARS_DIR"):
        jars.fetch([unknown], tmp_path)


@pytest.mark.processes
def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(java.NoJava, match="there is no `java` on the PATH; install a JDK 17 or 21"):
        java.java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(java.NoJava, match="has no bin/java"):
        java.java()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(java.NoJava, match="is version 11; Headgate needs JDK 17 or 21"):
        java.java()


def test_a_wheel_brings_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_jar, "SOURCES", tmp_path / "no-sources")
    monkeypatch.setattr(guard_jar, "SHIPPED", tmp_path / "shipped.jar")
    with pytest.raises(guard_jar.BadBuild, match="install it again"):
        guard_jar.ensure(tmp_path, tmp_path / "iceberg.jar")
    (tmp_path / "shipped.jar").write_bytes(b"built before")
    taken = guard_jar.ensure(tmp_path, tmp_path / "iceberg.jar")
    assert taken.read_bytes() == b"built before"
    assert taken == guard_jar.ensure(tmp_path, tmp_path / "iceberg.jar")


def test_other_sources_are_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = guard_jar.fingerprint()
    shutil.copytree(guard_files.SOURCES, tmp_path / "main")
    monkeypatch.setattr(guard_jar, "SOURCES", tmp_path / "main")
    assert guard_jar.fingerprint() == before
    (tmp_path / "main/resources/headgate/guard/functions.txt").write_text("reflect\n")
    assert guard_jar.fingerprint() != before


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_jar_holds_the_lists_and_is_shipped_once(
    jars: Jars, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jars.guard
    with zipfile.ZipFile(jars.guard) as jar:
        names = jar.namelist()
    assert {"headgate/guard/plans.txt", "headgate/guard/GuardPlugin.class", "META-INF/MANIFEST.MF"} <= set(names)
    monkeypatch.setattr(guard_jar, "SHIPPED", tmp_path / "headgate-guard.jar")
    said: list[str] = []
    guard_jar.ship(jars.guard, say=said.append)
    guard_jar.ship(jars.guard, say=said.append)
    assert len(said) == 1
    assert (tmp_path / "headgate-guard.jar").read_bytes() == jars.guard.read_bytes()


def test_the_platforms_own_jars_are_checked_too_and_members_sql_gets_none_of_them(tmp_path: Path) -> None:
    found = ensure(platform=True)
    assert {path.name for path in found.platform} == {one.file for one in versions.PLATFORM}
    assert ensure().platform == ()
    (tmp_path / found.iceberg.name).symlink_to(found.iceberg)
    (tmp_path / versions.MARIADB.file).write_bytes(b"something else")
    for path in found.platform:
        if path.name != versions.MARIADB.file:
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(BadJar, match=r"but org.mariadb.jdbc:.* should have"):
        ensure(tmp_path, platform=True)
