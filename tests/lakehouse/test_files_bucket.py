"""The same files in a bucket."""

import hashlib
import os
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.lakehouse.files import service as files_service
from headgate.lakehouse.uploads import service as uploads_service
from headgate.lakehouse.uploads.sweeper import expire, sweep
from headgate.schema import METADATA
from tests.lakehouse.files_support import Volume
from tests.lakehouse.test_uploads import SUM, Upload, dying, sent
from tests.support.company import company
from tests.support.s3 import S3Server


@pytest.fixture
def volume(s3_server: S3Server, tmp_path: Path) -> Iterator[Volume]:
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with company(database, tmp_path, warehouse=s3_server.settings(f"files-{uuid.uuid4().hex}/warehouse")) as found:
        yield Volume(found)


def test_files_come_back_whole_and_in_ranges(volume: Volume) -> None:
    for content in (b"", b"x", os.urandom(9 << 20)):
        assert volume.put("Tom", "a", content, overwrite=True).status_code == 200
        assert volume.get("Tom", "a").content == content
        assert volume.is_whole()
    assert volume.get("Tom", "a", Range="bytes=5000000-5000009").content == content[5_000_000:5_000_010]
    assert volume.delete("Tom", "a").status_code == 200
    assert volume.blobs() == set()


def test_parts_become_one_file(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(12 << 20)
    monkeypatch.setattr(uploads_service, "PART", 5 << 20)
    upload = Upload(volume, "Tom", size=len(content))
    assert upload.send(content, 0).json()["offset"] == len(content)
    with monkeypatch.context() as patched:
        patched.setattr(uploads_service, "_conclude", dying)
        assert upload.finish().status_code == 500
    first, second = (upload.finish(hashlib.sha256(content).hexdigest()) for _ in range(2))
    assert (first.status_code, first.json()) == (200, second.json())
    assert volume.get("Tom", "big.csv").content == content
    assert volume.parts() == set()
    assert volume.is_whole()


def test_a_part_that_was_never_counted_is_counted(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(volume, "Tom", size=10)
    with monkeypatch.context() as patched:
        patched.setattr(uploads_service, "_advance", dying)
        assert upload.send(b"12345", 0).status_code == 500
    assert upload.send(b"123", 0).json()["offset"] == 5


def test_what_no_row_names_is_swept(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    volume.put("Tom", "kept")
    with monkeypatch.context() as patched:
        patched.setattr(files_service, "place", dying)
        assert volume.put("Tom", "lost").status_code == 500
    upload, later = sent(volume), now() + timedelta(days=2)
    assert sweep(volume.millrace.database, volume.store, now(), lambda: False) == 0
    assert sweep(volume.millrace.database, volume.store, later, lambda: False) == 1
    assert volume.is_whole()
    assert upload.finish(SUM).status_code == 200
    sent(volume, path="never")
    assert expire(volume.millrace.database, volume.store, later, lambda: False) == 1
    assert volume.parts() == set()
