"""Remote signing: an engine without credentials for the object store has each request authorized and signed by the
catalog.

Each table has its own signer. It signs reads of the table's root and metadata folder for callers who may query it now,
and writes to its root for callers who may edit it now. It never signs writes to the metadata folder.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headgate.lakehouse.catalog import access, s3_requests
from headgate.lakehouse.catalog.errors import Malformed, NotSupported
from headgate.lakehouse.catalog.file_access import require_files
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.s3_requests import S3Request, SignableRequest, understood
from headgate.platform.audit.events import READ
from headgate.platform.unit_of_work.call import Call
from headgate.warehouse.bucket import BucketStore
from headgate.warehouse.sigv4 import signed
from headgate.warehouse.store import Store

_MOST_CHARACTERS = 8192
_MOST_HEADERS = 100


def described(body: dict[str, Any]) -> S3Request:
    """Parse a signing request."""
    method, uri, region = (_text(body, name) for name in ("method", "uri", "region"))
    headers, content = body.get("headers", {}), body.get("body")
    if not isinstance(headers, dict) or len(headers) > _MOST_HEADERS:
        raise Malformed("headers must be an object with a list of values for each header")
    if content is not None and not isinstance(content, str):
        raise Malformed("body must be a string")
    return S3Request(method, uri, region, {name: _values(value) for name, value in headers.items()}, content)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_CHARACTERS:
        raise Malformed(f"{name} is required: a string of at most {_MOST_CHARACTERS} characters")
    return value


def _values(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(value, str) and len(value) <= _MOST_CHARACTERS for value in values):
        raise Malformed("headers must be an object with a list of values for each header")
    return values


def bucket(store: Store) -> BucketStore:
    """The store, if requests to it are signed."""
    if not isinstance(store, BucketStore):
        raise NotSupported("This warehouse is a folder; remote signing is for buckets")
    return store


def table_of(call: Call, ident: Ident) -> str:
    """The id of a table by name, if the caller may query it."""
    entry = access.find(call, ident)
    access.require_table(call, s3_requests.READ, ident, entry)
    return entry.table_id or ""


def allowed(call: Call, request: S3Request, table_id: str) -> SignableRequest:
    """Authorize a request: first whether the caller may know the table, then the action."""
    store = bucket(call.services.store)
    decision = require_files(call, s3_requests.READ, table_id)
    wanted = understood(request, store.address, table_id)
    if wanted.action != s3_requests.READ:
        decision = require_files(call, wanted.action, table_id)
    if RECENT.is_first((call.caller.member, call.caller.token or "", table_id, wanted.action), call.now):
        event = call.event(
            READ, allowed=True, action=wanted.action, kind="table", resource_id=table_id, via=list(decision.via)
        )
        call.recorded.reads.append(event)
    return wanted


def sign(store: Store, request: S3Request, wanted: SignableRequest) -> dict[str, Any]:
    """The response to a client: the same URI, and the headers to add."""
    bucket_store = bucket(store)
    headers = signed(
        request.method, request.uri, wanted.headers, bucket_store.key, bucket_store.address.region, wanted.payload
    )
    return {"uri": request.uri, "headers": {name: [value] for name, value in headers.items()}}


@dataclass
class RecentSignatures:
    """Deduplicates audit entries: a scan of a thousand files is one entry, not a thousand."""

    lasts: timedelta = timedelta(minutes=1)
    most: int = 10_000
    _seen: OrderedDict[tuple[str, ...], datetime] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_first(self, key: tuple[str, ...], now: datetime) -> bool:
        """Whether this key is new within the time window; records it."""
        with self._lock:
            before = self._seen.get(key)
            if before is not None and now - before < self.lasts:
                return False
            self._seen[key] = now
            self._seen.move_to_end(key)
            while len(self._seen) > self.most:
                self._seen.popitem(last=False)
            return True


RECENT = RecentSignatures()
