"""A company, its server, and the guarded Spark, for steps that run by themselves."""

from collections.abc import Iterator

import pytest

from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.execution.worker.support import port_of, served
from tests.support.company import company
from tests.support.spark import SharedSpark
from tests.support.steps import Workshop


@pytest.fixture(scope="module")
def shop(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Runs that act for Tess, on the Spark that members' SQL runs on."""
    folder = tmp_path_factory.mktemp("shop")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    (folder / "runs").mkdir()
    with (
        company(database, folder, warehouse=shared_spark.warehouse) as found,
        served(found) as address,
        shared_spark.doorway.leads_to(port_of(address)),
    ):
        shared_spark.member.ensure()
        yield Workshop(found, shared_spark.member, folder / "runs")  # type: ignore[arg-type]
    database.close()
