"""What a connection, a stream and the last run's end come to, as a question to an API."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headgate.contracts.pipelines.streams import Stream
from headgate.execution.sources.api_requests import begin, explain_error, proxied, request_options
from headgate.execution.sources.readers import CursorPosition, ReadOptions
from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.spark.failures import Cause
from headgate.execution.steps.context import StepFailed

MORE = {"max_answer_bytes": 1000, "max_pages": 7, "seconds": 60, "on_this_machine": True}


def asked(since: CursorPosition | None = None, config: dict[str, Any] | None = None, **stream: Any) -> ReadOptions:
    place = {"base_url": "https://api.test/v1", "auth": {"style": "bearer"}, "headers": {"Accept-Language": "de"}}
    found = Stream.model_validate({"name": "/orders", "table": "orders", **stream})
    return ReadOptions(
        "http", found, {**place, **(config or {})}, {"token": "t0ken"}, folder="/x", since=since, more=MORE
    )


def test_everything_that_was_said_is_asked() -> None:
    api = {
        "rows": "data.items",
        "parameters": {"state": "open"},
        "paging": {"style": "cursor", "parameter": "after", "next": "meta.next", "size": 50, "size_parameter": "limit"},
        "partition_parameter": "region",
        "partitions": ["n", "s"],
        "cursor_parameter": "since",
    }
    since = CursorPosition("2026-01-02T00:00:00.000000Z", "timestamp", timedelta(hours=1), including=True)
    found = request_options(asked(since, {"per_second": 5, "retries": 2}, api=api), "http://u:p@127.0.0.1:1080")
    assert (found.base, found.path, found.rows) == ("https://api.test/v1", "/orders", "data.items")
    assert dict(found.parameters) == {"state": "open", "since": "2026-01-01T23:00:00Z"}
    assert (found.pages.style, found.pages.next, found.pages.size_parameter) == ("cursor", "meta.next", "limit")
    assert (found.partition_parameter, found.partitions) == ("region", ("n", "s"))
    assert (found.limits.answer_bytes, found.limits.pages, found.limits.attempts) == (1000, 7, 3)
    assert (found.limits.calls_per_second, found.pace_file) == (5, "/x/pace")
    assert (found.proxy.host, found.proxy.port, found.proxy.authorization) == ("127.0.0.1", 1080, "Basic dTpw")
    assert found.auth.secret == "t0ken"
    assert "t0ken" not in repr(found)
    assert dict(request_options(asked(api=api), None).parameters) == {"state": "open"}


def test_tasks_on_other_machines_share_no_clock() -> None:
    found = replace(asked(config={"per_second": 5}), more=MORE | {"on_this_machine": False})
    assert (request_options(found, None).limits.calls_per_second, request_options(found, None).pace_file) == (5, "")


@pytest.mark.parametrize(
    ("value", "kind", "look_back", "text"),
    [
        ("2026-01-02T03:04:05.000006Z", "timestamp", None, "2026-01-02T03:04:05.000006Z"),
        ("2026-01-02T03:04:05.000000", "timestamp_ntz", timedelta(seconds=5), "2026-01-02T03:04:00"),
        ("2026-01-02", "date", timedelta(days=2), "2025-12-31"),
        ("7", "bigint", None, "7"),
        ("1.50", "decimal", None, "1.50"),
        ("ab c", "string", None, "ab c"),
    ],
)
def test_where_to_begin_is_written_as_apis_write_it(
    value: str, kind: str, look_back: timedelta | None, text: str
) -> None:
    assert begin(CursorPosition(value, kind, look_back, including=True)) == text


def test_there_is_no_time_before_a_number() -> None:
    with pytest.raises(StepFailed, match="remove look_back"):
        begin(CursorPosition("7", "bigint", timedelta(days=1), including=True))


def test_a_secret_that_is_not_set_is_told() -> None:
    found = asked()
    with pytest.raises(StepFailed, match="token is not set") as failed:
        request_options(ReadOptions("http", found.stream, found.config, {}, more=MORE), None)
    assert failed.value.code == "MISSING_SECRET"


def test_only_words_of_ours_are_taken_for_ours() -> None:
    error = ApiFailed("API_DOWN", "It is down", passing=True)
    found = explain_error(Cause(("X",), f"Traceback …\nApiFailed: {error}\n", None))
    assert (found.code, found.message, found.passing) == ("API_DOWN", "It is down", True)
    assert explain_error(Cause(("X",), "division by zero", None)) is None
    assert proxied(None) is None
