"""The company behind a real server, with a worker on a real Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.execution.worker.support import done, port_of, served, working
from tests.lakehouse.sql.support import STATEMENTS, submit
from tests.support.company import Company, company
from tests.support.installation import eventually
from tests.support.spark import SharedSpark

ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = 3"


class KeptOpen:
    """A Spark that outlives the workers that use it."""

    def __init__(self, shared: SharedSpark) -> None:
        self.shared = shared

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shared.member, name)

    def close(self) -> None:
        """It goes on for the next test."""


@dataclass
class Bench:
    """The workbench, as members use it."""

    millrace: Company
    spark: SharedSpark
    address: str

    @contextmanager
    def worker(self, slots: int = 4) -> Iterator[None]:
        with working(self.millrace, self.address, KeptOpen(self.spark), slots=slots):
            yield

    def submit(self, member: str, sql: str, **more: Any) -> str:
        return submit(self.millrace, member, sql, **more)

    def done(self, member: str, statement: str, seconds: float = 90) -> Any:
        return done(self.millrace, member, statement, seconds)

    def run(self, member: str, sql: str, **more: Any) -> Any:
        """A statement when it is over."""
        return self.done(member, self.submit(member, sql, **more))

    def rows(self, member: str, sql: str) -> list[list[Any]]:
        """The rows of a statement that succeeds."""
        found = self.run(member, sql)
        assert found["state"] == "succeeded", found["error"]
        return list(found["data"])

    def begun(self, member: str, statement: str) -> None:
        """Wait until Spark works on a statement."""

        def is_working() -> bool:
            found = self.get(member, statement).json()
            assert found["state"] in {"queued", "running"}, found
            return bool(found["progress"] and found["progress"]["tasks_total"])

        eventually(is_working, 90)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A worker of four slots with something endless in each, until the end of the block.

        The last of its slots is for another member than those who have the others: so one is begun after the other.
        """
        blockers: list[tuple[str, str]] = []
        try:
            for member in ("Tess", "Tess", "Tess", "Adam"):
                blockers.append((member, self.submit(member, ENDLESS)))
                self.begun(*blockers[-1])
            yield
        finally:
            for member, statement in blockers:
                self.millrace.as_(member).post(f"{STATEMENTS}/{statement}/cancel", None)

    def change(self, member: str, change: str, **more: Any) -> None:
        """A change of access that is made."""
        answer = self.millrace.as_(member).change(change=change, **more)
        assert answer.status_code == 200, answer.text

    def get(self, member: str, statement: str, path: str = "", **more: Any) -> Any:
        return self.millrace.as_(member).get(f"{STATEMENTS}/{statement}{path}", **more)


@contextmanager
def opened(shared_spark: SharedSpark, database: Database, folder: Path, **more: Any) -> Iterator[Bench]:
    """The company in this database, its server on a port, and the Spark that asks it."""
    METADATA.create_all(database.engine)
    limits = {"concurrent": 50, "max_bytes": 400_000}
    settings = {"warehouse": shared_spark.warehouse, "server": {"processes": 2}, "sql": limits, **more}
    with (
        company(database, folder, **settings) as millrace,
        served(millrace) as address,
        shared_spark.doorway.leads_to(port_of(address)),
    ):
        yield Bench(millrace, shared_spark, address)
    database.close()


@pytest.fixture(scope="module")
def bench(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The workbench on SQLite."""
    folder = tmp_path_factory.mktemp("bench")
    with opened(shared_spark, Database(f"sqlite:///{folder}/headgate.db"), folder) as found:
        yield found
