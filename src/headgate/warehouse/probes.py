"""What `headgate doctor` tries at a bucket, beside reading and writing: what remote signing relies on."""

from contextlib import suppress

import httpx2 as httpx

from headgate.warehouse.bucket import ANSWER_SECONDS, CONNECT_SECONDS, BucketStore
from headgate.warehouse.sigv4 import UNSIGNED, signed
from headgate.warehouse.store import PathTaken

_TIMEOUT = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)


def probe(store: BucketStore, folder: str) -> list[str]:
    """What is amiss with a bucket that can be used; raises what the store raises if it cannot."""
    store.write(f"{folder}/file", [b"headgate"])
    try:
        results = (
            []
            if store.read(f"{folder}/file") == b"headgate"
            else ["The object store returns other bytes than were written"]
        )
        return [*results, *_is_written_over(store, folder), *_answers_anyone(store, folder), *_copies(store, folder)]
    finally:
        store.delete_folder(folder)


def _url(store: BucketStore, path: str) -> str:
    address = store.address
    return f"{address.scheme}://{address.request_host}{address.request_root}{address.prefix}{path}"


def _is_written_over(store: BucketStore, folder: str) -> list[str]:
    with suppress(PathTaken):
        store.write(f"{folder}/file", [b"again"])
        return ["The object store ignores If-None-Match and overwrites files; use a newer version of it"]
    return []


def _answers_anyone(store: BucketStore, folder: str) -> list[str]:
    """A bucket open to the world guards nothing."""
    answer = httpx.get(_url(store, f"{folder}/file"), timeout=_TIMEOUT)
    if answer.is_success:
        return [f"The bucket {store.address.bucket} is publicly readable; make it private"]
    return []


def _copies(store: BucketStore, folder: str) -> list[str]:
    """Whoever may write one table could otherwise copy another's files into it, by a header added after signing."""
    url = _url(store, f"{folder}/copy")
    headers = signed("PUT", url, {}, store.key, store.address.region, UNSIGNED)
    source = f"/{store.address.bucket}/{store.address.prefix}{folder}/file"
    answer = httpx.put(url, headers={**headers, "x-amz-copy-source": source}, timeout=_TIMEOUT)
    if answer.is_success:
        return [
            "The object store accepts unsigned headers, so request signing cannot protect tables; use another "
            "store, or set warehouse.s3_access to credentials"
        ]
    return []
