"""The signer over HTTP, and what its signatures open at a real store: one table's files, for who may, now."""

import base64
import hashlib
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from sqlalchemy import text

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.files import OutsideRoot, Root, opened, size
from headgate.lakehouse.catalog.signing import RECENT
from headgate.lakehouse.catalog.work_tokens import end_work, open_work
from tests.lakehouse.catalog.support import ROWS, SCHEMA, Lake, lake
from tests.support.s3 import BUCKET, REGION, S3Server


class Bucket:
    """The files of two tables in the bucket, and requests to it that hold nothing but a signature of the catalog's."""

    def __init__(self, lake: Lake, server: S3Server) -> None:
        self.lake, self.server = lake, server
        tess = lake.engine("Tess")
        for name in ("trusted.facts", "raw.events"):
            tess.create_table(name, ROWS.schema).append(ROWS)
        self.facts, self.events = (lake.company.id("table", name) for name in ("trusted.facts", "raw.events"))
        self.root = f"{server.endpoint}/{BUCKET}/{lake.company.settings.warehouse_url.rpartition('/')[2]}"
        self.folder = server.folder / BUCKET / self.root.rpartition("/")[2]

    def file(self, table: str, area: str = "tables") -> str:
        """The address of a file of a table."""
        found = next(one for one in sorted((self.folder / area / table).rglob("*")) if one.is_file())
        return f"{self.root}/{found.relative_to(self.folder)}"

    def ask(self, who: str, table: str, method: str, uri: str, headers: Any = None, **more: Any) -> Any:
        """Have a request signed, with a member's token or this one."""
        token = who if who.startswith("hg") else self.lake.company.token(who)
        body = {"method": method, "uri": uri, "region": REGION, "headers": headers or {}, "properties": {}, **more}
        return httpx.post(
            f"{self.lake.url}/iceberg/v1/signer/{table}", json=body, headers={"Authorization": f"Bearer {token}"}
        )

    def send(self, who: str, table: str, method: str, uri: str, content: bytes = b"", **more: Any) -> httpx.Response:
        """Send a request with the signature that the catalog gives, which it must."""
        answer = self.ask(who, table, method, uri, **more)
        assert answer.status_code == 200, answer.text
        assert answer.json()["uri"] == uri
        headers = {name: values[0] for name, values in answer.json()["headers"].items()}
        return httpx.request(method, uri, content=content, headers=headers)


@pytest.fixture
def bucket(on_bucket: Lake, s3_server: S3Server) -> Bucket:
    return Bucket(on_bucket, s3_server)


def test_a_signature_opens_one_file_to_who_may_read_it(bucket: Bucket) -> None:
    for area in ("tables", "metadata"):
        uri = bucket.file(bucket.facts, area)
        assert httpx.get(uri).status_code == 403
        assert bucket.send("Ana", bucket.facts, "GET", uri).status_code == 200
        for nobody in ("Tom", "Bea", "Dora"):
            answer = bucket.ask(nobody, bucket.facts, "GET", uri)
            assert answer.status_code == 404
            missing = bucket.ask(nobody, new_id("table"), "GET", uri)
            assert (missing.status_code, missing.json()) == (404, answer.json())


def test_nobody_reaches_another_table_through_the_signer_of_their_own(bucket: Bucket) -> None:
    """Tom may edit raw.events and may not know of trusted.facts; the store itself would follow each of these."""
    theirs = bucket.file(bucket.facts)
    inner = theirs.partition(f"{bucket.root}/")[2]
    mine = f"{bucket.root}/tables/{bucket.events}"
    for uri in (
        theirs,
        f"{mine}/../../{inner}",
        f"{mine}/%2e%2e/%2e%2e/{inner}",
        f"{mine}/x/..%2f..%2f..%2f{inner}",
        f"{mine}/%252e%252e/%252e%252e/{inner}",
    ):
        assert bucket.ask("Tom", bucket.events, "GET", uri).status_code == 403, uri
        assert bucket.ask("Tom", bucket.events, "PUT", uri).status_code == 403, uri
    copy = {"x-amz-copy-source": [f"/{BUCKET}/{theirs.partition(f'/{BUCKET}/')[2]}"]}
    assert bucket.ask("Tom", bucket.events, "PUT", f"{mine}/data/copied", headers=copy).status_code == 403
    signed = bucket.ask("Tom", bucket.events, "PUT", f"{mine}/data/copied").json()["headers"]
    sent = {name: values[0] for name, values in signed.items()}
    added = httpx.put(f"{mine}/data/copied", headers={**sent, "x-amz-copy-source": copy["x-amz-copy-source"][0]})
    assert added.status_code == 403
    assert "copied" not in {one.name for one in bucket.folder.rglob("*")}


def test_a_signature_does_for_nothing_but_what_it_was_given_for(bucket: Bucket) -> None:
    uri = bucket.file(bucket.events)
    before = httpx.get(uri, headers=_headers(bucket.ask("Tom", bucket.events, "GET", uri))).content
    headers = _headers(bucket.ask("Tom", bucket.events, "GET", uri))
    assert httpx.put(uri, content=b"bad", headers=headers).status_code == 403
    assert httpx.delete(uri, headers=headers).status_code == 403
    assert httpx.get(bucket.file(bucket.facts), headers=headers).status_code == 403
    assert httpx.get(f"{uri}?acl", headers=headers).status_code == 403
    spoilt = {**headers, "Authorization": headers["Authorization"][:-4] + "0000"}
    assert httpx.get(uri, headers=spoilt).status_code == 403
    assert httpx.get(uri, headers=headers).content == before


def _headers(answer: Any) -> dict[str, str]:
    assert answer.status_code == 200, answer.text
    return {name: values[0] for name, values in answer.json()["headers"].items()}


def test_a_viewer_writes_nothing(bucket: Bucket) -> None:
    uri = f"{bucket.root}/tables/{bucket.facts}/data/new.parquet"
    for method, query in (("PUT", ""), ("DELETE", ""), ("POST", "?uploads"), ("PUT", "?partNumber=1&uploadId=a")):
        answer = bucket.ask("Ana", bucket.facts, method, uri + query)
        assert answer.status_code == 403
        assert answer.json()["error"]["type"] == "ForbiddenException"
        assert "Editor" in answer.json()["error"]["message"]


def test_an_editor_writes_the_root_and_never_the_metadata(bucket: Bucket) -> None:
    uri = f"{bucket.root}/tables/{bucket.events}/data/new.parquet"
    assert bucket.send("Tom", bucket.events, "PUT", uri, b"rows").status_code == 200
    assert bucket.send("Tom", bucket.events, "GET", uri).content == b"rows"
    assert bucket.send("Tom", bucket.events, "DELETE", uri).status_code == 204
    metadata = bucket.file(bucket.events, "metadata")
    for who in ("Tom", "Tess", "Olga"):
        for method in ("PUT", "DELETE"):
            for place in (metadata, f"{metadata}.new"):
                assert bucket.ask(who, bucket.events, method, place).status_code == 403


def test_a_large_file_is_sent_in_parts(bucket: Bucket) -> None:
    uri = f"{bucket.root}/tables/{bucket.events}/data/large.parquet"
    begun = bucket.send("Tom", bucket.events, "POST", f"{uri}?uploads").text
    upload = begun.partition("<UploadId>")[2].partition("<")[0]
    tags = []
    for number, part in enumerate((b"x" * (5 << 20), b"end"), 1):
        sent = bucket.send("Tom", bucket.events, "PUT", f"{uri}?partNumber={number}&uploadId={upload}", part)
        tags.append(f"<Part><PartNumber>{number}</PartNumber><ETag>{sent.headers['etag']}</ETag></Part>")
    whole = f"<CompleteMultipartUpload>{''.join(tags)}</CompleteMultipartUpload>".encode()
    assert bucket.send("Tom", bucket.events, "POST", f"{uri}?uploadId={upload}", whole).status_code == 200
    assert bucket.send("Tom", bucket.events, "GET", uri).content.endswith(b"end")


def test_files_are_listed_below_the_root_alone(bucket: Bucket) -> None:
    prefix = bucket.root.rpartition("/")[2]
    base = f"{bucket.server.endpoint}/{BUCKET}?list-type=2&prefix="
    found = bucket.send("Ana", bucket.facts, "GET", f"{base}{prefix}/tables/{bucket.facts}/").text
    assert bucket.facts in found
    for wider in ("", f"{prefix}/", f"{prefix}/tables/", f"{prefix}/tables/{bucket.events}/"):
        assert bucket.ask("Ana", bucket.facts, "GET", base + wider).status_code == 403


def test_many_files_are_deleted_only_by_the_body_that_was_looked_at(bucket: Bucket) -> None:
    prefix = bucket.root.rpartition("/")[2]
    place, names = f"{prefix}/tables/{bucket.events}/data", ("one", "two")
    for name in names:
        bucket.send("Tom", bucket.events, "PUT", f"{bucket.server.endpoint}/{BUCKET}/{place}/{name}", b"x")
    body = f"<Delete>{''.join(f'<Object><Key>{place}/{name}</Key></Object>' for name in names)}</Delete>"
    theirs = bucket.file(bucket.facts).partition(f"/{BUCKET}/")[2]
    other = f"<Delete><Object><Key>{theirs}</Key></Object></Delete>"
    uri = f"{bucket.server.endpoint}/{BUCKET}?delete"
    assert bucket.ask("Tom", bucket.events, "POST", uri).status_code == 403
    assert bucket.ask("Tom", bucket.events, "POST", uri, body=other).status_code == 403
    assert bucket.ask("Ana", bucket.facts, "POST", uri, body=other).status_code == 403
    sums = {one: base64.b64encode(hashlib.md5(one.encode()).digest()).decode() for one in (body, other)}  # noqa: S324
    headers = _headers(bucket.ask("Tom", bucket.events, "POST", uri, body=body))
    assert headers["X-Amz-Content-SHA256"] == hashlib.sha256(body.encode()).hexdigest()
    swapped = httpx.post(uri, content=other, headers={**headers, "Content-MD5": sums[other]})
    assert "XAmzContentSHA256Mismatch" in swapped.text
    assert (bucket.server.folder / BUCKET / theirs).exists()
    assert httpx.post(uri, content=body, headers={**headers, "Content-MD5": sums[body]}).status_code == 200
    assert not (bucket.server.folder / BUCKET / place / "one").exists()


def test_the_next_signature_is_refused_when_the_right_or_the_token_is_gone(bucket: Bucket) -> None:
    uri, company = bucket.file(bucket.facts), bucket.lake.company
    assert bucket.ask("Ana", bucket.facts, "GET", uri).status_code == 200
    done = company.as_("Tess").change(change="revoke", to="group:analysts", resource="layer:trusted", level="viewer")
    assert done.status_code == 200, done.text
    assert bucket.ask("Ana", bucket.facts, "GET", uri).status_code == 404
    token = company.token("Tess", read_only=True)
    assert bucket.ask(token, bucket.facts, "GET", uri).status_code == 200
    assert bucket.ask(token, bucket.facts, "PUT", uri).status_code == 403
    company.database.write(
        lambda connection: connection.execute(
            text("UPDATE tokens SET revoked_at = :now WHERE read_only"), {"now": now()}
        )
    )
    assert bucket.ask(token, bucket.facts, "GET", uri).status_code == 401


def test_a_work_token_signs_while_its_work_runs(bucket: Bucket) -> None:
    company = bucket.lake.company
    member = company.id("member", "Ana")

    def opened(connection: Any) -> Any:
        return open_work(connection, now(), purpose="statement", member=member, expires=now() + timedelta(hours=1))

    work, secret = company.database.write(opened)
    uri = bucket.file(bucket.facts)
    assert bucket.send(secret, bucket.facts, "GET", uri).status_code == 200
    assert bucket.ask(secret, bucket.facts, "PUT", uri).status_code == 403
    assert bucket.ask(secret, bucket.events, "GET", bucket.file(bucket.events)).status_code == 404
    loaded = httpx.get(
        f"{bucket.lake.url}/iceberg/v1/namespaces/trusted/tables/facts", headers={"Authorization": f"Bearer {secret}"}
    ).json()
    assert loaded["config"]["io-impl"] == "headgate.guard.TableFileIO"
    assert loaded["config"]["s3.remote-signing-enabled"] == "true"
    assert loaded["remote-signing-config"] == {"headers": {"Authorization": [f"Bearer {secret}"]}}
    company.database.write(lambda connection: end_work(connection, work, now()))
    assert bucket.ask(secret, bucket.facts, "GET", uri).status_code == 401


def test_a_staged_table_is_filled_by_who_stages_it_alone(bucket: Bucket) -> None:
    staged = bucket.lake.api("Tom").post(
        "/iceberg/v1/namespaces/raw/tables", {"name": "staged", "schema": SCHEMA, "stage-create": True}
    )
    assert staged.status_code == 200, staged.text
    location = staged.json()["metadata"]["location"]
    table = location.rpartition("/")[2]
    uri = f"{bucket.root}/tables/{table}/data/new.parquet"
    assert bucket.send("Tom", table, "PUT", uri, b"rows").status_code == 200
    assert bucket.send("Tom", table, "GET", uri).content == b"rows"
    for other in ("Tess", "Ana", "Olga"):
        assert bucket.ask(other, table, "PUT", uri).status_code == 404
        assert bucket.ask(other, table, "GET", uri).status_code == 404
    bucket.lake.company.as_("Tess").change(change="revoke", to="Tom", resource="layer:raw", level="editor")
    assert bucket.ask("Tom", table, "PUT", uri).status_code == 404


def test_a_deleted_table_is_signed_for_nobody(bucket: Bucket) -> None:
    uri = bucket.file(bucket.events)
    bucket.lake.engine("Tess").drop_table("raw.events")
    for who in ("Tess", "Tom", "Olga"):
        assert bucket.ask(who, bucket.events, "GET", uri).status_code == 404


def test_no_client_keeps_a_signature(bucket: Bucket) -> None:
    answer = bucket.ask("Ana", bucket.facts, "GET", bucket.file(bucket.facts))
    assert answer.headers["cache-control"] == "no-store"


def test_the_place_that_the_specification_names_signs_too(bucket: Bucket) -> None:
    uri, token = bucket.file(bucket.facts), bucket.lake.company.token
    body = {"method": "GET", "uri": uri, "region": REGION, "headers": {}, "provider": "s3"}
    place = f"{bucket.lake.url}/iceberg/v1/namespaces/trusted/tables/facts/sign"
    answer = httpx.post(place, json=body, headers={"Authorization": f"Bearer {token('Ana')}"})
    assert httpx.get(uri, headers=_headers(answer)).status_code == 200
    hidden = httpx.post(place, json=body, headers={"Authorization": f"Bearer {token('Tom')}"})
    assert (hidden.status_code, hidden.json()["error"]["type"]) == (404, "NoSuchTableException")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"method": "GET"},
        {"method": 1, "uri": "x", "region": "y"},
        {"method": "GET", "uri": "x" * 9000, "region": "y"},
        {"method": "GET", "uri": "http://x", "region": REGION, "headers": []},
        {"method": "GET", "uri": "http://x", "region": REGION, "headers": {"a": 1}},
        {"method": "GET", "uri": "http://x", "region": REGION, "headers": {"a": [1]}},
        {"method": "GET", "uri": "http://x", "region": REGION, "body": 1},
        {"method": "GET", "uri": "http://x", "region": "nowhere"},
        [],
        None,
    ],
)
def test_a_body_that_cannot_be_understood(bucket: Bucket, body: Any) -> None:
    token = bucket.lake.company.token("Ana")
    place = f"{bucket.lake.url}/iceberg/v1/signer/{bucket.facts}"
    answer = httpx.post(place, json=body, headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "BadRequestException")


def test_reads_and_refusals_are_in_the_audit_log(bucket: Bucket) -> None:
    uri = bucket.file(bucket.facts)
    RECENT._seen.clear()
    for _ in range(3):
        bucket.ask("Ana", bucket.facts, "GET", uri)
    bucket.ask("Tom", bucket.facts, "GET", uri)
    bucket.lake.company.client.app.state.services.batches.close()  # type: ignore[attr-defined]
    ana, tom = (bucket.lake.company.id("member", name) for name in ("Ana", "Tom"))
    seen = bucket.lake.rows(
        f"SELECT actor_id, allowed FROM audit_events WHERE resource_id = '{bucket.facts}' AND action = 'execute'"
    )
    assert [bool(allowed) for actor, allowed in seen if actor == ana] == [True]
    assert [bool(allowed) for actor, allowed in seen if actor == tom] == [False]


def test_a_folder_has_nothing_to_sign(served_on_sqlite: Lake) -> None:
    served_on_sqlite.engine("Tess").create_table("raw.events", ROWS.schema)
    table = served_on_sqlite.company.id("table", "raw.events")
    body = {"method": "GET", "uri": "http://x/y", "region": REGION}
    assert served_on_sqlite.api("Tess").post(f"/iceberg/v1/signer/{table}", body).status_code == 406


@pytest.mark.postgres
def test_the_same_on_postgresql(postgres_database: Database, s3_server: S3Server, tmp_path: Path) -> None:
    with lake(postgres_database, tmp_path, **s3_server.settings(f"test-{uuid.uuid4().hex}")) as found:
        made = {
            name: found.api("Tom").post(
                "/iceberg/v1/namespaces/raw/tables", {"name": name, "schema": SCHEMA, "stage-create": name == "staged"}
            )
            for name in ("live", "staged")
        }
        root = f"{s3_server.endpoint}/{BUCKET}/{found.company.settings.warehouse_url.rpartition('/')[2]}"
        for name, answer in made.items():
            table = answer.json()["metadata"]["location"].rpartition("/")[2]
            wish = {"method": "PUT", "uri": f"{root}/tables/{table}/data/a", "region": REGION}
            assert found.api("Tom").post(f"/iceberg/v1/signer/{table}", wish).status_code == 200
            assert found.api("Ana").post(f"/iceberg/v1/signer/{table}", wish).status_code == 404
            assert (
                found.api("Tess").post(f"/iceberg/v1/signer/{table}", wish).status_code
                == {"live": 200, "staged": 404}[name]
            )


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "https", "file", "S3A"])
def test_a_file_has_one_name(on_bucket: Lake, scheme: str) -> None:
    store, table = on_bucket.company.client.app.state.services.store, new_id("table")  # type: ignore[attr-defined]
    root = Root(store, table)
    assert root.path(f"{root.url}/data/a") == f"tables/{table}/data/a"
    with pytest.raises(OutsideRoot):
        root.path(f"{root.url}/data/a".replace("s3", scheme, 1))


def test_a_name_that_an_engine_chose_is_opened_as_it_is(on_bucket: Lake) -> None:
    """Partition values stand in names, with percent signs and whatever letters they have."""
    store, table = on_bucket.company.client.app.state.services.store, new_id("table")  # type: ignore[attr-defined]
    root, name = Root(store, table), "data/p=a%2Fb c+d/\u00e4.parquet"
    store.client.put_object(
        Bucket=BUCKET, Key=f"{store.address.prefix}tables/{table}/{name}", Body=b"rows", ContentType="x/y"
    )
    path = root.path(f"{root.url}/{name}")
    assert size(store, path) == 4
    with opened(store, path) as file:
        assert file.read() == b"rows"
    with pytest.raises(FileNotFoundError):
        opened(store, f"{path}x")
