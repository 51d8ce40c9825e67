"""The client's errors: one class for each HTTP status, with the server's message; and failures of the connection."""

from collections.abc import Mapping
from typing import Any

from headgate.kit import errors


class HeadgateError(errors.Problem):
    """An error response: its `status`, a `code` for programs, a message that says what to do; the body in `more`."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("detail") or body.get("title") or f"The server answered with status {status}"))
        self.status, self.code, self.more = status, str(body.get("code") or ""), dict(body)


class NotSignedIn(HeadgateError, errors.NotSignedIn):
    """The server does not accept the token."""


class Denied(HeadgateError, errors.Denied):
    """The member has no permission; the message says what is missing."""


class NotFound(HeadgateError, errors.NotFound):
    """The resource does not exist, or the member may not see it."""


class Conflict(HeadgateError, errors.Conflict):
    """The state of the resource does not allow the request."""


class VersionConflict(HeadgateError, errors.VersionConflict):
    """The resource has changed since it was read."""


class TooLarge(HeadgateError, errors.TooLarge):
    """The request body is larger than the server's limit."""


class Invalid(HeadgateError, errors.Invalid):
    """A value in the request is not valid."""


class TooManyAttempts(HeadgateError, errors.TooManyAttempts):
    """A rate limit or a concurrency limit is exceeded."""


class Unreachable(HeadgateError, errors.Unavailable):
    """The connection to the server failed."""

    def __init__(self, server: str, reason: str) -> None:
        detail = f"cannot reach {server}: {reason.rstrip('.')}; is `headgate up` running?"
        super().__init__(503, {"code": "unreachable", "detail": detail})


class StatementFailed(errors.Problem):
    """A statement did not succeed. `error_code` is the error class of Spark or of Headgate."""

    status, code, title = 422, "statement_failed", "The statement failed"

    def __init__(self, statement: dict[str, Any]) -> None:
        error = statement.get("error") or {}
        self.statement, self.error_code = statement, str(error.get("code") or statement["state"].upper())
        message = error.get("message") or f"The statement was {statement['state']}"
        super().__init__(f"[{self.error_code}] {message}" if error else message)


_BY_STATUS: dict[int, type[HeadgateError]] = {
    error.status: error
    for error in (NotSignedIn, Denied, NotFound, Conflict, VersionConflict, TooLarge, Invalid, TooManyAttempts)
}


def error_of(status: int, body: Mapping[str, Any]) -> HeadgateError:
    """The error for a response."""
    return _BY_STATUS.get(status, HeadgateError)(status, body)
