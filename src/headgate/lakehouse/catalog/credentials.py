"""Temporary credentials for the files of one table, for engines without remote signing.

The store's STS issues them with a policy limited to the table's root and metadata folder. Members who may query the
table can read both; members who may edit it can also write to the root. The credentials expire after a set time and
cannot be revoked earlier.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.lakehouse.catalog.errors import NotSupported
from headgate.lakehouse.catalog.file_access import require_files
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.settings.settings import Settings
from headgate.warehouse.address import Address, address_of
from headgate.warehouse.bucket import ANSWER_SECONDS, CONNECT_SECONDS, BucketStore
from headgate.warehouse.locations import metadata_root, table_root
from headgate.warehouse.sigv4 import AccessKey
from headgate.warehouse.store import StoreUnavailable

CREDENTIALS = "credentials"


@dataclass(frozen=True, slots=True)
class KeyScope:
    """The scope of temporary credentials."""

    table_id: str
    member: str
    writes: bool


@dataclass(frozen=True, slots=True)
class TemporaryKeys:
    """Credentials that expire."""

    id: str
    secret: str
    session: str
    expires: datetime


def vends_credentials(services: Services) -> bool:
    """Whether this installation issues temporary credentials to engines."""
    return isinstance(services.store, BucketStore) and services.settings.warehouse.s3_access == CREDENTIALS


def granted(call: Call, table_id: str) -> KeyScope:
    """The scope that the caller may have for a table's files; raises the usual refusal if there is none."""
    if not vends_credentials(call.services):
        raise NotSupported("This warehouse does not vend credentials; use remote signing (s3.remote-signing-enabled)")
    require_files(call, "execute", table_id)
    return KeyScope(table_id, call.caller.member, bool(call.decide("edit", "table", table_id)))


def vended_credentials(services: Services, grant: KeyScope) -> dict[str, Any]:
    """Temporary credentials in the form of the specification."""
    store = services.store
    assert isinstance(store, BucketStore)  # noqa: S101 - asked before
    keys = assume(services.settings, store.key, grant)
    return {"prefix": f"{store.url}/", "config": as_config(keys)}


def as_config(keys: TemporaryKeys) -> dict[str, str]:
    """Credentials as FileIO properties."""
    return {
        "s3.access-key-id": keys.id,
        "s3.secret-access-key": keys.secret,
        "s3.session-token": keys.session,
        "s3.session-token-expires-at-ms": str(int(keys.expires.timestamp() * 1000)),
    }


def policy(address: Address, table_id: str, *, writes: bool) -> str:
    """The session policy of credentials for one table, applied on top of the role's policy."""
    bucket = f"arn:aws:s3:::{address.bucket}"
    roots = [f"{address.prefix}{table_root(table_id)}/*", f"{address.prefix}{metadata_root(table_id)}/*"]
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [f"{bucket}/{root}" for root in roots]},
        {
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": [bucket],
            "Condition": {"StringLike": {"s3:prefix": roots}},
        },
    ]
    if writes:
        actions = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": [f"{bucket}/{roots[0]}"]})
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def assume(settings: Settings, key: AccessKey, grant: KeyScope) -> TemporaryKeys:
    """Request credentials for one table from the store's STS; raises StoreUnavailable if it does not issue them."""
    from botocore.config import Config  # noqa: PLC0415 - loads much
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    given, address = settings.warehouse, address_of(settings)
    client = Session(session_vars={"profile": (None, None, None, None)}).create_client(
        "sts",
        endpoint_url=given.s3_sts_endpoint or given.s3_endpoint or f"https://sts.{given.s3_region}.amazonaws.com",
        region_name=given.s3_region,
        aws_access_key_id=key.id,
        aws_secret_access_key=key.secret,
        config=Config(connect_timeout=CONNECT_SECONDS, read_timeout=ANSWER_SECONDS),
    )
    try:
        result = client.assume_role(
            RoleArn=given.s3_role_arn,
            RoleSessionName=grant.member,
            Policy=policy(address, grant.table_id, writes=grant.writes),
            DurationSeconds=given.s3_credentials_minutes * 60,
        )["Credentials"]
    except (ClientError, BotoCoreError) as error:
        raise StoreUnavailable(
            f"could not vend credentials for a table: {error}; check warehouse.s3_role_arn and s3_sts_endpoint, "
            "and that the server's key may assume the role"
        ) from None
    return TemporaryKeys(result["AccessKeyId"], result["SecretAccessKey"], result["SessionToken"], result["Expiration"])
