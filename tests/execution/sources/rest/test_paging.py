"""Pages of an API, one after the other, to the last and no further."""

from collections.abc import Iterator

import pytest

from tests.execution.sources.rest import asked, failure, read
from tests.support.api import Api, Reply, Seen, rows, serving

ALL = rows(25)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with serving(ALL) as found:
        yield found


@pytest.mark.parametrize(
    ("path", "pages", "where"),
    [
        ("/rows", {}, ""),
        ("rows", {}, ""),
        ("/packed", {}, ""),
        ("/page", {"style": "page"}, "data.items"),
        ("/page", {"style": "page", "size": 5, "size_parameter": "size"}, "data.items"),
        ("/page", {"style": "page", "size": 25, "size_parameter": "size"}, "data.items"),
        ("/offset", {"style": "offset", "parameter": "offset", "first": 0}, ""),
        # The API gives ten rows at most, whatever is asked for: a short page is not the last.
        ("/offset", {"style": "offset", "parameter": "offset", "first": 0, "size": 20, "size_parameter": "limit"}, ""),
        ("/cursor", {"style": "cursor", "parameter": "after", "next": "meta.next"}, "rows"),
        ("/last", {"style": "cursor", "parameter": "starting_after", "next": "data.-1.id"}, "data"),
        ("/link", {"style": "link"}, ""),
        ("/next", {"style": "link", "next": "next"}, "results"),
    ],
)
def test_every_style_gives_every_row_once(api: Api, path: str, pages: dict[str, object], where: str) -> None:
    assert read(asked(api, path, pages=pages, rows=where)) == ALL


def test_parameters_go_along_and_a_link_brings_its_own(api: Api) -> None:
    api.seen.clear()
    read(asked(api, "/link?fixed=1", pages={"style": "link"}, parameters=(("state", "open & paid"),)))
    assert [seen.parameters for seen in api.seen] == [
        {"fixed": "1", "state": "open & paid"},
        {"p": "2", "keep": "1"},
        {"p": "3", "keep": "1"},
    ]
    api.seen.clear()
    read(asked(api, "/page", pages={"style": "page"}, rows="data.items", parameters=(("state", "ü"),)))
    assert {seen.parameters["state"] for seen in api.seen} == {"ü"}


def test_a_page_that_is_not_there_ends_numbered_pages(api: Api) -> None:
    def strict(seen: Seen) -> Reply:
        number = int(seen.parameters["page"])
        return Reply(ALL[(number - 1) * 5 : number * 5]) if number <= 5 else Reply({"detail": "Invalid page."}, 404)

    api.on("/strict", strict)
    assert read(asked(api, "/strict", pages={"style": "page"})) == ALL


def test_partitions_are_asked_each_and_shared_among_tasks(api: Api) -> None:
    api.seen.clear()
    found = read(asked(api, "/region", partition_parameter="region", partitions=("n", "s", "e"), tasks=2))
    assert [(row["region"], row["id"]) for row in found] == [(r, row["id"]) for r in ("n", "e", "s") for row in ALL]
    assert sorted(seen.parameters["region"] for seen in api.seen) == ["e", "n", "s"]


@pytest.mark.parametrize(
    ("path", "pages", "said"),
    [
        ("/rows", {"style": "page"}, "the same page for page=2"),
        ("/rows", {"style": "offset", "parameter": "start", "first": 0}, "the same page for start=25"),
        ("/round", {"style": "cursor", "parameter": "c", "next": "next"}, "the same cursor twice"),
        ("/circle", {"style": "link"}, "links to a page that was already read"),
    ],
)
def test_circles_are_seen(api: Api, path: str, pages: dict[str, object], said: str) -> None:
    api.on("/round", lambda seen: Reply({"data": [1], "next": "b" if seen.parameters.get("c") == "a" else "a"}))
    api.on("/circle", lambda seen: Reply([1], headers={"Link": '</circle?p=1>; rel="next"'}))
    found = failure(asked(api, path, pages=pages, rows="data" if path == "/round" else ""))
    assert found.code == "API_LOOP"
    assert said in found.message
    assert not found.passing


def test_pages_are_counted(api: Api) -> None:
    api.on("/endless", lambda seen: Reply([{"page": seen.parameters["page"]}]))
    found = failure(asked(api, "/endless", pages={"style": "page"}, limits={"pages": 7}))
    assert found.code == "API_TOO_MANY_PAGES"
    assert "more than 7 pages at /endless" in found.message


@pytest.mark.parametrize(
    "target",
    ["https://127.0.0.1:{port}/rows", "http://127.0.0.2:{port}/rows", "http://127.0.0.1/rows", "//evil.test/rows",
     "http://127.0.0.1:{port}@evil.test/", "ftp://127.0.0.1:{port}/", "http://[", "http://evil.test\\@127.0.0.1:{port}/"],
)  # fmt: skip
def test_a_link_to_another_origin_is_not_followed(api: Api, target: str) -> None:
    api.on("/lured", lambda seen: Reply({"data": [1], "next": target.format(port=api.port)}))
    found = failure(asked(api, "/lured", pages={"style": "link", "next": "next"}, rows="data"))
    assert found.code == "API_ELSEWHERE"
    assert "set it as the connection's" in found.message


@pytest.mark.parametrize(
    "target", ["/after?a=1", "after?a=1", "?a=1", "http://127.0.0.1:{port}/after?a=1", "/after?a=ü b"]
)
def test_a_link_may_be_written_in_any_way(api: Api, target: str) -> None:
    api.on(
        "/begin", lambda seen: Reply({"data": [1], "next": None if seen.parameters else target.format(port=api.port)})
    )
    api.on("/after", lambda seen: Reply({"data": [2], "next": None}))
    assert len(read(asked(api, "/begin", pages={"style": "link", "next": "next"}, rows="data"))) == 2


@pytest.mark.parametrize("value", [{"a": 1}, [1], True, "x" * 5000])
def test_what_cannot_be_a_cursor_is_told(api: Api, value: object) -> None:
    api.on("/odd", lambda seen: Reply({"data": [1], "next": value}))
    found = failure(asked(api, "/odd", pages={"style": "cursor", "parameter": "c", "next": "next"}, rows="data"))
    assert (found.code, "cannot be a cursor" in found.message) == ("API_SHAPE", True)
    if not isinstance(value, str):
        found = failure(asked(api, "/odd", pages={"style": "link", "next": "next"}, rows="data"))
        assert (found.code, "is not a URL" in found.message) == ("API_SHAPE", True)
