"""Short-lived keys for one table's files: what they are asked for, what their policy lets through, who gets which.

The server of these tests checks signatures and holds a role to its policy. It does not hold keys to the policy of their
own session, so the same policy is tried as a role's; and it knows no conditions, so listing is tried by no server here.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.credentials import KeyScope, assume, policy
from headgate.settings.settings import Settings
from headgate.warehouse.address import Address
from headgate.warehouse.sigv4 import AccessKey
from headgate.warehouse.store import StoreUnavailable
from tests.support import sts
from tests.support.s3 import S3Server

pytestmark = pytest.mark.processes

BUCKET = "lake"
TABLE, OTHER = new_id("table"), new_id("table")
ADDRESS = Address("https", "s3", sts.REGION, BUCKET, "ours/", path_style=True)
MINE, META, THEIRS = f"ours/tables/{TABLE}/a", f"ours/metadata/{TABLE}/a", f"ours/tables/{OTHER}/a"


@pytest.fixture(scope="module")
def service() -> Iterator[sts.Sts]:
    with sts.server() as found:
        found.put(BUCKET, MINE, META, THEIRS, f"ours/tables/{TABLE}x/a")
        yield found


def _settings(service: sts.Sts, folder: Path, role: str) -> Settings:
    warehouse: Any = {
        "url": f"s3://{BUCKET}/ours",
        "s3_region": sts.REGION,
        "s3_access_key_id": service.key_id,
        "s3_secret_access_key": service.secret,
        "s3_access": "credentials",
        "s3_role_arn": role,
        "s3_sts_endpoint": service.endpoint,
    }
    return Settings(data_dir=folder, warehouse=warehouse)


def _may(client: Any, method: str, key: str, **more: Any) -> bool:
    try:
        getattr(client, method)(Bucket=BUCKET, Key=key, **more)
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 403, error  # noqa: PT017
        return False
    return True


@pytest.mark.parametrize("writes", [False, True])
def test_the_policy_lets_through_one_table_alone(service: sts.Sts, tmp_path: Path, writes: bool) -> None:
    role = service.role(f"role-{writes}", policy(ADDRESS, TABLE, writes=writes))
    keys = assume(
        _settings(service, tmp_path, role), AccessKey(service.key_id, service.secret), KeyScope(TABLE, "mbr", writes)
    )
    client = service.client("s3", keys.id, keys.secret, keys.session)
    assert _may(client, "get_object", MINE)
    assert _may(client, "get_object", META)
    for key in (THEIRS, f"ours/tables/{TABLE}x/a", "ours/volumes/v/f"):
        assert not _may(client, "get_object", key)
        assert not _may(client, "put_object", key, Body=b"bad")
        assert not _may(client, "delete_object", key)
    assert _may(client, "put_object", f"ours/tables/{TABLE}/new", Body=b"x") is writes
    assert _may(client, "delete_object", f"ours/tables/{TABLE}/new") is writes
    assert not _may(client, "put_object", META, Body=b"bad")
    assert not _may(client, "delete_object", META)


def test_listing_needs_a_prefix_below_the_table() -> None:
    for writes in (False, True):
        statements = json.loads(policy(ADDRESS, TABLE, writes=writes))["Statement"]
        (listing,) = [one for one in statements if "s3:ListBucket" in one["Action"]]
        assert listing["Resource"] == [f"arn:aws:s3:::{BUCKET}"]
        assert listing["Condition"] == {
            "StringLike": {"s3:prefix": [f"ours/tables/{TABLE}/*", f"ours/metadata/{TABLE}/*"]}
        }
        assert len(policy(ADDRESS, TABLE, writes=writes)) < 2048, "what Amazon takes"


def test_keys_end(service: sts.Sts, tmp_path: Path) -> None:
    role = service.role("role-ends", policy(ADDRESS, TABLE, writes=False))
    keys = assume(
        _settings(service, tmp_path, role),
        AccessKey(service.key_id, service.secret),
        KeyScope(TABLE, "mbr", writes=False),
    )
    assert keys.expires.tzinfo is not None


def test_no_keys_without_a_right_signature_or_role(service: sts.Sts, tmp_path: Path) -> None:
    role = service.role("role-wrong", policy(ADDRESS, TABLE, writes=False))
    settings, grant = _settings(service, tmp_path, role), KeyScope(TABLE, "mbr", writes=False)
    with pytest.raises(StoreUnavailable) as told:
        assume(settings, AccessKey(service.key_id, "wrong"), grant)
    assert "s3_role_arn" in told.value.reason
    assert "s3_role_arn" not in told.value.detail


def test_loading_a_table_gives_keys_by_what_the_member_may(
    service: sts.Sts, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy that is sent for each member is looked at on its way to the service; the keys are the service's."""
    from headgate.kit.database import Database  # noqa: PLC0415
    from headgate.lakehouse.catalog import credentials  # noqa: PLC0415
    from headgate.schema import METADATA  # noqa: PLC0415
    from tests.lakehouse.catalog.support import SCHEMA, lake  # noqa: PLC0415

    asked: list[KeyScope] = []
    role = service.role("role-load", policy(ADDRESS, TABLE, writes=True))

    def watched(settings: Settings, key: AccessKey, grant: KeyScope) -> Any:
        asked.append(grant)
        return assume(_settings(service, tmp_path, role), AccessKey(service.key_id, service.secret), grant)

    monkeypatch.setattr(credentials, "assume", watched)
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    place = s3_server.settings("keys", s3_access="credentials", s3_role_arn=role)
    with lake(database, tmp_path, **place) as found:
        made = found.api("Tess").post("/iceberg/v1/namespaces/trusted/tables", {"name": "facts", "schema": SCHEMA})
        assert made.status_code == 200, made.text
        table = found.company.id("table", "trusted.facts")
        for member, writes in (("Tess", True), ("Ana", False)):
            for path in ("", "/credentials"):
                answer = found.api(member).get(f"/iceberg/v1/namespaces/trusted/tables/facts{path}").json()
                (given,) = answer["storage-credentials"]
                assert set(given["config"]) >= {"s3.access-key-id", "s3.secret-access-key", "s3.session-token"}
                assert asked[-1].writes is writes
                assert asked[-1].table_id == table
                assert "s3.remote-signing-enabled" not in answer.get("config", {})
        count = len(asked)
        for path in ("", "/credentials"):
            assert found.api("Tom").get(f"/iceberg/v1/namespaces/trusted/tables/facts{path}").status_code == 404
        assert len(asked) == count


def test_where_requests_are_signed_no_keys_are_given(on_bucket: Any) -> None:
    from tests.lakehouse.catalog.support import SCHEMA  # noqa: PLC0415

    on_bucket.api("Tess").post("/iceberg/v1/namespaces/raw/tables", {"name": "events", "schema": SCHEMA})
    answer = on_bucket.api("Tess").get("/iceberg/v1/namespaces/raw/tables/events/credentials")
    assert answer.status_code == 406
