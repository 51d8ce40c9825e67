"""Compaction by the platform's own Spark: the same rows in fewer files, or nothing at all."""

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.execution.worker.job_loop import JobLoop
from headgate.execution.worker.server_link import Link
from headgate.execution.worker.table_rewrites import RewriteHandler
from headgate.kit.clock import now
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog import commit as committing
from headgate.lakehouse.maintenance import repository
from headgate.lakehouse.maintenance import scheduler as passing
from headgate.pipelines.runs import checkpoints
from tests.support.installation import eventually
from tests.support.steps import Workshop, workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROWS = "SELECT id, name FROM raw.many ORDER BY id"


@pytest.fixture(scope="module")
def one_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with workshop(tmp_path_factory.mktemp("maintenance"), maintenance={"compact_min_files": 5}) as found:
        found.rows("CREATE TABLE raw.many (id bigint, name string)")
        yield found


@pytest.fixture
def shop(one_shop: Workshop) -> Workshop:
    """A table of seven small files; the last has a row of its own, that of the highest id."""
    files, [row] = files_of(one_shop), one_shop.rows("SELECT coalesce(max(id) + 1, 0) AS next FROM raw.many")
    for number in range(row["next"], row["next"] + 7 - files):
        one_shop.rows(f"INSERT INTO raw.many VALUES ({number}, 'row {number}')")
    return one_shop


def rewritten(shop: Workshop) -> str:
    """A pass whose rewrites a worker has done, over HTTP, while the scheduler looks whether it has; its id."""
    services: Any = shop.company.services
    address = shop.platform._catalog_url.removesuffix("/iceberg")
    link = Link(address, services.worker_secret, new_id("worker"), "here")
    loop = JobLoop(link, [RewriteHandler(link, shop.company.settings, shop.folder, shop.platform)])
    identifier = services.database.write(lambda c: repository.ask(c, now()))

    def is_over() -> bool:
        passing.work(services, checkpoints, now())
        [(state,)] = shop.company.rows(f"SELECT state FROM maintenance_passes WHERE id = '{identifier}'")
        return bool(state == "succeeded")

    loop.start()
    try:
        eventually(is_over, 60)
    finally:
        loop.stop()
        link.close()
    return str(identifier)


def files_of(shop: Workshop) -> int:
    [row] = shop.rows("SELECT COUNT(*) AS n FROM raw.many.files")
    return int(row["n"])


def test_a_commit_of_another_meanwhile_refuses_it_whole(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is deleted while Spark rewrites: what it wrote would bring that row back."""
    plan, begun, ids = committing._plan, list[Any](), [row["id"] for row in shop.rows(ROWS)]

    def and_before_it_a_deletion(*arguments: Any) -> Any:
        found = plan(*arguments)
        if not begun:
            begun.append(True)
            shop.rows(f"DELETE FROM raw.many WHERE id = {ids[-1]}")
        return found

    monkeypatch.setattr(committing, "_plan", and_before_it_a_deletion)
    pass_id = rewritten(shop)
    assert begun
    [(state, error)] = shop.company.rows(f"SELECT state, error FROM table_rewrites WHERE pass_id = '{pass_id}'")
    assert (state, "the next pass tries again" in error) == ("failed", True)
    assert [row["id"] for row in shop.rows(ROWS)] == ids[:-1]
    assert files_of(shop) == 6


def test_the_same_rows_lie_in_fewer_files(shop: Workshop) -> None:
    before, files = shop.rows(ROWS), files_of(shop)
    assert files >= 5
    pass_id = rewritten(shop)
    done = f"SELECT state, files_before, files_after FROM table_rewrites WHERE pass_id = '{pass_id}'"
    assert shop.company.rows(done) == [("succeeded", files, 1)]
    assert files_of(shop) == 1
    assert shop.rows(ROWS) == before
    [(operation, member, added, deleted)] = shop.company.rows(
        "SELECT operation, member_id, added_rows, deleted_rows FROM commits ORDER BY at DESC LIMIT 1"
    )
    assert (operation, member) == ("replace", None)
    assert added == deleted == len(before), "so that no trigger takes it for a change"
