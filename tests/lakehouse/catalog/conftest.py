"""A company whose catalog stock clients can reach: the real server on loopback."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.kit.database import Database
from tests.lakehouse.catalog.support import Lake, lake
from tests.support.databases import on_sqlite
from tests.support.s3 import S3Server


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Lake]:
    """The company, and a server that other engines may use, on each kind of database in turn."""
    with lake(database, tmp_path) as found:
        yield found


@pytest.fixture
def served_on_sqlite(tmp_path: Path) -> Iterator[Lake]:
    """The same on SQLite."""
    with lake(on_sqlite(tmp_path), tmp_path) as found:
        yield found


@pytest.fixture
def on_bucket(tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """The company with its warehouse in a bucket, and its server.

    PyIceberg works with one thread: of several, one takes the signer away from its s3fs while it puts its own there, and
    what another sends at that moment is sent without a signature.
    """
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "1")
    monkeypatch.setattr("pyiceberg.utils.concurrent.ExecutorFactory._instance", None)
    with lake(on_sqlite(tmp_path), tmp_path, **s3_server.settings(f"test-{uuid.uuid4().hex}")) as found:
        yield found
