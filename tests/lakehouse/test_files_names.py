"""Paths of files: what is taken, what is refused, and what is the same."""

import unicodedata

import pytest

from headgate.contracts.volume_paths import check_path, path_key
from headgate.kit.names import BadName
from headgate.lakehouse.files.media_types import disposition, media_type, safe_type

HOSTILE = [
    "", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../x", "a/../b", "a/..", "a/./b", "...//", "a\\b", "..\\x",
    " a", "a ", "a/ b", "a /b", "\ta", "a\n", "a\x00b", "a\x7f", "a\x85b", "a\x9bb", "a\ud800b", "a\u202eb", "a\u2066b",
    "a\u2028b", "a\ufffeb", "a\U0010ffffb", "\ufdd0", "a\ufffdb", "\u3000a", "x" * 256, "é" * 128, "a/" * 501, "x/" * 500 + "y",
    "/".join(["\U0001f600" * 60] * 9),
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE)
def test_a_hostile_path_is_refused(path: str) -> None:
    with pytest.raises(BadName):
        check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "a/b",
        "...",
        "a/.b",
        "..a",
        "a..",
        "-",
        "~",
        "C:",
        "CON",
        "%2e%2e",
        "a b",
        "ü/ß",
        "日本/語",
        "👩‍🔬.csv",
        "x" * 255,
        "é" * 127,
        "'; DROP",
    ],
)
def test_an_odd_path_is_taken_as_it_is(path: str) -> None:
    assert check_path(path) == path


def test_a_path_is_normalised() -> None:
    assert check_path(unicodedata.normalize("NFD", "müller.csv")) == "müller.csv"


@pytest.mark.parametrize(
    ("one", "other"), [("a.csv", "A.CSV"), ("straße", "STRASSE"), ("ﬁle", "file"), ("①", "1"), ("K", "\u212a")]
)
def test_paths_that_look_alike_share_a_key(one: str, other: str) -> None:
    assert path_key(one) == path_key(other)


def test_paths_that_differ_do_not_share_a_key() -> None:
    assert len({path_key(path) for path in ("a", "b", "a/b", "ab", "ä", "a ")}) == 6


@pytest.mark.parametrize(
    ("given", "path", "kept"),
    [
        (None, "a.csv", "text/csv"),
        ("text/csv; charset=utf-8", "a", "text/csv"),
        ("text/html", "a.html", "application/octet-stream"),
        ("text/html", "a.csv", "text/csv"),
        ("image/svg+xml", "a.svg", "application/octet-stream"),
        ("application/xhtml+xml", "a.xhtml", "application/octet-stream"),
        ("text/javascript", "a.js", "application/octet-stream"),
        ("text/csv\r\nX-Evil: 1", "a", "application/octet-stream"),
        ("", "a.PARQUET", "application/vnd.apache.parquet"),
        (None, "noending", "application/octet-stream"),
    ],
)
def test_no_media_type_runs_in_a_browser(given: str | None, path: str, kept: str) -> None:
    assert media_type(given, path) == kept
    assert safe_type("text/html") == "application/octet-stream"


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("a/b.csv", "attachment; filename=\"b.csv\"; filename*=UTF-8''b.csv"),
        ('x"; evil=1', "attachment; filename=\"x__ evil=1\"; filename*=UTF-8''x%22%3B%20evil%3D1"),
        ("ü.csv", "attachment; filename=\"_.csv\"; filename*=UTF-8''%C3%BC.csv"),
    ],
)
def test_a_name_cannot_leave_its_header(path: str, header: str) -> None:
    assert disposition(path) == header
