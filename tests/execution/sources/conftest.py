"""Streams landed in tables by a real Spark: files of a folder and of a volume, and tables of real databases."""

from pathlib import Path

import pytest

from tests.execution.sources.support import Files
from tests.support.steps import Workshop


@pytest.fixture(scope="session")
def shop(shared_shop: Workshop) -> Workshop:
    """The company, and a platform's Spark that may reach databases on this machine."""
    return shared_shop


@pytest.fixture
def files(shop: Workshop, tmp_path: Path) -> Files:
    """A folder that is a source, and the tables that its files land in."""
    folder = shop.company.settings.sources.folders[0] / tmp_path.name
    folder.mkdir()
    return Files(shop, folder)
