"""Settings of the warehouse: the folder or bucket that holds the files of the lakehouse."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from headgate.kit.patterns import TextPattern
from headgate.settings.group import ADDRESS, Group

_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*/?")
_Region = Annotated[
    str,
    TextPattern("^[a-z0-9-]{1,40}$", "must be a region: lowercase letters, digits and hyphens, such as eu-central-1"),
]


class WarehouseSettings(Group):
    """The folder or bucket that holds the files of the lakehouse."""

    url: str | None = Field(
        None,
        description="Root of the warehouse: a folder (`file:///PATH`) or a bucket (`s3://BUCKET/PREFIX`). "
        "Default: the folder `warehouse` in `data_dir`.",
    )
    external_engines: Literal["off", "same-host"] = Field(
        "off",
        description="Access of external engines to tables of a warehouse in a folder. File permissions are the only "
        "protection there: `same-host` trusts every program whose user can read the files. A warehouse in a bucket "
        "does not use this setting.",
    )
    requested_location: Literal["ignore", "refuse"] = Field(
        "ignore",
        description="What the catalog does when a client requests a location for a table. The catalog always assigns "
        "the location itself: `ignore` creates the table there, `refuse` returns an error.",
    )
    keep_snapshots: int = Field(200, ge=1, le=100_000, description="Maximum number of snapshots of a table.")
    max_commit_bytes: int = Field(
        32 << 20, ge=1024, le=1 << 30, description="Maximum size of a request to the Iceberg catalog, in bytes."
    )
    deleted_days: float = Field(
        7,
        ge=0,
        le=3650,
        description="Days before a deleted layer, table or volume is purged. Until then it can be restored.",
    )
    max_file_bytes: int = Field(10 << 30, ge=1, description="Maximum size of a file in a volume, in bytes.")
    upload_hours: float = Field(
        24, gt=0, le=720, description="Hours before an incomplete upload expires. Until then it can be resumed."
    )

    s3_endpoint: str | None = Field(
        None,
        description="Endpoint of an S3-compatible store, such as `https://minio.internal:9000`. External engines use "
        "the same endpoint. Default: Amazon S3 in `s3_region`.",
    )
    s3_region: _Region = Field("us-east-1", description="Region of the bucket.")
    s3_access_key_id: str | None = Field(None, description="Access key ID with which the server accesses the bucket.")
    s3_secret_access_key: SecretStr | None = Field(None, description="Secret access key for `s3_access_key_id`.")
    s3_path_style: bool = Field(
        default=False,
        description="Path-style requests (`HOST/BUCKET/…`) instead of virtual-hosted requests (`BUCKET.HOST/…`). Most "
        "stores other than Amazon S3 need it.",
    )
    s3_access: Literal["signing", "credentials"] = Field(
        "signing",
        description="How external engines access the files of a table. `signing`: the server authorizes and signs each "
        "request. `credentials`: the engine gets temporary credentials for the files of the table; engines without "
        "remote signing, such as Trino and DuckDB, need this.",
    )
    s3_role_arn: str | None = Field(
        None, description="IAM role of the temporary credentials. Required when `s3_access` is `credentials`."
    )
    s3_sts_endpoint: str | None = Field(
        None,
        description="Endpoint of the security token service (STS) that issues the temporary credentials. Default: "
        "`s3_endpoint`, or Amazon STS in `s3_region`.",
    )
    s3_credentials_minutes: int = Field(
        15,
        ge=15,
        le=720,
        description="Lifetime of the temporary credentials, in minutes. An engine keeps access to the files for this "
        "time after its grant is revoked.",
    )

    @field_validator("s3_endpoint", "s3_sts_endpoint")
    @classmethod
    def _check_endpoint(cls, url: str | None) -> str | None:
        if url is not None and not ADDRESS.fullmatch(url):
            raise ValueError("the endpoint must have the form https://minio.internal:9000, without a path")
        return url

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.url is not None and self.url.startswith("s3://"):
            if not self.s3_access_key_id or self.s3_secret_access_key is None:
                raise ValueError("a warehouse in a bucket needs s3_access_key_id and s3_secret_access_key; set both")
            if self.s3_access == "credentials" and not self.s3_role_arn:
                raise ValueError("s3_access is `credentials`; set s3_role_arn")
        return self

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            is_folder = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
            if not is_folder and not _BUCKET.fullmatch(url):
                raise ValueError("the warehouse must be a folder (file:///PATH) or a bucket (s3://BUCKET/PREFIX)")
        return url
