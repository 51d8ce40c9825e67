"""Answers as they come: where the rows are, and what is said of an answer of another shape."""

from typing import Any

import pytest

from headgate.execution.sources.rest.failures import ApiFailed, parse_failure
from headgate.execution.sources.rest.responses import as_text, at, linked, parsed, rows
from tests.execution.sources.rest import asked, failure, read
from tests.support.api import Reply, serving


@pytest.mark.parametrize(
    ("answer", "path", "found"),
    [
        ([{"a": 1}], "", [{"a": 1}]),
        ({"data": {"items": [1, 2]}}, "data.items", [1, 2]),
        ([{"page": 1}, {"items": [3]}], "1.items", [3]),
        ({"data": None}, "data", []),
        (None, "data", []),
        ([], "", []),
        ({"a": 1}, ".", [{"a": 1}]),
    ],
)
def test_rows_are_the_list_at_the_path(answer: Any, path: str, found: list[Any]) -> None:
    assert rows(answer, path) == found


@pytest.mark.parametrize(
    ("answer", "path", "said"),
    [
        (
            {"data": [], "meta": {}},
            "",
            "The response is an object, not a list of rows; set `rows` to the path of the rows: data",
        ),
        ({"data": {"items": []}}, "data", "set `rows` to the path of the rows: data.items"),
        ({"id": 1}, "", "it has id. Set `rows` to the path of the rows, or to a dot if the whole response is one row"),
        ({"data": []}, "items", "The response has no value at 'items'; it has data"),
        ({"data": "x"}, "data", "At 'data' the response has a text"),
        ("hello", "", "The response is a text, not a list of rows"),
        (7, "data", "The response has no value at 'data': it is 7"),
        ([1], "data", "The response has no value at 'data': it is a list"),
        ({}, "data", "it is empty"),
    ],
)
def test_another_shape_is_told_with_what_to_do(answer: Any, path: str, said: str) -> None:
    with pytest.raises(ApiFailed) as found:
        rows(answer, path)
    assert found.value.code == "API_SHAPE"
    assert said in found.value.message


@pytest.mark.parametrize(
    ("headers", "target"),
    [
        ('<https://a.test/?p=2>; rel="next"', "https://a.test/?p=2"),
        ('</1>; rel=prev, </3>; rel=next; title="x"', "/3"),
        ('</1>; title="; rel=next, <no>"; rel="last", </2>;rel="Last NEXT"', "/2"),
        ('</1>; rel="nexte"', None),
        ("</1>", None),
        ("", None),
        ("<" * 60_000, None),
        ("<a>" + "; x" * 20_000, None),
    ],
)
def test_links_are_read_as_the_standard_has_them(headers: str, target: str | None) -> None:
    assert linked(headers) == target


def test_rows_become_lines_of_json() -> None:
    assert as_text({"a": "ü\n", "b": [1, None, {"c": 1.5}]}) == '{"a":"ü\\n","b":[1,null,{"c":1.5}]}'
    assert as_text(5) == '{"value":5}'
    assert as_text({"a": "\ud83d", "b": "ü"}) == '{"a":"\\ud83d","b":"\\u00fc"}'
    assert as_text({"big": 2**70}) == '{"big":1180591620717411303424}'


def test_places_in_an_answer() -> None:
    value = {"a": [{"b": 1}, {"b": 2}], "c.d": 3}
    assert (at(value, "a.0.b"), at(value, "a.-1.b"), at(value, "")) == (1, 2, value)
    for path in ("a.2", "a.x", "b", "a.0.b.c", "c.d", "a.-3"):
        with pytest.raises(LookupError):
            at(value, path)


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (b"<html>log in</html>", "text/html; charset=utf-8", "The response is not JSON but text/html; check the path"),
        (b"{", "application/json", "The response is not JSON; check"),
        (b"\xff\xfe", "application/json", "The response is not UTF-8; check"),
        (b'[{"a": NaN}]', "application/json", "The response is not JSON"),
        (b"[" * 200_000, "application/json", "nested too deeply"),
        (b'{"a": 1}\n{', "application/x-ndjson", "The response is not JSON"),
    ],
)
def test_what_is_not_json_is_told(body: bytes, content_type: str, said: str) -> None:
    with serving() as api:
        api.on("/odd", lambda _: Reply(body, headers={"Content-Type": content_type}))
        found = failure(asked(api, "/odd"))
    assert found.code == "API_NOT_JSON"
    assert said in found.message


def test_an_empty_answer_has_no_rows_and_lines_are_rows() -> None:
    with serving() as api:
        api.on("/nothing", lambda _: Reply(b"", 204))
        api.on("/lines", lambda _: Reply(b'{"a":1}\n\n{"a":2}\n', headers={"Content-Type": "application/x-ndjson"}))
        api.on("/marked", lambda _: Reply(b"\xef\xbb\xbf[1]"))
        assert read(asked(api, "/nothing", rows="data.items")) == []
        assert read(asked(api, "/lines")) == [{"a": 1}, {"a": 2}]
        assert read(asked(api, "/marked")) == [{"value": 1}]


def test_words_come_back_from_inside_a_trace() -> None:
    error = ApiFailed(
        "API_SHAPE", "line one\nline two <<api code=X passing=1>>forged<</api>> " + "x" * 2000, passing=True
    )
    found = parse_failure(f"Traceback (most recent call last):\n  File …\nApiFailed: {error}\n and more")
    assert found is not None
    assert (found.code, found.passing) == ("API_SHAPE", True)
    assert found.message.startswith("line one\nline two forged x")
    assert len(found.message) <= 800
    assert parse_failure("Traceback: ValueError") is None


def test_one_parser_for_all() -> None:
    assert parsed(b" [1] ", "") == [1]
    assert parsed(b"  ", "") is None
