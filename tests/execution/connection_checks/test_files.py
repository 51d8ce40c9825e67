"""Folders and buckets, asked by a worker."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.execution.steps.context import StepFailed
from headgate.execution.worker.connection_checks import answer
from tests.execution.connection_checks.support import (
    LOCAL,
    endpoint,
    failure_of,
    folders,
    said,
    settings,
    streams_of,
)
from tests.support.s3 import BUCKET, KEY_ID, REGION, SECRET, S3Server


def _tree(root: Path) -> None:
    for name in ("a.csv", "2026/b.csv", "2026/01/c.csv", "2026/d.json"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)


def test_a_folder_shows_its_files_by_pattern(tmp_path: Path) -> None:
    _tree(tmp_path / "in")
    place, allowed = endpoint("folder", {"path": f"{tmp_path}/in"}), folders(tmp_path)
    assert "is readable" in said(place, allowed)
    assert set(streams_of(place, allowed)) == {"a.csv", "2026/b.csv", "2026/01/c.csv", "2026/d.json"}
    assert set(streams_of(place, allowed, pattern="*.csv")) == {"a.csv"}
    assert set(streams_of(place, allowed, pattern="**/*.csv")) == {"a.csv", "2026/b.csv", "2026/01/c.csv"}
    found = streams_of(place, allowed, pattern="2026/b.csv")["2026/b.csv"]
    assert (found["sort"], found["bytes"]) == ("file", len("2026/b.csv"))
    assert len(streams_of(place, allowed, limit=2)) == 2


def test_no_link_leads_out_of_an_allowed_folder(tmp_path: Path) -> None:
    _tree(tmp_path / "in")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.csv").write_text("x")
    (tmp_path / "in/linked.csv").symlink_to(secret / "key.csv")
    (tmp_path / "in/linked").symlink_to(secret)
    (tmp_path / "in/inner.csv").symlink_to(tmp_path / "in/a.csv")
    place = endpoint("folder", {"path": f"{tmp_path}/in"})
    names = set(streams_of(place, folders(tmp_path / "in")))
    assert "inner.csv" in names
    assert not {name for name in names if name.startswith("linked")}
    out = endpoint("folder", {"path": f"{tmp_path}/in/linked"})
    assert failure_of(out, folders(tmp_path / "in")).code == "FOLDER_REFUSED"


def test_only_folders_that_the_settings_list_are_read(tmp_path: Path) -> None:
    _tree(tmp_path / "in")
    place = endpoint("folder", {"path": f"{tmp_path}/in"})
    for given in (LOCAL, folders(tmp_path / "other"), folders(tmp_path / "i")):
        failure = failure_of(place, given)
        assert failure.code == "FOLDER_REFUSED"
        assert "sources.folders" in failure.message
    gone = endpoint("folder", {"path": f"{tmp_path}/nowhere"})
    assert "is not a folder" in failure_of(gone, folders(tmp_path)).message


def test_a_folder_to_write_to_has_a_setting_of_its_own(tmp_path: Path) -> None:
    place = endpoint("folder", {"path": str(tmp_path)})
    allowed = settings(deliveries={"folders": [str(tmp_path)]})
    assert "is writable" in answer("test", place, {}, allowed, writes=True)["detail"]
    with pytest.raises(StepFailed, match=r"deliveries\.folders"):
        answer("test", place, {}, folders(tmp_path), writes=True)
    assert list(tmp_path.iterdir()) == []


def bucket(server: S3Server, secret: str = SECRET, **more: Any) -> Endpoint:
    config = {"endpoint": server.endpoint, "bucket": BUCKET, "region": REGION, "path_style": True}
    return endpoint("object_store", {**config, "access_key_id": KEY_ID, **more}, secret_key=secret)


def test_a_bucket_shows_its_files_by_pattern(s3_server: S3Server) -> None:
    prefix = f"checks-{uuid.uuid4().hex}"
    _tree(s3_server.folder / BUCKET / prefix)
    place = bucket(s3_server, prefix=prefix)
    assert said(place) == f"The bucket can be listed; it contains files below {prefix}/"
    assert set(streams_of(place)) == {"a.csv", "2026/b.csv", "2026/01/c.csv", "2026/d.json"}
    found = streams_of(place, pattern="2026/*.csv")
    assert set(found) == {"2026/b.csv"}
    assert found["2026/b.csv"]["bytes"] == len("2026/b.csv")
    assert found["2026/b.csv"]["modified_at"]
    public = endpoint("object_store", {"endpoint": s3_server.endpoint, "bucket": BUCKET, "path_style": True})
    assert said(public) == "The bucket can be listed; it contains files"
    assert "it is empty" in said(bucket(s3_server, prefix=f"{prefix}/none"))


def test_what_is_wrong_with_a_bucket_is_said_with_what_to_do(s3_server: S3Server) -> None:
    assert failure_of(bucket(s3_server, "not the key")).code == "WRONG_CREDENTIALS"
    assert failure_of(bucket(s3_server, access_key_id="AKIANOBODY")).code == "WRONG_CREDENTIALS"
    assert failure_of(bucket(s3_server, bucket="nowhere")).code == "NO_SUCH_BUCKET"
    assert failure_of(bucket(s3_server), settings()).code == "ADDRESS_REFUSED"
    assert failure_of(bucket(s3_server, endpoint="http://127.0.0.1:1")).code == "UNREACHABLE"
    nothing = Endpoint("con_00000000000000000000", "object_store", bucket(s3_server).config, {})
    assert failure_of(nothing).code == "MISSING_SECRET"
