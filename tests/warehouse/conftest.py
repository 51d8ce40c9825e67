"""Stores of both kinds."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.warehouse.bucket import BucketStore
from headgate.warehouse.folder import FolderStore
from headgate.warehouse.store import Store
from tests.support.s3 import S3Server


@pytest.fixture
def bucket_store(s3_server: S3Server, tmp_path: Path) -> BucketStore:
    """A store in a prefix of its own of the server's bucket."""
    return BucketStore(s3_server.installation(tmp_path, f"test-{uuid.uuid4().hex}/warehouse"))


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.processes)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind in turn."""
    if request.param == "folder":
        yield FolderStore(tmp_path / "warehouse")
    else:
        yield request.getfixturevalue("bucket_store")
