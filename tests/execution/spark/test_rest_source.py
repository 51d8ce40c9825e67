"""The data source of REST APIs inside the platform's Spark: through its proxy, in tasks, without a secret on the way."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from headgate.execution.spark.errors import SqlFailed
from headgate.execution.steps.context import StepFailed
from tests.support.api import SECRET, USER, Api, Reply, rows, serving
from tests.support.steps import Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
READ = "tests.execution.spark.rest_functions:read"


@pytest.fixture(scope="module")
def shop(shared_shop: Workshop) -> Workshop:
    return shared_shop


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(rows(25)) as found:
        yield found


def read(shop: Workshop, api: Api, path: str, **more: Any) -> dict[str, Any]:
    arguments = {"base": api.url, "path": path, **more}
    found: dict[str, Any] = shop.platform.call(READ, arguments, shop.run().context, hosts=[("127.0.0.1", api.port)])
    return found


def test_rows_come_through_the_proxy_and_no_secret_is_shown(shop: Workshop, api: Api) -> None:
    auth = {"style": "oauth2", "name": USER, "secret": SECRET, "token_url": f"{api.url}/token"}
    found = read(shop, api, "/oauth", auth=auth)
    assert [json.loads(row) for row in found["rows"]] == rows(25)
    assert "headgate_api" in found["plan"]
    assert SECRET not in found["plan"]
    with pytest.raises(StepFailed) as failed:
        read(shop, api, "/header", auth={"style": "header", "name": "X-Key", "secret": "wrong-secret"})
    assert (failed.value.code, failed.value.passing) == ("API_UNAUTHORIZED", False)
    assert failed.value.message.startswith("127.0.0.1 rejects the credentials (401)")
    place = shop.company.settings.data_dir / "spark"
    logs = [one for one in place.glob("**/*") if one.is_file() and not one.is_symlink()]
    assert logs
    for one in logs:
        text = one.read_bytes()
        assert SECRET.encode() not in text, one
        assert b"wrong-secret" not in text, one


def test_partitions_are_read_in_tasks_and_paged_each(shop: Workshop, api: Api) -> None:
    def paged(seen: Any) -> Reply:
        number = int(seen.parameters["page"])
        return Reply(
            [{"region": seen.parameters["region"], "id": n} for n in range(number * 10, number * 10 + 10)]
            if number < 4
            else []
        )

    api.on("/paged", paged)
    found = read(shop, api, "/paged", pages={"style": "page"}, partition_parameter="region", partitions=["n", "s", "e"])
    got = [json.loads(row) for row in found["rows"]]
    assert sorted((row["region"], row["id"]) for row in got) == sorted((r, n) for r in "nse" for n in range(10, 40))


@pytest.mark.parametrize(
    ("path", "reply", "code", "said", "passing"),
    [
        ("/odd", Reply({"data": []}), "API_SHAPE", "set `rows` to the path of the rows: data", False),
        ("/odd", Reply(None, 500, {"Retry-After": "0"}), "API_DOWN", "(500) (2 attempts)", True),
        ("/odd", Reply(None, 302, {"Location": "http://169.254.169.254/"}), "API_ELSEWHERE", "redirects to", False),
    ],
)
def test_what_goes_wrong_inside_spark_is_told_in_words(
    shop: Workshop, api: Api, path: str, reply: Reply, code: str, said: str, passing: bool
) -> None:
    api.on(path, lambda _: reply)
    with pytest.raises(StepFailed) as failed:
        read(shop, api, path)
    assert (failed.value.code, failed.value.passing) == (code, passing)
    assert said in failed.value.message
    assert "Traceback" not in failed.value.message


def test_no_other_host_is_reached_than_those_declared(shop: Workshop, api: Api) -> None:
    with serving([]) as other:
        arguments = {"base": other.url, "path": "/rows"}
        with pytest.raises(StepFailed) as failed:
            shop.platform.call(READ, arguments, shop.run().context, hosts=[("127.0.0.1", api.port)])
        assert failed.value.code == "ADDRESS_REFUSED"
        assert not other.seen
        with pytest.raises(StepFailed) as failed:
            shop.platform.call(READ, arguments, shop.run().context, hosts=[("10.0.0.1", 80)])
        assert failed.value.code == "ADDRESS_REFUSED"


def test_the_source_is_known_to_its_own_session_alone(shop: Workshop, api: Api) -> None:
    read(shop, api, "/rows")
    asked = len(api.seen)
    with pytest.raises(SqlFailed) as failed:
        shop.platform.call("tests.execution.spark.rest_functions:read_of_others", {}, shop.run().context)
    assert failed.value.code == "DATA_SOURCE_NOT_FOUND"
    assert len(api.seen) == asked
