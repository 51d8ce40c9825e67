"""Signatures of requests to an object store (AWS Signature Version 4), computed by botocore."""

from collections.abc import Mapping
from dataclasses import dataclass, field

UNSIGNED = "UNSIGNED-PAYLOAD"
"""In place of the body's hash: the signature is for any body."""

TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
"""The same, for a body that is sent in chunks with its checksum after it."""


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key of an object store."""

    id: str
    secret: str = field(repr=False)


def signed(
    method: str, url: str, headers: Mapping[str, str], key: AccessKey, region: str, payload: str
) -> dict[str, str]:
    """The headers that make a request valid, to be sent beside `headers`, all of which are signed.

    `payload` is the SHA-256 of its body, or one of the words above.
    """
    from botocore.auth import S3SigV4Auth  # noqa: PLC0415 - loads much
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415
    from botocore.credentials import Credentials  # noqa: PLC0415

    class Auth(S3SigV4Auth):  # type: ignore[misc]
        """Takes the payload's hash from us: the body is the client's, and may be gigabytes."""

        def payload(self, request: object) -> str:
            return payload

    request = AWSRequest(method, url, headers=dict(headers))
    Auth(Credentials(key.id, key.secret), "s3", region).add_auth(request)
    given = {name.lower() for name in headers}
    return {name: value for name, value in request.headers.items() if name.lower() not in given}
