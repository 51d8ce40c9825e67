"""A store in a bucket of Amazon S3, or of a store that speaks the same language.

A write is one request, or a multipart upload that appears when it is completed: whole or not at all. Both are sent with
`If-None-Match: *`, so that nothing is written over. A store that does not know this header ignores it; then only the
fresh names keep files apart, and `check` says so.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, BinaryIO, cast

from headgate.kit.log import get_logger
from headgate.settings.settings import Settings
from headgate.warehouse.address import Address, address_of
from headgate.warehouse.sigv4 import AccessKey
from headgate.warehouse.store import Missing, PathTaken, StoredFile, StoreUnavailable, checked

PART_BYTES = 8 << 20
"""What is written in one request; a longer file is uploaded in parts of this size."""

CONNECT_SECONDS, ANSWER_SECONDS, ATTEMPTS = 5, 60, 3

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_TAKEN = frozenset({"412", "PreconditionFailed", "409", "ConditionalRequestConflict"})
_log = get_logger("headgate.warehouse")


class BucketStore:
    """Files below a prefix of a bucket."""

    def __init__(self, settings: Settings) -> None:
        self.address: Address = address_of(settings)
        self.url = settings.warehouse_url
        secret = settings.warehouse.s3_secret_access_key
        self.key = AccessKey(settings.warehouse.s3_access_key_id or "", secret.get_secret_value() if secret else "")

    @cached_property
    def client(self) -> Any:
        """The client for everything but reading in the middle of files."""
        from botocore.config import Config  # noqa: PLC0415 - loads much
        from botocore.session import Session  # noqa: PLC0415

        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=ANSWER_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            s3={"addressing_style": "path" if self.address.path_style else "virtual"},
            # Only what the operation needs: stores other than Amazon's know no newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        # No profile of this machine's user decides where the warehouse is, or by which key.
        return Session(session_vars={"profile": (None, None, None, None)}).create_client(
            "s3",
            endpoint_url=self.address.endpoint,
            region_name=self.address.region,
            aws_access_key_id=self.key.id,
            aws_secret_access_key=self.key.secret,
            config=config,
        )

    @cached_property
    def _files(self) -> Any:
        """Arrow's own client: it reads ranges, ahead and in parallel."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=self.key.id,
            secret_key=self.key.secret,
            region=self.address.region,
            scheme=self.address.scheme,
            endpoint_override=self.address.host,
            force_virtual_addressing=not self.address.path_style,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=ANSWER_SECONDS,
        )

    def _key_of(self, path: str) -> str:
        return f"{self.address.prefix}{checked(path)}"

    def _at(self, path: str) -> dict[str, str]:
        return {"Bucket": self.address.bucket, "Key": self._key_of(path)}

    def read(self, path: str) -> bytes:
        """The content of a file, or Missing."""
        with self._asking(path):
            return cast("bytes", self.client.get_object(**self._at(path))["Body"].read())

    def open(self, path: str) -> BinaryIO:
        """A seekable file, or Missing."""
        return self.open_named(checked(path))

    def open_named(self, path: str) -> BinaryIO:
        """The same of a name that an engine chose; whoever asks has made sure that it lies where it may."""
        try:
            return cast("BinaryIO", self._files.open_input_file(f"{self.address.bucket}/{self.address.prefix}{path}"))
        except FileNotFoundError:
            raise Missing(path) from None
        except OSError as error:
            raise self._trouble(error) from None

    def write(self, path: str, parts: Iterable[bytes]) -> int:
        """Write a new file, whole or not at all, and durably; its size. Taken if there is one."""
        at, blocks = self._at(path), _blocks(parts)
        first = next(blocks, b"")
        second = next(blocks, None)
        if second is None:
            self._put(path, at, first)
            return len(first)
        return self._upload(path, at, _chain(first, second, blocks))

    def _put(self, path: str, at: dict[str, str], body: bytes) -> None:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        with self._asking(path):
            try:
                self.client.put_object(**at, Body=body, IfNoneMatch="*")
            except ClientError as error:
                # A request that was repeated because its answer was lost meets its own file.
                repeated = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0
                if not (repeated and _code(error) in _TAKEN and self.read(path) == body):
                    raise

    def _upload(self, path: str, at: dict[str, str], blocks: Iterator[bytes]) -> int:
        with self._asking(path):
            upload = {**at, "UploadId": self.client.create_multipart_upload(**at)["UploadId"]}
            try:
                size, sent = 0, []
                for number, block in enumerate(blocks, 1):
                    tag = self.client.upload_part(**upload, PartNumber=number, Body=block)["ETag"]
                    sent.append({"PartNumber": number, "ETag": tag})
                    size += len(block)
                self.client.complete_multipart_upload(**upload, MultipartUpload={"Parts": sent}, IfNoneMatch="*")
            except BaseException:
                with suppress(Exception):
                    self.client.abort_multipart_upload(**upload)
                raise
            return size

    def size(self, path: str) -> int:
        """The size of a file, or Missing."""
        return self.size_named(checked(path))

    def size_named(self, path: str) -> int:
        """The same of a name that an engine chose; whoever asks has made sure that it lies where it may."""
        with self._asking(path):
            result = self.client.head_object(Bucket=self.address.bucket, Key=f"{self.address.prefix}{path}")
            return int(result["ContentLength"])

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Every file below a folder, in no order; none if there is no such folder."""
        prefix = f"{self._key_of(folder)}/"
        with self._asking(folder):
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.address.bucket, Prefix=prefix)
            for page in pages:
                for value in page.get("Contents", []):
                    if not value["Key"].endswith("/"):
                        name = value["Key"].removeprefix(self.address.prefix)
                        yield StoredFile(name, value["Size"], value["LastModified"])

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        with suppress(Missing), self._asking(path):
            self.client.delete_object(**self._at(path))

    def delete_named(self, paths: Iterable[str]) -> None:
        """Delete files whose names an engine chose; whoever asks has made sure that they lie where they may."""
        self._delete_all([{"Key": f"{self.address.prefix}{path}"} for path in paths])

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its files."""
        prefix = f"{self._key_of(folder)}/"
        with self._asking(folder):
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.address.bucket, Prefix=prefix)
            for page in pages:
                self._delete_all([{"Key": value["Key"]} for value in page.get("Contents", [])])

    def _delete_all(self, keys: list[dict[str, str]]) -> None:
        """Delete files by their keys, at most a thousand."""
        if not keys:
            return
        with self._asking(keys[0]["Key"]):
            asked = {"Objects": keys, "Quiet": True}
            errors = self.client.delete_objects(Bucket=self.address.bucket, Delete=asked).get("Errors")
        if errors:
            raise StoreUnavailable(f"{len(errors)} files could not be deleted; the first error: {errors[0]}")

    def check(self) -> list[str]:
        """The problems that prevent the use of this bucket, each with what to do."""
        from headgate.warehouse.probes import probe  # noqa: PLC0415 - for doctor alone

        try:
            return probe(self, f"checks/{secrets.token_hex(8)}")
        except StoreUnavailable as trouble:
            return [f"{trouble.reason[:1].upper()}{trouble.reason[1:]}"]

    @contextmanager
    def _asking(self, path: str) -> Iterator[None]:
        """Map errors of the object store to messages."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        try:
            yield
        except ClientError as error:
            code = _code(error)
            if code in _MISSING:
                raise Missing(path) from None
            if code in _TAKEN:
                raise PathTaken(path) from None
            raise self._trouble(error, code) from None
        except BotoCoreError as error:
            raise self._trouble(error) from None

    def _trouble(self, error: Exception, code: str = "") -> StoreUnavailable:
        reason = self._reason(code or str(error), error)
        _log.warning("cannot use the warehouse", reason=reason)
        return StoreUnavailable(reason)

    def _reason(self, told: str, error: Exception) -> str:
        where = f"the bucket {self.address.bucket} at {self.address.endpoint}"
        sentences: list[tuple[tuple[str, ...], str]] = [
            (("NoSuchBucket", "NO_SUCH_BUCKET"), f"there is no {where[4:]}; create it, or change warehouse.url"),
            (
                ("InvalidAccessKeyId", "INVALID_ACCESS_KEY_ID", "SignatureDoesNotMatch", "SIGNATURE_DOES_NOT_MATCH"),
                f"the object store rejects the access key for {where}; check warehouse.s3_access_key_id, "
                "s3_secret_access_key and s3_region",
            ),
            (
                ("AccessDenied", "ACCESS_DENIED", "403"),
                f"the access key has too few permissions for {where}; grant it GetObject, PutObject, "
                "DeleteObject, AbortMultipartUpload and ListBucket",
            ),
            (
                ("Could not connect", "Connect timeout", "Failed to resolve", "NETWORK_CONNECTION", "Read timeout"),
                f"no server answers at {self.address.endpoint}; check warehouse.s3_endpoint, and that the object "
                "store is running",
            ),
            (
                ("RequestTimeTooSkewed", "REQUEST_TIME_TOO_SKEWED"),
                f"the clocks of this machine and of {where} differ; synchronize them",
            ),
        ]
        for marks, sentence in sentences:
            if any(mark in told for mark in marks):
                return sentence
        return f"{where} answered: {error}"


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, in blocks of one part each."""
    held = bytearray()
    for part in parts:
        held += part
        while len(held) >= PART_BYTES:
            yield bytes(held[:PART_BYTES])
            del held[:PART_BYTES]
    if held:
        yield bytes(held)


def _chain(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest
