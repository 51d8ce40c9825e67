"""What is signed for one table, and what never is, however it is written."""

import hashlib
from typing import Any

import pytest

from headgate.lakehouse.catalog.errors import Forbidden, Malformed
from headgate.lakehouse.catalog.s3_requests import S3Request, understood
from headgate.warehouse.address import Address
from headgate.warehouse.sigv4 import TRAILER, UNSIGNED

TABLE, OTHER = "tbl_06gy20rbcpy7105cx5kp", "tbl_06gy20rbcpy7105cx5kq"
BY_PATH = Address("http", "store:9000", "eu-west-1", "lake", "of/ours/", path_style=True)
BY_HOST = Address("https", "s3.eu-west-1.amazonaws.com", "eu-west-1", "lake", "", path_style=False)
ROOT = f"http://store:9000/lake/of/ours/tables/{TABLE}"
META = f"http://store:9000/lake/of/ours/metadata/{TABLE}"
BUCKET = "http://store:9000/lake"


def ask(method: str, uri: str, address: Address = BY_PATH, body: str | None = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): [value] for name, value in headers.items()}
    return understood(S3Request(method, uri, "eu-west-1", named, body), address, TABLE)


@pytest.mark.parametrize(
    ("method", "uri", "action"),
    [
        ("GET", f"{ROOT}/data/a.parquet", "execute"),
        ("HEAD", f"{ROOT}/data/a.parquet", "execute"),
        ("GET", f"{META}/00001-x.metadata.json", "execute"),
        ("GET", f"{ROOT}/data/p%3Da%2520b/a.parquet", "execute"),
        ("GET", f"{ROOT}/data/p=%C3%A4/a.parquet", "execute"),
        ("GET", f"{ROOT}/data/p=a%252Fb/a.parquet", "execute"),
        ("PUT", f"{ROOT}/data/a.parquet", "edit"),
        ("POST", f"{ROOT}/data/a.parquet?uploads", "edit"),
        ("POST", f"{ROOT}/data/a.parquet?uploads=", "edit"),
        ("PUT", f"{ROOT}/data/a.parquet?partNumber=2&uploadId=abc-_.~", "edit"),
        ("POST", f"{ROOT}/data/a.parquet?uploadId=abc", "edit"),
        ("DELETE", f"{ROOT}/data/a.parquet?uploadId=abc", "edit"),
        ("DELETE", f"{ROOT}/data/a.parquet", "edit"),
        ("GET", f"{BUCKET}?list-type=2&prefix=of%2Fours%2Ftables%2F{TABLE}%2F", "execute"),
        ("GET", f"{BUCKET}/?list-type=2&prefix=of/ours/tables/{TABLE}/data&delimiter=%2F&max-keys=5", "execute"),
        ("GET", f"{BUCKET}?list-type=2&prefix=of/ours/metadata/{TABLE}/", "execute"),
    ],
)
def test_what_stays_with_the_table_is_understood(method: str, uri: str, action: str) -> None:
    assert ask(method, uri).action == action


@pytest.mark.parametrize(
    ("method", "uri"),
    [
        # another place
        ("GET", f"http://store:9000/lake/of/ours/tables/{OTHER}/data/a.parquet"),
        ("GET", f"http://store:9000/lake/of/ours/tables/{TABLE}x/data/a.parquet"),
        ("GET", ROOT),
        ("GET", f"{ROOT}/"),
        ("GET", "http://store:9000/lake/of/ours/volumes/vol_1/fil_1"),
        ("GET", f"http://store:9000/lake/tables/{TABLE}/a"),
        ("GET", f"http://store:9000/other/of/ours/tables/{TABLE}/a"),
        ("GET", f"http://store:9000/lakes/of/ours/tables/{TABLE}/a"),
        ("GET", f"http://store:9001/lake/of/ours/tables/{TABLE}/a"),
        ("GET", f"https://store:9000/lake/of/ours/tables/{TABLE}/a"),
        ("GET", f"http://lake.store:9000/of/ours/tables/{TABLE}/a"),
        ("GET", f"http://evil:9000/lake/of/ours/tables/{TABLE}/a"),
        ("GET", f"http://store:9000@evil/lake/of/ours/tables/{TABLE}/a"),
        ("GET", f"http://user@store:9000/lake/of/ours/tables/{TABLE}/a"),
        ("GET", f"http://[::1/lake/of/ours/tables/{TABLE}/a"),
        ("GET", f"//store:9000/lake/of/ours/tables/{TABLE}/a"),
        ("GET", f"{ROOT}/a#b"),
        # metadata is never written
        ("PUT", f"{META}/00001-x.metadata.json"),
        ("DELETE", f"{META}/00001-x.metadata.json"),
        ("POST", f"{META}/00001-x.metadata.json?uploads"),
        # two ways to read a path
        ("GET", f"{ROOT}/../{OTHER}/a"),
        ("GET", f"{ROOT}/%2e%2e/{OTHER}/a"),
        ("GET", f"{ROOT}/%2E./{OTHER}/a"),
        ("GET", f"{ROOT}/%252e%252e/{OTHER}/a"),
        ("GET", f"{ROOT}/%25252e%25252e/{OTHER}/a"),
        ("GET", f"{ROOT}/x%2F..%2F..%2F{OTHER}/a"),
        ("GET", f"{ROOT}/x%5C..%5C..%5C{OTHER}/a"),
        ("GET", f"{ROOT}/x\\..\\..\\{OTHER}/a"),
        ("GET", f"{ROOT}/..;/{OTHER}/a"),
        ("GET", f"{ROOT}/./a"),
        ("GET", f"{ROOT}//a"),
        ("GET", f"{ROOT}/.\t./{OTHER}/a"),
        ("GET", f"{ROOT}/.\n./{OTHER}/a"),
        ("GET", f"{ROOT}/a%00"),
        ("GET", f"{ROOT}/a%0d%0aHost:x"),
        ("GET", f"{ROOT}/a%"),
        ("GET", f"{ROOT}/a%zz"),
        ("GET", f"{ROOT}/%ff"),
        ("GET", f"{ROOT}/a b"),
        ("GET", f"{ROOT}/ä"),
        ("GET", f"{BUCKET}/of/ours%2Ftables/{TABLE}/a"),
        # more than bytes
        ("GET", f"{ROOT}/a?acl"),
        ("PUT", f"{ROOT}/a?acl"),
        ("PUT", f"{ROOT}/a?%61cl"),
        ("PUT", f"{ROOT}/a?tagging"),
        ("PUT", f"{ROOT}/a?retention"),
        ("GET", f"{ROOT}/a?versionId=1"),
        ("DELETE", f"{ROOT}/a?versionId=1"),
        ("GET", f"{ROOT}/a?response-content-type=text/html"),
        ("GET", f"{ROOT}/a?uploadId=1"),
        ("GET", f"{ROOT}/a?X-Amz-Credential=1"),
        ("POST", f"{ROOT}/a"),
        ("POST", f"{ROOT}/a?select&select-type=2"),
        ("POST", f"{ROOT}/a?restore"),
        ("POST", f"{ROOT}/a?delete"),
        ("POST", f"{ROOT}/a?uploads&uploadId=1"),
        ("PUT", f"{ROOT}/a?partNumber=1"),
        ("PUT", f"{ROOT}/a?partNumber=0&uploadId=1"),
        ("PUT", f"{ROOT}/a?partNumber=1&partNumber=2&uploadId=1"),
        ("PUT", f"{ROOT}/a?uploadId=&partNumber=1"),
        ("PATCH", f"{ROOT}/a"),
        ("get", f"{ROOT}/a"),
        ("OPTIONS", f"{ROOT}/a"),
        # the bucket itself
        ("GET", BUCKET),
        ("HEAD", BUCKET),
        ("PUT", BUCKET),
        ("DELETE", BUCKET),
        ("GET", f"{BUCKET}?policy"),
        ("GET", f"{BUCKET}?uploads"),
        ("GET", f"{BUCKET}?list-type=2"),
        ("GET", f"{BUCKET}?list-type=2&prefix="),
        ("GET", f"{BUCKET}?list-type=2&prefix=of/ours/tables/"),
        ("GET", f"{BUCKET}?list-type=2&prefix=of/ours/tables/{TABLE}"),
        ("GET", f"{BUCKET}?list-type=2&prefix=of/ours/tables/{OTHER}/"),
        ("GET", f"{BUCKET}?list-type=2&prefix=of/ours/tables/{TABLE}/../"),
        ("GET", f"{BUCKET}?list-type=2&prefix=of/ours/tables/{TABLE}/&prefix=of/"),
        ("GET", f"{BUCKET}?list-type=2&prefix=of/ours/tables/{TABLE}/&versions"),
        ("GET", f"{BUCKET}?list-type=2;prefix=of/ours/tables/{TABLE}/"),
        ("GET", f"{BUCKET}?prefix=of/ours/tables/{TABLE}/"),
        ("GET", "http://store:9000/"),
        ("GET", "http://store:9000"),
    ],
)
def test_what_leads_elsewhere_is_refused(method: str, uri: str) -> None:
    with pytest.raises((Forbidden, Malformed)):
        ask(method, uri)


@pytest.mark.parametrize(
    "name",
    [
        "x-amz-copy-source",
        "X-Amz-Copy-Source",
        "x-amz-copy-source-range",
        "x-amz-acl",
        "x-amz-grant-read",
        "x-amz-website-redirect-location",
        "x-amz-tagging",
        "x-amz-meta-a",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-security-token",
        "x-amz-date",
        "authorization",
        "x-amz-bypass-governance-retention",
        "x-amz-checksum-mode-x",
    ],
)
def test_a_header_that_makes_the_store_act_is_refused(name: str) -> None:
    with pytest.raises((Forbidden, Malformed)):
        understood(S3Request("PUT", f"{ROOT}/a", "eu-west-1", {name: ["x"]}), BY_PATH, TABLE)


def test_what_a_signature_says_of_the_body() -> None:
    digest = "a" * 64
    assert ask("PUT", f"{ROOT}/a").payload == UNSIGNED
    assert ask("PUT", f"{ROOT}/a", x_amz_content_sha256=digest).payload == digest
    assert ask("PUT", f"{ROOT}/a", x_amz_trailer="x-amz-checksum-crc32").payload == TRAILER
    with pytest.raises(Forbidden, match="send the body in one piece"):
        ask("PUT", f"{ROOT}/a", x_amz_content_sha256="STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
    with pytest.raises(Malformed, match="once"):
        understood(
            S3Request("PUT", f"{ROOT}/a", "eu-west-1", {"x-amz-content-sha256": [UNSIGNED, digest]}), BY_PATH, TABLE
        )
    both = {"x-amz-content-sha256": [UNSIGNED], "X-Amz-Content-Sha256": [digest]}
    with pytest.raises(Malformed, match="once"):
        understood(S3Request("PUT", f"{ROOT}/a", "eu-west-1", both), BY_PATH, TABLE)


def test_all_headers_of_the_store_are_signed_and_no_others() -> None:
    found = ask("PUT", f"{ROOT}/a", x_amz_checksum_crc32="x", content_md5="y", user_agent="z", Range="0-1")
    assert found.headers == {"x-amz-checksum-crc32": "x", "content-md5": "y"}


def test_another_region_is_refused() -> None:
    with pytest.raises(Malformed, match="eu-west-1"):
        understood(S3Request("GET", f"{ROOT}/a", "us-east-1", {}), BY_PATH, TABLE)


def test_a_bucket_in_the_host() -> None:
    host = "https://lake.s3.eu-west-1.amazonaws.com"
    assert ask("GET", f"{host}/tables/{TABLE}/a", BY_HOST).action == "execute"
    assert ask("GET", f"{host}:443/tables/{TABLE}/a", BY_HOST).action == "execute"
    assert ask("GET", f"{host}/?list-type=2&prefix=tables/{TABLE}/", BY_HOST).action == "execute"
    for uri in (
        f"https://s3.eu-west-1.amazonaws.com/lake/tables/{TABLE}/a",
        f"https://lake.s3.eu-west-1.amazonaws.com.evil/tables/{TABLE}/a",
        f"https://other.s3.eu-west-1.amazonaws.com/tables/{TABLE}/a",
        f"{host}/lake/tables/{TABLE}/a",
        f"{host}:8443/tables/{TABLE}/a",
    ):
        with pytest.raises(Forbidden):
            ask("GET", uri, BY_HOST)


def _many(*keys: str, head: str = "", tail: str = "") -> str:
    inside = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'{head}<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inside}{tail}</Delete>'


MINE = f"of/ours/tables/{TABLE}/a"


def test_many_files_are_deleted_by_the_body_that_was_looked_at() -> None:
    for body in (
        _many(MINE, f"of/ours/tables/{TABLE}/b"),
        _many(MINE, head='<?xml version="1.0" encoding="UTF-8"?>', tail="<Quiet>true</Quiet>"),
        f"<Delete><Object><Key>{MINE}</Key></Object></Delete>",
    ):
        found = ask("POST", f"{BUCKET}?delete", body=body, content_md5="x")
        assert (found.action, found.payload) == ("edit", hashlib.sha256(body.encode()).hexdigest())


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "<Delete/>",
        "not xml",
        _many(f"of/ours/tables/{OTHER}/a"),
        _many(MINE, f"of/ours/metadata/{TABLE}/a"),
        _many(f"of/ours/tables/{TABLE}/../{OTHER}/a"),
        _many(""),
        f"<Delete><Object><Key>{MINE}</Key><Key>of/ours/tables/{OTHER}/a</Key></Object></Delete>",
        f"<Delete><Object><Key>{MINE}</Key><VersionId>1</VersionId></Object></Delete>",
        f"<Delete><Object><Key>{MINE}<b>x</b></Key></Object></Delete>",
        f"<Delete><!-- --><Object><Key>{MINE}</Key></Object></Delete>",
        f"<!DOCTYPE a [<!ENTITY b 'c'>]><Delete><Object><Key>{MINE}</Key></Object></Delete>",
        f"<Delete><Object><Key><![CDATA[{MINE}]]></Key></Object></Delete>",
        f"<Delete><Other><Key>{MINE}</Key></Other></Delete>",
        f'<Delete xmlns:x="y"><x:Object><Key>{MINE}</Key></x:Object><Object><Key>{MINE}</Key></Object></Delete>',
        _many(*[MINE] * 1001),
    ],
)
def test_many_files_of_which_one_is_not_the_tables_are_not_deleted(body: str | None) -> None:
    with pytest.raises(Forbidden):
        ask("POST", f"{BUCKET}?delete", body=body)


def test_the_hash_of_another_body_is_not_signed() -> None:
    for other in ("a" * 64, UNSIGNED, TRAILER):
        with pytest.raises(Forbidden):
            ask("POST", f"{BUCKET}?delete", body=_many(MINE), x_amz_content_sha256=other)
