"""What `headgate doctor` says of a warehouse in a bucket."""

from pathlib import Path

from headgate.execution.spark.doctor import findings
from tests.support.s3 import S3Server


def _said(server: S3Server, folder: Path, **more: str) -> list[tuple[str, str]]:
    settings = server.installation(folder, "doctor", **more)
    return [(one.state, one.detail) for one in findings(settings) if one.name == "warehouse"]


def test_a_bucket_that_can_be_used(s3_server: S3Server, tmp_path: Path) -> None:
    assert _said(s3_server, tmp_path) == [("ok", "s3://lake/doctor is usable, and conditional writes are rejected")]


def test_a_bucket_that_cannot(s3_server: S3Server, tmp_path: Path) -> None:
    ((state, detail),) = _said(s3_server, tmp_path, s3_secret_access_key="wrong")
    assert state == "wrong"
    assert "s3_secret_access_key" in detail
