"""Another Iceberg REST catalog: what it says of a table, and who signs the requests for the table's files.

It is asked by our own client, not by PyIceberg's: a catalog can tell its clients where to go, which class to load and
which files to open, and this one is not trusted. What it may choose is where in a store of the language of S3 the files
lie, under the rules of all outgoing calls.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from headgate.contracts.external_systems.kinds import BearerAuth, CatalogOAuth, Iceberg
from headgate.execution.sources.fetch.bucket import Bucket
from headgate.execution.sources.fetch.credentials import posted, secret
from headgate.execution.sources.rest.auth import Credentials
from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.requests import Auth
from headgate.execution.sources.rest.wire import origin
from headgate.execution.steps.context import StepFailed
from headgate.kit.call_errors import CallRefused, OutgoingError
from headgate.outgoing.client import Outgoing
from headgate.warehouse.sigv4 import AccessKey

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

MAX_METADATA = 128 << 20
_SEPARATOR = "\x1f"
_MARGIN = 60.0
_USUAL_REGION = "us-east-1"
NOT_A_CATALOG = "The server is not an Iceberg REST catalog; check the connection's `uri`"


@dataclass(frozen=True)
class Loaded:
    """A table as the catalog tells of it, and how its files are reached."""

    metadata: "TableMetadata"
    config: Mapping[str, str] = field(repr=False)
    credentials: tuple[tuple[str, Mapping[str, str]], ...] = field(repr=False)
    """Keys for what begins with a prefix."""

    def told(self, location: str) -> dict[str, str]:
        """The settings that hold for a location."""
        fitting = [credential for credential in self.credentials if location.startswith(credential[0])]
        best: Mapping[str, str] = max(fitting, key=lambda value: len(value[0]))[1] if fitting else {}
        return {**self.config, **best}


class Catalog:
    """The catalog, as one connection sees it."""

    def __init__(self, place: Iceberg, secrets: Mapping[str, str], outgoing: Outgoing) -> None:
        self._place, self._outgoing = place, outgoing
        self._credentials = Credentials(_auth(place, secrets), lambda *sent: posted(outgoing, *sent))
        self._home = origin(urlsplit(place.uri))

    def load(self, name: str) -> Loaded:
        """Load the metadata of a table, by its full name; StepFailed if it cannot be read."""
        from pyiceberg.exceptions import ValidationError
        from pyiceberg.table.metadata import TableMetadataUtil

        *levels, table = name.split(".")
        if not levels or not all((*levels, table)):
            raise StepFailed("NO_SUCH_TABLE", f"{name!r} is not the name of a table; write namespace.table")
        namespace = quote(_SEPARATOR.join(levels), safe="")
        values = self._ask(f"{self._root}/namespaces/{namespace}/tables/{quote(table, safe='')}", name)
        try:
            metadata = TableMetadataUtil.parse_obj(values["metadata"])
            config = _texts(values.get("config") or {})
            lent = [
                (str(value["prefix"]), _texts(value["config"])) for value in values.get("storage-credentials") or ()
            ]
        except (KeyError, TypeError, ValueError, AttributeError, ValidationError):
            told = f"The catalog's metadata of {name} is invalid, or in an unsupported format version"
            raise StepFailed("CATALOG_ODD", told) from None
        return Loaded(metadata, config, tuple(lent))

    def signed(self, url: str, told: Mapping[str, str], region: str) -> dict[str, str]:
        """The headers that authorize the read of a file."""
        base = told.get("signer.uri") or told.get("s3.signer.uri") or self._place.uri
        path = told.get("signer.endpoint") or told.get("s3.signer.endpoint") or "v1/aws/s3/sign"
        signer = urljoin(base.rstrip("/") + "/", path)
        try:
            is_home = origin(urlsplit(signer)) == self._home
        except ValueError:
            is_home = False
        if not is_home:
            told_ = (
                "The catalog requires requests to be signed at another host, to which its token is not sent; "
                "nothing was read"
            )
            raise StepFailed("CATALOG_ODD", told_)
        wish = {"region": region, "uri": url, "method": "GET", "headers": {}, "properties": {}}
        result = self._sent("POST", signer, "the files", wish)
        headers = result.get("headers")
        if not isinstance(headers, dict):
            raise StepFailed("CATALOG_ODD", NOT_A_CATALOG)
        values = {
            name.lower(): value[0] if isinstance(value, list) and value else value for name, value in headers.items()
        }
        return {name: value for name, value in values.items() if isinstance(value, str) and name != "host"}

    @cached_property
    def _root(self) -> str:
        """Where below its address the catalog wants to be asked."""
        warehouse = self._place.warehouse
        values = self._ask(
            "/v1/config" + (f"?{urlencode({'warehouse': warehouse})}" if warehouse else ""), "the catalog"
        )
        parts = [values.get(name) for name in ("defaults", "overrides")]
        told = {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}
        prefix = str(told.get("prefix") or "").strip("/")
        return f"/v1/{quote(prefix, safe='/')}" if prefix else "/v1"

    def _ask(self, path: str, what: str) -> dict[str, Any]:
        return self._sent("GET", self._place.uri.rstrip("/") + path, what, None)

    def _sent(self, method: str, url: str, what: str, body: Any) -> dict[str, Any]:
        for again in (False, True):
            status, content = self._once(method, url, what, body)
            if status == 401 and not again and self._credentials.refused():
                continue
            break
        if status != 200:
            raise _trouble(status, what, content)
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise StepFailed("CATALOG_ODD", NOT_A_CATALOG)
        return document

    def _once(self, method: str, url: str, what: str, body: Any) -> tuple[int, bytes]:
        try:
            headers = {
                "Accept": "application/json",
                "X-Iceberg-Access-Delegation": "vended-credentials,remote-signing",
                **self._credentials.headers(),
            }
            if method == "POST":
                answer = self._outgoing.request("POST", url, headers=headers, json=body)
                return answer.status, answer.body
            with self._outgoing.stream(url, headers=headers) as streamed_response:
                content = bytearray()
                for piece in streamed_response.pieces:
                    content += piece
                    if len(content) > MAX_METADATA:
                        raise StepFailed(
                            "CATALOG_ODD", f"The catalog's response about {what} is larger than {MAX_METADATA:,} bytes"
                        )
                return streamed_response.status, bytes(content)
        except CallRefused as error:
            raise StepFailed(
                "ADDRESS_REFUSED", f"The catalog's address is not allowed for outgoing calls: {error}"
            ) from None
        except OutgoingError as error:
            raise StepFailed("CATALOG_UNREACHABLE", f"Could not reach the catalog: {error}", passing=True) from None
        except ApiFailed as error:
            raise StepFailed(error.code, error.message, passing=error.passing) from None


class Files:
    """Where the files of a table are got, and with which headers; keys are asked for anew before they end."""

    def __init__(self, catalog: Catalog, load: Callable[[], Loaded], loaded: Loaded) -> None:
        self._catalog, self._load, self._loaded = catalog, load, loaded
        self._lock = threading.Lock()

    def address(self, location: str) -> tuple[str, Callable[[], dict[str, str]]]:
        """The address of a file, and what makes its headers; StepFailed if it does not lie in a store."""
        parts = urlsplit(location)
        if parts.scheme not in {"s3", "s3a", "s3n"} or not parts.netloc or "#" in location or "?" in location:
            kind = parts.scheme if parts.scheme.isalnum() else "no store"
            told = f"The table's files are in {kind[:20]!r}, but only S3 object stores are supported"
            raise StepFailed("FILES_ELSEWHERE", told)
        key = parts.path.removeprefix("/")
        url = self._bucket(location, parts.netloc).url(key)

        def headers() -> dict[str, str]:
            bucket, told = self._bucket(location, parts.netloc), self._told(location)
            if bucket.key is None and told.get("s3.remote-signing-enabled", "").lower() == "true":
                return self._catalog.signed(url, told, bucket.region)
            return bucket.headers(url)

        return url, headers

    def _told(self, location: str) -> dict[str, str]:
        with self._lock:
            told = self._loaded.told(location)
            ends = told.get("s3.session-token-expires-at-ms", "")
            if ends.isdecimal() and int(ends) / 1000 < time.time() + _MARGIN:
                self._loaded = self._load()
                told = self._loaded.told(location)
            return told

    def _bucket(self, location: str, name: str) -> Bucket:
        told = self._told(location)
        region = told.get("s3.region") or told.get("client.region") or _USUAL_REGION
        endpoint = (told.get("s3.endpoint") or f"https://s3.{region}.amazonaws.com").rstrip("/")
        identifier, hidden = told.get("s3.access-key-id"), told.get("s3.secret-access-key")
        key = AccessKey(identifier, hidden) if identifier and hidden else None
        path_style = told.get("s3.path-style-access", "").lower() == "true" or "." in name
        return Bucket(endpoint, name, region, path_style, key, told.get("s3.session-token", "") if key else "")


def _auth(place: Iceberg, secrets: Mapping[str, str]) -> Auth:
    auth = place.auth
    match auth:
        case BearerAuth():
            return Auth("bearer", secret=secret(secrets, "token"))
        case CatalogOAuth():
            url = auth.token_url or f"{place.uri.rstrip('/')}/v1/oauth/tokens"
            return Auth("oauth2", auth.client_id, secret(secrets, "client_secret"), url, auth.scope, in_body=True)
    return Auth()


def _texts(result: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): value for name, value in result.items() if isinstance(value, str)}


def _trouble(status: int, what: str, content: bytes) -> StepFailed:
    if status in {401, 419}:
        told = (
            "The catalog rejects the credentials; set the connection's secret again, and check that it has not expired"
        )
        return StepFailed("CATALOG_UNAUTHORIZED", f"{told} ({status})")
    if status == 403:
        return StepFailed(
            "CATALOG_FORBIDDEN",
            f"The connection has no permission to read {what} in the catalog (403); grant it in the catalog",
        )
    if status == 404:
        told = f"The catalog has no {what} (404); check the stream's name, `uri` and `warehouse`"
        return StepFailed("NO_SUCH_TABLE", told)
    passing = status in {408, 425, 429} or status >= 500
    return StepFailed(
        "CATALOG_UNREACHABLE", f"The catalog answered with status {status} when asked for {what}", passing=passing
    )
