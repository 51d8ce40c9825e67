"""Files of an object store: listed below a prefix, brought with signed requests, or told why not."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.sources.fetch import bucket
from headgate.execution.sources.fetch.bucket import Bucket
from headgate.execution.sources.fetch.objects import from_objects, plain_part
from headgate.outgoing.client import Outgoing
from headgate.settings.outgoing import OutgoingSettings
from headgate.warehouse.sigv4 import AccessKey
from tests.execution.sources.fetch import contents, context, endpoint, land, refused
from tests.support.api import Reply, Seen, serving
from tests.support.s3 import BUCKET, KEY_ID, REGION, SECRET, S3Server

ODD = "in/odd ü+&=%20'(1)~!.csv"


@pytest.fixture(scope="module")
def store(s3_server: S3Server) -> S3Server:
    for key, content in {
        "in/a.csv": b"a\n",
        "in/b.csv": b"b\n",
        ODD: b"odd\n",
        "in/deep/er/c.csv": b"c\n",
        "in/notes.txt": b"no\n",
        "inside/d.csv": b"not below the prefix\n",
    }.items():
        file = s3_server.folder / BUCKET / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return s3_server


def config(store: S3Server, **more: Any) -> dict[str, Any]:
    return {
        "endpoint": store.endpoint,
        "bucket": BUCKET,
        "region": REGION,
        "prefix": "in",
        "path_style": True,
        "access_key_id": KEY_ID,
        **more,
    }


def brought(store: S3Server, tmp_path: Path, pattern: str, secret: str = SECRET, **more: Any) -> dict[str, bytes]:
    place = endpoint("object_store", config(store, **more), secret_key=secret)
    return contents(from_objects(land(pattern), place, context(tmp_path), None))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.csv", ["a.csv", "b.csv", ODD[3:]]),
        ("**/*.csv", ["a.csv", "b.csv", "deep/er/c.csv", ODD[3:]]),
        ("/deep/**", ["deep/er/c.csv"]),
        ("a.csv", ["a.csv"]),
        ("?.csv", ["a.csv", "b.csv"]),
        ("none/*", []),
    ],
)
def test_a_pattern_names_files_below_the_prefix(
    store: S3Server, tmp_path: Path, pattern: str, names: list[str]
) -> None:
    found = brought(store, tmp_path, pattern)
    assert sorted(found) == sorted(names)
    if "a.csv" in found:
        assert found["a.csv"] == b"a\n"
    if ODD[3:] in found:
        assert found[ODD[3:]] == b"odd\n"


def test_lists_go_on_over_pages(store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "_PAGE", 2)
    assert len(brought(store, tmp_path, "**/*.csv")) == 4
    assert "inside/d.csv" in brought(store, tmp_path, "**", prefix="")


def test_each_file_is_landed_once_unless_it_changes(store: S3Server, tmp_path: Path) -> None:
    place = endpoint("object_store", config(store, prefix="once"), secret_key=SECRET)
    folder = store.folder / BUCKET / "once"
    folder.mkdir(exist_ok=True)
    (folder / "1.csv").write_bytes(b"1\n")
    step = land("*.csv", read="incremental", write="append")
    first = from_objects(step, place, context(tmp_path), None)
    assert contents(first) == {"1.csv": b"1\n"}
    (folder / "2.csv").write_bytes(b"2\n")
    second = from_objects(step, place, context(tmp_path), first.state)
    assert contents(second) == {"2.csv": b"2\n"}
    (folder / "1.csv").write_bytes(b"another\n")
    third = from_objects(step, place, context(tmp_path), second.state)
    assert contents(third) == {"1.csv": b"another\n"}
    assert from_objects(step, place, context(tmp_path), third.state).files == []


def test_archives_in_a_bucket_are_taken_apart(store: S3Server, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x.csv", b"x\n")
    folder = store.folder / BUCKET / "zips"
    folder.mkdir(exist_ok=True)
    (folder / "all.zip").write_bytes(out.getvalue())
    assert brought(store, tmp_path, "*.zip", prefix="zips") == {"all.zip/x.csv": b"x\n"}


@pytest.mark.parametrize(
    ("more", "secret", "code", "said"),
    [
        ({}, "wrong", "BUCKET_UNAUTHORIZED", "secret key or the region is wrong"),
        ({"access_key_id": "AKIANOBODY"}, SECRET, "BUCKET_UNAUTHORIZED", "does not know this access key"),
        ({"bucket": "nowhere-here"}, SECRET, "BUCKET_NOT_FOUND", "there is no such bucket"),
        ({"endpoint": "http://10.0.0.1:9000"}, SECRET, "ADDRESS_REFUSED", "10.0.0.1 is a private address"),
    ],
)
def test_refusals_say_what_to_do(
    store: S3Server, tmp_path: Path, more: dict[str, Any], secret: str, code: str, said: str
) -> None:
    found = refused(lambda: brought(store, tmp_path, "*.csv", secret, **more))
    assert (found.code, found.passing) == (code, False)
    assert said in found.message
    assert SECRET not in found.message


def test_a_store_that_is_none_is_told(tmp_path: Path) -> None:
    with serving([]) as api:
        place = {"endpoint": api.url, "bucket": "lake", "path_style": True, "access_key_id": "k"}
        api.on("/lake/", lambda _: Reply(b"<html>"))
        step, one = land("*.csv"), endpoint("object_store", place, secret_key="s")
        found = refused(lambda: from_objects(step, one, context(tmp_path), None))
        assert (found.code, "is not an S3 object store" in found.message) == ("BUCKET_ODD", True)
        api.on("/lake/", lambda _: Reply(b"<Error><Code>AccessDenied</Code></Error>", 403))
        found = refused(lambda: from_objects(step, one, context(tmp_path), None))
        assert (found.code, "s3:ListBucket and s3:GetObject" in found.message) == ("BUCKET_FORBIDDEN", True)
        api.on("/lake/", lambda _: Reply(b"<L><IsTruncated>true</IsTruncated></L>"))
        assert refused(lambda: from_objects(step, one, context(tmp_path), None)).code == "BUCKET_ODD"
        api.on("/lake/", lambda _: Reply(b"<L><Contents><Key>a.csv</Key><Size>many</Size></Contents></L>"))
        assert refused(lambda: from_objects(step, one, context(tmp_path), None)).code == "BUCKET_ODD"
        entities = "".join(f'<!ENTITY e{n} "&e{n - 1};&e{n - 1};&e{n - 1};&e{n - 1};">' for n in range(1, 30))
        bomb = f'<!DOCTYPE L [<!ENTITY e0 "ha">{entities}]><L>&e29;</L>'
        api.on("/lake/", lambda _: Reply(bomb.encode()))
        assert refused(lambda: from_objects(step, one, context(tmp_path), None)).code == "BUCKET_ODD"


def test_passing_trouble_of_a_list_is_waited_out(tmp_path: Path) -> None:
    listing = b"<L><Contents><Key>a.csv</Key><Size>2</Size><ETag>x</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></L>"
    with serving([]) as api:
        api.on("/lake/", lambda _: Reply(listing))
        api.fails("/lake/", Reply(None, 503))
        api.on("/lake/a.csv", lambda _: Reply(b"a\n"))
        api.fails("/lake/a.csv", Reply(None, 500, {"Retry-After": "0"}))
        place = {"endpoint": api.url, "bucket": "lake", "path_style": True}
        got = from_objects(land("*.csv"), endpoint("object_store", place), context(tmp_path), None)
        assert contents(got) == {"a.csv": b"a\n"}
        assert not any("authorization" in seen.headers for seen in api.seen)


def test_requests_name_the_bucket_as_the_store_wants_it() -> None:
    def url(path_style: bool) -> str:
        return Bucket("https://s3.test", "lake", "r", path_style).url("a b/ü")

    assert url(path_style=True) == "https://s3.test/lake/a%20b/%C3%BC"
    assert url(path_style=False) == "https://lake.s3.test/a%20b/%C3%BC"
    found = Bucket("https://s3.test", "lake", "r", True, AccessKey("k", "hidden-key"), "hidden-session")  # noqa: FBT003
    assert "hidden" not in repr(found)
    assert found.headers(found.url("x"))["x-amz-security-token"] == "hidden-session"


def test_what_a_pattern_begins_with() -> None:
    assert [plain_part(one) for one in ("a/b*.csv", "*.csv", "a/b.csv", "a?c")] == ["a/b", "", "a/b.csv", "a"]


def test_lists_stay_within_the_rules_of_calls() -> None:
    def away(_: Seen) -> Reply:
        return Reply(None, 307, {"Location": "http://169.254.169.254/"})

    with serving([]) as api:
        api.on("/lake/", away)
        outgoing = Outgoing(OutgoingSettings(allow=["127.0.0.1"]))
        found = refused(lambda: list(Bucket(api.url, "lake", "r", path_style=True).objects("", outgoing)))
        outgoing.close()
    assert found.code == "ADDRESS_REFUSED"
