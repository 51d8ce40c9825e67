"""Streams as members write them: what is refused, and with which words."""

from typing import Any

import pytest
from pydantic import ValidationError

from headgate.contracts.pipelines.streams import Stream
from tests.spaces.connections.support import added
from tests.support.company import Company


@pytest.mark.parametrize(
    ("api", "said"),
    [
        ({"paging": {"style": "cursor"}}, "requires next"),
        ({"paging": {"style": "offset", "parameter": ""}}, "paging by offset requires parameter"),
        ({"partition_parameter": "region"}, "require each other"),
        ({"partitions": ["n"]}, "require each other"),
        ({"partition_parameter": "region", "partitions": ["n", "n"]}, "would read its rows twice"),
        ({"parameters": {"a": "x" * 2001}}, "at most 2000"),
    ],
)
def test_options_of_an_api_are_whole(api: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Stream.model_validate({"name": "/v1/orders", "table": "orders", "api": api})


def test_a_stream_of_http_says_whether_it_is_rows_or_a_file() -> None:
    assert Stream.model_validate({"name": "/v1/orders", "table": "orders"}).of == "rows"
    found = Stream.model_validate(
        {"name": "/orders.csv", "table": "orders", "of": "files", "files": {"delimiter": ";"}}
    )
    assert (found.of, found.files.delimiter) == ("files", ";")


def test_an_incremental_read_of_a_database_needs_a_cursor_at_the_save(millrace: Company) -> None:
    stream = {"name": "public.orders", "table": "shop_orders", "read": "incremental", "write": "append"}
    source = {"kind": "source", "connection": added(millrace)["id"], "output_layer": "raw", "streams": [stream]}
    answer = millrace.as_("Tess").post("/api/pipelines", {"name": "Shop", "definition": source})
    assert (answer.status_code, "definition.streams.0.cursor" in answer.json()["detail"]) == (422, True), answer.text
    source["streams"] = [{**stream, "cursor": "changed_at"}]
    answer = millrace.as_("Tess").post("/api/pipelines", {"name": "Shop", "definition": source})
    assert answer.status_code == 200, answer.text
    files = {"name": "*.csv", "table": "files", "read": "incremental", "write": "append"}
    source = {"kind": "source", "volume": "raw.invoices", "output_layer": "raw", "streams": [files]}
    answer = millrace.as_("Tess").post("/api/pipelines", {"name": "Files", "definition": source})
    assert answer.status_code == 200, answer.text
