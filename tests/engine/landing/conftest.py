"""Streams landed in tables by a real Spark: files of a folder and of a volume, and tables of real databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.landing.support import Files
from tests.support import mariadb
from tests.support.mariadb import MariaDb
from tests.support.steps import Workshop, workshop


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """The company, and a platform's Spark that may reach databases on this machine."""
    folder = tmp_path_factory.mktemp("landing")
    (folder / "incoming").mkdir()
    settings = {"outgoing": {"allow": ["127.0.0.1"]}, "sources": {"folders": [str(folder / "incoming")]}}
    with workshop(folder, **settings) as found:
        yield found


@pytest.fixture
def files(shop: Workshop, tmp_path: Path) -> Files:
    """A folder that is a source, and the tables that its files land in."""
    folder = shop.company.settings.sources.folders[0] / tmp_path.name
    folder.mkdir()
    return Files(shop, folder)


@pytest.fixture(scope="package")
def maria() -> Iterator[MariaDb]:
    with mariadb.server() as found:
        yield found
