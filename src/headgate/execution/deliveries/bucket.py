"""File deliveries to S3 buckets. Objects are atomic, and the run's manifest is written last. The keys of staged objects
contain the number of the attempt, so that a stale attempt cannot overwrite another's. The manifest is written with
If-None-Match: if two attempts finish at the same time, one wins and the other deletes its objects.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.external_systems.kinds import ObjectStore
from headgate.execution.deliveries.export import Exported
from headgate.execution.sources.fetch.bucket import Bucket, keyed
from headgate.execution.sources.rest.http_calls import pause, retry_after
from headgate.execution.sources.rest.requests import Limits
from headgate.execution.steps.context import Context, StepFailed
from headgate.kit.call_errors import CallRefused, OutgoingError
from headgate.kit.crash_points import crash_point
from headgate.outgoing.client import Outgoing, Response
from headgate.warehouse.sigv4 import signed

MANIFEST, LATEST = "_SUCCESS", "_LATEST.json"
PART = 8 << 20
"""The size of one request; a larger file is a multipart upload with parts of this size."""

ATTEMPTS = 5
_MOST_PARTS = 10_000
_OURS = re.compile(r"run_[0-9a-z]{20}-[0-9]{1,5}")
_TAKEN = {409, 412}
_CODES = {
    "NoSuchBucket": ("NO_SUCH_BUCKET", "there is no such bucket; check its name, the endpoint and `path_style`", False),
    "InvalidAccessKeyId": (
        "WRONG_CREDENTIALS",
        "the object store does not know this access key; check access_key_id",
        False,
    ),
    "SignatureDoesNotMatch": ("WRONG_CREDENTIALS", "the secret key or the region is wrong; set them again", False),
    "AuthorizationHeaderMalformed": ("WRONG_REGION", "the bucket is in another region; set `region`", False),
    "PermanentRedirect": ("WRONG_REGION", "the bucket is in another region; set `region` or the endpoint", False),
    "RequestTimeTooSkewed": ("CLOCK", "the clocks of the worker and the object store differ; synchronize them", False),
    "QuotaExceeded": ("FULL_THERE", "the object store is full; free space, and run the pipeline again", True),
    "XMinioStorageFull": ("FULL_THERE", "the object store is full; free space, and run the pipeline again", True),
    "NoSuchUpload": ("BUSY_THERE", "another process aborted the upload; run the pipeline again", True),
    "KeyTooLongError": ("FAILED_THERE", "the key of the object is too long; use a shorter target", False),
    "AccessDenied": (
        "DENIED_THERE",
        "the access key has too few permissions; grant it s3:ListBucket, GetObject, PutObject, DeleteObject and "
        "AbortMultipartUpload",
        False,
    ),
}
_BY_STATUS = {301: "PermanentRedirect", 307: "PermanentRedirect", 401: "InvalidAccessKeyId", 403: "AccessDenied"}


@contextmanager
def opened(
    context: Context,
    endpoint: Endpoint,
    parts: Sequence[str],
    own: str,
    fence: int,
) -> Iterator["BucketRunFolder"]:
    """The pipeline's prefix in the bucket."""
    place = ObjectStore.model_validate(endpoint.config)
    key = keyed(place.access_key_id, endpoint.secrets)
    bucket = Bucket(place.url, place.bucket, place.region, place.path_style, key)
    prefix = "/".join([*([place.prefix] if place.prefix else []), *parts])
    outgoing = Outgoing(context.settings.outgoing)
    try:
        yield BucketRunFolder(context, Objects(context, bucket, outgoing), f"{prefix}/", own, fence)
    finally:
        outgoing.close()


class Objects:
    """Operations on the objects of a bucket, by signed requests under the rules of outgoing calls."""

    def __init__(self, context: Context, bucket: Bucket, outgoing: Outgoing) -> None:
        self._context, self._bucket, self._outgoing = context, bucket, outgoing
        self.is_leaving = False
        """Whether to continue after the run was cancelled, as cleanup does."""

    def keys(self, prefix: str) -> list[str]:
        """The keys with this prefix."""
        return [entry.key for entry in self._bucket.objects(prefix, self._outgoing)]

    def read(self, key: str) -> bytes | None:
        """The content of a small object; None if it does not exist."""
        answer = self._asked("GET", key, fine={200, 404})
        return answer.body if answer.status == 200 else None

    def write(self, key: str, body: bytes, *, only_new: bool = False) -> bool:
        """Write an object; False if it must be new and exists. Stores without conditional writes overwrite it."""
        if only_new:
            result = self._asked("PUT", key, body, {"if-none-match": "*"}, fine={200, 501, *_TAKEN}).status
            if result != 501:
                return result == 200
        return self._asked("PUT", key, body).status == 200

    def upload(self, key: str, file: Path) -> None:
        """Upload a file, in parts if it is large."""
        size = file.stat().st_size
        if size <= PART:
            self.write(key, file.read_bytes())
            return
        step = max(PART, -(-size // _MOST_PARTS))
        upload = _found(self._asked("POST", key, query={"uploads": ""}), "UploadId")
        tags: list[str] = []
        with file.open("rb") as source:
            while block := source.read(step):
                query = {"partNumber": str(len(tags) + 1), "uploadId": upload}
                tags.append(self._asked("PUT", key, block, query=query).headers.get("etag", ""))
        crash_point("delivery: parts put")
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        answer = self._asked("POST", key, body, query={"uploadId": upload})
        # A store that meanwhile found an error has begun to answer 200 before it did.
        if b"<Error>" in answer.body:
            raise self._trouble(answer)

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""
        self._asked("DELETE", key, fine={200, 204, 404})

    def uploads(self, prefix: str) -> list[tuple[str, str]]:
        """The keys and ids of incomplete multipart uploads; none if the object store does not list them."""
        answer = self._asked("GET", "", query={"prefix": prefix, "uploads": ""}, fine={200, 400, 403, 404, 405, 501})
        if answer.status != 200:
            return []
        results = [
            (element.findtext("{*}Key") or "", element.findtext("{*}UploadId") or "")
            for element in _parsed(answer).iterfind("{*}Upload")
        ]
        return [(key, upload) for key, upload in results if key.startswith(prefix) and upload]

    def abort(self, key: str, upload: str) -> None:
        """Abort a multipart upload."""
        self._asked("DELETE", key, query={"uploadId": upload}, fine={200, 204, 404})

    def _asked(
        self,
        method: str,
        key: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        fine: set[int] | None = None,
    ) -> Response:
        """Send a request, and retry it after transient errors."""
        url = self._bucket.url(key) + (f"?{urlencode(sorted((query or {}).items()), quote_via=quote)}" if query else "")
        tried = 0
        while True:
            if not self.is_leaving:
                self._context.check_stopped()
            try:
                answer = self._sent(method, url, body, headers or {})
                if answer.status in (fine or {200}):
                    return answer
                failure, wait = self._trouble(answer), retry_after(answer.headers)
            except CallRefused as error:
                raise StepFailed(
                    "ADDRESS_REFUSED", f"Could not reach the bucket {self._bucket.name}: {error}"
                ) from None
            except OutgoingError as error:
                told = f"Could not reach the bucket {self._bucket.name}: {error}"
                failure, wait = StepFailed("UNREACHABLE", told, passing=True), None
            tried += 1
            if not failure.passing or tried >= ATTEMPTS:
                raise failure
            self._context.stopping.wait(min(pause(tried, Limits()) if wait is None else wait, 60))

    def _sent(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        digest = hashlib.sha256(body).hexdigest()
        given = {**headers, "x-amz-content-sha256": digest}
        if self._bucket.key is not None:
            given |= signed(method, url, given, self._bucket.key, self._bucket.region, digest)
        content = body if method in {"PUT", "POST"} else None
        return self._outgoing.request(method, url, headers=given, content=content, redirects=False)

    def _trouble(self, answer: Response) -> StepFailed:
        try:
            code = ET.fromstring(answer.body).findtext("{*}Code") or ""  # noqa: S314 - expat bounds entities
        except (ET.ParseError, ValueError, LookupError):
            code = ""
        known = _CODES.get(code) or _CODES.get(_BY_STATUS.get(answer.status, ""))
        if known:
            return StepFailed(known[0], f"Nothing was delivered to the bucket: {known[1]}", passing=known[2])
        shown = f" ({code})" if code.isalnum() and len(code) < 60 else ""
        if answer.status == 507:
            return StepFailed(
                "FULL_THERE", "The object store is full; free space, and run the pipeline again", passing=True
            )
        told = f"The bucket {self._bucket.name} answered with status {answer.status}{shown}; check the endpoint"
        return StepFailed("FAILED_THERE", told, passing=answer.status >= 500 or answer.status == 429)


def _parsed(answer: Response) -> ET.Element:
    try:
        return ET.fromstring(answer.body)  # noqa: S314 - expat bounds entities, and the body is bounded
    except (ET.ParseError, ValueError, LookupError):
        raise StepFailed("NOT_A_STORE", "The server does not speak the S3 protocol; check the endpoint") from None


def _found(answer: Response, name: str) -> str:
    result = _parsed(answer).findtext(f"{{*}}{name}")
    if not result:
        raise StepFailed("NOT_A_STORE", "The server does not speak the S3 protocol; check the endpoint")
    return result


class BucketRunFolder:
    """The prefix of a pipeline, and below it the prefix of the run."""

    def __init__(self, context: Context, objects: Objects, prefix: str, own: str, fence: int) -> None:
        self._context, self._objects, self._fence = context, objects, fence
        self._prefix, self._own = prefix, own
        self._uploads: list[tuple[str, str]] = []

    @property
    def _place(self) -> str:
        return f"{self._prefix}{self._own}/"

    @property
    def _told(self) -> str:
        return f"{self._place}{MANIFEST}"

    def left(self) -> dict[str, list[str]]:
        """The objects of runs without a manifest, and abandoned multipart uploads."""
        runs = self._runs(self._objects.keys(self._prefix))
        dead = {run: keys for run, keys in runs.items() if f"{self._prefix}{run}/{MANIFEST}" not in keys}
        self._uploads = self._objects.uploads(self._prefix)
        return {run: [] for run in self._runs([key for key, _ in self._uploads])} | dead

    def others(self) -> dict[str, list[str]]:
        """The objects of other completed runs, manifests first, so that no reader takes a partial run for a complete
        one.
        """
        runs = self._runs(self._objects.keys(self._prefix))
        return {run: sorted(keys, key=_manifest_first) for run, keys in runs.items() if run != self._own}

    def remove(self, result: dict[str, list[str]]) -> None:
        """Delete these objects, and abort these uploads."""
        for key, upload in self._uploads:
            if self._run(key) in result:
                self._objects.abort(key, upload)
        self._uploads = []
        for keys in result.values():
            self._delete(keys)

    def manifest(self) -> bytes | None:
        """The manifest of this run; None if it is not complete."""
        return self._objects.read(self._told)

    def put(self, exported: Exported, suffix: str) -> list[dict[str, Any]]:
        """Upload the files; without a manifest they do not count yet."""
        result = []
        for number, file in enumerate(exported.files):
            name = f"part-{self._fence}-{number:05}.{suffix}"
            self._objects.upload(f"{self._place}{name}", file)
            crash_point("delivery: a file put")
            result.append({"name": name, "bytes": file.stat().st_size})
        return result

    def appear(self, manifest: bytes) -> bool:
        """Write the manifest; if another attempt was faster, delete the objects of this one."""
        # A request that was repeated because its answer was lost meets its own.
        if self._objects.write(self._told, manifest, only_new=True) or self.manifest() == manifest:
            return self._is_whole(manifest)
        self._delete(self._mine())
        return False

    def _is_whole(self, manifest: bytes) -> bool:
        """Whether all objects of a manifest still exist: while this worker was suspended, a later run may have deleted
        them.
        """
        mine = {key.removeprefix(self._place) for key in self._mine()}
        if {value["name"] for value in json.loads(manifest)["files"]} <= mine:
            return True
        self._delete([self._told, *self._mine()])
        return False

    def point(self, manifest: bytes | None) -> None:
        """Write or delete `_LATEST.json`."""
        if manifest is None:
            self._objects.delete(f"{self._prefix}{LATEST}")
        else:
            self._objects.write(f"{self._prefix}{LATEST}", manifest)

    def give_up(self) -> None:
        """Delete the objects that this attempt uploaded."""
        self._objects.is_leaving = True
        for key, upload in self._objects.uploads(self._place):
            self._objects.abort(key, upload)
        self._delete(self._mine())

    def _mine(self) -> list[str]:
        mine = f"{self._place}part-{self._fence}-"
        return [key for key in self._objects.keys(self._place) if key.startswith(mine)]

    def _run(self, key: str) -> str:
        return key.removeprefix(self._prefix).partition("/")[0]

    def _runs(self, keys: list[str]) -> dict[str, list[str]]:
        """Group the pipeline's keys by run."""
        values: dict[str, list[str]] = {}
        for key in keys:
            if _OURS.fullmatch(self._run(key)):
                values.setdefault(self._run(key), []).append(key)
        return values

    def _delete(self, keys: list[str]) -> None:
        for key in keys:
            self._objects.delete(key)
            crash_point("delivery: one removed")


def _manifest_first(key: str) -> bool:
    return not key.endswith(f"/{MANIFEST}")
