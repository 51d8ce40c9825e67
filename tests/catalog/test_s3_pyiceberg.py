"""Stock PyIceberg on a bucket, with a member's token and no key: every request is signed by the catalog, or fails."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.kit.db import Database
from headgate.schema import METADATA
from tests.catalog.support import MORE, ROWS, Lake, lake
from tests.support.s3 import BUCKET, S3Server


@pytest.fixture
def on_bucket(tmp_path: Path, s3_server: S3Server) -> Iterator[Lake]:
    """The company, its warehouse in a bucket, and its server."""
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with lake(database, tmp_path, **s3_server.settings(f"test-{uuid.uuid4().hex}")) as found:
        yield found


def test_a_table_is_created_written_and_read(on_bucket: Lake) -> None:
    tess = on_bucket.engine("Tess")
    table = tess.create_table("raw.events", ROWS.schema)
    assert table.location().startswith(f"s3://{BUCKET}/test-")
    table.append(ROWS)
    table.append(MORE)
    table.delete("id = 2")
    found = tess.load_table("raw.events").scan().to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [1, 3, 4, 5]
