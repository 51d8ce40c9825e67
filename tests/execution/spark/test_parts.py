"""The small parts of the engine, without Spark."""

import errno
import os
import socket
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from headgate.execution.sandbox import leftovers as left
from headgate.execution.sandbox import relay
from headgate.execution.sandbox.processes import identity, started
from headgate.execution.spark import java, jvm, sizes, versions
from headgate.execution.spark import network_access as reach
from headgate.settings.settings import Settings
from headgate.settings.spark import SparkSettings
from tests.support.spark import within


@pytest.mark.parametrize(
    ("gib", "heap"), [(7.8, "1g"), (8, "1g"), (15.6, "2g"), (31, "4g"), (64, "8g"), (100, "16g"), (500, "24g")]
)
def test_the_heap_follows_the_machine(gib: float, heap: str) -> None:
    assert sizes.memory(SparkSettings(), int(gib * sizes.GIB)) == heap
    assert sizes.memory(SparkSettings(memory="3g"), int(gib * sizes.GIB)) == "3g"


def test_a_heap_is_less_than_half_of_every_machine() -> None:
    for most, heap in sizes.BY_RAM:
        assert sizes.memory_bytes(heap) * 4 <= most * sizes.GIB


def test_cores_are_all_of_them_unless_set() -> None:
    assert sizes.cores(SparkSettings()) == len(os.sched_getaffinity(0))
    assert sizes.cores(SparkSettings(cores=3)) == 3


@pytest.mark.processes
def test_java_gets_what_sparks_own_scripts_give_it() -> None:
    home = java.spark_jars()
    command = ["org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit", "--class", "x.Y", "z.jar"]
    launched = subprocess.run(
        [java.java(), "-cp", f"{home}/*", *command],
        capture_output=True,
        text=True,
        check=True,
        env={"SPARK_HOME": str(home.parent), "SPARK_SCALA_VERSION": versions.SCALA, "PATH": os.environ["PATH"]},
    )
    options = launched.stdout.replace("\n", "\0").split("\0")
    given = [one for one in options if one.startswith(("--add", "--enable", "-D", "-XX"))]
    assert [one for one in given if not one.startswith(("-Dspark.", "-Dderby."))] == list(jvm.MODULES)


def test_arguments_are_quoted_for_java(tmp_path: Path) -> None:
    text = jvm.arguments(memory="1g", classes=["/a b/*"], conf={"k": 'v "x" \\y'}, scratch=str(tmp_path))
    assert '"/a b/*"' in text.splitlines()
    assert '"-Dk=v \\"x\\" \\\\y"' in text.splitlines()


def test_options_of_an_operator_are_one_line_each() -> None:
    given = ["-XX:+UseSerialGC", "-Dname=a value"]
    assert SparkSettings(java_options=given).java_options == given
    for wrong in ("", "UseSerialGC", "-", "-Dname=a\nb", "-Dname=\x00"):
        with pytest.raises(ValidationError, match="java_options"):
            SparkSettings(java_options=[wrong])


def test_the_heap_in_use_is_read_from_the_last_collection(tmp_path: Path) -> None:
    assert jvm.heap_after_collection(tmp_path) == 0
    (tmp_path / "gc.log").write_text(
        "[0.1s][info][gc] Using G1\n[1s][info][gc] GC(0) Pause Young (Normal) 23M->5M(64M) 2ms\n"
        "[2s][info][gc] GC(1) Pause Full 60M->41M(64M) 9ms\n[2s][info][gc] GC(2) Concurrent Mark Cycle 8ms\n"
    )
    assert jvm.heap_after_collection(tmp_path) == 41 << 20


def test_what_a_sandbox_wrote_is_read_without_following_a_link_or_waiting_for_a_pipe(tmp_path: Path) -> None:
    """This process may be root's, and the sandbox another user's."""
    secret = tmp_path / "secret"
    secret.write_text("a secret\nTerminating due to java.lang.OutOfMemoryError\nGC(1) Pause Full 60M->41M(64M) 9ms\n")
    assert "a secret" in jvm.read_tail(secret)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for make in (lambda file: file.symlink_to(secret), os.mkfifo):
        for name in ("output.log", "server.log", "server.log.tasks", "gc.log"):
            (scratch / name).unlink(missing_ok=True)
            make(scratch / name)
            assert jvm.read_tail(scratch / name) == ""
        assert not jvm.has_out_of_memory_line(scratch)
        assert not jvm.has_stuck_task(scratch)
        assert jvm.heap_after_collection(scratch) == 0
    (scratch / "gc.log").unlink()
    with (scratch / "gc.log").open("wb") as file:
        file.truncate(jvm.MOST_READ + (1 << 20))
    assert len(jvm.read_tail(scratch / "gc.log")) == jvm.MOST_READ


def test_names_keep_their_names_inside_and_have_an_address_each() -> None:
    found = reach.routes([("127.0.0.1", 8420), ("minio.local", 9000), ("minio.local", 9001), ("s3.local", 9000)])
    assert [(one.inside, one.port, one.name) for one in found] == [
        ("127.0.0.1", 8420, None),
        ("127.0.0.2", 9000, "minio.local"),
        ("127.0.0.2", 9001, "minio.local"),
        ("127.0.0.3", 9000, "s3.local"),
    ]


def test_only_the_catalog_and_the_bucket_may_be_reached(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8420/iceberg"
    assert reach.allowed(Settings(data_dir=tmp_path), url) == [("127.0.0.1", 8420)]
    bucket = {"url": "s3://lake/w", "s3_endpoint": "http://minio.local:9000", "s3_access_key_id": "k"}
    settings = Settings(data_dir=tmp_path, warehouse={**bucket, "s3_secret_access_key": "s", "s3_path_style": True})
    assert reach.allowed(settings, url) == [("127.0.0.1", 8420), ("minio.local", 9000)]


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        ("http://127.0.0.1:8420/iceberg", "http://127.0.0.1:8420/iceberg"),
        ("http://localhost:8420/iceberg", "http://localhost:8420/iceberg"),
        ("http://lake.example:8420/iceberg", "http://lake.example:8420/iceberg"),
        ("http://192.0.2.7:8420/iceberg", "http://127.0.0.1:8420/iceberg"),
    ],
)
def test_an_address_is_called_by_loopback_inside(outside: str, inside: str) -> None:
    assert reach.sandbox_url(outside) == inside


def test_a_relay_passes_both_ways_and_ends_with_either(tmp_path: Path) -> None:
    path = str(tmp_path / "relay")
    with socket.create_server(("127.0.0.1", 0)) as target, relay.listen_unix(path) as listener:
        relay.relay(listener, relay.address("127.0.0.1", target.getsockname()[1]))
        with relay.unix(path)() as near:
            near.sendall(b"there" * 100_000)
            near.shutdown(socket.SHUT_WR)
            far, _ = target.accept()
            with far:
                received = b"".join(iter(lambda: far.recv(1 << 16), b""))
                assert received == b"there" * 100_000
                far.sendall(b"back")
            assert near.recv(10) == b"back"
            assert near.recv(10) == b""
    assert (Path(path).stat().st_mode & 0o777) == 0o600


def test_a_want_of_handles_is_waited_out() -> None:
    came = socket.socket()
    answers = iter([OSError(errno.EMFILE, "Too many open files"), (came, None), OSError(errno.EBADF, "closed")])

    class Listener:
        def accept(self) -> object:
            answer = next(answers)
            if isinstance(answer, OSError):
                raise answer
            return answer

    with came:
        assert relay.accepted(Listener()) is came  # type: ignore[arg-type]
    assert relay.accepted(Listener()) is None  # type: ignore[arg-type]


def test_a_relay_to_nothing_closes(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with relay.listen_unix(str(tmp_path / "relay")) as listener:
        relay.relay(listener, relay.address("127.0.0.1", port))
        with relay.unix(str(tmp_path / "relay"))() as near:
            assert near.recv(10) == b""


def test_places_are_taken_in_turn_and_given_back(tmp_path: Path) -> None:
    first, second = left.acquire_folder(tmp_path, "member"), left.acquire_folder(tmp_path, "member")
    assert [place.folder.name for place in (first, second)] == ["member-0", "member-1"]
    first.leave()
    again = left.acquire_folder(tmp_path, "member")
    assert again.folder.name == "member-0"
    again.leave()
    second.leave()


@pytest.mark.processes
def test_only_processes_that_were_meant_are_ended(tmp_path: Path) -> None:
    place = left.acquire_folder(tmp_path, "member")
    stranger = subprocess.Popen(["sleep", "60"])
    meant = subprocess.Popen(["sleep", "60"])
    try:
        pid, since = identity(stranger.pid)
        record = place.folder / left.RECORD
        text = f'{{"processes": [[{pid}, {since + 1}], [{meant.pid}, {started(meant.pid)}]], "sockets": "{tmp_path}"}}'
        record.write_text(text)
        left.end_orphans(tmp_path)
        assert stranger.poll() is None
        assert meant.poll() is None, "the place is held"
        place.leave()
        left.end_orphans(tmp_path)
        within(60, lambda: meant.poll() is not None)
        assert stranger.poll() is None
        assert tmp_path.exists(), "a folder that is not one of ours is left alone"
        assert not record.exists()
    finally:
        for process in (stranger, meant):
            process.kill()
            process.wait()
