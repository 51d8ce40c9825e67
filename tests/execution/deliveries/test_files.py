"""Rows into files of a folder and of a bucket: whole or not at all, and once, whatever dies."""

import json
import os
import resource
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.execution.deliveries import bucket as buckets
from headgate.execution.deliveries import files, folder
from headgate.execution.deliveries.spark import files as exporting
from headgate.execution.sources.fetch import bucket as reading
from headgate.execution.spark.failures import Cause
from headgate.execution.steps import deliver
from headgate.execution.steps.context import RunStopped, StepFailed
from tests.execution.deliveries.support import PIPELINE, ROWS, Plan, bucket, failure, killed
from tests.support.api import Api, Reply, Seen, serving
from tests.support.s3 import BUCKET, S3Server

TARGET = "exports/orders"
POINTS = (
    "delivery: before the export",
    "delivery: rows exported",
    "delivery: a file put",
    "delivery: before the files appear",
    "delivery: files appeared",
    "delivery: files count",
    "delivery: one removed",
    "delivery: earlier files removed",
)
OLD, NEW = [0], [1, 2, 3, 4, 5]


@dataclass
class Out:
    """A destination, and its bytes as they lie there."""

    endpoint: Endpoint
    root: Path
    settings: dict[str, Any]

    def plan(self, folder: Path, write: str = "append", rows: list[dict[str, Any]] | None = None, **more: Any) -> Plan:
        sending = {"target": TARGET, "write": write, "format": "json", **more}
        return Plan(self.endpoint, folder, sending, rows or list(ROWS), settings=self.settings)

    @property
    def place(self) -> Path:
        return self.root / TARGET / PIPELINE

    def names(self) -> list[str]:
        """Every file that is there."""
        return sorted(str(one.relative_to(self.place)) for one in self.place.rglob("*") if one.is_file())

    def runs(self) -> list[list[int]]:
        """The rows of each run that is in place, as a reader finds them who heeds `_SUCCESS`."""
        return sorted(self._rows(one.read_bytes()) for one in self.place.glob("run_*/_SUCCESS"))

    def latest(self) -> list[int] | None:
        """The rows that count, as a reader finds them who heeds `_LATEST.json`."""
        told = self.place / "_LATEST.json"
        return self._rows(told.read_bytes()) if told.exists() else None

    def _rows(self, manifest: bytes) -> list[int]:
        told = json.loads(manifest)
        lines: list[str] = []
        for one in told["files"]:
            content = (self.root / told["place"] / one["name"]).read_bytes()
            assert len(content) == one["bytes"]
            lines += content.decode().splitlines()
        assert len(lines) == told["rows"]
        return sorted(json.loads(line)["id"] for line in lines)


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.processes)])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Out:
    """A destination of each kind in turn."""
    if request.param == "folder":
        return in_folder(tmp_path)
    server: S3Server = request.getfixturevalue("s3_server")
    return Out(bucket(server, tmp_path.name), server.folder / BUCKET / tmp_path.name, {})


def in_folder(tmp_path: Path) -> Out:
    root = tmp_path / "out"
    root.mkdir()
    return Out(Endpoint("dst_f", "folder", {"path": str(root)}), root, {"deliveries": {"folders": [str(tmp_path)]}})


def test_each_run_has_a_folder_with_what_tells_of_it(out: Out, tmp_path: Path) -> None:
    plan = out.plan(tmp_path, format="csv")
    result = plan.deliver()
    place = f"{TARGET}/{PIPELINE}/{plan.run}-0"
    assert (result.rows_out, result.detail["place"], result.detail["files"]) == (5, place, 3)
    told = json.loads((out.root / place / "_SUCCESS").read_bytes())
    assert (told["run"], told["table"], told["snapshot"]) == (plan.run, "raw.orders", "7000000000000000001")
    assert result.bytes == sum(one["bytes"] for one in told["files"])
    first = (out.root / place / told["files"][0]["name"]).read_text()
    assert first.splitlines() == ["id,name", "1,n1", "2,n2"]
    assert {Path(one).suffix for one in out.names()} == {"", ".csv"}
    assert f"Delivered 5 rows in 3 files to {place}" in plan.log


def test_appending_adds_and_overwriting_replaces(out: Out, tmp_path: Path) -> None:
    out.plan(tmp_path, rows=[{"id": 0}]).deliver()
    out.plan(tmp_path).deliver()
    assert (out.runs(), out.latest()) == ([OLD, NEW], None)
    out.plan(tmp_path, "overwrite").deliver()
    assert (out.runs(), out.latest()) == ([NEW], NEW)
    out.plan(tmp_path, "overwrite", [{"id": 7}]).deliver()
    assert (out.runs(), out.latest(), len(out.names())) == ([[7]], [7], 3)
    out.plan(tmp_path, rows=[{"id": 8}]).deliver()
    assert (out.runs(), out.latest()) == ([[7], [8]], None)


@pytest.mark.processes
@pytest.mark.parametrize("write", ["append", "overwrite"])
def test_a_run_that_is_killed_anywhere_and_begun_again_delivers_once(out: Out, tmp_path: Path, write: str) -> None:
    points = [one for one in POINTS if write == "overwrite" or one != "delivery: one removed"]
    if out.endpoint.kind == "object_store":
        # The others come before it is reached, or after.
        points = points[2:-1]
    for point in points:
        out.plan(tmp_path, "overwrite", [{"id": 0}]).deliver()
        plan = out.plan(tmp_path, write)
        assert killed(plan, point) == -9, point
        is_over = points.index(point) >= points.index("delivery: files appeared")
        counts = points.index(point) >= points.index("delivery: files count")
        if write == "append":
            assert out.runs() == ([OLD, NEW] if is_over else [OLD]), point
        else:
            assert out.latest() == (NEW if counts else OLD), point
        again = plan.again()
        assert again.deliver().rows_out == 5
        expected = [OLD, NEW] if write == "append" else [NEW]
        assert out.runs() == expected, point
        assert ("already" in again.log) == is_over, point
        after = out.names()
        assert len(after) == (2 + 4 if write == "append" else 4 + 1), (point, after)
        plan.again(fence=3).deliver()
        assert out.names() == after, point


@pytest.mark.processes
def test_what_a_dead_run_left_goes_with_the_next(out: Out, tmp_path: Path) -> None:
    assert killed(out.plan(tmp_path), "delivery: a file put") == -9
    assert (out.runs(), len(out.names())) == ([], 1)
    following = out.plan(tmp_path, rows=[{"id": 9}])
    following.deliver()
    assert (out.runs(), len(out.names())) == ([[9]], 2)
    assert "Removed the unfinished files of an earlier run or attempt" in following.log


def test_what_others_put_there_stays(out: Out, tmp_path: Path) -> None:
    out.plan(tmp_path).deliver()
    for name in ("mine.csv", "run_by_hand/x.csv", ".hidden"):
        (out.place / name).parent.mkdir(exist_ok=True)
        (out.place / name).write_text("kept")
    beside = out.root / TARGET / "pip_01k6x3v9c2m4n8p0q7rt" / "run_01k6x3v9c2m4n8p0q7rt-0" / "x.csv"
    beside.parent.mkdir(parents=True)
    beside.write_text("kept")
    out.plan(tmp_path, "overwrite", [{"id": 7}]).deliver()
    assert out.runs() == [[7]]
    assert {"mine.csv", "run_by_hand/x.csv", ".hidden"} < set(out.names())
    assert beside.exists()


@pytest.mark.parametrize(
    ("where", "is_told"),
    [
        ("delivery: before the files appear", True),
        ("delivery: files appeared", True),
        ("delivery: files count", False),
    ],
)
def test_a_worker_that_slept_and_wakes_up_changes_nothing(
    out: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, is_told: bool
) -> None:
    """Its run has another worker by now, which has delivered, and a later run has replaced that."""
    out.plan(tmp_path, rows=[{"id": 0}]).deliver()
    sleeps, wakes = threading.Event(), threading.Event()
    slept = out.plan(tmp_path, "overwrite")
    ended: list[str] = []

    def point(name: str) -> None:
        if name == where and threading.current_thread() is thread:
            sleeps.set()
            wakes.wait(60)

    def work() -> None:
        step, context = slept.context()
        asks = context.remembers

        def remembers(number: int, told: dict[str, Any]) -> None:
            if wakes.is_set():
                raise RunStopped
            asks(number, told)

        context.remembers = remembers
        try:
            deliver.run(step, context)
        except (RunStopped, StepFailed) as error:
            ended.append(type(error).__name__)

    monkeypatch.setattr(files, "crash_point", point)
    thread = threading.Thread(target=work)
    thread.start()
    assert sleeps.wait(60)
    slept.again().deliver()
    out.plan(tmp_path, "overwrite", [{"id": 7}]).deliver()
    wakes.set()
    thread.join(60)
    assert (len(ended) == 1) == is_told
    assert (out.runs(), out.latest(), len(out.names())) == ([[7]], [7], 3)


def test_a_run_that_is_stopped_leaves_nothing(out: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, context = out.plan(tmp_path).context()

    def point(name: str) -> None:
        if name == "delivery: a file put":
            context.stop()

    for module in (folder, buckets):
        monkeypatch.setattr(module, "crash_point", point)
    with pytest.raises(RunStopped):
        deliver.run(step, context)
    assert out.names() == []
    if out.endpoint.kind == "folder":
        assert list(out.place.iterdir()) == []


@pytest.mark.parametrize("target", ["../up", "/../etc", "a/../../b", ".hidden/x", "_x", "a//b", "a\nb"])
def test_a_target_that_leads_elsewhere_is_refused_by_a_run_too(out: Out, tmp_path: Path, target: str) -> None:
    error = failure(out.plan(tmp_path, target=target))
    assert (error.code, "below the destination" in error.message) == ("DEFINITION", True)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_rows_that_spark_wrote_elsewhere_are_missed(tmp_path: Path, kind: str) -> None:
    out = in_folder(tmp_path)
    rows = [{"id": number, "name": 'two\n"lines"'} for number in range(3)]
    plan = out.plan(tmp_path, rows=rows, format=kind)
    plan.lost = 1
    error = failure(plan)
    assert (error.code, "mount the same folder" in error.message) == ("NOT_ALL_ARRIVED", True)
    assert not out.names()
    assert out.plan(tmp_path, rows=rows, format=kind).deliver().rows_out == 3


# Folders


def test_an_absolute_target_lies_below_the_destination(tmp_path: Path) -> None:
    out = in_folder(tmp_path)
    out.plan(tmp_path, target=f"/{TARGET}").deliver()
    assert out.runs() == [NEW]


@pytest.mark.parametrize("place", ["exports", f"{TARGET}", f"{TARGET}/{PIPELINE}"])
def test_links_are_not_followed(tmp_path: Path, place: str) -> None:
    out, secret = in_folder(tmp_path), tmp_path / "secret"
    secret.mkdir()
    link = out.root / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(secret)
    error = failure(out.plan(tmp_path, "overwrite"))
    assert (error.code, "a symbolic link" in error.message) == ("FOLDER_REFUSED", True)
    assert list(secret.iterdir()) == []


def test_links_with_names_of_ours_are_removed_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    out, kept = in_folder(tmp_path), tmp_path / "kept"
    kept.mkdir()
    (kept / "x").write_text("x")
    out.place.mkdir(parents=True)
    for name in ("run_01k6x3v9c2m4n8p0q7rt-0", ".run_01k6x3v9c2m4n8p0q7rt-0-1", "_LATEST.json"):
        (out.place / name).symlink_to(kept)
    out.plan(tmp_path, "overwrite").deliver()
    assert (out.runs(), out.latest(), (kept / "x").read_text()) == ([NEW], NEW, "x")
    assert not (out.place / "_LATEST.json").is_symlink()


def test_a_file_where_a_folder_is_to_be(tmp_path: Path) -> None:
    out = in_folder(tmp_path)
    (out.root / "exports").write_text("not a folder")
    assert failure(out.plan(tmp_path)).code == "FOLDER_REFUSED"
    assert (out.root / "exports").read_text() == "not a folder"


def test_only_folders_that_the_settings_allow(tmp_path: Path) -> None:
    out = in_folder(tmp_path)
    elsewhere = Out(out.endpoint, out.root, {"deliveries": {"folders": [str(tmp_path / "other")]}})
    error = failure(elsewhere.plan(tmp_path))
    assert (error.code, "deliveries.folders" in error.message) == ("FOLDER_REFUSED", True)
    (tmp_path / "led").symlink_to("/usr")
    led = Out(Endpoint("dst_f", "folder", {"path": str(tmp_path / "led")}), out.root, out.settings)
    assert "leads out of" in failure(led.plan(tmp_path)).message
    gone = Out(Endpoint("dst_f", "folder", {"path": str(tmp_path / "gone")}), out.root, out.settings)
    assert "is not a folder" in failure(gone.plan(tmp_path)).message


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user without rights."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_folder_that_may_not_be_written_to_is_told(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="headgate-out-") as made:
        root = Path(made, "out")
        root.mkdir()
        Path(made).chmod(0o755)
        root.chmod(0o555)
        endpoint = Endpoint("dst_f", "folder", {"path": str(root)})
        plan = Plan(endpoint, tmp_path, {"target": TARGET}, settings={"deliveries": {"folders": [made]}})
        _, context = plan.context()
        with as_nobody(), pytest.raises(StepFailed) as caught, folder.opened(context, endpoint, ("a",), "run", 1):
            pass
        assert (caught.value.code, caught.value.passing) == ("DENIED_THERE", False)
        assert "no write permission" in caught.value.message


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file can have more bytes than this, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_nothing_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = in_folder(tmp_path)
    put = folder.LocalRunFolder.put

    def full(*given: Any) -> Any:
        with small_files(30):
            return put(*given)

    monkeypatch.setattr(folder.LocalRunFolder, "put", full)
    error = failure(out.plan(tmp_path))
    assert (error.code, error.passing) == ("FULL_THERE", True)
    assert "No space left" in error.message
    assert list(out.place.iterdir()) == []


def test_a_disk_that_is_full_when_all_is_to_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = in_folder(tmp_path)
    appear = folder.LocalRunFolder.appear

    def full(*given: Any) -> Any:
        with small_files(30):
            return appear(*given)

    monkeypatch.setattr(folder.LocalRunFolder, "appear", full)
    assert failure(out.plan(tmp_path)).code == "FULL_THERE"
    assert list(out.place.iterdir()) == []


# Buckets


def test_large_files_are_uploaded_in_parts_and_what_was_not_completed_goes(s3_server: S3Server, tmp_path: Path) -> None:
    out = Out(bucket(s3_server, tmp_path.name), s3_server.folder / BUCKET / tmp_path.name, {})
    rows = [{"id": number, "name": str(number) * (5 << 20)} for number in (1, 2)]
    plan = out.plan(tmp_path, rows=rows)
    assert killed(plan, "delivery: parts put") == -9
    assert out.runs() == []
    _, context = plan.context()
    with buckets.opened(context, out.endpoint, ("exports", "orders", PIPELINE), "x", 1) as shelf:
        assert len(shelf.left()) == 1
        plan.again().deliver()
        assert out.runs() == [[1, 2]]
        assert shelf.left() == {}


@pytest.mark.parametrize(
    ("more", "secrets", "code", "said"),
    [
        ({}, {"secret_key": "wrong"}, "BUCKET_UNAUTHORIZED", "secret key or the region is wrong"),
        ({}, {}, "MISSING_SECRET", "secret key is not set"),
        ({"access_key_id": "AKIANOBODY"}, None, "BUCKET_UNAUTHORIZED", "does not know this access key"),
        ({"bucket": "nowhere-here"}, None, "BUCKET_NOT_FOUND", "there is no such bucket"),
        ({"endpoint": "http://10.0.0.1:9000"}, None, "ADDRESS_REFUSED", "10.0.0.1 is a private address"),
    ],
)
def test_a_store_that_refuses_is_told_with_what_to_do(
    s3_server: S3Server, tmp_path: Path, more: dict[str, Any], secrets: dict[str, str] | None, code: str, said: str
) -> None:
    endpoint = bucket(s3_server, tmp_path.name, **more)
    found = Endpoint(endpoint.id, endpoint.kind, endpoint.config, endpoint.secrets if secrets is None else secrets)
    error = failure(Plan(found, tmp_path, {"target": TARGET}))
    assert (error.code, error.passing) == (code, False)
    assert said in error.message


class Store:
    """A store that knows no conditions, and is slow or full now and then; with what it was asked to hold."""

    def __init__(self, *troubles: Reply) -> None:
        self.objects: dict[str, bytes] = {}
        self._troubles = list(troubles)

    def __call__(self, seen: Seen) -> Reply:
        key = seen.path.removeprefix("/lake/")
        if seen.method == "PUT" and self._troubles:
            return self._troubles.pop(0)
        if "if-none-match" in seen.headers:
            return Reply(b"<Error><Code>NotImplemented</Code></Error>", 501)
        if seen.method == "PUT":
            self.objects[key] = seen.body
        elif seen.method == "DELETE":
            self.objects.pop(key, None)
        elif "list-type" in seen.parameters:
            return Reply(self._listed(seen.parameters["prefix"]))
        elif key not in self.objects:
            return Reply(b"<Error><Code>NoSuchKey</Code></Error>", 404)
        return Reply(self.objects.get(key, b""))

    def _listed(self, prefix: str) -> bytes:
        facts = "<Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified>"
        found = [f"<Contents><Key>{key}</Key>{facts}</Contents>" for key in self.objects if key.startswith(prefix)]
        return f"<ListBucketResult>{''.join(found)}<IsTruncated>false</IsTruncated></ListBucketResult>".encode()


def to_store(api: Api, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(api, "answer", store)
    monkeypatch.setattr(buckets, "pause", lambda *_: 0.01)
    config = {"endpoint": api.url, "bucket": "lake", "path_style": True}
    return Plan(Endpoint("dst_s3", "object_store", config), folder, {"target": TARGET, "format": "json"})


def test_a_store_that_is_slow_is_asked_again_and_one_without_conditions_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Reply(b"<Error><Code>SlowDown</Code></Error>", 503)
    store = Store(slow, slow)
    with serving() as api:
        plan = to_store(api, store, tmp_path, monkeypatch)
        assert plan.deliver().rows_out == 5
        place = f"{TARGET}/{PIPELINE}/{plan.run}-0"
        names = ["_SUCCESS", *(f"part-1-{number:05}.json" for number in range(3))]
        assert sorted(store.objects) == [f"{place}/{name}" for name in names]
        before = dict(store.objects)
        assert plan.again().deliver().rows_out == 5
    assert store.objects == before


def test_a_store_that_is_full_is_told_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Reply(b"<Error><Code>XMinioStorageFull</Code></Error>", 507)
    monkeypatch.setattr(buckets, "ATTEMPTS", 1)
    store = Store()
    with serving() as api:
        plan = to_store(api, store, tmp_path, monkeypatch)
        monkeypatch.setattr(api, "answer", lambda seen: full if "00002" in seen.path else store(seen))
        error = failure(plan)
    assert (error.code, error.passing) == ("FULL_THERE", True)
    assert "object store is full" in error.message
    assert store.objects == {}


def test_a_store_that_is_nowhere_is_told(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "pause", lambda *_: 0.01)
    endpoint = bucket(s3_server, "x", endpoint="http://nowhere.invalid")
    error = failure(Plan(endpoint, tmp_path, {"target": TARGET}))
    assert (error.code, error.passing, "nowhere.invalid" in error.message) == ("BUCKET_UNREACHABLE", True, True)


def test_a_disk_that_is_full_under_spark_is_told() -> None:
    aborted = "Job aborted due to stage failure: java.io.IOException: No space left on device"
    found = exporting.full(Cause(("org.apache.spark.SparkException",), aborted, None))
    assert found is not None
    assert (found.code, found.passing, "the operator must free space" in found.message) == ("DISK_FULL", True, True)
    assert exporting.full(Cause(("java.io.IOException",), "Broken pipe", None)) is None
