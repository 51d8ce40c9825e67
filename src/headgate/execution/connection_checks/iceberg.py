"""Connection checks of Iceberg REST catalogs, with requests by our own HTTP client and models from PyIceberg."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from headgate.execution.connection_checks.checks import CheckRequest, Streams, outgoing
from headgate.execution.connection_checks.http import post
from headgate.execution.sources.rest.auth import Credentials
from headgate.execution.sources.rest.requests import Auth
from headgate.execution.steps.context import StepFailed
from headgate.outgoing.client import Outgoing

MOST_NAMESPACES = 2000
NOT_A_CATALOG = "The server is not an Iceberg REST catalog; check `uri`"
_SEPARATOR = "\x1f"
Path = tuple[str, ...]


def test(asked: CheckRequest) -> str:
    """Request the catalog's configuration and its namespaces."""
    with _opened(asked) as catalog:
        results = list(catalog.namespaces(()))
    return f"Connected to the catalog; it lists {len(results)} namespaces"


def discover(asked: CheckRequest) -> Streams:
    """List the tables of the catalog with their columns and keys."""
    streams = Streams(asked.limit)
    with _opened(asked) as catalog:
        for path in _every_namespace(catalog):
            for name in catalog.tables(path):
                full = ".".join((*path, name))
                if asked.wants(full) and not streams.add(full, "table", **catalog.described(path, name)):
                    return streams
    return streams


@contextmanager
def _opened(asked: CheckRequest) -> Iterator["_Catalog"]:
    catalog = _Catalog(asked)
    try:
        yield catalog
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StepFailed("NOT_A_CATALOG", NOT_A_CATALOG) from None
    finally:
        catalog.close()


def _every_namespace(catalog: "_Catalog") -> Iterator[Path]:
    pending: list[Path] = sorted(catalog.namespaces(()), reverse=True)
    seen = 0
    while pending and seen < MOST_NAMESPACES:
        path = pending.pop()
        seen += 1
        yield path
        pending += sorted(
            (namespace for namespace in catalog.namespaces(path) if len(namespace) > len(path)), reverse=True
        )


class _Catalog:
    """The REST catalog, with the connection's credentials."""

    def __init__(self, asked: CheckRequest) -> None:
        self._asked, self._client = asked, Outgoing(asked.settings.outgoing)
        self._credentials = Credentials(self._auth(), lambda *sent: post(self._client, *sent))

    def close(self) -> None:
        """Close the HTTP connection."""
        self._client.close()

    def _auth(self) -> Auth:
        auth: dict[str, Any] = self._asked.config["auth"]
        if auth["style"] == "bearer":
            return Auth("bearer", secret=self._asked.secret("token"))
        if auth["style"] == "oauth2":
            url = auth["token_url"] or f"{self._asked.config['uri']}/v1/oauth/tokens"
            secret = self._asked.secret("client_secret")
            return Auth("oauth2", auth["client_id"], secret, url, auth["scope"], in_body=True)
        return Auth()

    @cached_property
    def _root(self) -> str:
        """The base URL of requests, with the prefix from the catalog's configuration."""
        warehouse = self._asked.config["warehouse"]
        result = self._ask("/v1/config" + (f"?{urlencode({'warehouse': warehouse})}" if warehouse else ""))
        told = {**result.get("defaults", {}), **result.get("overrides", {})}
        prefix = str(told.get("prefix", "")).strip("/")
        return f"/v1/{quote(prefix, safe='/')}" if prefix else "/v1"

    def namespaces(self, parent: Path) -> Iterator[Path]:
        """The child namespaces of a namespace."""
        query = {"parent": _SEPARATOR.join(parent)} if parent else {}
        for page in self._pages(f"{self._root}/namespaces", "namespaces", query):
            yield tuple(str(part) for part in page)

    def tables(self, path: Path) -> Iterator[str]:
        """The names of the tables of a namespace."""
        for page in self._pages(f"{self._root}/namespaces/{_joined(path)}/tables", "identifiers", {}):
            yield str(page["name"])

    def described(self, path: Path, name: str) -> dict[str, Any]:
        """The columns and keys of a table; none if the catalog does not let this client load it."""
        from pyiceberg.schema import Schema

        try:
            result = self._ask(f"{self._root}/namespaces/{_joined(path)}/tables/{quote(name, safe='')}")
        except StepFailed as failure:
            if failure.code in {"WRONG_CREDENTIALS", "NO_SUCH_PATH"}:
                return {"columns": [], "keys": []}
            raise
        metadata = result["metadata"]
        current = metadata.get("current-schema-id", 0)
        schemas = {value["schema-id"]: value for value in metadata["schemas"]}
        schema = Schema.model_validate(schemas[current])
        columns = [
            {"name": field.name, "type": str(field.field_type), "nullable": not field.required}
            for field in schema.fields
        ]
        return {"columns": columns, "keys": sorted(schema.identifier_field_names())}

    def _pages(self, path: str, field: str, query: dict[str, str]) -> Iterator[Any]:
        token: str | None = ""
        while token is not None:
            self._asked.check_time()
            asked = urlencode({**query, **({"pageToken": token} if token else {})})
            result = self._ask(f"{path}?{asked}" if asked else path)
            yield from result.get(field) or []
            token = result.get("next-page-token") or None

    def _ask(self, path: str) -> Any:
        with outgoing():
            headers = {"Accept": "application/json", **self._credentials.headers()}
            answer = self._client.request("GET", self._asked.config["uri"] + path, headers=headers)
        if answer.status in {401, 403}:
            raise StepFailed(
                "WRONG_CREDENTIALS",
                f"The catalog rejects the credentials with status {answer.status}; check its credentials",
            )
        if answer.status == 404:
            raise StepFailed("NO_SUCH_PATH", "The catalog was not found (status 404); check `uri` and `warehouse`")
        if answer.status != 200:
            told = f"The catalog answers with status {answer.status}; check `uri`, and that the catalog is running"
            raise StepFailed("FAILED_THERE", told, passing=True)
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise StepFailed("NOT_A_CATALOG", NOT_A_CATALOG)
        return document


def _joined(path: Path) -> str:
    return quote(_SEPARATOR.join(path), safe="")
