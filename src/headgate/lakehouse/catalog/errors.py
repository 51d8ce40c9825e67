"""Errors in the form, with the types and in the words, that Iceberg's clients know."""

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
"""The paths whose errors have this form."""


class IcebergError(Problem):
    """An error that has a type of its own in Iceberg."""

    type: ClassVar[str] = "ServiceFailureException"


class NoSuchTable(IcebergError):
    """There is no such table that the caller may see."""

    status, code, title, type = 404, "not_found", "Table does not exist", "NoSuchTableException"


class NotWritten(NoSuchTable):
    """The table was declared, and the caller may see it; but nothing has written it, and there is nothing to load."""

    title = "Table has no data yet"

    def __init__(self, table: str) -> None:
        super().__init__(
            f"Table {table} has no data and no columns yet: run the pipeline that writes it, or create its "
            f"columns with CREATE TABLE {table}"
        )


class NoSuchNamespace(IcebergError):
    """There is no such layer that the caller may see."""

    status, code, title, type = 404, "not_found", "Namespace does not exist", "NoSuchNamespaceException"


class NoSuchView(IcebergError):
    """There is no such view that the caller may see."""

    status, code, title, type = 404, "not_found", "View does not exist", "NoSuchViewException"


class AlreadyExists(IcebergError):
    """The name is taken."""

    status, code, title, type = 409, "conflict", "It already exists", "AlreadyExistsException"


class NamespaceNotEmpty(IcebergError):
    """A layer that holds something cannot be dropped."""

    status, code, title, type = 409, "conflict", "Namespace is not empty", "NamespaceNotEmptyException"


class CommitFailed(IcebergError):
    """The commit was certainly not made; with a fresh look at the table it may be tried again."""

    status, code, title, type = (
        409,
        "conflict",
        "The table was changed concurrently; reload it",
        "CommitFailedException",
    )


class CommitUnknown(IcebergError):
    """Whether the commit was made is not known. Not 503: after that, clients send the same commit once more."""

    status, code, title, type = 500, "unavailable", "The commit may have been applied", "CommitStateUnknownException"


class Malformed(IcebergError):
    """The request cannot be understood, or asks for what no table may have."""

    status, code, title, type = 400, "bad_request", "Invalid request", "BadRequestException"


class NotValid(IcebergError):
    """The request is understood, and what it would make of the table is refused."""

    status, code, title, type = 400, "bad_request", "Invalid table metadata", "ValidationException"


class Unprocessable(IcebergError):
    """The parts of the request contradict one another."""

    status, code, title, type = 422, "invalid", "The request contradicts itself", "UnprocessableEntityException"


class Forbidden(IcebergError):
    """Nobody may do this here."""

    status, code, title, type = 403, "denied", "Not allowed", "ForbiddenException"


class NotSupported(IcebergError):
    """This catalog does not do that."""

    status, code, title, type = (
        406,
        "not_supported",
        "This catalog does not support the operation",
        "UnsupportedOperationException",
    )


class Damaged(IcebergError):
    """A metadata file is not the one that was committed; nothing of it is given out.

    No 500, which Iceberg's clients would ask for again for a minute, and then call an unknown outcome.
    """

    status, code, title, type = 400, "bad_request", "The table's metadata is damaged", "ValidationException"


class MetadataMissing(Damaged):
    """A metadata file is missing: Iceberg's own clients tell this type from a table that does not exist."""

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
    # No 5xx, after which Iceberg's clients leave what they wrote: the commit may have been made. Here it was not.
    DiskFull: (400, "BadRequestException"),
}


def respond(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """A problem as Iceberg's clients read it."""
    if isinstance(problem, IcebergError):
        status, kind = problem.status, problem.type
    else:
        status, kind = _TYPES.get(type(problem), (problem.status, IcebergError.type))
    body = {"error": {"message": problem.detail, "type": kind, "code": status}}
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(content, status, headers, "application/json")
