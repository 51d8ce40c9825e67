"""Files of volumes over HTTP: bytes come back as they went in, for those who may, and for nobody else."""

import hashlib
import os
import secrets
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from headgate.kit.database import Database
from headgate.lakehouse.files import service as files_service
from headgate.lakehouse.files.endpoints import TAKING
from headgate.lakehouse.items.service import create_item
from headgate.platform.audit.models import audit_event_table
from headgate.platform.http.bodies import Body
from headgate.schema import METADATA
from headgate.warehouse.folder import FolderStore
from tests.lakehouse.files_support import DISCONNECT, STALL, Volume, pieces
from tests.lakehouse.support import acting
from tests.lakehouse.test_files_names import HOSTILE
from tests.support.company import Company, company
from tests.support.installation import eventually

MIB = 1 << 20


@pytest.fixture
def volume(millrace: Company) -> Volume:
    return Volume(millrace)


@pytest.fixture
def on_sqlite(millrace_on_sqlite: Company) -> Volume:
    return Volume(millrace_on_sqlite)


# Round trips


@pytest.mark.parametrize("content", [b"", b"x", os.urandom(5 * MIB)], ids=["0 B", "1 B", "5 MiB"])
def test_what_goes_in_comes_out(volume: Volume, content: bytes) -> None:
    made = volume.put("Tom", "2026/march data.csv", content)
    assert made.status_code == 200, made.text
    body, sha256 = made.json(), hashlib.sha256(content).hexdigest()
    assert (body["path"], body["size"], body["sha256"]) == ("2026/march data.csv", len(content), sha256)
    assert (body["media_type"], body["created_by"]["name"]) == ("text/csv", "Tom")
    got = volume.get("Tess", "2026/march data.csv")
    assert got.status_code == 200
    assert got.content == content
    assert got.headers["etag"] == f'"{sha256}"'
    assert got.headers["content-length"] == str(len(content))
    assert got.headers["accept-ranges"] == "bytes"
    assert volume.is_whole()


def test_a_body_of_unknown_length_is_taken(volume: Volume) -> None:
    content = os.urandom(MIB + 7)
    assert volume.put("Tom", "a", pieces(content, 9999)).json()["size"] == len(content)
    assert volume.get("Tom", "a").content == content


def test_head_tells_without_the_bytes(volume: Volume) -> None:
    volume.put("Tom", "a", b"0123456789")
    head = volume.get("Tom", "a", method="HEAD")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "10")
    assert head.headers["etag"].strip('"') == hashlib.sha256(b"0123456789").hexdigest()
    part = volume.get("Tom", "a", method="HEAD", Range="bytes=2-4")
    assert (part.status_code, part.content, part.headers["content-length"]) == (206, b"", "3")
    assert volume.get("Tom", "b", method="HEAD").status_code == 404


@pytest.mark.parametrize(
    ("asked", "given", "header"),
    [
        ("bytes=0-0", b"0", "bytes 0-0/10"),
        ("bytes=2-4", b"234", "bytes 2-4/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=0-99", b"0123456789", "bytes 0-9/10"),
        ("bytes=-99", b"0123456789", "bytes 0-9/10"),
        ("Bytes=9-9", b"9", "bytes 9-9/10"),
    ],
)
def test_a_range_is_given(on_sqlite: Volume, asked: str, given: bytes, header: str) -> None:
    on_sqlite.put("Tom", "a", b"0123456789")
    got = on_sqlite.get("Tom", "a", Range=asked)
    assert (got.status_code, got.content, got.headers["content-range"]) == (206, given, header)


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_range_beyond_the_end_is_refused(on_sqlite: Volume, asked: str) -> None:
    on_sqlite.put("Tom", "a", b"0123456789")
    got = on_sqlite.get("Tom", "a", Range=asked)
    assert (got.status_code, got.json()["code"]) == (416, "no_such_range")
    assert got.headers["content-range"] == "bytes */10"


@pytest.mark.parametrize(
    "asked", ["bytes=", "bytes=-", "bytes=a-b", "bytes=4-2", "bytes=0-1,3-4", "lines=1-2", "bytes 0-1"]
)
def test_a_range_that_is_none_gives_all(on_sqlite: Volume, asked: str) -> None:
    on_sqlite.put("Tom", "a", b"0123456789")
    got = on_sqlite.get("Tom", "a", Range=asked)
    assert (got.status_code, got.content) == (200, b"0123456789")


def test_an_empty_file_has_no_range(on_sqlite: Volume) -> None:
    on_sqlite.put("Tom", "a", b"")
    assert on_sqlite.get("Tom", "a", Range="bytes=0-").status_code == 416


def test_what_the_caller_has_is_not_sent_again(volume: Volume) -> None:
    tag = volume.put("Tom", "a", b"one").json()["sha256"]
    for header in (f'"{tag}"', f'W/"{tag}"', f'"x", "{tag}"', "*"):
        got = volume.get("Tom", "a", If_None_Match=header)
        assert (got.status_code, got.content, got.headers["etag"]) == (304, b"", f'"{tag}"')
    assert volume.get("Tom", "a", If_None_Match='"other"').content == b"one"
    volume.put("Tom", "a", b"two", overwrite=True)
    assert volume.get("Tom", "a", If_None_Match=f'"{tag}"').content == b"two"
    assert volume.get("Tom", "a", Range="bytes=0-0", If_Range=f'"{tag}"').content == b"two"


def test_a_304_needs_the_right_to_see(volume: Volume) -> None:
    tag = volume.put("Tom", "a", b"one").json()["sha256"]
    volume.grant("Ben", "viewer")
    assert volume.get("Ben", "a", If_None_Match=f'"{tag}"').status_code == 304
    volume.revoke("Ben", "viewer")
    assert volume.get("Ben", "a", If_None_Match=f'"{tag}"').status_code == 404


@pytest.mark.parametrize(
    ("path", "sent"),
    [("a.html", "text/html"), ("a.svg", "image/svg+xml"), ("a.xml", "application/xml"), ("a.js", "text/javascript")],
)
def test_nothing_runs_in_our_origin(on_sqlite: Volume, path: str, sent: str) -> None:
    on_sqlite.put("Tom", path, b"<script>alert(1)</script>", {"Content-Type": sent})
    got = on_sqlite.get("Tom", path)
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment;")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in got.headers["content-security-policy"]
    assert got.headers["cache-control"] == "no-store"


# Replacing and deleting


def test_replacing_is_asked_for(volume: Volume) -> None:
    first = volume.put("Tom", "a", b"one").json()
    refused = volume.put("Tom", "a", b"two")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "overwrite" in refused.json()["detail"]
    assert volume.get("Tom", "a").content == b"one"
    second = volume.put("Tess", "a", b"two", overwrite=True).json()
    assert second["id"] != first["id"]
    assert volume.get("Tom", "a").content == b"two"
    assert volume.paths() == ["a"]
    assert volume.is_whole()


def test_if_match_replaces_what_the_caller_knows(volume: Volume) -> None:
    tag = volume.put("Tom", "a", b"one").json()["sha256"]
    assert volume.put("Tom", "b", b"x", {"If-Match": "*"}).status_code == 412
    assert volume.put("Tom", "a", b"two", {"If-Match": '"other"'}).json()["code"] == "stale"
    assert volume.put("Tom", "A", b"two", {"If-Match": f'"{tag}"'}).status_code == 412
    assert volume.put("Tom", "a", b"two", {"If-Match": f'"{tag}"'}).status_code == 200
    assert volume.put("Tom", "a", b"three", {"If-Match": f'"{tag}"'}).status_code == 412
    assert volume.get("Tom", "a").content == b"two"
    assert volume.is_whole()


def test_a_path_that_looks_like_another_is_refused(volume: Volume) -> None:
    volume.put("Tom", "Straße.csv")
    for path in ("straße.csv", "STRASSE.CSV", "Straße.csv".replace("v", "\uff56")):
        refused = volume.put("Tom", path, overwrite=True)
        assert refused.status_code == 409
        assert "Straße.csv" in refused.json()["detail"]
        assert volume.get("Tom", path).status_code == 404
        assert volume.delete("Tom", path).status_code == 404
    assert volume.put("Tom", "Strasse2.csv").status_code == 200
    assert volume.is_whole()


def test_forms_of_one_path_are_one_file(volume: Volume) -> None:
    volume.put("Tom", "m\u00fcller", b"one")
    assert volume.get("Tom", "mu\u0308ller").content == b"one"
    assert volume.put("Tom", "mu\u0308ller", b"two", overwrite=True).status_code == 200
    assert volume.paths() == ["m\u00fcller"]


def test_a_deleted_file_is_gone(volume: Volume) -> None:
    volume.put("Tom", "a/b")
    assert volume.delete("Tom", "a/b").json()["path"] == "a/b"
    assert volume.delete("Tom", "a/b").status_code == 404
    assert volume.get("Tom", "a/b").status_code == 404
    assert volume.blobs() == set()


@pytest.mark.parametrize("path", [one for one in HOSTILE if one.encode("utf-8", "ignore").decode() == one])
def test_a_hostile_path_is_refused_before_a_byte_is_written(on_sqlite: Volume, path: str) -> None:
    quoted = "".join(f"%{byte:02x}" for byte in path.encode())
    for method in ("PUT", "GET", "DELETE"):
        answer = on_sqlite.millrace.as_("Tom").request(method, f"{on_sqlite.at}/files/{quoted}")
        is_control = any(ord(c) < 32 or ord(c) == 127 for c in path)
        assert answer.status_code == (404 if is_control else 422), (method, path)
        assert is_control or answer.json()["detail"].startswith("path: ")
    assert on_sqlite.blobs() == set()


def test_bytes_that_are_no_utf8_are_no_path(on_sqlite: Volume) -> None:
    assert on_sqlite.millrace.as_("Tom").request("PUT", f"{on_sqlite.at}/files/a%ff", content=b"x").status_code == 422


# Lists


def listed(volume: Volume, member: str = "Tom", **query: Any) -> Any:
    answer = volume.millrace.as_(member).get(f"{volume.at}/files", **query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def walked(volume: Volume, **query: Any) -> tuple[list[str], list[str]]:
    """Every page of a list: its paths, and its folders."""
    paths, folders, cursor = [], [], None
    while True:
        page = listed(volume, **query, **({"cursor": cursor} if cursor else {}))
        assert len(page["items"]) + len(page["folders"]) <= query.get("limit", 50)
        paths += [item["path"] for item in page["items"]]
        folders += page["folders"]
        cursor = page["next_cursor"]
        if cursor is None:
            return paths, folders


PATHS = ["a", "a!", "a/1", "a/2", "a/b/3", "b", "ba", "c/1", "c/2", "c/3", "c/4", "d/é", "d/😀", "é"]


def test_lists_go_by_path_and_page(volume: Volume) -> None:
    for path in reversed(PATHS):
        assert volume.put("Tom", path).status_code == 200
    for limit in (1, 2, 3, 13, 14, 15, 200):
        assert walked(volume, limit=limit) == (sorted(PATHS), [])
        assert walked(volume, limit=limit, prefix="a/") == (["a/1", "a/2", "a/b/3"], [])
        assert walked(volume, limit=limit, prefix="a") == (["a", "a!", "a/1", "a/2", "a/b/3"], [])
        assert walked(volume, limit=limit, delimiter="/") == (["a", "a!", "b", "ba", "é"], ["a/", "c/", "d/"])
        assert walked(volume, limit=limit, delimiter="/", prefix="a/") == (["a/1", "a/2"], ["a/b/"])
        assert walked(volume, limit=limit, delimiter="/", prefix="a") == (["a", "a!"], ["a/"])
        assert walked(volume, limit=limit, delimiter="/", prefix="c") == ([], ["c/"])
        assert walked(volume, limit=limit, prefix="zzz") == ([], [])


def test_the_longest_paths_are_listed_too(volume: Volume) -> None:
    signs = [chr(0x4E00 + n) for n in range(0x5000)]
    tail = "/" + "x" * (2000 - 7 * 250)
    long = ["/".join("".join(secrets.choice(signs) for _ in range(83)) for _ in range(7)) + tail for _ in range(3)]
    paths = sorted([*long, "/".join(["y" * 199] * 5)])
    assert {len(path.encode()) for path in paths} == {2000, 999}
    for path in paths:
        assert volume.put("Tom", path).status_code == 200
        assert volume.get("Tom", path).content == b"x"
    assert walked(volume, limit=1) == (paths, [])
    assert len(walked(volume, limit=1, delimiter="/")[1]) == 4
    assert walked(volume, limit=1, prefix=paths[0]) == ([paths[0]], [])


@pytest.mark.parametrize(
    "query", [{"delimiter": "x"}, {"prefix": "\x00"}, {"prefix": "a\\"}, {"cursor": "AAAA"}, {"limit": 0}]
)
def test_a_bad_list_is_refused(on_sqlite: Volume, query: dict[str, Any]) -> None:
    answer = on_sqlite.millrace.as_("Tom").get(f"{on_sqlite.at}/files", **query)
    assert answer.status_code == 422


def test_a_cursor_is_for_its_own_list(on_sqlite: Volume) -> None:
    for path in ("a/1", "a/2", "b"):
        on_sqlite.put("Tom", path)
    cursor = listed(on_sqlite, limit=1)["next_cursor"]
    for other in ({"prefix": "a"}, {"delimiter": "/"}):
        assert on_sqlite.millrace.as_("Tom").get(f"{on_sqlite.at}/files", cursor=cursor, **other).status_code == 422


# Who may


def test_levels(volume: Volume) -> None:
    volume.put("Tom", "a", b"one")
    volume.grant("Ben", "viewer")
    assert listed(volume, "Ben")["items"][0]["path"] == "a"
    assert volume.get("Ben", "a").content == b"one"
    for answer in (volume.put("Ben", "b"), volume.put("Ben", "a", overwrite=True), volume.delete("Ben", "a")):
        assert (answer.status_code, answer.json()["code"]) == (403, "denied")
    read_only = volume.millrace.as_("Tess", read_only=True)
    assert volume.get(read_only, "a").content == b"one"
    assert volume.put(read_only, "b").status_code == 403
    assert volume.paths() == ["a"]
    assert volume.is_whole()


def test_what_is_hidden_answers_like_what_is_missing(volume: Volume) -> None:
    volume.put("Tom", "a", b"one")
    missing = Volume(volume.millrace)
    missing.id, missing.at = "vol_" + "0" * 20, f"/api/volumes/vol_{'0' * 20}"

    def plain(answer: Any) -> Any:
        body = answer.json()
        body.pop("request_id")
        return answer.status_code, body

    for path in ("a", "b", "../x"):
        for do in (
            lambda one, p=path: one.get("Ben", p),
            lambda one, p=path: one.put("Ben", p),
            lambda one, p=path: one.delete("Ben", p),
        ):
            assert plain(do(volume)) == plain(do(missing))
            assert plain(do(volume))[0] == 404
    ben = volume.millrace.as_("Ben")
    assert plain(ben.get(f"{volume.at}/files")) == plain(ben.get(f"{missing.at}/files"))
    only = volume.millrace.as_("Adam", only=[volume.millrace.id("table", "raw.orders")])
    assert volume.get(only, "a").status_code == 404
    assert volume.get(volume.millrace.as_(None), "a").status_code == 401


def test_a_file_is_found_in_its_own_volume_only(volume: Volume) -> None:
    raw = volume.millrace.id("layer", "raw")
    other = acting(volume.millrace, "Tess", lambda call: create_item(call, "volume", raw, "letters"))
    volume.put("Tom", "a", b"one")
    answer = volume.millrace.as_("Tom").get(f"/api/volumes/{other}/files/a")
    assert answer.status_code == 404
    assert volume.millrace.as_("Tom").get(f"/api/volumes/{other}/files").json()["items"] == []


def told(volume: Volume) -> Counter[Any]:
    """What the audit log says of the volume: events, what each is about, and who did it."""
    columns = [audit_event_table.c[name] for name in ("event", "after", "actor_id")]
    query = select(*columns).where(audit_event_table.c.resource_id == volume.id)
    with volume.millrace.database.read() as connection:
        rows = connection.execute(query).all()
    names = {volume.millrace.id("member", name): name for name in ("Tom", "Tess", "Ben")}
    return Counter((e, (a or {}).get("change") or (a or {}).get("range"), names[who]) for e, a, who in rows)


def test_who_did_what_is_in_the_audit_log(volume: Volume) -> None:
    volume.put("Tom", "a", b"one")
    volume.put("Tom", "a", b"two", overwrite=True)
    volume.get("Tess", "a", Range="bytes=0-1")
    volume.get("Tess", "a", method="HEAD")
    volume.delete("Tom", "a")
    volume.put("Ben", "a")
    expected = {
        ("access.changed", "put_file", "Tom"): 2,
        ("access.changed", "delete_file", "Tom"): 1,
        ("resource.read", "bytes=0-1", "Tess"): 1,
        ("access.denied", None, "Ben"): 1,
    }
    eventually(lambda: told(volume) == expected)


# Limits, slowness and accidents


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A company whose files have at most 1,000,000 bytes."""
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    settings = {"warehouse": {"max_file_bytes": 1_000_000}, "server": {"max_body_bytes": 2048}}
    with company(database, tmp_path, **settings) as found:
        yield Volume(found)


def test_a_file_has_a_limit_of_its_own(small: Volume) -> None:
    assert small.put("Tom", "a", b"x" * 1_000_000).status_code == 200
    refused = small.put("Tom", "b", b"x" * 1_000_001)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert "max_file_bytes" in refused.json()["detail"]
    declared = small.stream("Tom", "b", pieces(b"x" * 1_000_001, 5000), content_length="1000001")
    assert (declared.status, declared.taken) == (413, 0)
    cut = small.stream("Tom", "b", (b"x" * 5000 for _ in range(10_000)))
    assert (cut.status, cut.json()["code"], cut.headers["connection"]) == (413, "too_large", "close")
    assert "max_file_bytes" in cut.json()["detail"]
    assert cut.taken == 201
    assert small.paths() == ["a"]
    assert small.is_whole()
    tom = small.millrace.as_("Tom")
    assert tom.post("/api/access/explain", {"action": "see", "resource": "x" * 5000}).status_code == 413
    assert tom.post(f"{small.at}/uploads", {"path": "c", "size": 1, "media_type": "x" * 3000}).status_code == 413


def test_a_client_that_stalls_is_given_up(on_sqlite: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Body.__init__, "__defaults__", (0.2,))
    answer = on_sqlite.stream("Tom", "a", [b"x" * 400_000, STALL])
    assert (answer.status, answer.json()["code"], answer.headers["connection"]) == (408, "too_slow", "close")
    trickled = on_sqlite.stream("Tom", "a", (time.sleep(0.05) or b"x" for _ in range(1000)))
    assert (trickled.status, trickled.taken < 20) == (408, True)
    assert (on_sqlite.paths(), on_sqlite.blobs()) == ([], set())
    monkeypatch.undo()
    assert on_sqlite.put("Tom", "a").status_code == 200


def test_clients_that_go_away_leave_nothing_behind(volume: Volume) -> None:
    assert volume.stream("Tom", "warm", [b"x"]).status == 200
    pool = volume.millrace.database.engine.pool
    threads, out = threading.active_count(), pool.checkedout()  # type: ignore[attr-defined]
    for _ in range(2 * int(TAKING.total_tokens)):
        answer = volume.stream("Tom", "a", [b"x" * 300_000, DISCONNECT])
        assert answer.status == 400
    assert pool.checkedout() == out  # type: ignore[attr-defined]
    assert TAKING.borrowed_tokens == 0
    eventually(lambda: threading.active_count() <= threads)
    assert volume.paths() == ["warm"]
    assert volume.is_whole()


def test_one_member_does_not_take_every_place(on_sqlite: Volume) -> None:
    statuses: list[int] = []
    begun, over = threading.Semaphore(0), threading.Event()

    def slowly() -> Any:
        yield b"x" * 300_000
        begun.release()
        over.wait(60)
        yield b"x"

    def send(number: int) -> None:
        statuses.append(on_sqlite.stream("Tom", f"slow {number}", slowly()).status)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    assert all(begun.acquire(timeout=60) for _ in threads)
    refused = on_sqlite.put("Tom", "one more")
    other = on_sqlite.put("Tess", "hers")
    over.set()
    for thread in threads:
        thread.join()
    assert (refused.status_code, refused.json()["code"], other.status_code) == (429, "too_many", 200)
    assert statuses == [200] * 8
    assert on_sqlite.put("Tom", "one more").status_code == 200
    assert on_sqlite.is_whole()


def test_a_store_in_trouble_is_said_so(on_sqlite: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    on_sqlite.put("Tom", "a")

    def broken(*_: Any) -> None:
        raise OSError(5, "Input/output error", "/srv/secret/warehouse")

    monkeypatch.setattr(FolderStore, "open", broken)
    answer = on_sqlite.get("Tom", "a")
    assert answer.status_code == 503
    assert "secret" not in answer.text


def test_a_body_that_is_waited_for_holds_no_connection(volume: Volume) -> None:
    pool, seen = volume.millrace.database.engine.pool, []

    def watching() -> Any:
        for _ in range(3):
            seen.append(pool.checkedout())  # type: ignore[attr-defined]
            yield b"x" * 300_000

    before = pool.checkedout()  # type: ignore[attr-defined]
    assert volume.stream("Tom", "a", watching()).status == 200
    assert seen == [before] * 3


def test_a_refusal_comes_before_the_body_is_read(volume: Volume) -> None:
    volume.put("Tom", "a", b"one")
    taken = []

    def counted() -> Any:
        for _ in range(4):
            taken.append(1)
            yield b"x" * 100_000

    assert volume.stream("Tom", "a", counted()).status == 409
    assert volume.stream("Ben", "b", counted()).status == 404
    assert volume.stream("Tom", "..", counted()).status == 422
    assert taken == []
    assert volume.is_whole()


def test_a_right_that_ends_during_the_body_is_gone(volume: Volume) -> None:
    volume.grant("Ben", "editor")

    def revoking() -> Any:
        yield b"x" * 300_000
        volume.revoke_at_once("Ben", "editor")
        yield b"x" * 300_000

    assert volume.stream("Ben", "a", revoking()).status == 404
    assert volume.paths() == []
    assert volume.blobs() == set()


def test_a_file_put_by_another_during_the_body_is_kept(volume: Volume) -> None:
    first = files_service.NewFile(
        "fil_" + "1" * 20, volume.id, "a", 5, hashlib.sha256(b"first").hexdigest(), "text/csv"
    )

    def racing() -> Any:
        yield b"x" * 300_000
        volume.store.write(f"volumes/{volume.id}/{first.id}", [b"first"])
        acting(volume.millrace, "Tess", lambda call: files_service.place(call, first, files_service.ReplaceCondition()))
        yield b"x" * 300_000

    assert volume.stream("Tom", "a", racing()).status == 409
    assert volume.get("Tom", "a").content == b"first"
    assert volume.is_whole()


def test_a_death_before_the_row_leaves_bytes_that_nobody_sees(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(files_service, "place", dies)
        assert volume.put("Tom", "a", b"one").status_code == 500
    assert volume.get("Tom", "a").status_code == 404
    assert len(volume.blobs()) == 1
    assert volume.put("Tom", "a", b"one").status_code == 200
    assert volume.get("Tom", "a").content == b"one"


def test_a_death_after_the_row_leaves_the_new_file(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    volume.put("Tom", "a", b"one")

    def dies(*_: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(files_service, "discard", dies)
        assert volume.put("Tom", "a", b"two", overwrite=True).status_code == 500
    assert volume.get("Tom", "a").content == b"two"
    assert volume.named() < volume.blobs()


def test_a_full_disk_is_said_so(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "/srv/secret/warehouse")

    monkeypatch.setattr(FolderStore, "write", full)
    answer = volume.put("Tom", "a", b"one")
    assert answer.status_code == 503
    assert "secret" not in answer.text
    assert volume.paths() == []
