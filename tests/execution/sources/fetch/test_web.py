"""Files behind addresses: brought whole, or told why not."""

import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.sources.fetch import archives as packed
from headgate.execution.sources.fetch import downloads
from headgate.execution.sources.fetch.web import from_web
from headgate.execution.steps.context import RunStopped
from tests.execution.sources.fetch import contents, context, endpoint, land, refused
from tests.support.api import SECRET, USER, Api, Reply, Seen, serving

CSV = b"id,name\n" + b"".join(b"%d,row %d\n" % (n, n) for n in range(20_000))


@pytest.fixture
def api() -> Iterator[Api]:
    with serving([]) as found:
        found.on("/files/orders.csv", lambda _: Reply(CSV, headers={"Content-Type": "text/csv"}))
        yield found


def http(api: Api, auth: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"base_url": f"{api.url}/files", "auth": auth or {"style": "none"}, "retries": 2, **more}


def archive(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as found:
        for name, content in files.items():
            found.writestr(name.replace("_slash_", "/").replace("_dot_", "."), content)
    return out.getvalue()


def test_a_file_is_brought_with_headers_and_parameters(api: Api, tmp_path: Path) -> None:
    step = land("orders.csv?version=2", api={"parameters": {"day": "1 & 2"}})
    got = from_web(step, endpoint("http", http(api, headers={"Accept-Language": "de"})), context(tmp_path), None)
    assert contents(got) == {"orders.csv?version=2": CSV}
    assert got.state is None
    assert api.seen[0].parameters == {"version": "2", "day": "1 & 2"}
    assert api.seen[0].headers["accept-language"] == "de"


@pytest.mark.parametrize(
    ("auth", "secrets", "knows"),
    [
        ({"style": "bearer"}, {"token": SECRET}, lambda seen: seen.headers.get("authorization") == f"Bearer {SECRET}"),
        ({"style": "basic", "user": USER}, {"password": SECRET}, lambda seen: seen.headers["authorization"].startswith("Basic ")),
        ({"style": "api_key", "name": "X-Key"}, {"token": SECRET}, lambda seen: seen.headers.get("x-key") == SECRET),
        ({"style": "api_key", "name": "k", "place": "query"}, {"token": SECRET}, lambda seen: seen.parameters.get("k") == SECRET),
        ({"style": "oauth2", "client_id": USER}, {"client_secret": SECRET}, lambda seen: seen.headers.get("authorization") == "Bearer token-1-"),
        ({"style": "oauth2", "client_id": USER, "sent_in": "body", "scope": "r"}, {"client_secret": SECRET}, lambda seen: seen.headers.get("authorization") == "Bearer token-1-r"),
    ],
)  # fmt: skip
def test_whoever_asks_is_known(
    api: Api, tmp_path: Path, auth: dict[str, Any], secrets: dict[str, str], knows: Any
) -> None:
    api.on("/files/locked.csv", lambda seen: Reply(CSV if knows(seen) else b"", 200 if knows(seen) else 401))
    if auth["style"] == "oauth2":
        auth = {**auth, "token_url": f"{api.url}/token"}
    got = from_web(land("locked.csv"), endpoint("http", http(api, auth), **secrets), context(tmp_path), None)
    assert contents(got) == {"locked.csv": CSV}


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (Reply(None, 401), "FILE_UNAUTHORIZED", "set the connection's secret again"),
        (Reply(None, 403), "FILE_FORBIDDEN", "has no permission to read it"),
        (Reply(None, 404), "FILE_NOT_FOUND", "check the connection's address and the stream's name"),
        (Reply(None, 410), "FILE_REFUSED", "(410)"),
        (Reply(b"<html>", headers={"Content-Type": "text/html; charset=utf-8"}), "FILE_IS_A_PAGE", "is a web page"),
        (
            Reply(None, 302, {"Location": "http://10.0.0.1/x.csv"}),
            "ADDRESS_REFUSED",
            "redirected by 127.0.0.1: 10.0.0.1 is a private",
        ),
        (Reply(None, 302, {"Location": "http://169.254.169.254/latest"}), "ADDRESS_REFUSED", "metadata service"),
    ],
)
def test_what_is_no_file_is_told(api: Api, tmp_path: Path, reply: Reply, code: str, said: str) -> None:
    api.on("/files/odd.csv", lambda _: reply)
    found = refused(lambda: from_web(land("odd.csv"), endpoint("http", http(api)), context(tmp_path), None))
    assert (found.code, found.passing) == (code, False)
    assert said in found.message


@pytest.mark.parametrize(
    ("name", "code"), [("*.csv", "NO_PATTERN"), ("../x.csv", "API_PATH"), ("http://evil.test/", "API_PATH")]
)
def test_a_name_is_one_file_below_the_address(api: Api, tmp_path: Path, name: str, code: str) -> None:
    assert refused(lambda: from_web(land(name), endpoint("http", http(api)), context(tmp_path), None)).code == code
    assert not api.seen


def test_passing_trouble_is_waited_out_and_then_told(api: Api, tmp_path: Path) -> None:
    api.fails("/files/orders.csv", Reply(None, 503, {"Retry-After": "0"}), Reply(None, 429, {"Retry-After": "0"}))
    assert contents(from_web(land("orders.csv"), endpoint("http", http(api)), context(tmp_path), None))
    api.on("/files/down.csv", lambda _: Reply(None, 500, {"Retry-After": "0"}))
    found = refused(lambda: from_web(land("down.csv"), endpoint("http", http(api)), context(tmp_path), None))
    assert (found.code, found.passing) == ("FILE_UNREACHABLE", True)
    assert "(500) (3 attempts)" in found.message
    api.on("/files/later.csv", lambda _: Reply(None, 429, {"Retry-After": "4000"}))
    found = refused(lambda: from_web(land("later.csv"), endpoint("http", http(api)), context(tmp_path), None))
    assert "asks to wait 4,000 seconds" in found.message


def broken(whole: bytes, tag: str, *, ranges: bool) -> Any:
    """Gives a third of a file each time, and says that it is more."""

    def handler(seen: Seen) -> Reply:
        start = int(seen.headers.get("range", "bytes=0-")[6:-1])
        if start and ranges and seen.headers.get("if-range") == tag:
            content = whole[start : start + len(whole) // 3]
            head = {"Content-Range": f"bytes {start}-{len(whole) - 1}/{len(whole)}"}
            return Reply(
                content, 206, {**head, "Content-Length": str(len(whole) - start), "ETag": tag, "Connection": "close"}
            )
        more = {"Content-Length": str(len(whole)), "ETag": tag, "Connection": "close"}
        return Reply(whole[: len(whole) // 3] if ranges else whole, headers=more)

    return handler


def test_a_file_is_gone_on_with_where_it_broke_off(api: Api, tmp_path: Path) -> None:
    api.on("/files/long.csv", broken(CSV, '"v1"', ranges=True))
    one = context(tmp_path)
    assert contents(from_web(land("long.csv"), endpoint("http", http(api)), one, None)) == {"long.csv": CSV}
    assert "range" not in api.seen[0].headers
    assert all(seen.headers["if-range"] == '"v1"' for seen in api.seen[1:])


def test_a_file_that_changed_meanwhile_is_begun_again(api: Api, tmp_path: Path) -> None:
    first, second = broken(CSV, '"v1"', ranges=True), broken(CSV[::-1], '"v2"', ranges=False)
    api.on("/files/long.csv", lambda seen: first(seen) if len(api.seen) == 1 else second(seen))
    # No more than the file itself counts.
    one = context(tmp_path, max_bytes=1 << 20)
    assert contents(from_web(land("long.csv"), endpoint("http", http(api)), one, None)) == {"long.csv": CSV[::-1]}
    assert len(api.seen) == 2


def test_a_stream_brings_no_more_than_its_share(api: Api, tmp_path: Path) -> None:
    api.on("/files/huge.csv", lambda _: Reply(b"x" * (2 << 20)))
    one = context(tmp_path, max_bytes=1 << 20)
    found = refused(lambda: from_web(land("huge.csv"), endpoint("http", http(api)), one, None))
    assert (found.code, "sources.max_bytes" in found.message) == ("TOO_MANY_BYTES", True)


def test_a_run_that_is_to_end_brings_nothing_more(api: Api, tmp_path: Path) -> None:
    one = context(tmp_path)

    def stop(_: Seen) -> Reply:
        one.stopping.set()
        return Reply(CSV)

    api.on("/files/orders.csv", stop)
    with pytest.raises(RunStopped):
        from_web(land("orders.csv"), endpoint("http", http(api)), one, None)


def test_a_full_disk_is_told(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, _: bytes) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda *_: Full())
    found = refused(lambda: from_web(land("orders.csv"), endpoint("http", http(api)), context(tmp_path), None))
    assert (found.code, found.passing, "disk is full" in found.message) == ("DISK_FULL", True, True)


def test_the_same_content_is_landed_once(api: Api, tmp_path: Path) -> None:
    step = land("orders.csv", read="incremental", write="append")
    first = from_web(step, endpoint("http", http(api)), context(tmp_path), None)
    assert (len(first.files), first.state is not None) == (1, True)
    one = context(tmp_path)
    again = from_web(step, endpoint("http", http(api)), one, first.state)
    assert again.files == []
    assert "were already loaded" in one.told[-1]
    api.on("/files/orders.csv", lambda _: Reply(CSV + b"9,x\n"))
    assert len(from_web(step, endpoint("http", http(api)), context(tmp_path), again.state).files) == 1


def test_gzip_is_read_by_spark_or_unpacked_here(api: Api, tmp_path: Path) -> None:
    api.on("/files/export", lambda _: Reply(gzip.compress(CSV)))
    got = from_web(land("export"), endpoint("http", http(api)), context(tmp_path), None)
    assert [Path(one.path).suffix for one in got.files] == [".gz"]
    assert gzip.decompress(contents(got)["export"]) == CSV
    got = from_web(land("export", files={"format": "parquet"}), endpoint("http", http(api)), context(tmp_path), None)
    assert contents(got) == {"export": CSV}
    api.on("/files/export", lambda _: Reply(gzip.compress(CSV)[:-50]))
    step = land("export", files={"format": "avro"})
    assert refused(lambda: from_web(step, endpoint("http", http(api)), context(tmp_path), None)).code == "FILE_DAMAGED"
    api.on("/files/export", lambda _: Reply(gzip.compress(b"0" * (50 << 20))))
    one = context(tmp_path, max_bytes=1 << 20)
    assert refused(lambda: from_web(step, endpoint("http", http(api)), one, None)).code == "TOO_MANY_BYTES"


def test_an_archive_is_taken_apart_under_names_of_ours(api: Api, tmp_path: Path) -> None:
    body = archive(
        a_dot_csv=b"1\n",
        __slash____slash__=b"",
        **{"../../../evil.csv": b"2\n", "/etc/x.csv": b"3\n", "__MACOSX/a": b"no", ".DS_Store": b"no"},
    )
    api.on("/files/all.zip", lambda _: Reply(body))
    one = context(tmp_path)
    got = from_web(land("all.zip"), endpoint("http", http(api)), one, None)
    found = contents(got)
    assert found["all.zip/a.csv"] == b"1\n"
    assert found["all.zip/../../../evil.csv"] == b"2\n"
    assert all(Path(file.path).resolve().is_relative_to(one.folder.resolve()) for file in got.files)
    assert not list(tmp_path.glob("**/evil.csv"))
    assert not any("MACOSX" in name or "DS_Store" in name for name in found)
    # An Excel file is an archive itself.
    got = from_web(land("all.zip", files={"format": "excel"}), endpoint("http", http(api)), context(tmp_path), None)
    assert contents(got) == {"all.zip": body}


def test_archives_are_bounded(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def why(body: bytes, **sources: Any) -> tuple[str, str]:
        api.on("/files/all.zip", lambda _: Reply(body))
        one = context(tmp_path, **sources)
        found = refused(lambda: from_web(land("all.zip"), endpoint("http", http(api)), one, None))
        return found.code, found.message

    assert why(archive(bomb=b"0" * (50 << 20)), max_bytes=1 << 20)[0] == "TOO_MANY_BYTES"
    assert "contains another archive, inner" in why(archive(inner=archive(a=b"1")))[1]
    assert "is damaged" in why(archive(a=CSV)[:-30])[1]
    locked = bytearray(archive(a=b"1"))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    assert "is encrypted" in why(bytes(locked))[1]
    monkeypatch.setattr(packed, "MAX_MEMBERS", 2)
    assert "has 3 files; the limit is 2" in why(archive(a=b"1", b=b"2", c=b"3"))[1]


def test_long_downloads_tell_how_far_they_are(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "TELL_SECONDS", -1.0)
    one = context(tmp_path)
    from_web(land("orders.csv"), endpoint("http", http(api)), one, None)
    assert any("MB downloaded" in line for line in one.told)
