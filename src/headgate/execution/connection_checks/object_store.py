"""An object store that speaks S3, by signed requests of the one client that judges every address."""

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from headgate.contracts.external_systems.kinds import ObjectStore
from headgate.execution.connection_checks.checks import CheckRequest, Streams, outgoing
from headgate.execution.steps.context import StepFailed
from headgate.outgoing.client import Outgoing, Response
from headgate.warehouse.sigv4 import AccessKey, signed

MOST_LOOKED_AT = 200_000
_EMPTY = hashlib.sha256(b"").hexdigest()
_MESSAGES = {
    "NoSuchBucket": ("NO_SUCH_BUCKET", "There is no such bucket; check its name and the endpoint"),
    "InvalidAccessKeyId": ("WRONG_CREDENTIALS", "The object store does not know this access key; check the access key"),
    "SignatureDoesNotMatch": ("WRONG_CREDENTIALS", "The secret key does not match the access key; set it again"),
    "AccessDenied": ("DENIED_THERE", "The access key may not list the bucket; grant it s3:ListBucket and s3:GetObject"),
    "AuthorizationHeaderMalformed": ("WRONG_REGION", "The bucket is in another region; check `region`"),
    "PermanentRedirect": ("WRONG_REGION", "The bucket is in another region; check `region` and the endpoint"),
    "RequestTimeTooSkewed": ("CLOCK", "The clocks of the worker and the object store differ; synchronize them"),
}


def test(asked: CheckRequest) -> str:
    """List one file."""
    listed = _Listing(asked)
    try:
        page = listed.page(1, "")
    finally:
        listed.close()
    files = "it contains files" if page.files else "it is empty"
    below = f" below {asked.config['prefix']}/" if asked.config["prefix"] else ""
    return f"The bucket can be listed; {files}{below}"


def discover(asked: CheckRequest) -> Streams:
    """List the files below the prefix that match the pattern."""
    streams, listed = Streams(asked.limit), _Listing(asked)
    try:
        for looked, (name, size, modified) in enumerate(listed.files()):
            if looked >= MOST_LOOKED_AT:
                streams.truncated = True
                break
            asked.check_time()
            is_wanted = asked.wants(name) and name.isprintable()
            if is_wanted and not streams.add(name, "file", bytes=size, modified_at=modified):
                break
    finally:
        listed.close()
    return streams


class _Page:
    """One page of an object listing."""

    def __init__(self, body: bytes) -> None:
        root = ET.fromstring(body)  # noqa: S314 - expat bounds what entities may grow to
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        self.files = [
            (entry.findtext("Key", ""), int(entry.findtext("Size", "0")), entry.findtext("LastModified") or None)
            for entry in root.findall("Contents")
        ]
        self.following = root.findtext("NextContinuationToken", "")


class _Listing:
    """Lists the objects of a bucket, page by page."""

    def __init__(self, asked: CheckRequest) -> None:
        self._asked, self._place = asked, ObjectStore.model_validate(asked.config)
        self._key = None
        if self._place.access_key_id:
            self._key = AccessKey(self._place.access_key_id, asked.secret("secret_key"))
        self._client = Outgoing(asked.settings.outgoing)

    def close(self) -> None:
        """Close the HTTP connection."""
        self._client.close()

    def files(self) -> Iterator[tuple[str, int, Any]]:
        """Every file below the prefix with its name, size and time."""
        following, begin = "", self._prefix
        while True:
            page = self.page(1000, following)
            for key, size, modified in page.files:
                if key.startswith(begin) and not key.endswith("/"):
                    yield key.removeprefix(begin), size, modified
            following = page.following
            if not following:
                return

    @property
    def _prefix(self) -> str:
        return f"{self._place.prefix}/" if self._place.prefix else ""

    def page(self, most: int, following: str) -> _Page:
        """One page with at most this many objects."""
        query = {"list-type": "2", "max-keys": str(most), "prefix": self._prefix}
        if following:
            query["continuation-token"] = following
        url = f"{self._address()}?" + "&".join(
            f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(query.items())
        )
        with outgoing():
            answer = self._client.request("GET", url, headers=self._headers(url))
        if answer.status != 200:
            raise self._failure(answer)
        try:
            return _Page(answer.body)
        except (ET.ParseError, ValueError):
            raise StepFailed("NOT_A_STORE", "The server does not speak the S3 protocol; check the endpoint") from None

    def _address(self) -> str:
        parts = urlsplit(self._place.url)
        if self._place.path_style:
            return f"{parts.scheme}://{parts.netloc}{parts.path}/{self._place.bucket}"
        return f"{parts.scheme}://{self._place.bucket}.{parts.netloc}{parts.path}/"

    def _headers(self, url: str) -> dict[str, str]:
        if self._key is None:
            return {}
        return signed("GET", url, {"x-amz-content-sha256": _EMPTY}, self._key, self._place.region, _EMPTY) | {
            "x-amz-content-sha256": _EMPTY
        }

    def _failure(self, answer: Response) -> StepFailed:
        try:
            code = ET.fromstring(answer.body).findtext("Code", "")  # noqa: S314 - as above
        except ET.ParseError:
            code = ""
        if code in _MESSAGES:
            return StepFailed(*_MESSAGES[code])
        if answer.status in {401, 403}:
            return StepFailed(
                "WRONG_CREDENTIALS",
                (
                    f"The object store rejects the credentials with status {answer.status}; check the keys and "
                    "their permissions"
                ),
            )
        told = (
            f"The object store answers with status {answer.status} {self._asked.plain(code)}; check endpoint, "
            "bucket and `path_style`"
        )
        return StepFailed("FAILED_THERE", told, passing=answer.status >= 500)
