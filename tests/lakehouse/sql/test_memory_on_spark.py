"""A statement that takes all memory ends the Spark that it shares once; what ran beside it succeeds."""

from collections.abc import Iterator

import pytest

from tests.lakehouse.sql.conftest import Bench
from tests.support.installation import eventually

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LONG = "SELECT count(*) FROM range(0, 30000000, 1, 4) WHERE sha2(CAST(id AS STRING), 512) LIKE 'aaaaa%'"
BOMBS = (
    "SELECT size(array_repeat('x', 2000000000))",
    "SELECT length(format_string('%2147483000d', 1))",
    "SELECT size(collect_list(repeat(CAST(id AS STRING), 1000))) FROM range(0, 100000000)",
)


@pytest.fixture(scope="module")
def bombed(bench: Bench) -> Iterator[Bench]:
    """A worker on a Spark that is up."""
    with bench.worker():
        assert bench.rows("Tess", "SELECT 1") == [[1]]
        yield bench


def row(bench: Bench, statement: str) -> tuple[int, bool]:
    """How often it was begun, and whether alone."""
    ((fence, isolated),) = bench.millrace.rows(f"SELECT fence, isolated FROM statements WHERE id = '{statement}'")
    return int(fence), bool(isolated)


@pytest.mark.parametrize("bomb", BOMBS)
def test_others_succeed_and_the_culprit_is_told(bombed: Bench, bomb: str) -> None:
    before = bombed.spark.member.state()["pid"]
    beside = bombed.submit("Bea", LONG)
    bombed.begun("Bea", beside)
    culprit = bombed.submit("Ben", bomb)
    eventually(lambda: row(bombed, culprit)[1], 120)
    # The shared server is up again for whoever comes, while the two run alone, one after the other.
    assert bombed.rows("Tess", "SELECT 2") == [[2]]
    after = bombed.spark.member.state()["pid"]
    assert after != before
    error = bombed.done("Ben", culprit, 240)["error"]
    assert error["code"] == "OUT_OF_MEMORY", error
    assert error["message"].startswith("This statement needs more memory than Spark has here")
    found = bombed.done("Bea", beside, 240)
    assert found["state"] == "succeeded", found["error"]
    assert row(bombed, culprit) == row(bombed, beside) == (2, True)
    assert bombed.rows("Tess", "SELECT 3") == [[3]]
    assert bombed.spark.member.state()["pid"] == after, "it died once"
