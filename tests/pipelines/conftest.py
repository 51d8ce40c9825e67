"""A mill that many cases share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.kit.database import Database
from tests.pipelines.pipeline_company import PipelineCompany
from tests.support.company import company
from tests.support.databases import on_sqlite


@contextmanager
def _opened(database: Database, folder: Path) -> Iterator[PipelineCompany]:
    with company(database, folder) as found:
        yield PipelineCompany(found)


@pytest.fixture(scope="module")
def shared_company(
    module_database_dialect: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineCompany]:
    """The mill for all cases of a module."""
    folder = tmp_path_factory.mktemp("mill")
    if module_database_dialect == "sqlite":
        with _opened(on_sqlite(folder), folder) as found:
            yield found
        return
    with request.getfixturevalue("postgres_databases").made() as url, _opened(Database(url), folder) as found:
        yield found


@pytest.fixture
def firm(shared_company: PipelineCompany) -> Iterator[PipelineCompany]:
    """The mill, as it was when the case is over."""
    with shared_company.case():
        yield shared_company


@pytest.fixture(scope="module")
def shared_company_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipelineCompany]:
    """The mill on SQLite, for all cases of a module."""
    folder = tmp_path_factory.mktemp("mill")
    with _opened(on_sqlite(folder), folder) as found:
        yield found


@pytest.fixture
def works_on_sqlite(shared_company_on_sqlite: PipelineCompany) -> Iterator[PipelineCompany]:
    """The same on SQLite."""
    with shared_company_on_sqlite.case():
        yield shared_company_on_sqlite
