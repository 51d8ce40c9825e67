"""A lakehouse behind a real server, and the Spark that members' statements run on."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.app import create_app
from headgate.execution.sandbox import bubblewrap as sandbox
from headgate.execution.spark.member import SqlSession
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.lakehouse.catalog.work_tokens import open_work
from headgate.schema import METADATA
from headgate.settings.settings import Settings
from tests.support import cluster
from tests.support.company import Company, company
from tests.support.serving import served
from tests.support.spark import SharedSpark, rows_of


@dataclass
class Lakehouse:
    """The demo's company with its catalog, and Spark."""

    spark: SharedSpark
    company: Company

    def work(self, member: str) -> str:
        """A work token of a member."""
        who = self.company.id("member", member)
        expires = now() + timedelta(hours=1)
        return self.company.database.write(
            lambda c: open_work(c, now(), purpose="statement", member=who, expires=expires)
        )[1]

    def session(self, member: str, **more: Any) -> SqlSession:
        """A session of a member; whoever opens it closes it."""
        self.spark.member.ensure()
        return self.spark.member.open(self.work(member), **more)

    def rows(self, member: str, sql: str, **more: Any) -> list[dict[str, Any]]:
        """What a member gets for a statement."""
        session = self.session(member)
        try:
            return rows_of(session, sql, **more)
        finally:
            session.close()


@pytest.fixture(scope="session")
def engine_spark(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedSpark]:
    """The Spark under test: this machine's own, or with `make cluster-test`, that of a cluster."""
    if not cluster.wanted():
        yield shared_spark
        return
    folder = tmp_path_factory.mktemp("cluster")
    found = SharedSpark(folder)
    with cluster.started(folder, found.doorway.catalog_url) as running:
        found.use(running)
        yield found
        found.close()


@pytest.fixture(scope="module")
def lakehouse(engine_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakehouse]:
    """The company behind a real server, whose catalog Spark asks."""
    folder: Path = tmp_path_factory.mktemp("lakehouse")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    with company(database, folder, warehouse=engine_spark.warehouse) as found:
        again = Database(f"sqlite:///{folder}/headgate.db")
        with served(create_app(found.settings, again)) as port, engine_spark.doorway.leads_to(port):
            yield Lakehouse(engine_spark, found)


@pytest.fixture(scope="session")
def with_sandbox() -> None:
    """That this machine has a sandbox: `make test` installs it, so that its lack is a failure and no excuse."""
    lacking = sandbox.missing(Settings().spark.sandbox_uid)
    assert lacking is None, lacking
