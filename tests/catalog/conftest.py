"""A company whose catalog stock clients can reach: the real server on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.kit.db import Database
from headgate.schema import METADATA
from tests.catalog.support import Lake, lake


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Lake]:
    """The company, and a server that other engines may use, on each kind of database in turn."""
    with lake(database, tmp_path) as found:
        yield found


@pytest.fixture
def served_on_sqlite(tmp_path: Path) -> Iterator[Lake]:
    """The same on SQLite."""
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with lake(database, tmp_path) as found:
        yield found
