"""The kinds of external systems and their configurations, with typed fields only.

Secrets are not included: each kind declares which ones it supports, and they are stored separately and sealed.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, TypeAdapter, model_validator

from headgate.contracts.external_systems import driver_properties
from headgate.contracts.external_systems.fields import (
    Bucket,
    Certificate,
    FolderPath,
    Headers,
    Host,
    KeyName,
    Plain,
    Port,
    Prefix,
    Region,
    Url,
)
from headgate.kit.request_models import Input

Unmoving = dict[str, Any]


class EndpointFields(Input):
    """The common fields of all kinds."""

    UNMOVING: ClassVar[Unmoving] = {}
    """Fields that are not part of the endpoint: changing any other field changes the endpoint."""

    def takes(self) -> dict[str, bool]:
        """The secrets it supports, and whether each is required."""
        return {}

    def where(self) -> dict[str, Any]:
        """The endpoint fields, which are equal in configurations of the same endpoint."""
        return self.model_dump(mode="json", exclude=self.UNMOVING)

    def dials(self) -> list[str]:
        """The hosts and URLs that Headgate connects to."""
        return []


class Database(EndpointFields):
    """A database with host and port."""

    UNMOVING: ClassVar[Unmoving] = {"user": True, "properties": True}
    PROPERTIES: ClassVar[dict[str, str]] = {}

    host: Host
    port: Port
    database: Plain
    user: Plain
    tls: Annotated[
        Literal["verify", "require", "off"],
        Field(description="Check the server's certificate and name; encrypt without checking; or neither"),
    ] = "verify"
    tls_ca: Annotated[Certificate | None, Field(description="The authority to trust; left out, the machine's")] = None
    properties: Annotated[
        dict[str, Annotated[str, Field(max_length=200)]],
        Field(max_length=20, description="Allowed properties of the JDBC driver", examples=[{"socketTimeout": "60"}]),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known(self) -> Self:
        driver_properties.checked(self.properties, self.PROPERTIES)
        if self.tls_ca is not None and self.tls != "verify":
            raise ValueError("tls_ca requires tls verify; remove it, or set tls to verify")
        return self

    def takes(self) -> dict[str, bool]:
        return {"password": False}

    def dials(self) -> list[str]:
        return [self.host]


class PostgreSql(Database):
    """A PostgreSQL database."""

    PROPERTIES: ClassVar[dict[str, str]] = driver_properties.POSTGRESQL

    kind: Literal["postgresql"] = "postgresql"
    port: Port = 5432


class MySql(Database):
    """A MySQL or MariaDB database."""

    PROPERTIES: ClassVar[dict[str, str]] = driver_properties.MYSQL

    kind: Literal["mysql"] = "mysql"
    port: Port = 3306


class NoAuth(Input):
    """Requests carry no credentials."""

    style: Literal["none"] = "none"


class BearerAuth(Input):
    """Each request carries the secret `token`, as `Authorization: Bearer …`."""

    style: Literal["bearer"] = "bearer"


class BasicAuth(Input):
    """Each request carries a user name and the secret `password`."""

    style: Literal["basic"] = "basic"
    user: Plain


class KeyAuth(Input):
    """Each request carries the secret `token` in a header or query parameter."""

    style: Literal["api_key"] = "api_key"
    place: Literal["header", "query"] = "header"
    name: KeyName


class OAuthAuth(Input):
    """Requests carry a token obtained with the client's id and the secret `client_secret` (client credentials)."""

    style: Literal["oauth2"] = "oauth2"
    token_url: Url
    client_id: Plain
    scope: Annotated[str, Field(max_length=1000)] = ""
    audience: Annotated[str, Field(max_length=1000, description="For services that require an audience")] = ""
    sent_in: Annotated[Literal["header", "body"], Field(description="Where to send the client secret")] = "header"


_SECRETS = {
    "none": {},
    "bearer": {"token": True},
    "basic": {"password": True},
    "api_key": {"token": True},
    "oauth2": {"client_secret": True},
}
_CREDENTIALS = dict.fromkeys(("user", "name", "place", "client_id", "scope", "audience", "sent_in"), True)


class Http(EndpointFields):
    """A REST API."""

    UNMOVING: ClassVar[Unmoving] = {"headers": True, "per_second": True, "retries": True, "auth": _CREDENTIALS}

    kind: Literal["http"] = "http"
    base_url: Url
    auth: Annotated[NoAuth | BearerAuth | BasicAuth | KeyAuth | OAuthAuth, Discriminator("style")] = NoAuth()
    headers: Headers = Field(default_factory=dict)
    per_second: Annotated[float | None, Field(gt=0, le=1000, description="Maximum requests per second")] = None
    retries: Annotated[int, Field(ge=0, le=10, description="Retries after a transient error")] = 3

    def takes(self) -> dict[str, bool]:
        return _SECRETS[self.auth.style]

    def dials(self) -> list[str]:
        return [self.base_url, *([self.auth.token_url] if isinstance(self.auth, OAuthAuth) else [])]


class ObjectStore(EndpointFields):
    """A prefix in a bucket of Amazon S3 or a compatible store."""

    UNMOVING: ClassVar[Unmoving] = {"access_key_id": True}

    kind: Literal["object_store"] = "object_store"
    endpoint: Annotated[Url | None, Field(description="Default: Amazon S3 in the region")] = None
    bucket: Bucket
    region: Region = "us-east-1"
    prefix: Prefix = ""
    path_style: Annotated[bool, Field(description="Put the bucket in the path of URLs instead of the host")] = False
    access_key_id: Annotated[Plain | None, Field(description="Without an access key, requests are not signed")] = None

    def takes(self) -> dict[str, bool]:
        return {"secret_key": True} if self.access_key_id else {}

    @property
    def url(self) -> str:
        """The endpoint of requests, without the bucket."""
        return self.endpoint or f"https://s3.{self.region}.amazonaws.com"

    def dials(self) -> list[str]:
        return [self.url]


class Folder(EndpointFields):
    """A folder on the worker's machine, within those that the settings allow."""

    kind: Literal["folder"] = "folder"
    path: FolderPath


class CatalogOAuth(Input):
    """The catalog issues a token for the client's id and the secret `client_secret`."""

    style: Literal["oauth2"] = "oauth2"
    token_url: Annotated[Url | None, Field(description="Default: the catalog's token endpoint")] = None
    client_id: Plain
    scope: Annotated[str, Field(max_length=1000)] = "catalog"


class Iceberg(EndpointFields):
    """Another Iceberg REST catalog."""

    UNMOVING: ClassVar[Unmoving] = {"auth": {"client_id": True, "scope": True}}

    kind: Literal["iceberg"] = "iceberg"
    uri: Url
    warehouse: Annotated[str, Field(max_length=500)] = ""
    auth: Annotated[NoAuth | BearerAuth | CatalogOAuth, Discriminator("style")] = NoAuth()

    def takes(self) -> dict[str, bool]:
        return _SECRETS[self.auth.style]

    def dials(self) -> list[str]:
        token_url = self.auth.token_url if isinstance(self.auth, CatalogOAuth) else None
        return [self.uri, *([token_url] if token_url else [])]


AnyPlace = PostgreSql | MySql | Http | ObjectStore | Folder | Iceberg
Source = Annotated[AnyPlace, Discriminator("kind")]
"""The external systems for connections."""
Target = Annotated[PostgreSql | MySql | Http | ObjectStore | Folder, Discriminator("kind")]
"""The external systems for destinations."""

KINDS = ("postgresql", "mysql", "http", "object_store", "folder", "iceberg")
SECRETS = ("password", "token", "client_secret", "secret_key")
"""All secrets that any kind supports."""
_ADAPTER: TypeAdapter[AnyPlace] = TypeAdapter(Source)


def parse(kind: str, config: dict[str, Any]) -> AnyPlace:
    """Parse a stored configuration; raises ValidationError."""
    return _ADAPTER.validate_python({**config, "kind": kind})


def stored(place: EndpointFields) -> dict[str, Any]:
    """A configuration as stored: without its kind, which has its own column."""
    return place.model_dump(mode="json", exclude={"kind"})
