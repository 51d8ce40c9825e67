"""A mill that many cases share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.kit.database import Database
from tests.pipelines.works import Works
from tests.support.company import company
from tests.support.databases import on_sqlite


@contextmanager
def _mill(database: Database, folder: Path) -> Iterator[Works]:
    with company(database, folder) as found:
        yield Works(found)


@pytest.fixture(scope="module")
def mill(
    module_database_dialect: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Works]:
    """The mill for all cases of a module."""
    folder = tmp_path_factory.mktemp("mill")
    if module_database_dialect == "sqlite":
        with _mill(on_sqlite(folder), folder) as found:
            yield found
        return
    with request.getfixturevalue("postgres_databases").made() as url, _mill(Database(url), folder) as found:
        yield found


@pytest.fixture
def works(mill: Works) -> Iterator[Works]:
    """The mill, as it was when the case is over."""
    with mill.case():
        yield mill


@pytest.fixture(scope="module")
def mill_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    """The mill on SQLite, for all cases of a module."""
    folder = tmp_path_factory.mktemp("mill")
    with _mill(on_sqlite(folder), folder) as found:
        yield found


@pytest.fixture
def works_on_sqlite(mill_on_sqlite: Works) -> Iterator[Works]:
    """The same on SQLite."""
    with mill_on_sqlite.case():
        yield mill_on_sqlite
