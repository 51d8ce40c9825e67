"""Our own Spark, guarded and in its sandbox, on a bucket: each statement is signed for by its own work token."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.spark.errors import SqlFailed, StatementRefused
from headgate.execution.spark.member import MemberSpark
from headgate.kit.clock import now
from headgate.lakehouse.catalog.work_tokens import end_work, open_work
from tests.lakehouse.catalog.support import ROWS, Lake

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]


class Members:
    """Members' sessions on one server, each with a work token."""

    def __init__(self, lake: Lake, spark: MemberSpark) -> None:
        self.lake, self.spark = lake, spark

    def open(self, member: str) -> tuple[str, str]:
        who, expires = self.lake.company.id("member", member), now() + timedelta(hours=1)
        return self.lake.company.database.write(
            lambda connection: open_work(connection, now(), purpose="statement", member=who, expires=expires)
        )

    def run(self, member: str, sql: str, *, ends: bool = False) -> list[dict[str, Any]]:
        """What a member gets for a statement; its token may end with it."""
        work, secret = self.open(member)
        session = self.spark.open(secret)
        try:
            return [row for batch in session.run(sql).batches for row in batch.to_pylist()]
        finally:
            session.close()
            if ends:
                self.lake.company.database.write(lambda connection: end_work(connection, work, now()))


@pytest.fixture
def members(on_bucket: Lake) -> Iterator[Members]:
    spark = MemberSpark(on_bucket.company.settings, f"{on_bucket.url}/iceberg")
    try:
        spark.ensure()
        yield Members(on_bucket, spark)
    finally:
        spark.close()


def test_each_statement_reaches_what_its_own_token_may(members: Members, tmp_path: Path) -> None:
    """Java's signer keeps the headers of the first session of its process: Tess's here, whose token ends with it."""
    tess = members.lake.engine("Tess")
    tess.create_table("raw.events", ROWS.schema).append(ROWS)
    tess.create_table("trusted.facts", ROWS.schema).append(ROWS)

    assert members.run("Tess", "SELECT count(*) AS n FROM lake.raw.events", ends=True) == [{"n": 3}]
    assert members.run("Ana", "SELECT sum(id) AS n FROM lake.trusted.facts") == [{"n": 6}]
    members.run("Tom", "INSERT INTO lake.raw.events VALUES (4, 'd')")
    assert members.run("Tess", "SELECT count(*) AS n FROM lake.raw.events") == [{"n": 4}]
    for member, sql in (
        ("Ana", "SELECT * FROM lake.raw.events"),
        ("Tom", "SELECT * FROM lake.trusted.facts"),
        ("Ana", "INSERT INTO lake.trusted.facts VALUES (9, 'no')"),
    ):
        with pytest.raises((SqlFailed, StatementRefused)):
            members.run(member, sql)
    assert tess.load_table("raw.events").scan().to_arrow().num_rows == 4
    assert tess.load_table("trusted.facts").scan().to_arrow().num_rows == 3
