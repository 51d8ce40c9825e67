"""What a stream from outside needs before its rows are read."""

from pathlib import Path
from typing import Any

import pytest

from headgate.execution.sources.fetch.external import api
from tests.execution.sources.fetch import context, endpoint, land, refused


def place(**auth: Any) -> dict[str, Any]:
    return {"base_url": "https://API.test/v1", "auth": {"style": "none", **auth}}


def test_spark_may_reach_the_api_and_what_gives_its_tokens(tmp_path: Path) -> None:
    own = endpoint("http", place(style="oauth2", token_url="http://login.test:8080/token", client_id="c"))
    hosts, more = api(land("/orders"), own, context(tmp_path, max_pages=5))
    assert hosts == [("api.test", 443), ("login.test", 8080)]
    assert (more["max_pages"], more["seconds"], more["on_this_machine"]) == (5, 60, True)
    assert api(land("/orders"), endpoint("http", place()), context(tmp_path))[0] == [("api.test", 443)]


def test_spark_elsewhere_is_told_that_it_may_be_many_machines(tmp_path: Path) -> None:
    far = context(tmp_path)
    spark = far.settings.spark.model_copy(update={"platform_url": "sc://spark.test"})
    far.settings = far.settings.model_copy(update={"spark": spark})
    assert not api(land("/orders"), endpoint("http", place()), far)[1]["on_this_machine"]


@pytest.mark.parametrize(
    ("name", "stream", "code"),
    [("/orders", {"read": "incremental", "write": "append"}, "NO_CURSOR"), ("http://evil.test/", {}, "API_PATH"), ("/../x", {}, "API_PATH")],
)  # fmt: skip
def test_what_cannot_be_read_is_told_before_spark_is_asked(
    tmp_path: Path, name: str, stream: dict[str, Any], code: str
) -> None:
    assert refused(lambda: api(land(name, **stream), endpoint("http", place()), context(tmp_path))).code == code
