"""The archive of Spark's classes: which one is used, that no sandbox can write it, and that a bad one is harmless."""

import json
import os
import shutil
import subprocess
import threading
import time
import zipfile
from pathlib import Path

import pytest

from headgate.execution.spark import archive_training as training
from headgate.execution.spark import class_archive as archive
from headgate.execution.spark import conf, jars, java, jvm
from headgate.execution.spark.jars import Jars
from headgate.execution.spark.platform_environment import ServerEnvironment
from headgate.execution.spark.server import LocalServer
from headgate.settings.settings import Settings
from tests.support.spark import SharedSpark

pytestmark = pytest.mark.processes

KEPT = b"classes, as they were made"
URL = "http://127.0.0.1:64999/iceberg"


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """A jar, and an archive that is kept for it."""
    jar = tmp_path / "cache" / "iceberg.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"a jar")
    kept(jar).write_bytes(KEPT)
    kept(jar).chmod(0o444)
    return jar


def kept(jar: Path) -> Path:
    """Where its archive is."""
    return archive.archive_path(jar, len(KEPT))


def test_what_it_was_made_from_gives_it_its_name(
    iceberg: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = tmp_path / "spark"
    spark.mkdir()
    monkeypatch.setattr(java, "spark_jars", lambda: spark)
    names = [kept(iceberg)]
    (spark / "spark.jar").write_bytes(b"a")
    names.append(kept(iceberg))
    os.utime(spark / "spark.jar", (1, 1))
    names.append(kept(iceberg))
    iceberg.write_bytes(b"another jar")
    names.append(kept(iceberg))
    monkeypatch.setattr(jvm, "MODULES", (*jvm.MODULES, "-Dmore=1"))
    names.append(kept(iceberg))
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="21"')
    (home / "bin" / "java").touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    names.append(kept(iceberg))
    assert len(set(names)) == 6
    assert {name.parent for name in names} == {iceberg.parent}
    assert kept(iceberg) == names[-1]


def test_one_that_others_can_write_is_not_used(iceberg: Path) -> None:
    path = kept(iceberg)
    assert archive.usable_archive(iceberg) == path
    for mode in (0o464, 0o446):
        path.chmod(mode)
        assert archive.usable_archive(iceberg) is None
    path.chmod(0o444)
    about = list(path.stat())
    assert archive.is_ours(os.stat_result(about))
    about[4] = 4242 if os.getuid() != 4242 else 4243
    assert not archive.is_ours(os.stat_result(about)), "another user's"
    os.truncate(path, 5)
    assert archive.usable_archive(iceberg) is None, "it was cut off"
    path.unlink()
    assert archive.usable_archive(iceberg) is None
    (iceberg.parent / "other").write_bytes(KEPT)
    path.symlink_to(iceberg.parent / "other")
    assert archive.usable_archive(iceberg) is None
    path.unlink()
    path.mkdir()
    assert archive.usable_archive(iceberg) is None


def test_one_in_a_folder_that_a_sandbox_can_write_is_not_used(iceberg: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert archive.usable_archive(iceberg, [str(tmp_path / "other")])
    assert archive.usable_archive(iceberg, [str(iceberg.parent)]) is None
    assert archive.usable_archive(iceberg, [str(tmp_path)]) is None
    assert archive.usable_archive(iceberg, [str(link)]) is None


@pytest.mark.usefixtures("with_sandbox")
@pytest.mark.parametrize("kind", ["member", "platform"])
def test_no_sandbox_can_write_it(kind: str, iceberg: Path, tmp_path: Path) -> None:
    (runs := tmp_path / "runs").mkdir()
    outfit = ServerEnvironment(read=(iceberg.parent,), write=(runs,)) if kind == "platform" else None
    settings = Settings(data_dir=tmp_path / "data")
    server = LocalServer(kind, settings, Jars(iceberg), conf.for_members(URL), sandboxed=True, beside=outfit)
    try:
        jvm.lay_out(server.scratch)
        *before, plan = server._sandboxed().command
        path, outside = archive.INSIDE, kept(iceberg)
        tries = {
            f"cat {path}": KEPT.decode(),
            f"echo x >> {path}": "",
            f"chmod 666 {path}": "",
            f"rm -f {path}": "",
            f"mv /scratch/fair.xml {path}": "",
            f"mount --bind /scratch/fair.xml {path}": "",
            f"mount -o remount,rw {path}": "",
            f"echo x > {path.rpartition('/')[0]}/other": "",
            f"echo x >> {outside}": "",
            f"rm -f {outside}": "",
            f"ln {path} /scratch/linked": "",
        }
        for script, said in tries.items():
            told = {**json.loads(plan), "command": ["/bin/sh", "-c", f"{script} && echo THROUGH"]}
            told["serve"] = ["/scratch/none", "127.0.0.1", 1]
            answer = subprocess.run(
                [*before, json.dumps(told)], capture_output=True, text=True, timeout=60, check=False
            )
            done = answer.stdout.strip()
            # What was never there is removed with no effect; only the file outside tells.
            assert done == (f"{said}THROUGH" if said else "") or script == f"rm -f {outside}", (script, answer)
            assert archive.usable_archive(iceberg) == outside
            assert outside.read_bytes() == KEPT
        options = (server.scratch / "java.args").read_text().splitlines()
        assert [one.strip('"') for one in options if "Share" in one or "share" in one] == list(archive.USE[:2])
    finally:
        server.stop()


def test_where_nothing_can_be_written_spark_starts_without(iceberg: Path) -> None:
    said: list[str] = []
    assert training.ensure(Jars(iceberg), said.append) == kept(iceberg)
    assert said == []
    kept(iceberg).unlink()
    (iceberg.parent / training.LOCK).mkdir()
    assert training.ensure(Jars(iceberg), said.append) is None
    assert len(said) == 1
    assert said[0].startswith("Spark starts without a class data archive: ")


def test_without_a_sandbox_there_is_none(iceberg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(iceberg).unlink()
    monkeypatch.setenv("PATH", str(iceberg.parent))
    monkeypatch.setenv("JAVA_HOME", str(Path(shutil.which("java", path=os.defpath) or "").resolve().parents[1]))
    said: list[str] = []
    assert training.ensure(Jars(iceberg), said.append) is None
    assert "bubblewrap is not installed" in said[0]


def test_it_is_made_apart_from_the_installation_that_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "headgate.toml").write_text("this is no [ toml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADGATE_WAREHOUSE__URL", "file:///srv/warehouse")
    found = training._Own(data_dir=tmp_path / "work", spark={"memory": "1g"})
    assert found.warehouse_url == f"file://{tmp_path}/work/warehouse"
    assert found.spark.java_options == []


@pytest.mark.usefixtures("with_sandbox")
def test_a_new_one_ends_those_that_were_not_used_for_long(iceberg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = time.time() - (archive.KEPT_DAYS + 1) * 24 * 3600
    old, recent = (iceberg.parent / f"spark-classes-{name}-1.jsa" for name in ("old", "recent"))
    for one in (old, recent):
        one.touch()
    os.utime(old, (long_ago, long_ago))
    os.utime(kept(iceberg), (long_ago, long_ago))
    assert training.ensure(Jars(iceberg)) == kept(iceberg)
    assert kept(iceberg).stat().st_mtime > long_ago + 24 * 3600
    assert old.exists()
    used = kept(iceberg)
    iceberg.write_bytes(b"another jar")
    monkeypatch.setattr(training, "_make", lambda given: kept(given.iceberg).touch())
    training.ensure(Jars(iceberg))
    assert not old.exists()
    assert recent.exists()
    assert used.exists()


@pytest.mark.usefixtures("with_sandbox")
def test_two_at_once_make_it_once(iceberg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(iceberg).unlink()
    made, got = [], []

    def make(given: Jars) -> None:
        made.append(kept(given.iceberg))
        time.sleep(0.2)
        (given.iceberg.parent / "made").write_bytes(KEPT)
        training._place(given.iceberg.parent / "made", given.iceberg)

    (left := iceberg.parent / ".classes-of-one-that-was-killed" / "scratch").mkdir(parents=True)
    monkeypatch.setattr(training, "_make", make)
    threads = [threading.Thread(target=lambda: got.append(training.ensure(Jars(iceberg)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made == [kept(iceberg)]
    assert got == made * 3
    assert made[0].read_bytes() == KEPT
    assert not made[0].stat().st_mode & 0o222
    assert not (iceberg.parent / "made").exists()
    assert not left.parent.exists()


def test_one_that_was_not_made_leaves_nothing(iceberg: Path) -> None:
    kept(iceberg).unlink()
    with pytest.raises(FileNotFoundError):
        training._place(iceberg.parent / "none", iceberg)
    assert sorted(one.name for one in iceberg.parent.iterdir()) == ["iceberg.jar"]


def test_java_says_nothing_of_one_that_does_not_fit(tmp_path: Path) -> None:
    program, path = java.java(), tmp_path / "classes.jsa"
    first, second = (tmp_path / f"{name}.jar" for name in ("first", "second"))
    for jar in (first, second):
        with zipfile.ZipFile(jar, "w") as packed:
            packed.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")

    def run(classes: Path, *options: str) -> str:
        command = [program, *options, "-cp", str(classes), "jdk.internal.misc.None"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    plain = run(first)
    use = [one.replace(archive.INSIDE, str(path)) for one in archive.USE]
    run(first, f"-XX:ArchiveClassesAtExit={path}")
    whole = path.read_bytes()
    assert run(first, *use) == plain, "it fits"
    assert run(second, *use) == plain, "other jars"
    for content in (b"", b"x" * 100, b"x" * 64 + whole[64:]):
        path.unlink()
        path.write_bytes(content)
        assert run(first, *use) == plain
    path.unlink()
    assert run(first, *use) == plain, "it is gone"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_server_maps_the_archive_and_can_only_read_it(shared_spark: SharedSpark) -> None:
    found = archive.usable_archive(jars.ensure().iceberg)
    assert found, "`make jars` makes it"
    shared_spark.member.ensure()
    server = shared_spark.member._server
    assert server
    assert archive.INSIDE in Path(f"/proc/{server.pid}/maps").read_text()
    lines = [line.split() for line in Path(f"/proc/{server.pid}/mountinfo").read_text().splitlines()]
    assert {fields[5].split(",")[0] for fields in lines if fields[4] == archive.INSIDE} == {"ro"}
    assert "cds" not in (server.scratch / "output.log").read_text()
