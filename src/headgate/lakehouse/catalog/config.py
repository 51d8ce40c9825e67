"""Catalog configuration for clients: the supported endpoints, and how to access the files of a table."""

from typing import Any

from headgate.settings.settings import Settings
from headgate.warehouse.address import Address
from headgate.warehouse.bucket import BucketStore
from headgate.warehouse.folder import FolderStore
from headgate.warehouse.locations import metadata_root, table_root
from headgate.warehouse.store import Store

ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "POST /v1/{prefix}/namespaces",
    "POST /v1/{prefix}/namespaces/{namespace}/properties",
    "DELETE /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/tables/rename",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/namespaces/{namespace}/views",
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/views/rename",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
    "POST /v1/{prefix}/transactions/commit",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
)
"""The supported endpoints in the specification's notation. Clients call no others, so they do not try to register
tables.
"""


def catalog_config() -> dict[str, Any]:
    """The response to a client's configuration request."""
    return {"defaults": {}, "overrides": {}, "endpoints": list(ENDPOINTS)}


def is_folder(store: Store) -> bool:
    """Whether the warehouse is a local folder, protected only by the operating system."""
    return isinstance(store, FolderStore)


def table_config(settings: Settings, store: Store, table_id: str, *, ours: bool) -> dict[str, str]:
    """The file access properties of a table that an engine may load. Headgate's own Spark opens files through the
    guard's FileIO.
    """
    values = {}
    if isinstance(store, BucketStore):
        signs = ours or settings.warehouse.s3_access == "signing"
        values = {**place_config(store.address), **(signing_config(table_id) if signs else {})}
    if ours:
        values |= {
            "io-impl": "headgate.guard.TableFileIO",
            "headgate.root": f"{store.url}/{table_root(table_id)}",
            "headgate.metadata": f"{store.url}/{metadata_root(table_id)}",
        }
    return values


def place_config(address: Address) -> dict[str, str]:
    """The address of the bucket as properties of Java clients and PyIceberg."""
    values = {
        "s3.endpoint": address.endpoint,
        "s3.path-style-access": str(address.path_style).lower(),
        "client.region": address.region,
        "s3.region": address.region,
    }
    return values if address.path_style else {**values, "s3.force-virtual-addressing": "true"}


def signing_config(table_id: str) -> dict[str, str]:
    """Configure remote signing by the table's own signer endpoint, at the address known to the client."""
    signer = f"v1/signer/{table_id}"
    return {
        "s3.remote-signing-enabled": "true",
        "signer.endpoint": signer,
        # PyIceberg, and Java's clients before 1.11
        "s3.signer": "S3V4RestSigner",
        "s3.signer.endpoint": signer,
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        # Not a token: s3fs shares one connection with its signer among tables with equal properties, so each table
        # needs a different value. Clients ignore the value without an access key.
        "s3.session-token": table_id,
    }


def work_signing_config(authorization: str) -> dict[str, Any]:
    """Have each signing request send this header; otherwise Java's client sends the header of the process's first
    session.
    """
    return {"headers": {"Authorization": [authorization]}}
