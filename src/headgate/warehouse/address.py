"""The location of a warehouse bucket: host, bucket and prefix."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from headgate.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Address:
    """A prefix of a bucket at an endpoint."""

    scheme: str
    host: str
    """Of the endpoint, with its port if it is not the usual one; without the bucket."""

    region: str
    bucket: str
    prefix: str
    """What every key of ours starts with: empty, or ends with a slash."""

    path_style: bool

    @property
    def endpoint(self) -> str:
        """The endpoint, as clients are told."""
        return f"{self.scheme}://{self.host}"

    @property
    def request_host(self) -> str:
        """The host of requests for this bucket."""
        return self.host if self.path_style else f"{self.bucket}.{self.host}"

    @property
    def request_root(self) -> str:
        """The path prefix of requests for this bucket, before the key."""
        return f"/{self.bucket}/" if self.path_style else "/"


def address_of(settings: Settings) -> Address:
    """The bucket in the settings."""
    given = settings.warehouse
    place = urlsplit(settings.warehouse_url)
    endpoint = urlsplit(given.s3_endpoint or f"https://s3.{given.s3_region}.amazonaws.com")
    usual = {"http": 80, "https": 443}[endpoint.scheme]
    port = f":{endpoint.port}" if endpoint.port not in (None, usual) else ""
    prefix = place.path.strip("/")
    return Address(
        endpoint.scheme,
        f"{endpoint.hostname}{port}",
        given.s3_region,
        place.netloc,
        f"{prefix}/" if prefix else "",
        given.s3_path_style,
    )
