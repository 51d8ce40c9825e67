"""A lakehouse behind a real server, and notebooks on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.execution.sandbox import bubblewrap as sandbox
from headgate.kit.database import Database
from headgate.schema import METADATA
from headgate.settings.settings import Settings
from tests.lakehouse.catalog.support import ROWS, lake
from tests.support.notebooks import Notebooks


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebooks]:
    """The company with rows in raw.events, an empty trusted.facts, and two volumes with files."""
    lacking = sandbox.missing(Settings().spark.sandbox_uid)
    assert lacking is None, lacking
    folder: Path = tmp_path_factory.mktemp("notebooks")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    with lake(database, folder) as found:
        tess = found.engine("Tess")
        tess.create_table("raw.events", ROWS.schema).append(ROWS)
        tess.create_table("raw.hidden", ROWS.schema).append(ROWS)
        tess.create_table("trusted.facts", ROWS.schema)
        yield Notebooks(found, folder)
