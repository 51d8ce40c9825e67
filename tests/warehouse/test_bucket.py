"""A bucket as a store: what it says when it cannot be used, and that the server of these tests checks signatures."""

import hashlib
import socket
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from headgate.settings.settings import Settings
from headgate.warehouse.address import address_of
from headgate.warehouse.bucket import BucketStore
from headgate.warehouse.sigv4 import UNSIGNED, AccessKey, signed
from headgate.warehouse.store import StoreUnavailable
from tests.support.s3 import BUCKET, KEY_ID, REGION, SECRET, S3Server

GOOD = AccessKey(KEY_ID, SECRET)


def _put(
    server: S3Server, key: AccessKey = GOOD, body: bytes = b"x", payload: str = UNSIGNED, **more: str
) -> httpx.Response:
    url = f"{server.endpoint}/{BUCKET}/signatures/one"
    headers = signed("PUT", url, {}, key, REGION, payload)
    return httpx.put(url, content=body, headers={**headers, **more})


def test_a_right_signature_is_taken(s3_server: S3Server) -> None:
    assert _put(s3_server).status_code == 200
    assert _put(s3_server, body=b"yes", payload=hashlib.sha256(b"yes").hexdigest()).status_code == 200
    assert (s3_server.folder / BUCKET / "signatures/one").read_bytes() == b"yes"


def test_a_wrong_signature_fails_at_the_server(s3_server: S3Server) -> None:
    unsigned: dict[str, Any] = {"x-amz-meta-a": "b"}
    _put(s3_server, body=b"kept")
    assert "SignatureDoesNotMatch" in _put(s3_server, AccessKey(KEY_ID, "a wrong secret"), b"bad").text
    assert "InvalidAccessKeyId" in _put(s3_server, AccessKey("AKIANOBODY", SECRET), b"bad").text
    assert "XAmzContentSHA256Mismatch" in _put(s3_server, body=b"bad", payload=hashlib.sha256(b"x").hexdigest()).text
    assert "HeadersNotSigned" in _put(s3_server, body=b"bad", **unsigned).text
    assert httpx.put(f"{s3_server.endpoint}/{BUCKET}/signatures/one", content=b"bad").status_code == 403
    assert (s3_server.folder / BUCKET / "signatures/one").read_bytes() == b"kept"


def test_a_signature_is_for_one_method_and_one_file(s3_server: S3Server) -> None:
    _put(s3_server, body=b"kept")
    url = f"{s3_server.endpoint}/{BUCKET}/signatures/one"
    headers = signed("GET", url, {}, GOOD, REGION, UNSIGNED)
    assert httpx.get(url, headers=headers).content == b"kept"
    assert httpx.delete(url, headers=headers).status_code == 403
    assert httpx.get(f"{s3_server.endpoint}/{BUCKET}/signatures/two", headers=headers).status_code == 403
    assert httpx.get(url, params={"acl": ""}, headers=headers).status_code == 403


def test_a_wrong_key_is_said_to_be_one(s3_server: S3Server, tmp_path: Path) -> None:
    store = BucketStore(s3_server.installation(tmp_path, s3_secret_access_key="wrong"))
    for act in (store.read, store.open, store.size, lambda path: store.write(path, [b"x"])):
        with pytest.raises(StoreUnavailable) as told:
            act("a/b")
        assert "wrong" not in told.value.detail
        assert BUCKET not in told.value.detail
    (complaint,) = store.check()
    assert "s3_secret_access_key" in complaint


def test_a_bucket_that_is_not_there(s3_server: S3Server, tmp_path: Path) -> None:
    store = BucketStore(s3_server.installation(tmp_path, url="s3://nowhere-at-all"))
    (complaint,) = store.check()
    assert complaint.startswith("There is no bucket nowhere-at-all")
    assert "warehouse.url" in complaint


def test_a_host_that_does_not_answer(s3_server: S3Server, tmp_path: Path) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{one.getsockname()[1]}"
    store = BucketStore(s3_server.installation(tmp_path, s3_endpoint=endpoint))
    (complaint,) = store.check()
    assert (
        complaint
        == f"No server answers at {endpoint}; check warehouse.s3_endpoint, and that the object store is running"
    )
    with pytest.raises(StoreUnavailable):
        store.open("a/b")


def test_a_broken_upload_leaves_no_parts(bucket_store: BucketStore) -> None:
    def parts() -> object:
        yield b"x" * (20 << 20)
        raise OSError("the client is gone")

    with pytest.raises(OSError, match="gone"):
        bucket_store.write("a/large", parts())  # type: ignore[arg-type]
    assert "Uploads" not in bucket_store.client.list_multipart_uploads(Bucket=BUCKET)


@pytest.mark.parametrize(
    ("given", "endpoint", "host", "root"),
    [
        ({}, "https://s3.eu-west-1.amazonaws.com", "lake.s3.eu-west-1.amazonaws.com", "/"),
        ({"s3_path_style": True}, "https://s3.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com", "/lake/"),
        (
            {"s3_endpoint": "http://store:9000", "s3_path_style": True},
            "http://store:9000",
            "store:9000",
            "/lake/",
        ),
        ({"s3_endpoint": "https://store:443"}, "https://store", "lake.store", "/"),
    ],
)
def test_where_a_bucket_is(given: dict[str, str], endpoint: str, host: str, root: str, tmp_path: Path) -> None:
    keys = {"s3_access_key_id": "a", "s3_secret_access_key": "b", "s3_region": "eu-west-1"}
    address = address_of(Settings(data_dir=tmp_path, warehouse={"url": "s3://lake/of/ours/", **keys, **given}))
    assert (address.endpoint, address.request_host, address.request_root) == (endpoint, host, root)
    assert (address.bucket, address.prefix) == ("lake", "of/ours/")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "s3_access_key_id and s3_secret_access_key"),
        ({"url": "s3a://lake"}, "s3://BUCKET/PREFIX"),
        ({"url": "s3://lake/../other"}, "s3://BUCKET/PREFIX"),
        ({"url": "s3://lake/a//b"}, "s3://BUCKET/PREFIX"),
        ({"s3_access_key_id": "a", "s3_secret_access_key": "b", "s3_access": "credentials"}, "s3_role_arn"),
        ({"s3_endpoint": "https://store/path"}, "without a path"),
        ({"s3_endpoint": "https://user:pass@store"}, "without a path"),
    ],
)
def test_settings_that_cannot_be_used(given: dict[str, str], told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        Settings(data_dir=tmp_path, warehouse={"url": "s3://lake", **given})
