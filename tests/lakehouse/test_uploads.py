"""Uploads in parts: resumed after whatever interrupts them, judged at each step, and one file at the end."""

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.kit.database import Database
from headgate.lakehouse.trash.deletion import delete_item
from headgate.lakehouse.uploads import repository, service
from headgate.schema import METADATA
from headgate.warehouse.folder import FolderStore
from headgate.warehouse.locations import upload_part
from tests.lakehouse.files_support import DISCONNECT, Volume, pieces, streamed
from tests.lakehouse.support import acting
from tests.support.company import Api, Company, company

CONTENT = os.urandom(300_000)
SUM = hashlib.sha256(CONTENT).hexdigest()


class Upload:
    """An upload, as a member drives it."""

    def __init__(
        self, volume: Volume, member: str, path: str = "big.csv", size: int = len(CONTENT), **more: Any
    ) -> None:
        self.api: Api = volume.millrace.as_(member)
        self.begun = self.api.post(f"{volume.at}/uploads", {"path": path, "size": size, **more})
        self.at = f"/api/uploads/{self.begun.json().get('id')}"

    def send(self, content: Any, offset: int | str, api: Api | None = None) -> Any:
        headers = {"Upload-Offset": str(offset)}
        return (api or self.api).request("PATCH", self.at, content=content, headers=headers)

    def offset(self) -> int:
        answer = self.api.get(self.at)
        assert answer.headers["upload-offset"] == str(answer.json()["offset"])
        return int(answer.json()["offset"])

    def finish(self, sha256: str | None = None, api: Api | None = None) -> Any:
        return (api or self.api).post(f"{self.at}/finish", {"sha256": sha256})


@pytest.fixture
def volume(millrace: Company) -> Volume:
    return Volume(millrace)


@pytest.fixture
def on_sqlite(millrace_on_sqlite: Company) -> Volume:
    return Volume(millrace_on_sqlite)


def sent(volume: Volume, member: str = "Tom", **more: Any) -> Upload:
    """An upload whose parts are all there."""
    upload = Upload(volume, member, **more)
    assert upload.begun.status_code == 200, upload.begun.text
    assert upload.send(CONTENT, 0).status_code == 200
    return upload


def test_parts_become_one_file(volume: Volume) -> None:
    upload = Upload(volume, "Tom", media_type="text/csv")
    begun = upload.begun.json()
    assert (begun["offset"], begun["size"], begun["path"]) == (0, len(CONTENT), "big.csv")
    assert begun["expires_at"]
    for begin in range(0, len(CONTENT), 70_000):
        part = CONTENT[begin : begin + 70_000]
        answer = upload.send(part, begin)
        assert (answer.status_code, answer.json()["offset"]) == (200, begin + len(part))
        assert answer.headers["upload-offset"] == str(begin + len(part))
        assert upload.offset() == begin + len(part)
        assert volume.get("Tom", "big.csv").status_code == 404
    made = upload.finish(SUM)
    assert made.status_code == 200, made.text
    assert (made.json()["sha256"], made.json()["media_type"]) == (SUM, "text/csv")
    assert volume.get("Tess", "big.csv").content == CONTENT
    assert volume.parts() == set()
    assert volume.is_whole()
    assert upload.api.get(upload.at).status_code == 404


def test_a_head_tells_the_offset(on_sqlite: Volume) -> None:
    upload = Upload(on_sqlite, "Tom")
    upload.send(CONTENT[:10], 0)
    head = upload.api.request("HEAD", upload.at)
    assert (head.status_code, head.headers["upload-offset"], head.content) == (200, "10", b"")


def test_an_empty_file_has_no_parts(volume: Volume) -> None:
    assert Upload(volume, "Tom", size=0).finish(hashlib.sha256(b"").hexdigest()).json()["size"] == 0
    assert volume.get("Tom", "big.csv").content == b""


def test_a_long_body_is_kept_part_by_part(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PART", 64_000)
    upload = Upload(volume, "Tom")
    assert upload.send(pieces(CONTENT, 9_999), 0).json()["offset"] == len(CONTENT)
    assert len(volume.parts()) == 5
    assert upload.finish(SUM).status_code == 200
    assert volume.get("Tom", "big.csv").content == CONTENT


def test_a_part_elsewhere_is_told_where_to_go_on(volume: Volume) -> None:
    upload = Upload(volume, "Tom")
    upload.send(CONTENT[:1000], 0)
    for offset in (0, 999, 1001, 10**9):
        refused = upload.send(CONTENT[1000:2000], offset)
        assert (refused.status_code, refused.json()["offset"], refused.headers["upload-offset"]) == (409, 1000, "1000")
    assert upload.offset() == 1000


@pytest.mark.parametrize("offset", ["-1", "x", "", "1.5", str(1 << 61)])
def test_an_offset_that_is_none_is_refused(on_sqlite: Volume, offset: str) -> None:
    upload = Upload(on_sqlite, "Tom")
    assert upload.send(b"x", offset).status_code == 422
    assert upload.api.request("PATCH", upload.at, content=b"x").status_code == 422


def test_an_empty_part_changes_nothing(on_sqlite: Volume) -> None:
    upload = Upload(on_sqlite, "Tom")
    assert upload.send(b"", 0).json()["offset"] == 0
    assert on_sqlite.parts() == set()


def test_no_more_is_taken_than_was_announced(volume: Volume) -> None:
    upload = Upload(volume, "Tom", size=10)
    assert upload.send(b"x" * 11, 0).status_code == 413
    assert upload.offset() == 10
    assert upload.send(b"x", 10).status_code == 413
    assert upload.finish().json()["size"] == 10


def test_an_unfinished_upload_is_no_file(volume: Volume) -> None:
    upload = Upload(volume, "Tom")
    upload.send(CONTENT[:5], 0)
    refused = upload.finish()
    assert (refused.status_code, refused.json()["offset"]) == (409, 5)
    assert volume.paths() == []


def test_a_wrong_sum_makes_no_file(volume: Volume) -> None:
    upload = sent(volume)
    refused = upload.finish("0" * 64)
    assert (refused.status_code, refused.json()["sha256"]) == (422, SUM)
    assert (volume.paths(), volume.blobs()) == ([], set())
    assert upload.finish(SUM).status_code == 200
    assert upload.finish("0" * 64).status_code == 422


@pytest.mark.parametrize(
    "body",
    [{}, {"path": "a"}, {"path": "../a", "size": 1}, {"path": "", "size": 1}, {"path": "a", "size": -1}, {"path": "a", "size": 1 << 61},
     {"path": "a\u0000", "size": 1}, {"path": "x" * 1001, "size": 1}, {"path": "a", "size": "many"}, {"path": ["a"], "size": 1}],
)  # fmt: skip
def test_a_bad_beginning_is_refused(on_sqlite: Volume, body: Any) -> None:
    assert on_sqlite.millrace.as_("Tom").post(f"{on_sqlite.at}/uploads", body).status_code == 422


def test_an_upload_has_the_limit_of_a_file(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with company(database, tmp_path, warehouse={"max_file_bytes": 1000}) as found:
        volume = Volume(found)
        assert Upload(volume, "Tom", size=1001).begun.status_code == 413
        upload = Upload(volume, "Tom", size=1000)
        assert upload.send(b"x" * 1001, 0).status_code == 413
        assert upload.send(b"x" * 1000, 0).status_code == 200
        assert upload.finish().status_code == 200


def test_a_member_has_so_many_uploads_at_a_time(on_sqlite: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.lakehouse.uploads.repository.MOST", 2)
    first = Upload(on_sqlite, "Tom", "a")
    assert Upload(on_sqlite, "Tom", "b").begun.status_code == 200
    assert Upload(on_sqlite, "Tom", "c").begun.status_code == 409
    assert Upload(on_sqlite, "Tess", "c").begun.status_code == 200
    assert first.api.request("DELETE", first.at).status_code == 200
    assert Upload(on_sqlite, "Tom", "c").begun.status_code == 200


# Replacing


def test_replacing_is_asked_for_at_the_beginning(volume: Volume) -> None:
    volume.put("Tom", "big.csv", b"old")
    assert Upload(volume, "Tom").begun.status_code == 409
    assert Upload(volume, "Tom", "BIG.csv", overwrite=True).begun.status_code == 409
    assert sent(volume, overwrite=True).finish().status_code == 200
    assert volume.get("Tom", "big.csv").content == CONTENT
    assert volume.is_whole()


def test_a_file_that_came_meanwhile_is_kept(volume: Volume) -> None:
    upload = sent(volume)
    volume.put("Tess", "big.csv", b"hers")
    assert upload.finish().status_code == 409
    assert volume.get("Tom", "big.csv").content == b"hers"
    volume.delete("Tess", "big.csv")
    assert upload.finish(SUM).status_code == 200
    assert volume.get("Tom", "big.csv").content == CONTENT
    assert volume.is_whole()


# Who may


def test_an_upload_is_its_beginners_own(volume: Volume) -> None:
    upload = sent(volume, "Tom")
    for other in ("Tess", "Adam", "Ben"):
        api = volume.millrace.as_(other)
        missing = "/api/uploads/upl_" + "0" * 20
        for at in (upload.at, missing):
            assert api.get(at).status_code == 404
            assert api.request("PATCH", at, content=b"x", headers={"Upload-Offset": "0"}).status_code == 404
            assert api.post(f"{at}/finish", {}).status_code == 404
            assert api.request("DELETE", at).status_code == 404
    assert volume.millrace.as_("Tess").get(f"{volume.at}/uploads").json()["items"] == []
    assert [one["path"] for one in upload.api.get(f"{volume.at}/uploads").json()["items"]] == ["big.csv"]
    assert upload.finish().status_code == 200
    assert upload.finish(api=volume.millrace.as_("Tess")).status_code == 404


def test_a_viewer_begins_none(volume: Volume) -> None:
    volume.grant("Ben", "viewer")
    assert Upload(volume, "Ben").begun.status_code == 403
    assert volume.millrace.as_("Ben").get(f"{volume.at}/uploads").status_code == 403
    volume.revoke("Ben", "viewer")
    assert Upload(volume, "Ben").begun.status_code == 404


@pytest.mark.parametrize(("kept", "status"), [("viewer", 403), (None, 404)])
def test_a_right_that_ends_ends_the_upload(volume: Volume, kept: str | None, status: int) -> None:
    volume.grant("Ben", "editor")
    if kept:
        volume.grant("Ben", kept)
    between = Upload(volume, "Ben", "a")
    whole = sent(volume, "Ben", path="b")
    volume.revoke("Ben", "editor")
    for answer in (
        between.send(b"x", 0), whole.finish(), whole.api.get(whole.at), whole.api.request("DELETE", whole.at)
    ):  # fmt: skip
        assert answer.status_code == status
    assert volume.paths() == []
    volume.grant("Ben", "editor")
    assert between.offset() == 0
    assert whole.finish(SUM).status_code == 200


def test_a_right_that_ends_during_a_body_ends_it_there(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PART", 256 << 10)
    volume.grant("Ben", "editor")
    upload = Upload(volume, "Ben", size=10 << 20)

    def revoking() -> Any:
        for _ in range(4):
            yield b"x" * (256 << 10)
        volume.revoke_at_once("Ben", "editor")
        for _ in range(4):
            yield b"x" * (256 << 10)

    answer = streamed(upload.api, "PATCH", upload.at, revoking(), upload_offset="0")
    assert (answer.status, answer.taken) == (404, 5)
    assert volume.millrace.rows("SELECT received FROM uploads") == [(1 << 20,)]


def test_a_broken_connection_costs_the_last_part_alone(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PART", 256 << 10)
    content = os.urandom(1 << 20)
    upload = Upload(volume, "Tom", size=len(content))
    begun = [*pieces(content[:600_000], 100_000), DISCONNECT]
    assert streamed(upload.api, "PATCH", upload.at, begun, upload_offset="0").status == 400
    offset = upload.offset()
    assert offset == 512 << 10
    assert upload.send(content[offset:], offset).status_code == 200
    assert upload.finish(hashlib.sha256(content).hexdigest()).status_code == 200


def test_a_right_that_ends_while_the_parts_are_joined(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    volume.grant("Ben", "editor")
    upload = sent(volume, "Ben")
    plain = service._join

    def revoking(*arguments: Any) -> Any:
        found = plain(*arguments)
        volume.revoke_at_once("Ben", "editor")
        return found

    monkeypatch.setattr(service, "_join", revoking)
    assert upload.finish().status_code == 404
    assert volume.paths() == []


def test_an_upload_ends_with_its_time(volume: Volume) -> None:
    upload = sent(volume)
    with volume.millrace.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE uploads SET expires_at = created_at")
    assert upload.finish().status_code == 404
    assert upload.send(b"", 0).status_code == 404
    assert upload.api.get(f"{volume.at}/uploads").json()["items"] == []


def test_an_upload_ends_with_its_volume(volume: Volume) -> None:
    upload = sent(volume)
    acting(volume.millrace, "Tess", lambda call: delete_item(call, volume.id))
    assert upload.finish().status_code == 404
    assert upload.send(b"x", 0).status_code == 404


def test_a_cancelled_upload_leaves_nothing(volume: Volume) -> None:
    upload = sent(volume)
    assert upload.api.request("DELETE", upload.at).json()["id"] in upload.at
    assert upload.api.request("DELETE", upload.at).status_code == 404
    assert (upload.finish().status_code, volume.parts(), volume.paths()) == (404, set(), [])


# Death at each step, and two at a time


def dying(*_: Any, **__: Any) -> Any:
    raise RuntimeError("killed")


def test_a_part_that_was_kept_and_never_counted_is_counted(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(volume, "Tom")
    with monkeypatch.context() as patched:
        patched.setattr(service, "_advance", dying)
        assert upload.send(CONTENT[:1000], 0).status_code == 500
    assert upload.offset() == 0
    again = upload.send(CONTENT[:700], 0)
    assert (again.status_code, again.json()["offset"]) == (409, 1000)
    assert upload.offset() == 1000
    assert upload.send(CONTENT[1000:], 1000).status_code == 200
    assert upload.finish(SUM).status_code == 200
    assert volume.get("Tom", "big.csv").content == CONTENT


def _before_row(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(service, "_conclude", dying)


def _in_row(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(repository, "remove", dying)


def _after_row(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(service, "discard", dying)


def _in_sweep(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(FolderStore, "delete_folder", dying)


@pytest.mark.parametrize("kill", [_before_row, _in_row, _after_row, _in_sweep])
def test_a_killed_finish_that_is_repeated_gives_one_file(
    volume: Volume, monkeypatch: pytest.MonkeyPatch, kill: Callable[[pytest.MonkeyPatch], None]
) -> None:
    volume.put("Tom", "big.csv", b"old")
    upload = sent(volume, overwrite=True)
    with monkeypatch.context() as patched:
        kill(patched)
        assert upload.finish(SUM).status_code == 500
    assert volume.get("Tom", "big.csv").content in {b"old", CONTENT}
    first, second = upload.finish(SUM), upload.finish(SUM)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert volume.get("Tom", "big.csv").content == CONTENT
    assert volume.paths() == ["big.csv"]


def test_a_finish_that_died_with_other_bytes_is_noticed(volume: Volume) -> None:
    upload = sent(volume)
    file = service.file_of(upload.at.rpartition("/")[2])
    volume.store.write(f"volumes/{volume.id}/{file}", [b"something else"])
    assert upload.finish().status_code == 422
    assert volume.paths() == []


def test_lost_parts_are_said_so(volume: Volume) -> None:
    upload = sent(volume)
    volume.store.delete(upload_part(upload.at.rpartition("/")[2], 0))
    refused = upload.finish()
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "start again" in refused.json()["detail"]


def together(*works: Callable[[], Any]) -> list[Any]:
    """Do some work at the same moment, each in a thread."""
    barrier, found = threading.Barrier(len(works)), [None] * len(works)

    def run(number: int) -> None:
        barrier.wait()
        found[number] = works[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_two_finishes_at_a_time_make_one_file(volume: Volume) -> None:
    for round_ in range(5):
        upload = sent(volume, path=f"{round_}.csv")
        one, other = together(lambda: upload.finish(SUM), lambda: upload.finish(SUM))  # noqa: B023 - called at once
        assert (one.status_code, other.status_code) == (200, 200), (one.text, other.text)
        assert one.json() == other.json()
    assert len(volume.paths()) == 5
    assert volume.is_whole()


def test_two_parts_at_one_place_keep_one(volume: Volume) -> None:
    for round_ in range(5):
        upload = Upload(volume, "Tom", path=f"{round_}.csv", size=2000)
        answers = together(lambda: upload.send(b"a" * 1000, 0), lambda: upload.send(b"b" * 500, 0))  # noqa: B023
        assert sorted(one.status_code for one in answers) in ([200, 409], [409, 409])
        offset = upload.offset()
        assert offset in {500, 1000}
        assert upload.send(b"c" * (2000 - offset), offset).status_code == 200
        assert upload.finish().status_code == 200
        content = volume.get("Tom", f"{round_}.csv").content
        assert content in {b"a" * 1000 + b"c" * 1000, b"b" * 500 + b"c" * 1500}


def test_two_files_at_one_path_at_a_time_leave_one(volume: Volume) -> None:
    for round_ in range(5):
        path = f"{round_}.csv"
        answers = together(lambda: volume.put("Tom", path, b"one"), lambda: volume.put("Tess", path.upper(), b"two"))  # noqa: B023
        assert sorted(one.status_code for one in answers) == [200, 409]
    assert len(volume.paths()) == 5
    assert volume.is_whole()
