"""An object store that speaks the language of Amazon S3: what it lists, and how a request to it is signed.

Requests go by our own client, under the rules of all outgoing calls; from botocore come the signatures alone.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree as ET

from headgate.execution.sources.fetch.credentials import secret
from headgate.execution.sources.rest.http_calls import pause
from headgate.execution.sources.rest.requests import Limits
from headgate.execution.steps.context import StepFailed
from headgate.kit.call_errors import CallRefused, OutgoingError
from headgate.outgoing.client import Outgoing, Response
from headgate.warehouse.sigv4 import UNSIGNED, AccessKey, signed

RETRIES = 3
_PAGE = 1000
_CODES = {
    "NoSuchBucket": ("BUCKET_NOT_FOUND", "there is no such bucket; check its name, the endpoint and `path_style`"),
    "InvalidAccessKeyId": (
        "BUCKET_UNAUTHORIZED",
        "the object store does not know this access key; check access_key_id",
    ),
    "SignatureDoesNotMatch": ("BUCKET_UNAUTHORIZED", "the secret key or the region is wrong; set them again"),
    "AuthorizationHeaderMalformed": ("BUCKET_UNAUTHORIZED", "the bucket is in another region; set `region`"),
    "RequestTimeTooSkewed": ("BUCKET_CLOCK", "the clocks of the worker and the object store differ; synchronize them"),
    "PermanentRedirect": ("BUCKET_REGION", "the bucket is in another region; set `region` or the endpoint"),
    "AccessDenied": (
        "BUCKET_FORBIDDEN",
        "the access key has too few permissions; grant it s3:ListBucket and s3:GetObject",
    ),
}
_BY_STATUS = {301: "PermanentRedirect", 401: "InvalidAccessKeyId", 403: "AccessDenied", 404: "NoSuchBucket"}


@dataclass(frozen=True)
class Object:
    """An object that the store listed."""

    key: str
    size: int
    tag: str
    modified: datetime


@dataclass(frozen=True)
class Bucket:
    """A bucket, and the key by which it is read; without one, requests are not signed."""

    endpoint: str
    name: str
    region: str
    path_style: bool
    key: AccessKey | None = None
    session: str = field(default="", repr=False)

    def url(self, key: str) -> str:
        """The address of an object."""
        parts = urlsplit(self.endpoint)
        path = quote(key, safe="/-_.~")
        if self.path_style:
            return f"{parts.scheme}://{parts.netloc}{parts.path}/{self.name}/{path}"
        return f"{parts.scheme}://{self.name}.{parts.netloc}{parts.path}/{path}"

    def headers(self, url: str) -> dict[str, str]:
        """The headers that make a GET of an address of this bucket valid, now."""
        if self.key is None:
            return {}
        given = {"x-amz-security-token": self.session} if self.session else {}
        return {**given, **signed("GET", url, given, self.key, self.region, UNSIGNED)}

    def objects(self, prefix: str, outgoing: Outgoing) -> Iterator[Object]:
        """All objects whose key begins so."""
        token = ""
        while True:
            asked = {"list-type": "2", "max-keys": str(_PAGE), "prefix": prefix, "encoding-type": "url"}
            if token:
                asked["continuation-token"] = token
            url = f"{self.url('')}?{urlencode(sorted(asked.items()), quote_via=quote)}"
            element = self._patiently(url, outgoing)
            yield from map(_object, element.iterfind("{*}Contents"))
            following = element.findtext("{*}NextContinuationToken") or ""
            if element.findtext("{*}IsTruncated") != "true":
                return
            if not following or following == token:
                raise StepFailed(
                    "BUCKET_ODD", f"The object store truncated the list of {self.name} without a continuation token"
                )
            token = following

    def _patiently(self, url: str, outgoing: Outgoing) -> ET.Element:
        tried = 0
        while True:
            try:
                return self._asked(url, outgoing)
            except StepFailed as error:
                tried += 1
                if not error.passing or tried > RETRIES:
                    raise
                time.sleep(pause(tried, Limits()))

    def _asked(self, url: str, outgoing: Outgoing) -> ET.Element:
        try:
            answer = outgoing.request("GET", url, headers=self.headers(url))
        except CallRefused as error:
            raise StepFailed("ADDRESS_REFUSED", f"Could not reach the bucket {self.name}: {error}") from None
        except OutgoingError as error:
            told = f"Could not reach the bucket {self.name}: {error}"
            raise StepFailed("BUCKET_UNREACHABLE", told, passing=True) from None
        if answer.status != 200:
            raise self.trouble(answer.status, _code(answer))
        try:
            return ET.fromstring(answer.body)  # noqa: S314 - expat bounds entities, and the body is bounded
        except ET.ParseError:
            told = f"The server at {urlsplit(self.endpoint).netloc} is not an S3 object store; check the endpoint"
            raise StepFailed("BUCKET_ODD", told) from None

    def trouble(self, status: int, code: str) -> StepFailed:
        """What to say of an answer that refuses."""
        known = _CODES.get(code) or _CODES.get(_BY_STATUS.get(status, ""))
        if known:
            return StepFailed(known[0], f"Cannot read the bucket {self.name}: {known[1]}")
        told = f"The bucket {self.name} answered with status {status}" + (f" ({code})" if code else "")
        return StepFailed("BUCKET_UNREACHABLE", told, passing=status >= 500 or status == 429)


def _object(element: ET.Element) -> Object:
    try:
        key, size = unquote(element.findtext("{*}Key") or ""), int(element.findtext("{*}Size") or "")
        modified = datetime.fromisoformat(element.findtext("{*}LastModified") or "")
    except ValueError:
        raise StepFailed("BUCKET_ODD", "The object store's list of objects is not valid S3 XML") from None
    return Object(key, size, element.findtext("{*}ETag") or "", modified)


def _code(answer: Response) -> str:
    """The store's word for what is wrong."""
    try:
        result = ET.fromstring(answer.body).findtext("{*}Code") or ""  # noqa: S314 - as above
    except ET.ParseError:
        return ""
    return result if result.isalnum() and len(result) < 60 else ""


def keyed(identifier: str | None, secrets: Mapping[str, str]) -> AccessKey | None:
    """The key of a connection, if it has one."""
    return AccessKey(identifier, secret(secrets, "secret_key")) if identifier else None
