"""Errors in the format, with the types and texts, that Iceberg clients expect."""

import json
from typing import ClassVar

from fastapi import Response

from headgate.kit.errors import (
    BadRequest,
    Conflict,
    CrossSite,
    Denied,
    DiskFull,
    Invalid,
    NotFound,
    NotSignedIn,
    Problem,
    TooLarge,
    TooManyAttempts,
    TooSlow,
    Unavailable,
    WrongMethod,
)

PREFIX = "/iceberg/"
"""Path prefix of responses with this error format."""


class IcebergError(Problem):
    """An error with an Iceberg error type."""

    type: ClassVar[str] = "ServiceFailureException"


class NoSuchTable(IcebergError):
    """The table does not exist or the caller may not see it."""

    status, code, title, type = 404, "not_found", "Table does not exist", "NoSuchTableException"


class NotWritten(NoSuchTable):
    """The table is declared and visible to the caller, but has no data to load yet."""

    title = "Table has no data yet"

    def __init__(self, table: str) -> None:
        super().__init__(
            f"Table {table} has no data and no columns yet: run the pipeline that writes it, or create its "
            f"columns with CREATE TABLE {table}"
        )


class NoSuchNamespace(IcebergError):
    """The layer does not exist or the caller may not see it."""

    status, code, title, type = 404, "not_found", "Namespace does not exist", "NoSuchNamespaceException"


class NoSuchView(IcebergError):
    """The view does not exist or the caller may not see it."""

    status, code, title, type = 404, "not_found", "View does not exist", "NoSuchViewException"


class AlreadyExists(IcebergError):
    """The name is taken."""

    status, code, title, type = 409, "conflict", "It already exists", "AlreadyExistsException"


class NamespaceNotEmpty(IcebergError):
    """A layer that is not empty cannot be dropped."""

    status, code, title, type = 409, "conflict", "Namespace is not empty", "NamespaceNotEmptyException"


class CommitFailed(IcebergError):
    """The commit was not applied; the client may refresh the table and retry."""

    status, code, title, type = (
        409,
        "conflict",
        "The table was changed concurrently; reload it",
        "CommitFailedException",
    )


class CommitUnknown(IcebergError):
    """The result of the commit is unknown. The status is not 503, because clients would then repeat the commit."""

    status, code, title, type = 500, "unavailable", "The commit may have been applied", "CommitStateUnknownException"


class Malformed(IcebergError):
    """The request cannot be parsed, or contains a value that no table may have."""

    status, code, title, type = 400, "bad_request", "Invalid request", "BadRequestException"


class NotValid(IcebergError):
    """The request is valid, but the resulting table is not permitted."""

    status, code, title, type = 400, "bad_request", "Invalid table metadata", "ValidationException"


class Unprocessable(IcebergError):
    """The parts of the request contradict one another."""

    status, code, title, type = 422, "invalid", "The request contradicts itself", "UnprocessableEntityException"


class Forbidden(IcebergError):
    """The operation is forbidden for everyone."""

    status, code, title, type = 403, "denied", "Not allowed", "ForbiddenException"


class NotSupported(IcebergError):
    """The catalog does not support this operation."""

    status, code, title, type = (
        406,
        "not_supported",
        "This catalog does not support the operation",
        "UnsupportedOperationException",
    )


class Damaged(IcebergError):
    """The content of a metadata file differs from what was committed, so it is not returned.

    The status is not 500, because Iceberg clients would retry for a minute and then report an unknown result.
    """

    status, code, title, type = 400, "bad_request", "The table's metadata is damaged", "ValidationException"


class MetadataMissing(Damaged):
    """A metadata file is missing. Iceberg clients distinguish this type from a missing table."""

    status, code, title, type = 404, "not_found", "The table's metadata file is missing", "NotFoundException"

    def __init__(self, address: str) -> None:
        super().__init__(f"Failed to open input stream for file: {address}. It is missing; restore it from a backup")


_TYPES: dict[type[Problem], tuple[int, str]] = {
    NotSignedIn: (401, "NotAuthorizedException"),
    Denied: (403, "ForbiddenException"),
    CrossSite: (403, "ForbiddenException"),
    NotFound: (404, "NotFoundException"),
    WrongMethod: (405, "UnsupportedOperationException"),
    TooSlow: (408, "BadRequestException"),
    Conflict: (409, "AlreadyExistsException"),
    TooLarge: (413, "BadRequestException"),
    Invalid: (400, "BadRequestException"),
    BadRequest: (400, "BadRequestException"),
    TooManyAttempts: (429, "TooManyRequestsException"),
    Unavailable: (503, "ServiceUnavailableException"),
    # The status is not 5xx: Iceberg clients then keep their files because the commit may have been applied. Here it was
    # not.
    DiskFull: (400, "BadRequestException"),
}


def respond(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """The error response in Iceberg's format."""
    if isinstance(problem, IcebergError):
        status, kind = problem.status, problem.type
    else:
        status, kind = _TYPES.get(type(problem), (problem.status, IcebergError.type))
    body = {"error": {"message": problem.detail, "type": kind, "code": status}}
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(content, status, headers, "application/json")
